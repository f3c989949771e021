"""Class and number of alternatives of a molecule for each recipe of smarts, counted otherwise.

Atoms, bonds and rings are looked at one by one, without SMARTS; for esters and some rings, RDKit's
own table of fragments, which are SMARTS of RDKit's authors, has the number.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import permutations, product
from math import prod

from rdkit import Chem
from rdkit.Chem import Fragments

Atoms = frozenset[int]
# Class, and number of alternatives.
Counted = tuple[int, int]


def _atoms(molecule: Chem.Mol, *elements: str) -> list[Chem.Atom]:
    return [atom for atom in molecule.GetAtoms() if atom.GetSymbol() in elements]


def _rings(molecule: Chem.Mol, size: int) -> list[list[Chem.Atom]]:
    rings = molecule.GetRingInfo().AtomRings()
    return [[molecule.GetAtomWithIdx(i) for i in ring] for ring in rings if len(ring) == size]


def _numbers(atoms: Iterable[Chem.Atom]) -> Atoms:
    return frozenset(atom.GetIdx() for atom in atoms)


def _benzene_rings(molecule: Chem.Mol) -> list[list[Chem.Atom]]:
    return [
        ring
        for ring in _rings(molecule, 6)
        if all(atom.GetSymbol() == "C" and atom.GetIsAromatic() for atom in ring)
    ]


def _phenyls(molecule: Chem.Mol) -> int:
    """Benzene rings with at most one substituent."""
    return sum(
        sum(atom.GetTotalNumHs() == 1 for atom in ring) >= 5 for ring in _benzene_rings(molecule)
    )


def _double(molecule: Chem.Mol, one: str, other: str) -> list[tuple[Chem.Atom, Chem.Atom]]:
    """Return the ends of double bonds between these elements, once each."""
    ends = []
    for bond in molecule.GetBonds():
        if bond.GetBondType() == Chem.BondType.DOUBLE:
            pair = bond.GetBeginAtom(), bond.GetEndAtom()
            if any(a.GetIsAromatic() for a in pair):
                continue
            matching = [p for p in (pair, pair[::-1]) if [a.GetSymbol() for a in p] == [one, other]]
            ends += matching[:1]
    return ends


def _single(atom: Chem.Atom, element: str) -> Iterator[Chem.Atom]:
    """Yield the neighbours of an element, not aromatic, that a single bond joins to an atom."""
    for bond in atom.GetBonds():
        other = bond.GetOtherAtom(atom)
        is_single = bond.GetBondType() == Chem.BondType.SINGLE
        if is_single and other.GetSymbol() == element and not other.GetIsAromatic():
            yield other


def _amides(molecule: Chem.Mol) -> int:
    carbonyls = _double(molecule, "C", "O")
    return len({_numbers((n, c, o)) for c, o in carbonyls for n in _single(c, "N")})


def _amines(molecule: Chem.Mol) -> int:
    return sum(a.GetTotalNumHs() == 2 and a.GetDegree() == 1 for a in _atoms(molecule, "N"))


def _ethers(molecule: Chem.Mol) -> int:
    return sum(len(list(_single(atom, "C"))) == 2 for atom in _atoms(molecule, "O"))


def _hydroxyls(molecule: Chem.Mol) -> int:
    return sum(a.GetTotalNumHs() == 1 and a.GetDegree() == 1 for a in _atoms(molecule, "O"))


def _chains(molecule: Chem.Mol) -> set[Atoms]:
    """Return chains of three atoms outside rings, without double bonds and branches."""
    chains = set()
    for middle in molecule.GetAtoms():
        if middle.GetDegree() != 2 or middle.IsInRing():
            continue
        if any(bond.GetBondType() != Chem.BondType.SINGLE for bond in middle.GetBonds()):
            continue
        ends = list(middle.GetNeighbors())
        if not any(end.IsInRing() or end.GetDegree() > 2 for end in ends):
            chains.add(_numbers([middle, *ends]))
    return chains


def _chain_and_carbonyl(molecule: Chem.Mol) -> Counted:
    """A chain may end at the carbon of a carbonyl group: only minimal unions count."""
    carbonyls = {_numbers(pair) for pair in _double(molecule, "C", "O")}
    unions = {chain | carbonyl for chain, carbonyl in product(_chains(molecule), carbonyls)}
    larger = {one for one, other in permutations(unions, 2) if other < one}
    return _positive(len(unions - larger))


def _indoles(molecule: Chem.Mol) -> int:
    """Count a benzene ring and a pyrrole ring, its nitrogen next to an atom of both."""
    count = 0
    for six, five in product(_benzene_rings(molecule), _rings(molecule, 5)):
        shared = _numbers(six) & _numbers(five)
        if len(shared) != 2 or not all(atom.GetIsAromatic() for atom in five):
            continue
        if sorted(atom.GetSymbol() for atom in five) == ["C", "C", "C", "C", "N"]:
            (nitrogen,) = [atom for atom in five if atom.GetSymbol() == "N"]
            count += bool(_numbers(nitrogen.GetNeighbors()) & shared)
    return count


def _binding_8(molecule: Chem.Mol) -> Counted:
    both = len(_atoms(molecule, "F")) * _hydroxyls(molecule)
    alkenes = len(_double(molecule, "C", "C"))
    if both and alkenes:
        return 0, alkenes
    return _positive(both)


def _binding_10(molecule: Chem.Mol) -> Counted:
    ethers, phenyls, amines = _ethers(molecule), _phenyls(molecule), _amines(molecule)
    if ethers or (phenyls and not amines):
        return 0, ethers + (0 if amines else phenyls)
    return 1, amines if phenyls else 0


def _positive(count: int) -> Counted:
    """Only positives have something to show."""
    return int(count > 0), count


def _all_of(*counts: Callable[[Chem.Mol], int]) -> Callable[[Chem.Mol], Counted]:
    """Every choice of one match of each is an alternative."""
    return lambda molecule: _positive(prod(count(molecule) for count in counts))


def _halogens(molecule: Chem.Mol) -> int:
    return len(_atoms(molecule, "F", "Cl", "Br", "I"))


def _benzenes(molecule: Chem.Mol) -> int:
    return len(_benzene_rings(molecule))


def _fluorines(molecule: Chem.Mol) -> int:
    return len(_atoms(molecule, "F"))


COUNTS: dict[str, Callable[[Chem.Mol], Counted]] = {
    "alkane-carbonyl": _chain_and_carbonyl,
    "amide": _all_of(_amides),
    "benzene": _all_of(_benzenes),
    "binding-10": _binding_10,
    "binding-8": _binding_8,
    "ester-benzene": _all_of(Fragments.fr_ester, _benzenes),
    "fluoride-carbonyl": _all_of(_fluorines, Fragments.fr_C_O),
    "halogen": _all_of(_halogens),
    "indole": _all_of(_indoles),
    "logic-10": _all_of(_amines, _ethers, _benzenes),
    "logic-7": _all_of(_fluorines, Fragments.fr_C_O),
    "logic-8": _chain_and_carbonyl,
    "morpholine-benzene": _all_of(Fragments.fr_morpholine, Fragments.fr_benzene),
    "piperidine-benzene": _all_of(Fragments.fr_piperdine, Fragments.fr_benzene),
    "rings-max": _all_of(lambda molecule: len(_rings(molecule, 7))),
}
