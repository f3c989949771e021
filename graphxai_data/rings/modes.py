"""The modes of RINGS: a graph as it is, or with its structure or its features removed.

| mode | edges | edge features | node features |
| --- | --- | --- | --- |
| original | kept | kept | kept |
| empty_graph | none | none | kept |
| complete_graph | all | zero | kept |
| random_graph | as many (undirected), anywhere | shuffled among the edges | kept |
| random_connected_graph | as many (at least n - 1), connected | likewise | kept |
| empty_features | kept | kept | zero |
| complete_features | kept | kept | index of the node, one-hot |
| shuffled_features | kept | kept | shuffled among the nodes of the graph |
| noise_features | kept | kept | standard normal (uniform for class ids) |

Edge features belong to the structure: they go with the edges, and stay when node features change.
Edges are undirected here, and self-loops are ignored.
"""

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from graphxai_data.errors import InputError, known_name
from graphxai_data.graphs.columns import Ints, pointers
from graphxai_data.graphs.union import Graphs
from graphxai_data.seeds import Draws, below, uniform

STRUCTURE_FREE = ("empty_graph", "complete_graph", "random_graph", "random_connected_graph")
FEATURE_FREE = ("empty_features", "complete_features", "shuffled_features", "noise_features")
MODES = ("original", *STRUCTURE_FREE, *FEATURE_FREE)


def as_rows(values: Any, dtype: npt.DTypeLike | None = None) -> npt.NDArray[Any]:
    """Return features as rows [n, p]; single numbers [n] become rows of one."""
    rows = np.asarray(values, dtype)
    return rows[:, None] if rows.ndim == 1 else rows


def digest(*arrays: npt.NDArray[Any]) -> str:
    """Return the SHA-256 of the bytes of these arrays, in this order."""
    return hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()


def check_ends(edges: Ints, nodes: int) -> None:
    """Raise an `InputError` if an edge ends at a node that does not exist."""
    if edges.size and not 0 <= edges.min() <= edges.max() < nodes:
        raise InputError(f"an edge ends at node {edges.max()}, but there are {nodes} nodes")


def tidy_edges(
    edges: Ints, attributes: npt.NDArray[Any] | None, nodes: int
) -> tuple[Ints, npt.NDArray[Any] | None]:
    """Return edges in both directions, sorted, each once, without self-loops.

    An edge without its reverse gets one with the same features.
    """
    check_ends(edges, nodes)
    both = np.concatenate([edges, edges[::-1]], axis=1)
    _, first = np.unique(both[0] * nodes + both[1], return_index=True)
    first = first[both[0, first] != both[1, first]]
    if attributes is not None:
        attributes = attributes[first % edges.shape[1]] if len(first) else attributes[:0]
    return both[:, first], attributes


def in_mode(graphs: Graphs, mode: str, draws: Draws, max_nodes: int | None = None) -> Graphs:
    """Return the graphs in one of `MODES`.

    For complete_features, `max_nodes` is the width of the one-hot node index; by default the size
    of the largest graph.
    """
    if mode == "original":
        return graphs
    if mode in STRUCTURE_FREE:
        return _restructured(graphs, mode, draws)
    known_name("mode", mode, MODES)
    return replace(graphs, x=_new_features(graphs, mode, draws, max_nodes))


def _new_features(
    graphs: Graphs, mode: str, draws: Draws, max_nodes: int | None
) -> npt.NDArray[np.generic]:
    x, nodes = graphs.x, len(graphs.x)
    as_float = x.dtype if x.dtype.kind == "f" else np.dtype(np.float32)
    if mode == "empty_features":
        return np.zeros_like(x)
    if mode == "shuffled_features":
        # Sorting by (graph, random word) shuffles within each graph.
        return x[np.lexsort([draws.words(nodes), graphs.owner])]
    if mode == "complete_features":
        index = np.arange(nodes) - np.repeat(graphs.node_ptr[:-1], graphs.sizes)
        if x.ndim == 1:
            return index
        largest = int(graphs.sizes.max(initial=0))
        width = largest if max_nodes is None else max_nodes
        if width < largest:
            raise InputError(f"max_nodes is {width}, but a graph has {largest} nodes")
        return np.eye(width, dtype=as_float)[index]
    if x.ndim == 1:
        return below(draws.words(nodes), int(x.max(initial=0)) + 1).astype(x.dtype)
    # The Box-Muller transform gives standard normal numbers.
    first, second = uniform(draws.words(2 * x.size)).reshape(2, *x.shape)
    normal: npt.NDArray[Any] = np.sqrt(-2 * np.log1p(-first)) * np.cos(2 * np.pi * second)
    return normal.astype(as_float)


def _restructured(graphs: Graphs, mode: str, draws: Draws) -> Graphs:
    possible = graphs.sizes * (graphs.sizes - 1) // 2
    begins = pointers(possible)
    old = np.flatnonzero(graphs.edges[0] < graphs.edges[1])  # one direction of each edge
    count = np.bincount(graphs.owner[graphs.edges[0, old]], minlength=len(possible))
    if mode == "empty_graph":
        codes = np.empty(0, np.int64)
    elif mode == "complete_graph":
        codes = np.arange(begins[-1])
    elif mode == "random_graph":
        codes = _distinct(count, possible, np.empty(0, np.int64), draws)
    else:
        tree = _random_trees(graphs, begins, draws)
        at_least = np.maximum(count, np.maximum(graphs.sizes - 1, 0))
        codes = _distinct(at_least, possible, tree, draws)
    owner = np.searchsorted(begins, codes, side="right") - 1
    low, high = _pair_of_code(codes - begins[owner])
    ends = np.stack([low, high]) + graphs.node_ptr[owner]
    both = np.concatenate([ends, ends[::-1]], axis=1)
    order = np.lexsort([both[1], both[0]])
    attributes = _new_attributes(graphs, mode, old, owner, draws)
    if attributes is not None:
        attributes = np.concatenate([attributes, attributes])[order]
    return replace(graphs, edges=both[:, order], edge_attr=attributes)


def _distinct(count: Ints, possible: Ints, given: Ints, draws: Draws) -> Ints:
    """Return codes of `count` distinct random pairs in each graph, including those `given`.

    The codes of graph i begin at the sum of `possible` before it. Where more than half of the pairs
    are needed and none are given, the pairs to leave out are drawn instead.
    """
    begins = pointers(possible)
    inverted = (2 * count > possible) if not len(given) else np.zeros(len(count), bool)
    needed = np.where(inverted, possible - count, np.minimum(count, possible))
    codes = np.sort(given)
    while True:
        have = np.bincount(np.searchsorted(begins, codes, side="right") - 1, minlength=len(count))
        missing = needed - have
        if not missing.any():
            break
        graph = np.repeat(np.arange(len(count)), missing)
        drawn = begins[graph] + below(draws.words(len(graph)), possible[graph])
        codes = np.unique(np.concatenate([codes, drawn]))
    if not inverted.any():
        return codes
    full = np.concatenate([np.arange(begins[i], begins[i + 1]) for i in np.flatnonzero(inverted)])
    return np.setxor1d(codes, full, assume_unique=True)


def _random_trees(graphs: Graphs, begins: Ints, draws: Draws) -> Ints:
    """Return codes of random trees: nodes in random order, each joined to an earlier one."""
    nodes = len(graphs.x)
    order = np.lexsort([draws.words(nodes), graphs.owner])
    start = np.repeat(graphs.node_ptr[:-1], graphs.sizes)
    place = np.arange(nodes) - start
    later = place > 0
    parent = below(draws.words(nodes), np.maximum(place, 1))
    ends = np.stack([order[later], order[(start + parent)[later]]]) - start[later]
    low, high = np.sort(ends, axis=0)
    codes: Ints = begins[graphs.owner[later]] + high * (high - 1) // 2 + low
    return codes


def _pair_of_code(code: Ints) -> tuple[Ints, Ints]:
    """Return the pair (low, high) whose code is high * (high - 1) / 2 + low."""
    high = ((1 + np.sqrt(1 + 8 * code.astype(float))) / 2).astype(np.int64)
    high -= high * (high - 1) // 2 > code  # the root may be rounded across an integer
    high += (high + 1) * high // 2 <= code
    return code - high * (high - 1) // 2, high


def _new_attributes(
    graphs: Graphs, mode: str, old: Ints, owner: Ints, draws: Draws
) -> npt.NDArray[np.generic] | None:
    """Return features of the new edges: those of the graph's old edges, shuffled, or zero."""
    if (attributes := graphs.edge_attr) is None:
        return None
    new = np.zeros((len(owner), *attributes.shape[1:]), attributes.dtype)
    if mode == "complete_graph" or not len(owner):
        return new
    old_owner = graphs.owner[graphs.edges[0, old]]
    shuffled = old[np.lexsort([draws.words(len(old)), old_owner])]
    count = np.bincount(old_owner, minlength=len(graphs.sizes))
    turn = np.arange(len(owner)) - pointers(np.bincount(owner))[owner]
    # A tree may need more edges than the graph had: its features are then used again in turn.
    has_edges = count[owner] > 0
    source = pointers(count)[owner] + turn % np.maximum(count[owner], 1)
    new[has_edges] = attributes[shuffled[source[has_edges]]]
    return new
