"""Grafting on the text of a SMILES: a branch is written after an atom.

The text decides the order of atoms, not RDKit's writer, so a grafted molecule is the same with
every version of RDKit.
"""

import re
from collections.abc import Mapping

_ATOM_ALONE = re.compile(r"\[[^\]]*\]|Br|Cl|[BCNOPSFIbcnops]")
# An atom, and the ring-closure digits after it.
ATOM = re.compile(rf"({_ATOM_ALONE.pattern})((?:[-=#:/\\]?(?:\d|%\d\d))*)")


def atoms_of(smiles: str) -> list[str]:
    """Return the atoms as they are written, in the order in which RDKit numbers them."""
    return _ATOM_ALONE.findall(smiles)


def insert_branches(smiles: str, branches: Mapping[int, str]) -> tuple[str, dict[int, int]]:
    """Return the SMILES with branches after atoms, and where each branch's first atom is in it.

    A branch is text such as "F" or "-c1ccccc1", by the number of the atom that carries it.
    """
    pieces: list[str] = []
    first_atom: dict[int, int] = {}
    done = inserted = 0
    for number, match in enumerate(ATOM.finditer(smiles)):
        if number not in branches:
            continue
        branch = branches[number]
        pieces += [smiles[done : match.end()], "(", branch, ")"]
        done = match.end()
        first_atom[number] = number + 1 + inserted
        inserted += len(atoms_of(branch))
    return "".join([*pieces, smiles[done:]]), first_atom


def free_ring_closure(smiles: str) -> str:
    """Return a ring-closure number that the SMILES does not use, or "" if it uses all."""
    numbers = [*"123456789", *(f"%{number}" for number in range(10, 100))]
    return next((number for number in numbers if number not in smiles), "")
