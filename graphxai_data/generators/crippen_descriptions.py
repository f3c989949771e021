"""Atom types of Wildman and Crippen from their descriptions, without SMARTS, for the proof.

The publication describes a type by its neighbours: C3, for example, is CH3 or CH2 with a heteroatom
next to it. Here such descriptions are conditions on the stored arrays of a graph. Only uncharged
atoms of carbon and `HETERO` are known. Where two descriptions fit, the order of the conditions
decides, which is that of RDKit.
"""

from collections.abc import Sequence
from typing import NamedTuple

HALOGENS = ("F", "Cl", "Br", "I")
HETERO = ("N", "O", "P", "S", *HALOGENS)


class Atom(NamedTuple):
    """A heavy atom: element, hydrogens, and neighbours with the kind of the bond to each."""

    element: str
    hydrogens: int
    aromatic: bool
    bonds: list[tuple[str, int]]  # "single", "double", "triple" or "aromatic", and the neighbour

    @property
    def connections(self) -> int:
        """Number of bonds, those to hydrogens included."""
        return len(self.bonds) + self.hydrogens


class Molecule:
    """The heavy atoms of a molecule, with what descriptions of types ask about."""

    def __init__(
        self, elements: Sequence[str], hydrogens: Sequence[int], bonds: dict[tuple[int, int], str]
    ) -> None:
        """Take the element and hydrogens of each atom, and the kind of bond in both directions."""
        neighbours: list[list[tuple[str, int]]] = [[] for _ in elements]
        for (atom, other), kind in bonds.items():
            neighbours[atom].append((kind, other))
        self.atoms = [
            Atom(element, count, any(kind == "aromatic" for kind, _ in near), near)
            for element, count, near in zip(elements, hydrogens, neighbours, strict=True)
        ]

    def types(self) -> list[tuple[str, str]]:
        """Return the type of each atom, and that of its hydrogens, "" if it has none."""
        return [
            (_HEAVY[atom.element](self, atom), self._hydrogen(atom) if atom.hydrogens else "")
            for atom in self.atoms
        ]

    def _near(self, atom: Atom, kind: str) -> list[Atom]:
        """Return the neighbours with a bond of this kind."""
        return [self.atoms[other] for bond, other in atom.bonds if bond == kind]

    def _hydrogen(self, atom: Atom) -> str:
        """H1 hydrocarbon, H2 alcohol and the like, H3 amine, H4 acid."""
        if atom.element != "O":
            return {"C": "H1", "N": "H3"}.get(atom.element, "H2")
        if not atom.bonds:
            return "H2"  # water
        (carrier,) = self._near(atom, "single")
        if carrier.element == "C":
            if carrier.aromatic or carrier.connections == 4:
                return "H2"
            double = self._near(carrier, "double")
            return "H4" if any(end.element in ("C", "N", "O", "S") for end in double) else "HS"
        if carrier.element in ("O", "S"):
            return "HS" if carrier.aromatic else "H4"
        return "H3" if carrier.element == "N" else "H2"

    def _carbon(self, atom: Atom) -> str:
        if atom.aromatic:
            return self._aromatic_carbon(atom)
        if any(end.element == "C" and end.aromatic for end in self._near(atom, "double")):
            return "C26"
        if double := self._near(atom, "double"):
            return self._double_bonded_carbon(atom, double)
        if atom.connections == 2:
            return "C7"
        near = self._near(atom, "single")
        if any(end.aromatic for end in near):
            if atom.hydrogens == 3:
                return "C8" if near[0].element == "C" else "C9"
            return {2: "C10", 1: "C11", 0: "C12"}[atom.hydrogens]
        if any(end.element in HETERO for end in near):
            return "C3" if atom.hydrogens >= 2 else "C4"
        return "C1" if atom.hydrogens >= 2 else "C2"

    def _double_bonded_carbon(self, atom: Atom, double: list[Atom]) -> str:
        """C5 with a heteroatom, C26 with an aromatic neighbour, else C6."""
        if any(end.element != "C" for end in double):
            return "C5"
        aromatic = [end for end in self._near(atom, "single") if end.aromatic]
        if len(aromatic) == 2 and all(end.element != "C" for end in aromatic):
            return "CS"
        return "C26" if aromatic else "C6"

    def _aromatic_carbon(self, atom: Atom) -> str:
        outside = [(kind, self.atoms[end]) for kind, end in atom.bonds if kind != "aromatic"]
        if atom.hydrogens:
            return "C18"
        if not outside:
            return "C19"
        ((kind, end),) = outside
        if kind == "double":
            return "C25" if end.element in ("C", "N", "O") and not end.aromatic else "CS"
        if end.element in HALOGENS:
            return {"F": "C14", "Cl": "C15", "Br": "C16", "I": "C17"}[end.element]
        if end.aromatic:
            return "C20"
        return {"C": "C21", "N": "C22", "O": "C23", "S": "C24"}.get(end.element, "C13")

    def _nitrogen(self, atom: Atom) -> str:
        if atom.aromatic:
            return "N11"
        if self._near(atom, "triple"):
            return "N9"
        near = self._near(atom, "single")
        if self._near(atom, "double"):
            return "N5" if atom.hydrogens else "N6"
        on_ring = any(end.aromatic for end in near)
        types = {1: ("N1", "N3"), 2: ("N2", "N4"), 3: ("N7", "N8")}
        return types[len(near)][on_ring] if near else "NS"

    def _oxygen(self, atom: Atom) -> str:
        if atom.aromatic:
            return "O1"
        if atom.hydrogens:
            return "O2"
        if not (double := self._near(atom, "double")):
            return "O4" if any(end.aromatic for end in self._near(atom, "single")) else "O3"
        (end,) = double
        if end.element != "C":
            return {"N": "O5", "O": "O5", "S": "O6"}.get(end.element, "OS")
        return "O8" if end.aromatic else self._carbonyl_oxygen(end)

    def _carbonyl_oxygen(self, carbon: Atom) -> str:
        """O9 on aliphatic, O10 on aromatic carbonyls, O11 between two heteroatoms."""
        double, near = self._near(carbon, "double"), self._near(carbon, "single")
        if len(double) == 2:
            return "O9" if all(end.element == "O" for end in double) else "OS"
        if carbon.hydrogens == 2:
            return "O9"
        if carbon.hydrogens == 1:
            (end,) = near
            if end.element == "C":
                return "O10" if end.aromatic else "O9"
            return "O9" if end.element in ("N", "O") and not end.aromatic else "OS"
        if all(end.element != "C" for end in near):
            return "O11"
        return "O10" if any(end.aromatic for end in near) else "O9"

    def _sulphur(self, atom: Atom) -> str:
        if atom.aromatic:
            return "S3"
        double = self._near(atom, "double")
        return "S2" if any(end.element in ("N", "O", "P", "S") for end in double) else "S1"

    def _by_element(self, atom: Atom) -> str:
        return atom.element


_HEAVY = {
    "C": Molecule._carbon, "N": Molecule._nitrogen, "O": Molecule._oxygen, "S": Molecule._sulphur,
    **dict.fromkeys(("P", *HALOGENS), Molecule._by_element),
}  # fmt: skip
