"""The graft of Di-Halo-Benzene: a ring with two halogens, and decoys, on a SMILES."""

from collections.abc import Sequence

import numpy as np
from rdkit import Chem

from graphxai_data.generators.molecule_pool import Background
from graphxai_data.generators.smiles_text import free_ring_closure, insert_branches
from graphxai_data.seeds import Words

RING_ATOMS, RATIONALE_ATOMS = 6, 8
# Where the two halogens can sit on a ring that is attached at position 1, up to symmetry.
PLACES = {
    "ortho": ((2, 3), (3, 4)),
    "meta": ((2, 4), (2, 6), (3, 5)),
    "para": ((2, 5),),
}


def graft(
    background: Background,
    halogen: str,
    position: str,
    others: Sequence[str],
    bond: int,
    place: int,
    words: Words,
) -> tuple[str, int]:
    """Return the grafted SMILES, and the number of the first of the rationale's atoms in it.

    The ring has two of `halogen` at `position`; `others` go to the background as decoys. Random
    words select the C-H `bond` and the `place` of the halogens on the ring; `words` decide on the
    decoys: one word per atom, and the last ones on their order.
    """
    carbons = [atom for atom, count in enumerate(background.hydrogens) for _ in range(count)]
    attached_to = carbons[bond % len(carbons)]
    places = PLACES[position][place % len(PLACES[position])]
    branches = {attached_to: _ring(halogen, places, free_ring_closure(background.smiles))}
    if others:
        free = _decoy_atoms(background, attached_to, words)[: len(others)]
        # The later a carbon is selected, the less often it is on a ring: shuffle the halogens.
        shuffled = np.argsort(words[-len(others) :], kind="stable")
        branches |= {atom: others[i] for atom, i in zip(free, shuffled, strict=True)}
    smiles, first_atom = insert_branches(background.smiles, branches)
    return smiles, first_atom[attached_to]


def _ring(halogen: str, places: tuple[int, int], closure: str) -> str:
    """Return the SMILES of the ring and its halogens, to be attached at position 1."""
    text = "-"
    for position in range(1, RING_ATOMS + 1):
        text += "c" + (closure if position in (1, RING_ATOMS) else "")
        text += f"({halogen})" if position in places else ""
    return text


def _decoy_atoms(background: Background, attached_to: int, words: Words) -> list[int]:
    """Return carbons with hydrogen in random order, at most one per ring."""
    molecule = Chem.MolFromSmiles(background.smiles)  # must outlive its ring information
    rings = molecule.GetRingInfo().AtomRings()
    candidates = [a for a, h in enumerate(background.hydrogens) if h and a != attached_to]
    taken: list[int] = []
    for i in np.argsort(words[: len(candidates)], kind="stable").tolist():
        atom = candidates[i]
        if not any(atom in ring and other in ring for ring in rings for other in taken):
            taken.append(atom)
    return taken


def guaranteed_decoys(molecule: Chem.Mol, hydrogens: tuple[int, ...]) -> int:
    """Return how many decoys, no two on one ring, fit in whatever order they are placed.

    Every free carbon outside rings takes one, and so does every system of fused rings with a free
    carbon.
    """
    free = {atom for atom, count in enumerate(hydrogens) if count}
    systems: list[set[int]] = []
    for ring in map(set, molecule.GetRingInfo().AtomRings()):
        touching = [system for system in systems if system & ring]
        systems = [system for system in systems if not system & ring]
        systems.append(ring.union(*touching))
    in_rings = set[int]().union(*systems)
    return len(free - in_rings) + sum(1 for system in systems if system & free)
