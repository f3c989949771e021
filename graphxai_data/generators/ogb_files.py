"""Molecules from the files that OGB publishes of a dataset, parsed as whole arrays.

Each line of `raw/node-feat.csv` has the nine values of an atom, of `raw/edge.csv` the two ends of a
bond, numbered from 0 within the molecule, and of `raw/edge-feat.csv` its three values.
`raw/num-node-list.csv` and `raw/num-edge-list.csv` say how many of these lines each molecule has,
`raw/graph-label.csv` its class, and `mapping/mol.csv` its SMILES.
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from graphxai_data.errors import InputError
from graphxai_data.files.numbers import read_numbers
from graphxai_data.generators.published import PublishedGraphs, read_ids
from graphxai_data.graphs.columns import Ints, pointers

ATOMS = "raw/node-feat.csv"
ENDS = "raw/edge.csv"
BONDS = "raw/edge-feat.csv"
ATOM_COUNTS = "raw/num-node-list.csv"
BOND_COUNTS = "raw/num-edge-list.csv"
LABELS = "raw/graph-label.csv"
MAPPING = "mapping/mol.csv"
FILES = (ATOMS, ENDS, BONDS, ATOM_COUNTS, BOND_COUNTS, LABELS, MAPPING)

# OGB's encodings: the values that have a column of their own; a last column is for all others.
CHIRALITY = ("CHI_UNSPECIFIED", "CHI_TETRAHEDRAL_CW", "CHI_TETRAHEDRAL_CCW", "CHI_OTHER")
HYBRIDISATION = ("SP", "SP2", "SP3", "SP3D", "SP3D2")
BOND_TYPES = ("SINGLE", "DOUBLE", "TRIPLE", "AROMATIC")
STEREO = ("STEREONONE", "STEREOZ", "STEREOE", "STEREOCIS", "STEREOTRANS", "STEREOANY")


def _and_other(values: Iterable[object]) -> list[str]:
    return [*map(str, values), "other"]


ATOM_VALUES = {
    "atomic number": _and_other(range(1, 119)),
    "chirality": _and_other(CHIRALITY),
    "degree": _and_other(range(11)),
    "charge": _and_other(range(-5, 6)),
    "hydrogens": _and_other(range(9)),
    "radical electrons": _and_other(range(5)),
    "hybridisation": _and_other(HYBRIDISATION),
    "aromatic": ["no", "yes"],
    "in a ring": ["no", "yes"],
}
ATOM_WIDTHS = tuple(map(len, ATOM_VALUES.values()))
BOND_VALUES = {
    "bond type": _and_other(BOND_TYPES),
    "stereo": list(STEREO),  # without a column for others
    "conjugated": ["no", "yes"],
}
BOND_WIDTHS = tuple(map(len, BOND_VALUES.values()))


def read_ogb(path: Path, classes: int) -> PublishedGraphs:
    """Return the molecules of a folder or zip archive; an `InputError` says where it is wrong."""
    label = read_ids(path, LABELS, (classes,))[:, 0].astype(np.int64)
    atoms, bonds = read_ids(path, ATOMS, ATOM_WIDTHS), read_ids(path, BONDS, BOND_WIDTHS)
    ends = read_numbers(path, ENDS, 2)
    source, target = np.ascontiguousarray(ends.T)
    node_ptr = _pointers(path, ATOM_COUNTS, ATOMS, len(label), len(atoms))
    bond_ptr = _pointers(path, BOND_COUNTS, ENDS, len(label), len(ends))
    if len(bonds) != len(ends):
        raise InputError(
            f"{path}: {BONDS}: {len(bonds)} lines, expected {len(ends)}, one per bond of {ENDS}: "
            "is a file truncated?"
        )
    graph = np.repeat(np.arange(len(label)), np.diff(bond_ptr))
    sizes = np.diff(node_ptr)
    size = sizes[graph]
    wrong = (source < 0) | (source >= size) | (target < 0) | (target >= size) | (source == target)
    if wrong.any():
        line = int(np.argmax(wrong))
        raise InputError(
            f"{path}: {ENDS}: line {line + 1}: {ends[line, 0]}, {ends[line, 1]}; expected two "
            f"atoms, 0 to {sizes[graph[line]] - 1}, of molecule {graph[line]}"
        )
    # The sort key numbers nodes across all molecules; the result numbers them within each.
    first = node_ptr[graph]
    both = np.stack([np.concatenate([source, target]), np.concatenate([target, source])])
    code = (both[0] + np.concatenate([first, first])) * sizes.max() + both[1]
    order = np.argsort(code)
    again = np.flatnonzero(np.diff(code[order]) == 0)
    if len(again):
        line = int(order[again[0] : again[0] + 2].max()) % len(ends)
        raise InputError(f"{path}: {ENDS}: line {line + 1}: a bond occurs twice")
    bond = np.where(order < len(ends), order, order - len(ends))
    edge_ptr, attr = 2 * bond_ptr, bonds.take(bond, axis=0)
    return PublishedGraphs(label, node_ptr, edge_ptr, atoms, both[:, order], attr)


def _pointers(path: Path, name: str, counted: str, graphs: int, lines: int) -> Ints:
    """Return where the lines of each molecule begin and end [g+1], from their counts."""
    counts = read_numbers(path, name, 1)[:, 0]
    if len(counts) != graphs:
        raise InputError(
            f"{path}: {name}: {len(counts)} lines, expected {graphs}, one per molecule of "
            f"{LABELS}: is a file truncated?"
        )
    least = 1 if counted == ATOMS else 0
    wrong = (counts < least) | (counts > lines)
    if wrong.any():
        line = int(np.argmax(wrong))
        raise InputError(
            f"{path}: {name}: line {line + 1}: {counts[line]}, expected {least} to {lines}"
        )
    if counts.sum() != lines:
        raise InputError(
            f"{path}: {counted}: {lines} lines, expected {counts.sum()}, the sum of {name}: is a "
            "file truncated?"
        )
    return pointers(counts)
