"""Atom types of Wildman and Crippen, by the SMARTS of `crippen.toml`; contributions are exact.

A contribution is a whole number of 1/100,000. It comes from decimal text, and sums are sums of
whole numbers, so no step rounds.
"""

import re
import tomllib
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rdkit import Chem

from graphxai_data.errors import CheckFailedError
from graphxai_data.graphs.columns import Ints

UNITS = 100_000  # per 1 of logP
# No pattern has more matches: molecules have at most 255 heavy atoms, and a pattern matches an atom
# in at most 24 ways. RDKit's own limit is 1000.
_MAX_MATCHES = 100_000
_DECIMAL = re.compile(r"-?[0-9]{1,4}(\.[0-9]{1,5})?")
_HYDROGEN = Chem.MolFromSmarts("[#1]~*")


class AtomType(NamedTuple):
    """A type of atoms: its contribution to logP, and the patterns that find its atoms."""

    name: str
    units: int
    patterns: tuple[Chem.Mol, ...]


@lru_cache(maxsize=1)
def atom_types() -> tuple[AtomType, ...]:
    """Return the types in the order in which they are tried."""
    table = tomllib.loads(Path(__file__).with_name("crippen.toml").read_text(encoding="utf-8"))
    return tuple(
        AtomType(row["name"], units_of(row["logp"]), tuple(map(Chem.MolFromSmarts, row["smarts"])))
        for row in table["types"]
    )


def units_of(text: str) -> int:
    """Return a decimal number as a whole number of 1/100,000.

    >>> units_of("-0.2035"), units_of("0.08452")
    (-20350, 8452)
    """
    if not _DECIMAL.fullmatch(text):
        raise ValueError(f"expected a number with at most five decimals, as text, got {text!r}")
    return int(Decimal(text) * UNITS)


def types_of(molecule: Chem.Mol) -> list[int]:
    """Return the number of each atom's type in `atom_types`; hydrogens have to be atoms."""
    numbers = [-1] * molecule.GetNumAtoms()
    left = len(numbers)
    for number, kind in enumerate(atom_types()):
        for pattern in kind.patterns:
            # Not only one match per set of atoms: in C-C, [CH3]C is about both.
            matches = molecule.GetSubstructMatches(pattern, uniquify=False, maxMatches=_MAX_MATCHES)
            for match in matches:
                if numbers[match[0]] < 0:
                    numbers[match[0]] = number
                    left -= 1
        if not left:
            return numbers
    element = molecule.GetAtomWithIdx(numbers.index(-1)).GetSymbol()
    raise CheckFailedError(
        f"no type of Wildman and Crippen is for {element}; leave the molecule out"
    )


def contributions(molecule: Chem.Mol) -> Ints:
    """Return [n] the contribution of each heavy atom with its hydrogens, in units of 1/100,000."""
    whole = Chem.AddHs(molecule)
    units = [kind.units for kind in atom_types()]
    by_atom = [units[number] for number in types_of(whole)]
    heavy = molecule.GetNumAtoms()
    for hydrogen, carrier in whole.GetSubstructMatches(
        _HYDROGEN, uniquify=False, maxMatches=_MAX_MATCHES
    ):
        by_atom[carrier] += by_atom[hydrogen]
    return np.array(by_atom[:heavy], np.int64)
