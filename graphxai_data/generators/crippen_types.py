"""Atom types of Wildman and Crippen, by the SMARTS of `crippen.toml`; contributions are exact.

A contribution is a whole number of 1/100,000. It comes from decimal text, and sums are sums of
whole numbers, so no step rounds.
"""

import re
import tomllib
from collections import Counter
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rdkit import Chem

from graphxai_data.errors import CheckFailedError
from graphxai_data.graphs.columns import Ints

UNITS = 100_000  # per 1 of logP
# What recipes may list: the elements whose types the proof can tell from descriptions.
ELEMENTS = ("C", "N", "O", "F", "P", "S", "Cl", "Br", "I")
_DECIMAL = re.compile(r"-?[0-9]{1,4}(\.[0-9]{1,5})?")
# Parts of the table by atomic number.
_PARTS = {6: "carbon", 7: "nitrogen", 8: "oxygen", 16: "sulphur"}
_OTHERS = "others"
_HYDROGEN_BOND = Chem.MolFromSmarts("[#1]~*")
_ALL_MATCHES: Any = Chem.SubstructMatchParameters()
# Not only one match per set of atoms: in C-C, [CH3]C is about both.
_ALL_MATCHES.uniquify = False
# No pattern has more: there are at most 255 heavy atoms, each matched in at most 24 ways.
_ALL_MATCHES.maxMatches = 10_000


class AtomType(NamedTuple):
    """A type of atoms: its contribution to logP, and the patterns that find its atoms."""

    name: str
    units: int
    patterns: tuple[Chem.Mol, ...]


@lru_cache(maxsize=1)
def atom_types() -> dict[str, tuple[AtomType, ...]]:
    """Return the types of carbon, hydrogen and so on, each in the order in which they are tried."""
    table = tomllib.loads(Path(__file__).with_name("crippen.toml").read_text(encoding="utf-8"))
    return {
        part: tuple(
            AtomType(
                row["name"], units_of(row["logp"]), tuple(map(Chem.MolFromSmarts, row["smarts"]))
            )
            for row in rows
        )
        for part, rows in table.items()
    }


def units_of(text: str) -> int:
    """Return a decimal number as a whole number of 1/100,000.

    >>> units_of("-0.2035"), units_of("0.08452")
    (-20350, 8452)
    """
    if not _DECIMAL.fullmatch(text):
        raise ValueError(f"expected a number with at most five decimals, as '2.5', got {text!r}")
    return int(Decimal(text) * UNITS)


def contributions(molecule: Chem.Mol) -> Ints:
    """Return [n] the contribution of each heavy atom with its hydrogens, in units of 1/100,000.

    Hydrogens of the molecule must not be atoms of it.
    """
    heavy, hydrogens = types_of(molecule)
    units = [heavy[atom].units for atom in range(molecule.GetNumAtoms())]
    for carrier, kind in hydrogens:
        units[carrier] += kind.units
    return np.array(units, np.int64)


def types_of(molecule: Chem.Mol) -> tuple[dict[int, AtomType], list[tuple[int, AtomType]]]:
    """Return the type of each heavy atom, and for each hydrogen the atom it is on and its type."""
    table, count = atom_types(), molecule.GetNumAtoms()
    numbers = [molecule.GetAtomWithIdx(i).GetAtomicNum() for i in range(count)]
    heavy: dict[int, AtomType] = {}
    # No pattern of a heavy atom contains a hydrogen: without them, matching is quicker.
    for part, atoms in Counter(_PARTS.get(number, _OTHERS) for number in numbers).items():
        heavy |= _first_matches(molecule, table[part], atoms)
    whole = Chem.AddHs(molecule)
    types = _first_matches(whole, table["hydrogen"], whole.GetNumAtoms() - count)
    bonds = whole.GetSubstructMatches(_HYDROGEN_BOND, _ALL_MATCHES)
    return heavy, [(carrier, types[hydrogen]) for hydrogen, carrier in bonds]


def _first_matches(
    molecule: Chem.Mol, kinds: tuple[AtomType, ...], atoms: int
) -> dict[int, AtomType]:
    """Return the first of the types that matches each of so many atoms."""
    types: dict[int, AtomType] = {}
    for kind in kinds:
        for pattern in kind.patterns:
            if len(types) == atoms:
                return types
            for match in molecule.GetSubstructMatches(pattern, _ALL_MATCHES):
                types.setdefault(match[0], kind)
    if len(types) < atoms:
        raise CheckFailedError(
            f"{Chem.MolToSmiles(molecule)}: an atom has no type of Wildman and Crippen; leave the "
            "molecule out"
        )
    return types
