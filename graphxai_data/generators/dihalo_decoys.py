"""Decoys of Di-Halo-Benzene: three benzene rings with two halogens each, one of them alike.

One ring is grafted, two are of the background. Which of them has the like pair is drawn at random,
and so are the positions on all of them. So whatever does not compare halogens with each other finds
the rationale in one of three molecules.
"""

from collections.abc import Collection
from itertools import combinations
from typing import NamedTuple

from rdkit import Chem

from graphxai_data.generators.dihalo_graft import PLACES, ring_text
from graphxai_data.generators.molecule_pool import Background
from graphxai_data.generators.smiles_text import atoms_of, free_ring_closure, insert_branches
from graphxai_data.seeds import Words

# Random words that decide on rings, attachment, places and halogens of a molecule.
DECOY_WORDS = 12
_POSITIONS = ("ortho", "meta", "para")  # one, two or three bonds apart on the ring

Pairs = dict[str, list[tuple[int, int]]]


class Sites(NamedTuple):
    """Two benzene rings of a background, and where the third may be attached next to them."""

    rings: tuple[tuple[int, ...], tuple[int, ...]]  # their atoms, in the order of the bonds
    attachments: tuple[int, ...]


def aromatic_places(molecule: Chem.Mol, background: Background) -> tuple[int, ...]:
    """Return the aromatic carbons with a hydrogen: a graft there makes no new sp3 carbon."""
    return tuple(
        atom
        for atom, hydrogens in enumerate(background.hydrogens)
        if hydrogens and molecule.GetAtomWithIdx(atom).GetIsAromatic()
    )


def may_gain_stereo(molecule: Chem.Mol, background: Background) -> bool:
    """Return whether grafts on aromatic carbons could make a stereo centre or double bond.

    They do if they tell apart two branches that were the same, as on the carbon of a benzhydryl.
    With an isotope of its own on every such carbon, RDKit tells apart whatever a graft could.
    """
    marked = Chem.Mol(molecule)
    for atom in aromatic_places(molecule, background):
        marked.GetAtomWithIdx(atom).SetIsotope(atom + 1)
    before, after = (len(list(Chem.FindPotentialStereo(m))) for m in (molecule, marked))
    return bool(before != after)


def decoy_places(
    molecule: Chem.Mol, background: Background
) -> tuple[list[Sites], tuple[int, ...]] | str:
    """Return the sites and all aromatic carbons with a hydrogen, or why decoys do not fit."""
    sites = decoy_sites(molecule, background)
    if not sites:
        return "has no two benzene rings with room for halogens"
    if may_gain_stereo(molecule, background):
        return "a graft could make a stereo centre"
    return sites, aromatic_places(molecule, background)


def decoy_sites(molecule: Chem.Mol, background: Background) -> list[Sites]:
    """Return every choice of two benzene rings that can have halogens at all positions.

    After the graft, each of the two has at least two more substituents: only the grafted ring has a
    single one, so that the background can be told from the molecule.
    """
    pairs = list(combinations(_benzene_rings(molecule), 2))
    free = aromatic_places(molecule, background) if pairs else ()
    sites = []
    for rings in pairs:
        attachments = tuple(
            place
            for place in free
            if all(
                len(left := set(ring) & set(free) - {place}) < 5
                and len(_pairs(ring, left)) == len(_POSITIONS)
                for ring in rings
            )
        )
        if attachments:
            sites.append(Sites(rings, attachments))
    return sites


def graft_among_decoys(
    background: Background, halogens: tuple[str, str, str], position: str, words: Words
) -> tuple[str, list[int]]:
    """Return a SMILES with three rings, and the numbers of the rationale's eight atoms in it.

    One ring has two of the first halogen at `position`. The two others have one of each of the
    other halogens, at random positions. The random words [DECOY_WORDS] decide. The background has
    the `decoy_places` of its molecule.
    """
    options, places = background.places
    which, attachment, like, *rest = (int(word) for word in words)
    sites = options[which % len(options)]
    attached_to = sites.attachments[attachment % len(sites.attachments)]
    free = set(places) - {attached_to}
    like_ring = like % 3  # the grafted one is the last

    branches: dict[int, str] = {}
    for number in range(3):
        at, place, turn = rest[3 * number : 3 * number + 3]
        pair = (halogens[0],) * 2 if number == like_ring else halogens[1:][:: 1 if turn % 2 else -1]
        name = position if number == like_ring else _POSITIONS[at % len(_POSITIONS)]
        if number == 2:
            places = PLACES[name][place % len(PLACES[name])]
            closure = free_ring_closure(background.smiles)
            branches[attached_to] = "-" + ring_text(dict(zip(places, pair, strict=True)), closure)
        else:
            carbons = _pairs(sites.rings[number], free)[name]
            branches |= dict(zip(carbons[place % len(carbons)], pair, strict=True))

    smiles, first_atom = insert_branches(background.smiles, branches)
    if like_ring == 2:
        return smiles, list(range(first_atom[attached_to], first_atom[attached_to] + 8))
    ring = sites.rings[like_ring]
    bearing = [carbon for carbon in ring if carbon in branches and carbon != attached_to]
    return smiles, [*(_number(a, branches) for a in ring), *(first_atom[a] for a in bearing)]


def _number(atom: int, branches: dict[int, str]) -> int:
    """Return the number of an atom of the background after branches were inserted."""
    return atom + sum(len(atoms_of(text)) for at, text in branches.items() if at < atom)


def _pairs(ring: tuple[int, ...], free: Collection[int]) -> Pairs:
    """Return the pairs of free carbons of a ring, by their position to each other."""
    pairs: Pairs = {}
    for i, j in combinations([i for i, atom in enumerate(ring) if atom in free], 2):
        name = _POSITIONS[min(j - i, 6 - (j - i)) - 1]
        pairs.setdefault(name, []).append((ring[i], ring[j]))
    return pairs


def _benzene_rings(molecule: Chem.Mol) -> list[tuple[int, ...]]:
    """Return the rings of six aromatic carbons, fused ones too, but none fused to each other.

    Each begins with its first atom and goes on with the lower neighbour, and they are sorted, so
    that nothing depends on the order in which RDKit finds them.
    """
    rings = []
    for ring in molecule.GetRingInfo().AtomRings():
        atoms = [molecule.GetAtomWithIdx(atom) for atom in ring]
        if len(ring) != 6 or not all(a.GetIsAromatic() and a.GetSymbol() == "C" for a in atoms):
            continue
        first = ring.index(min(ring))
        turned = ring[first:] + ring[:first]
        rings.append(turned if turned[1] < turned[-1] else turned[:1] + turned[:0:-1])
    if len(rings) < 2:
        return []  # too few, and the rest takes time
    # In naphthalene or acridone it is not plain which carbons belong to a pair of halogens.
    systems = [_aromatic_system(molecule, ring) for ring in rings]
    alone = [sum(ring[0] in system for system in systems) == 1 for ring in rings]
    return sorted(ring for ring, is_alone in zip(rings, alone, strict=True) if is_alone)


def _aromatic_system(molecule: Chem.Mol, ring: tuple[int, ...]) -> set[int]:
    """Return the atoms that aromatic bonds connect to a ring, its own ones too."""
    system, new = set(ring), list(ring)
    while new:
        for bond in molecule.GetAtomWithIdx(new.pop()).GetBonds():
            for atom in (bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()):
                if bond.GetIsAromatic() and atom not in system:
                    system.add(atom)
                    new.append(atom)
    return system
