"""Molecules from the files that OGB publishes of a dataset, parsed as whole arrays.

`raw/node-feat.csv` has the nine values of an atom a line, `raw/edge.csv` the two ends of a bond,
counted from 0 within the molecule, `raw/edge-feat.csv` its three values; `raw/num-node-list.csv`
and `raw/num-edge-list.csv` say how many lines of those each molecule has, `raw/graph-label.csv` its
class, and `mapping/mol.csv` its SMILES.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from graphxai_data.errors import InputError
from graphxai_data.files.raw import read_numbers
from graphxai_data.graphs.columns import Ints, pointers

ATOMS = "raw/node-feat.csv"
ENDS = "raw/edge.csv"
BONDS = "raw/edge-feat.csv"
ATOM_COUNTS = "raw/num-node-list.csv"
BOND_COUNTS = "raw/num-edge-list.csv"
LABELS = "raw/graph-label.csv"
MAPPING = "mapping/mol.csv"
FILES = (ATOMS, ENDS, BONDS, ATOM_COUNTS, BOND_COUNTS, LABELS, MAPPING)

Values = npt.NDArray[np.uint8]
# Values of atoms [n, 9], edges [2, m] and values of bonds [m, 3].
Graph = tuple[Values, npt.NDArray[np.int64], Values]


@dataclass(frozen=True)
class OGBGraphs:
    """All molecules of a source.

    Attributes:
        label: [g] class.
        atoms: [N, 9] values of atoms.
        bonds: [M, 3] values of bonds, once for each direction.
        node_ptr: [g+1] where the atoms of each molecule begin and end.
        edge_ptr: [g+1] the same of bonds.
        edge_index: [2, M] both directions, sorted by molecule, source and target.
    """

    label: Ints
    atoms: Values
    bonds: Values
    node_ptr: Ints
    edge_ptr: Ints
    edge_index: Ints

    def __len__(self) -> int:
        return len(self.label)

    def chosen(self, rows: Ints) -> list[Graph]:
        """The graphs in some rows."""
        nodes, edges = self.node_ptr.tolist(), self.edge_ptr.tolist()
        return [
            (
                self.atoms[nodes[i] : nodes[i + 1]],
                self.edge_index[:, edges[i] : edges[i + 1]],
                self.bonds[edges[i] : edges[i + 1]],
            )
            for i in rows.tolist()
        ]


def read_ogb(
    path: Path, classes: int, atom_widths: tuple[int, ...], bond_widths: tuple[int, ...]
) -> OGBGraphs:
    """The molecules of a folder or zip archive, or an `InputError` that says where it is wrong.

    Args:
        path: of the folder or archive.
        classes: how many classes there are.
        atom_widths: for each value of an atom, how many it may take.
        bond_widths: the same of bonds.
    """
    label = _values(path, LABELS, (classes,))[:, 0].astype(np.int64)
    atoms, bonds = _values(path, ATOMS, atom_widths), _values(path, BONDS, bond_widths)
    ends = read_numbers(path, ENDS, 2)
    source, target = np.ascontiguousarray(ends.T)
    node_ptr = _pointers(path, ATOM_COUNTS, ATOMS, len(label), len(atoms))
    bond_ptr = _pointers(path, BOND_COUNTS, ENDS, len(label), len(ends))
    if len(bonds) != len(ends):
        raise InputError(
            f"{path}: {BONDS}: {len(bonds)} lines, expected {len(ends)}, one a bond of {ENDS}: is "
            "a file truncated?"
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
    # Nodes are counted through all molecules for the order, and within each in the end.
    first = node_ptr[graph]
    both = np.stack([np.concatenate([source, target]), np.concatenate([target, source])])
    code = (both[0] + np.concatenate([first, first])) * sizes.max() + both[1]
    order = np.argsort(code)
    again = np.flatnonzero(np.diff(code[order]) == 0)
    if len(again):
        line = int(order[again[0] : again[0] + 2].max()) % len(ends)
        raise InputError(f"{path}: {ENDS}: line {line + 1}: a bond that is there twice")
    bond = np.where(order < len(ends), order, order - len(ends))
    return OGBGraphs(label, atoms, bonds.take(bond, axis=0), node_ptr, 2 * bond_ptr, both[:, order])


def _values(path: Path, name: str, widths: tuple[int, ...]) -> Values:
    """[lines, columns] values that are each below the width of their column."""
    values = read_numbers(path, name, len(widths))
    # Seen without sign, a negative number is larger than any width.
    wrong = values.view(np.uint64) >= np.array(widths, np.uint64)
    if wrong.any():
        line, column = (int(at[0]) for at in wrong.nonzero())
        raise InputError(
            f"{path}: {name}: line {line + 1}: {values[line, column]} in column {column + 1}, "
            f"expected 0 to {widths[column] - 1}"
        )
    return values.astype(np.uint8)


def _pointers(path: Path, name: str, counted: str, graphs: int, lines: int) -> Ints:
    """[g+1] where the lines of each molecule begin and end, from their counts."""
    counts = read_numbers(path, name, 1)[:, 0]
    if len(counts) != graphs:
        raise InputError(
            f"{path}: {name}: {len(counts)} lines, expected {graphs}, one a molecule of {LABELS}: "
            "is a file truncated?"
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
