"""The graft of Di-Halo-Benzene: a ring with two halogens, and decoys, on the text of a molecule."""

from typing import TYPE_CHECKING

import numpy as np
from rdkit import Chem

from graphxai_data.generators.molecule_pool import Background
from graphxai_data.generators.smiles_text import free_ring_closure, insert_branches
from graphxai_data.seeds import Words

if TYPE_CHECKING:
    from graphxai_data.generators.dihalo import Params

RING_ATOMS, RATIONALE_ATOMS = 6, 8
# Where the two halogens can sit on a ring that is attached at position 1, up to symmetry.
PLACES = {
    "ortho": ((2, 3), (3, 4)),
    "meta": ((2, 4), (2, 6), (3, 5)),
    "para": ((2, 5),),
}


def graft(
    params: "Params", background: Background, label: int, bond: int, place: int, decoys: Words
) -> tuple[str, int]:
    """The grafted SMILES, and the number of the first of the rationale's eight atoms in it.

    Args:
        params: of the recipe.
        background: to graft on.
        label: class of the graph.
        bond: random word that chooses the C-H bond.
        place: random word that chooses the halogens' place on the ring.
        decoys: random words, one for each atom and some for the order, that choose the decoys.
    """
    halogen, position = params.classes[label]
    carbons = [atom for atom, count in enumerate(background.hydrogens) for _ in range(count)]
    attached_to = carbons[bond % len(carbons)]
    choices = PLACES[position]
    places = choices[place % len(choices)]
    branches = {attached_to: _ring(halogen, places, free_ring_closure(background.smiles))}
    if params.decoys:
        others = [h for h in params.halogens if h != halogen for _ in range(2)]
        free = _decoy_atoms(background, attached_to, decoys)[: len(others)]
        # Carbons that were found late sit on rings less often: the halogens are shuffled over them.
        shuffled = np.argsort(decoys[-len(others) :], kind="stable")
        branches |= {atom: others[i] for atom, i in zip(free, shuffled, strict=True)}
    smiles, first_atom = insert_branches(background.smiles, branches)
    return smiles, first_atom[attached_to]


def _ring(halogen: str, places: tuple[int, int], closure: str) -> str:
    """SMILES of the ring, to be attached at position 1: just the eight atoms of the rationale."""
    text = "-"
    for position in range(1, RING_ATOMS + 1):
        text += "c" + (closure if position in (1, RING_ATOMS) else "")
        text += f"({halogen})" if position in places else ""
    return text


def _decoy_atoms(background: Background, attached_to: int, words: Words) -> list[int]:
    """Carbons with hydrogen in random order, passing over those on a ring with an earlier one."""
    molecule = Chem.MolFromSmiles(background.smiles)  # its ring information dies with it
    rings = molecule.GetRingInfo().AtomRings()
    candidates = [a for a, h in enumerate(background.hydrogens) if h and a != attached_to]
    keys = words[: len(candidates)]
    taken: list[int] = []
    for i in np.argsort(keys, kind="stable").tolist():
        atom = candidates[i]
        if not any(atom in ring and other in ring for ring in rings for other in taken):
            taken.append(atom)
    return taken


def sure_decoy_atoms(molecule: Chem.Mol, hydrogens: tuple[int, ...]) -> int:
    """How many decoys, no two on one ring, fit in whatever order they are placed.

    Every free carbon outside rings takes one, and so does every system of fused rings with a free
    carbon. One of these may go to the attachment, so one more than needed is asked for.
    """
    free = {atom for atom, count in enumerate(hydrogens) if count}
    systems: list[set[int]] = []
    for ring in map(set, molecule.GetRingInfo().AtomRings()):
        touching = [system for system in systems if system & ring]
        systems = [system for system in systems if not system & ring]
        systems.append(ring.union(*touching))
    in_rings = set[int]().union(*systems)
    return len(free - in_rings) + sum(1 for system in systems if system & free)
