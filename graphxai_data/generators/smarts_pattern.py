"""Substructures as SMARTS, read without RDKit; `smarts_search` finds them in the arrays of a graph.

Known are the atoms and bonds that recipes need; anything else is a `ValueError` that names it.

| in brackets | meaning |
| --- | --- |
| `C`, `c`, `#6`, `*`, `A`, `a` | element and whether aromatic |
| `D2`, `X3`, `H1` | neighbours, neighbours with hydrogens, hydrogens |
| `R`, `R0`, `r6` | in a ring, in none, smallest ring |
| `k7` | in a ring of that size (of RDKit, not of Daylight) |
| `+`, `-2` | charge |
| `!`, `&`, `,`, `;` | not, and, or, and that binds weakest |

Bonds are `-`, `=`, `#`, `:`, `~`, `@`, with the same operators. Without one, a bond is single or
aromatic.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

_ELEMENTS = {
    "B": 5, "C": 6, "N": 7, "O": 8, "F": 9, "Si": 14, "P": 15, "S": 16, "Cl": 17, "Se": 34,
    "Br": 35, "I": 53,
}  # fmt: skip
_SYMBOL_OF = {number: symbol for symbol, number in _ELEMENTS.items()}
_AROMATIC = {"b": "B", "c": "C", "n": "N", "o": "O", "p": "P", "s": "S"}
_PLAIN = re.compile(r"Cl|Br|[BCNOPSFI]|[bcnops]|[*Aa]")
_PRIMITIVE = re.compile(r"#(\d+)|([DXHRrk])(\d*)|(\++|-+)(\d*)|([A-Z][a-z]?|[bcnops]|[*Aa])")
_CLOSURE = re.compile(r"%(\d\d)|(\d)")
# What RDKit reads and a graph cannot show, or our matcher does not search for.
_UNSUPPORTED = {
    r"\$\(": "recursive SMARTS are not supported; write out atoms and bonds",
    r"[/\\]|\[[^]]*@": "stereochemistry is not supported, since graphs do not show it; remove it",
    r"\.": "fragments are not supported; name each as a substructure, and join them with and",
}
_BOND_TEXT = re.compile(r"[-=#:~@!&,;]*")


class Facts(Protocol):
    """What a pattern asks about the atoms and bonds of a molecule."""

    element: list[str]
    hydrogens: list[int]
    charge: list[int]
    neighbours: list[dict[int, str]]  # the kind of the bond to each

    @property
    def is_aromatic(self) -> list[bool]:
        """Whether an atom is aromatic."""
        ...

    def rings_of(self, atom: int) -> list[int]:
        """Return the sizes of the rings that an atom is in."""
        ...

    def is_ring_atom(self, atom: int) -> bool:
        """Return whether an atom is in a ring."""
        ...

    def is_ring_bond(self, one: int, other: int) -> bool:
        """Return whether a bond is in a ring."""
        ...


AtomTest = Callable[[Facts, int], bool]
BondTest = Callable[[Facts, int, int], bool]


class Bond(NamedTuple):
    """A bond of a pattern, from an earlier atom to a later one or back to close a ring."""

    begin: int
    end: int
    test: BondTest


@dataclass(frozen=True)
class Pattern:
    """A substructure: tests of atoms, and bonds between them; every atom but the first has one."""

    atoms: tuple[AtomTest, ...]
    bonds: tuple[Bond, ...]
    elements: frozenset[str]  # that it names, without those after "not"


def parse_smarts(text: str) -> Pattern:
    """Return the pattern of a SMARTS; a `ValueError` names what is unknown here."""
    for unsupported, problem in _UNSUPPORTED.items():
        if re.search(unsupported, text):
            raise ValueError(problem)
    return _Reader(text).read()


class _Reader:
    """Reads a SMARTS from left to right."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._atoms: list[AtomTest] = []
        self._bonds: list[Bond] = []
        self._elements: set[str] = set()
        self._open: dict[str, tuple[int, str]] = {}  # atom and bond of ring closures

    def read(self) -> Pattern:
        branches: list[int] = []
        last: int | None = None
        while self._at < len(self._text):
            letter = self._text[self._at]
            if self._text.startswith("()", self._at):
                raise ValueError("a branch is empty; remove '()'")
            if letter == "(" and last is not None:
                branches.append(last)
                self._at += 1
            elif letter == ")" and branches:
                last = branches.pop()
                self._at += 1
            else:
                last = self._atom_or_closure(last)
        if self._open or branches:
            raise ValueError("a ring or a branch is not closed; close it")
        if not self._atoms:
            raise ValueError("has no atoms; add one")
        return Pattern(tuple(self._atoms), tuple(self._bonds), frozenset(self._elements))

    def _atom_or_closure(self, last: int | None) -> int:
        """Read a bond, if there is one, and what it leads to; return the atom to go on from."""
        bond = self._match(_BOND_TEXT)
        closure = _CLOSURE.match(self._text, self._at)
        if closure is not None and last is not None:
            self._at = closure.end()
            self._close(last, closure.group(1) or closure.group(2), bond)
            return last
        test = self._atom()
        if bond and last is None:
            raise ValueError("begins with a bond; begin with an atom")
        self._atoms.append(test)
        if last is not None:
            self._bonds.append(Bond(last, len(self._atoms) - 1, _bond_test(bond)))
        return len(self._atoms) - 1

    def _close(self, atom: int, number: str, bond: str) -> None:
        if number not in self._open:
            self._open[number] = atom, bond
            return
        begin, earlier = self._open.pop(number)
        bonded = any({begin, atom} == {known.begin, known.end} for known in self._bonds)
        if begin == atom or bonded or (bond and earlier and bond != earlier):
            raise ValueError(f"ring closure {number} contradicts itself; correct it")
        self._bonds.append(Bond(begin, atom, _bond_test(bond or earlier)))

    def _atom(self) -> AtomTest:
        if self._text[self._at : self._at + 1] == "[":
            end = self._text.find("]", self._at)
            if end < 0:
                raise ValueError("a bracket is not closed; add ]")
            inside = self._text[self._at + 1 : end]
            self._at = end + 1
            return _bracket_test(inside, self._elements)
        plain = self._match(_PLAIN)
        if not plain:
            rest = self._text[self._at :][:10]
            raise ValueError(f"'{rest}' is no atom, bond or ring closure that is known here")
        return _symbol(plain, self._elements)

    def _match(self, expected: re.Pattern[str]) -> str:
        match = expected.match(self._text, self._at)
        if match is None:
            return ""
        self._at = match.end()
        return match.group()


def _bracket_test(text: str, elements: set[str]) -> AtomTest:
    """Return the test of what is in brackets: `;` binds weakest, then `,`, then `&` or nothing."""
    if text in ("H", ""):
        raise ValueError(f"'[{text}]' is no heavy atom; hydrogens are no nodes")
    clauses = [[_term_test(term, elements) for term in part.split(",")] for part in text.split(";")]
    return lambda facts, atom: all(any(t(facts, atom) for t in clause) for clause in clauses)


def _term_test(text: str, elements: set[str]) -> AtomTest:
    """Return the test that all primitives of a text hold."""
    tests, at = [], 0
    while at < len(text):
        if text[at] == "&":
            at += 1
            continue
        start = at
        while text[at : at + 1] == "!":
            at += 1
        negated = (at - start) % 2 == 1
        match = _PRIMITIVE.match(text, at)
        if match is None:
            raise ValueError(f"'{text[at:]}' is no property of an atom that is known here")
        at = match.end()
        tests.append(_negated(_primitive(match, set() if negated else elements), negated))
    if not tests:
        raise ValueError("an operator has nothing on one side; add a property")
    return lambda facts, atom: all(test(facts, atom) for test in tests)


def _negated(test: AtomTest, negated: bool) -> AtomTest:
    return (lambda facts, atom: not test(facts, atom)) if negated else test


def _primitive(match: re.Match[str], elements: set[str]) -> AtomTest:
    number, letter, count, sign, charge, symbol = match.groups()
    if symbol:
        return _symbol(symbol, elements)
    if number:
        if int(number) not in _SYMBOL_OF:
            raise ValueError(f"element #{number} is not known here")
        element = _SYMBOL_OF[int(number)]
        elements.add(element)
        return lambda facts, atom: facts.element[atom] == element
    if sign:
        size = int(charge) if charge else len(sign)
        value = size if sign[0] == "+" else -size
        return lambda facts, atom: facts.charge[atom] == value
    return _counted(letter, count)


def _counted(letter: str, count: str) -> AtomTest:
    """Return the test of a letter with a number, which is 1 for D, X and H if it is missing."""
    value = int(count) if count else 1
    if letter == "D":
        return lambda facts, atom: len(facts.neighbours[atom]) == value
    if letter == "X":
        return lambda facts, atom: len(facts.neighbours[atom]) + facts.hydrogens[atom] == value
    if letter == "H":
        return lambda facts, atom: facts.hydrogens[atom] == value
    if not count:
        return lambda facts, atom: facts.is_ring_atom(atom)
    if value == 0:
        return lambda facts, atom: not facts.is_ring_atom(atom)
    if letter == "R":
        return lambda facts, atom: len(facts.rings_of(atom)) == value
    if letter == "r":
        return lambda facts, atom: min(facts.rings_of(atom), default=0) == value
    return lambda facts, atom: value in facts.rings_of(atom)


def _symbol(symbol: str, elements: set[str]) -> AtomTest:
    if symbol == "*":
        return lambda facts, atom: True
    if symbol in "Aa":
        return lambda facts, atom: facts.is_aromatic[atom] == (symbol == "a")
    element, aromatic = _AROMATIC.get(symbol, symbol), symbol in _AROMATIC
    if element not in _ELEMENTS:
        raise ValueError(f"'{symbol}' is no element that is known here")
    elements.add(element)
    return lambda f, atom: f.element[atom] == element and f.is_aromatic[atom] == aromatic


_KINDS = {"-": "single", "=": "double", "#": "triple", ":": "aromatic"}


def _bond_test(text: str) -> BondTest:
    """Return the test of a bond, with the operators of atoms."""
    if not text:
        return lambda facts, a, b: facts.neighbours[a][b] in ("single", "aromatic")
    clauses = [[_bond_term_test(term) for term in part.split(",")] for part in text.split(";")]
    return lambda facts, a, b: all(any(t(facts, a, b) for t in clause) for clause in clauses)


def _bond_term_test(text: str) -> BondTest:
    if not re.fullmatch(r"!*[-=#:~@](&?!*[-=#:~@])*", text):
        raise ValueError(f"bond '{text}' is not known here")
    parts = re.findall(r"(!*)([-=#:~@])", text)
    tests = [_plain_bond(symbol, len(marks) % 2 == 1) for marks, symbol in parts]
    return lambda facts, a, b: all(test(facts, a, b) for test in tests)


def _plain_bond(symbol: str, negated: bool) -> BondTest:
    if symbol == "~":
        return lambda facts, a, b: not negated
    if symbol == "@":
        return lambda facts, a, b: facts.is_ring_bond(a, b) != negated
    kind = _KINDS[symbol]
    return lambda facts, a, b: (facts.neighbours[a][b] == kind) != negated
