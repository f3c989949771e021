"""Graphs from the text files of a TUDataset, parsed as whole arrays.

`<name>_A.txt` has an edge a line, "source, target"; `_graph_indicator.txt` the graph of each node,
`_graph_labels.txt` the class of each graph and `_node_labels.txt` the kind of each node; nodes and
graphs are counted from 1.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from graphxai_data.errors import InputError
from graphxai_data.files.raw import Source, read_numbers
from graphxai_data.graphs.columns import Ints, pointers

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
    edges = read_numbers(source.path, f"{name}_A.txt", 2)
    indicator = read_numbers(source.path, f"{name}_graph_indicator.txt", 1)[:, 0]
    label = read_numbers(source.path, f"{name}_graph_labels.txt", 1)[:, 0]
    kind = read_numbers(source.path, f"{name}_node_labels.txt", 1)[:, 0]
    where = f"{source.path}: {name}"
    if len(kind) != len(indicator):
        raise InputError(
            f"{where}_node_labels.txt: {len(kind)} lines, expected {len(indicator)}, one a node of "
            f"{name}_graph_indicator.txt: is a file truncated?"
        )
    outside = ((indicator < 1) | (indicator > len(label))).nonzero()[0]
    if len(outside):
        raise InputError(
            f"{where}_graph_indicator.txt: line {outside[0] + 1}: graph {indicator[outside[0]]}, "
            f"expected 1 to {len(label)}, the graphs of {name}_graph_labels.txt"
        )
    falls = (np.diff(indicator) < 0).nonzero()[0]
    if len(falls):
        raise InputError(
            f"{where}_graph_indicator.txt: line {falls[0] + 2}: graph {indicator[falls[0] + 1]} "
            f"after graph {indicator[falls[0]]}; expected the nodes of each graph together"
        )
    sizes = np.bincount(indicator, minlength=len(label) + 1)
    if not sizes[1:].all():
        graph = int(np.argmin(sizes[1:])) + 1
        raise InputError(
            f"{where}_graph_indicator.txt: no node of graph {graph}, expected some of each of the "
            f"{len(label)} of {name}_graph_labels.txt"
        )
    source_node, target_node = edges[_sorted_edges(edges, indicator, f"{where}_A.txt")].T - 1
    node_ptr = pointers(sizes[1:])
    graph = indicator[source_node] - 1
    local = np.stack([source_node, target_node]) - node_ptr[graph]
    edge_ptr = pointers(np.bincount(graph, minlength=len(label)))
    return TUGraphs(label, kind, node_ptr, edge_ptr, local)


def _sorted_edges(edges: Ints, indicator: Ints, where: str) -> Ints:
    """[m] the order of edges by source and target.

    An `InputError` unless they are between two nodes of a graph, each once, and both ways.
    """

    def refuse(wrong: npt.NDArray[np.bool_], what: str) -> None:
        if wrong.any():
            line = int(np.argmax(wrong))
            raise InputError(f"{where}: line {line + 1}: {edges[line, 0]}, {edges[line, 1]} {what}")

    outside = (edges.min(axis=1) < 1) | (edges.max(axis=1) > len(indicator))
    refuse(outside, f"are not both nodes: expected numbers from 1 to {len(indicator)}")
    refuse(np.diff(indicator[edges - 1], axis=1)[:, 0] != 0, "joins nodes of two graphs")
    refuse(edges[:, 0] == edges[:, 1], "is a self-loop")
    nodes = len(indicator) + 1
    code, back = edges[:, 0] * nodes + edges[:, 1], edges[:, 1] * nodes + edges[:, 0]
    order = np.argsort(code)
    ordered = code[order]
    if (ordered[1:] == ordered[:-1]).any():
        again = np.ones(len(code), bool)
        again[np.unique(code, return_index=True)[1]] = False
        refuse(again, "is there twice")
    if not np.array_equal(np.sort(back), ordered):
        refuse(~np.isin(back, code), "lacks its reverse")
    return order
