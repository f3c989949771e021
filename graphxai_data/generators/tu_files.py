"""Graphs from the text files of a TUDataset, parsed as whole arrays.

`<name>_A.txt` has an edge a line, "source, target"; `_graph_indicator.txt` the graph of each node,
`_graph_labels.txt` the class of each graph and `_node_labels.txt` the kind of each node; nodes and
graphs are counted from 1.
"""

import warnings
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from graphxai_data.columns import Ints, pointers
from graphxai_data.errors import InputError
from graphxai_data.raw_files import read_member
from graphxai_data.sources import Source

SUFFIXES = ("A", "graph_indicator", "graph_labels", "node_labels")


@dataclass(frozen=True)
class TUGraphs:
    """All graphs of a source.

    Attributes:
        label: [g] class as in the file.
        kind: [N] kind of each node, as in the file.
        node_ptr: [g+1] where the nodes of each graph begin and end.
        edge_ptr: [g+1] the same of edges.
        edge_index: [2, M] nodes within their graph, from 0, sorted by graph, source and target.
    """

    label: Ints
    kind: Ints
    node_ptr: Ints
    edge_ptr: Ints
    edge_index: Ints

    def __len__(self) -> int:
        return len(self.label)


def tu_files(name: str) -> tuple[str, ...]:
    """Names of the files of a TUDataset."""
    return tuple(f"{name}_{suffix}.txt" for suffix in SUFFIXES)


@lru_cache(maxsize=1)
def read_tu(source: Source, name: str) -> TUGraphs:
    """The graphs of a folder or zip archive, or an `InputError` that says where it is wrong."""
    edges = _numbers(source, f"{name}_A.txt", 2)
    indicator = _numbers(source, f"{name}_graph_indicator.txt", 1)[:, 0]
    label = _numbers(source, f"{name}_graph_labels.txt", 1)[:, 0]
    kind = _numbers(source, f"{name}_node_labels.txt", 1)[:, 0]
    where = f"{source.path}: {name}"
    if len(kind) != len(indicator):
        raise InputError(
            f"{where}_node_labels.txt: {len(kind)} lines, expected {len(indicator)}, one a node of "
            f"{name}_graph_indicator.txt: is a file truncated?"
        )
    falls = (np.diff(indicator) < 0).nonzero()[0]
    if len(falls):
        raise InputError(
            f"{where}_graph_indicator.txt: line {falls[0] + 2}: graph {indicator[falls[0] + 1]} "
            f"after graph {indicator[falls[0]]}; expected the nodes of each graph together"
        )
    sizes = np.bincount(indicator, minlength=len(label) + 1)
    if len(sizes) != len(label) + 1 or sizes[0] or not sizes[1:].all():
        raise InputError(
            f"{where}_graph_indicator.txt: {indicator.max(initial=0)} graphs, each with nodes, "
            f"expected the {len(label)} of {name}_graph_labels.txt"
        )
    _check_edges(edges, indicator, f"{where}_A.txt")
    source_node, target_node = edges.T - 1
    order = np.lexsort((target_node, source_node))
    source_node, target_node = source_node[order], target_node[order]
    node_ptr = pointers(sizes[1:])
    graph = indicator[source_node] - 1
    local = np.stack([source_node, target_node]) - node_ptr[graph]
    edge_ptr = pointers(np.bincount(graph, minlength=len(label)))
    return TUGraphs(label, kind, node_ptr, edge_ptr, local)


def _check_edges(edges: Ints, indicator: Ints, where: str) -> None:
    outside = np.flatnonzero(((edges < 1) | (edges > len(indicator))).any(axis=1))
    if len(outside):
        line = int(outside[0])
        raise InputError(
            f"{where}: line {line + 1}: nodes {edges[line, 0]}, {edges[line, 1]}; expected numbers "
            f"from 1 to {len(indicator)}"
        )
    ends = indicator[edges - 1]
    between = (ends[:, 0] != ends[:, 1]).nonzero()[0]
    if len(between):
        line = int(between[0])
        raise InputError(
            f"{where}: line {line + 1}: joins nodes of graphs {ends[line, 0]} and {ends[line, 1]}"
        )


def _numbers(source: Source, name: str, columns: int) -> npt.NDArray[np.int64]:
    """[lines, columns] the whole numbers of a file."""
    where = f"{source.path}: {name}"
    content = read_member(source.path, name)
    lines = content.count(b"\n") + (not content.endswith(b"\n") and bool(content))
    if content.count(b",") != lines * (columns - 1):
        raise InputError(f"{where}: expected {columns} numbers a line, separated by a comma")
    text = content.replace(b",", b" ")
    with warnings.catch_warnings():
        # NumPy warns where it stops at something that is no number; we count instead.
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            values = np.fromstring(text, np.int64, sep=" ")
        except ValueError:
            values = np.empty(0, np.int64)
    if len(values) != lines * columns:
        raise InputError(
            f"{where}: expected {columns} whole numbers in each of {lines} lines, got "
            f"{len(values)} in all: line {len(values) // columns + 1} is another thing, or the "
            "file is truncated"
        )
    return values.reshape(lines, columns)
