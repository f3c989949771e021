"""The graft of Di-Halo-Benzene: a ring with two halogens on a SMILES."""

from collections.abc import Mapping

from graphxai_data.generators.molecule_pool import Background
from graphxai_data.generators.smiles_text import free_ring_closure, insert_branches

RING_ATOMS, RATIONALE_ATOMS = 6, 8
# Where the two halogens can sit on a ring that is attached at position 1, up to symmetry.
PLACES = {
    "ortho": ((2, 3), (3, 4)),
    "meta": ((2, 4), (2, 6), (3, 5)),
    "para": ((2, 5),),
}


def graft(
    background: Background,
    attached_to: int,
    halogen: str,
    position: str,
    place: int,
    decoys: Mapping[int, str],
) -> tuple[str, int]:
    """Return the grafted SMILES, and the number of the first of the rationale's atoms in it.

    The ring, with two of `halogen` at `position`, takes the place of a hydrogen on the atom
    `attached_to`; the random word `place` selects the places on the ring. `decoys` are halogens by
    the atom of the background that carries them.
    """
    ring = "-" + ring_text(halogen, position, place, free_ring_closure(background.smiles))
    smiles, first_atom = insert_branches(background.smiles, {attached_to: ring, **decoys})
    return smiles, first_atom[attached_to]


def ring_text(halogen: str, position: str, place: int, closure: str) -> str:
    """Return the SMILES of a ring and its halogens, to be attached at position 1."""
    places = PLACES[position][place % len(PLACES[position])]
    text = ""
    for number in range(1, RING_ATOMS + 1):
        text += "c" + (closure if number in (1, RING_ATOMS) else "")
        text += f"({halogen})" if number in places else ""
    return text
