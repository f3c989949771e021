"""Graphs from the text files of a TUDataset, parsed as whole arrays.

`<name>_A.txt` has one edge per line, "source, target"; `_graph_indicator.txt` the graph of each
node, `_graph_labels.txt` the class of each graph and `_node_labels.txt` the kind of each node.
Nodes, graphs and kinds of nodes are numbered from 1, classes from 0.
"""

from functools import lru_cache

import numpy as np

from graphxai_data.errors import InputError
from graphxai_data.files.numbers import read_numbers
from graphxai_data.files.raw import Source
from graphxai_data.generators.published import PublishedGraphs, edge_order, read_ids
from graphxai_data.graphs.columns import Ints, pointers

SUFFIXES = ("A", "graph_indicator", "graph_labels", "node_labels")


def tu_files(name: str) -> tuple[str, ...]:
    """Return the names of the files of a TUDataset."""
    return tuple(f"{name}_{suffix}.txt" for suffix in SUFFIXES)


@lru_cache(maxsize=1)
def read_tu(source: Source, name: str, classes: int, kinds: int) -> PublishedGraphs:
    """Return the graphs of a folder or zip archive; an `InputError` says which line is wrong.

    Graphs may have so many `classes`, and nodes so many `kinds`.
    """
    edges = read_numbers(source.path, f"{name}_A.txt", 2)
    indicator = read_numbers(source.path, f"{name}_graph_indicator.txt", 1)[:, 0]
    label = read_ids(source.path, f"{name}_graph_labels.txt", (classes,))[:, 0].astype(np.int64)
    kind = read_ids(source.path, f"{name}_node_labels.txt", (kinds,), first=1)[:, 0]
    where = f"{source.path}: {name}"
    if len(kind) != len(indicator):
        raise InputError(
            f"{where}_node_labels.txt: {len(kind)} lines, expected {len(indicator)}, one per node "
            f"of {name}_graph_indicator.txt: is a file truncated?"
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
    sizes = np.bincount(indicator, minlength=len(label) + 1)[1:]
    if not sizes.all():
        raise InputError(
            f"{where}_graph_indicator.txt: no node of graph {int(np.argmin(sizes)) + 1}, expected "
            f"some for each of the {len(label)} graphs of {name}_graph_labels.txt"
        )
    order = _edge_order(edges, indicator, f"{where}_A.txt")
    source_node, target_node = edges[order].T - 1
    node_ptr = pointers(sizes)
    graph = indicator[source_node] - 1
    local = np.stack([source_node, target_node]) - node_ptr[graph]
    edge_ptr = pointers(np.bincount(graph, minlength=len(label)))
    return PublishedGraphs(label, node_ptr, edge_ptr, kind, local)


def _edge_order(edges: Ints, indicator: Ints, where: str) -> Ints:
    """Return the order [m] of `edges` [m, 2], or raise an error about the first wrong one."""

    def refuse(edge: int, reason: str) -> None:
        source, target = edges[edge]
        raise InputError(f"{where}: line {edge + 1}: {source}, {target} {reason}")

    nodes = len(indicator)
    outside = (edges.min(axis=1) < 1) | (edges.max(axis=1) > nodes)
    if outside.any():
        reason = f"are not both nodes: expected numbers from 1 to {nodes}"
        refuse(int(np.argmax(outside)), reason)
    across = np.diff(indicator[edges - 1], axis=1)[:, 0] != 0
    if across.any():
        refuse(int(np.argmax(across)), "joins nodes of two graphs")
    return edge_order(edges.T, nodes + 1, refuse)
