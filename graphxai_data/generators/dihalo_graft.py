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
    background: Background, halogen: str, position: str, bond: int, place: int
) -> tuple[str, list[int]]:
    """Return the grafted SMILES, and the numbers of the rationale's eight atoms in it.

    The ring has two of `halogen` at `position`. Random words select the C-H `bond` that it replaces
    and the `place` of the halogens on the ring.
    """
    carbons = [atom for atom, count in enumerate(background.hydrogens) for _ in range(count)]
    attached_to = carbons[bond % len(carbons)]
    closure = free_ring_closure(background.smiles)
    ring = "-" + di_halo_ring(halogen, position, place, closure)
    smiles, first_atom = insert_branches(background.smiles, {attached_to: ring})
    first = first_atom[attached_to]
    return smiles, list(range(first, first + RATIONALE_ATOMS))


def di_halo_ring(halogen: str, position: str, place: int, closure: str) -> str:
    """Return the SMILES of a ring with two like halogens; the word `place` selects their places."""
    places = PLACES[position][place % len(PLACES[position])]
    return ring_text(dict.fromkeys(places, halogen), closure)


def ring_text(halogens: Mapping[int, str], closure: str) -> str:
    """Return the SMILES of a ring with halogens by their place, to be attached at place 1."""
    text = ""
    for place in range(1, RING_ATOMS + 1):
        text += "c" + (closure if place in (1, RING_ATOMS) else "")
        text += f"({halogens[place]})" if place in halogens else ""
    return text
