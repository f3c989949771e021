"""The modes of RINGS: a graph as it is, or with its structure or its features taken away.

| mode | edges | edge features | node features |
| --- | --- | --- | --- |
| original | kept | kept | kept |
| empty_graph | none | none | kept |
| complete_graph | all | zero | kept |
| random_graph | as many (undirected), anywhere | those of its edges, dealt out anew | kept |
| random_connected_graph | as many, joining all nodes (at least n - 1) | likewise | kept |
| empty_features | kept | kept | zero |
| complete_features | kept | kept | the number of the node, one-hot |
| shuffled_features | kept | kept | dealt out anew among the nodes of the graph |
| noise_features | kept | kept | standard normal (of class ids: uniform) |

Edge features belong to the structure: what takes edges away takes them, too, and what changes node
features leaves them. Edges are undirected here, and loops do not count.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from graphxai_data.errors import InputError, nearest
from graphxai_data.graphs.columns import Ints, pointers
from graphxai_data.seeds import Draws, below, uniform

STRUCTURE_FREE = ("empty_graph", "complete_graph", "random_graph", "random_connected_graph")
FEATURE_FREE = ("empty_features", "complete_features", "shuffled_features", "noise_features")
MODES = ("original", *STRUCTURE_FREE, *FEATURE_FREE)


@dataclass(frozen=True, slots=True, eq=False)
class Graphs:
    """Many graphs in one: what a mode may change, NumPy only.

    Attributes:
        x: [N, p] node features, or [N] class ids.
        edges: [2, M] rows of `x`, both directions, sorted.
        edge_attr: [M, q] or [M] edge features, or None.
        node_ptr: [g+1] where the nodes of each graph begin.
    """

    x: npt.NDArray[np.generic]
    edges: Ints
    edge_attr: npt.NDArray[np.generic] | None
    node_ptr: Ints

    @property
    def sizes(self) -> Ints:
        """[g] nodes of each graph."""
        return np.diff(self.node_ptr)

    @property
    def owner(self) -> Ints:
        """[N] graph of each node."""
        return np.repeat(np.arange(len(self.node_ptr) - 1), self.sizes)

    def take(self, chosen: Ints) -> "Graphs":
        """Some of the graphs, in the order given."""
        edge_ptr = np.searchsorted(self.edges[0], self.node_ptr)
        nodes = _spans(self.node_ptr[chosen], self.sizes[chosen])
        edges = _spans(edge_ptr[chosen], np.diff(edge_ptr)[chosen])
        node_ptr = pointers(self.sizes[chosen])
        shift = np.repeat(node_ptr[:-1] - self.node_ptr[chosen], np.diff(edge_ptr)[chosen])
        attributes = None if self.edge_attr is None else self.edge_attr[edges]
        return Graphs(self.x[nodes], self.edges[:, edges] + shift, attributes, node_ptr)


def tidy_edges(
    edges: Ints, attributes: npt.NDArray[Any] | None, nodes: int
) -> tuple[Ints, npt.NDArray[Any] | None]:
    """Edges in both directions, sorted, each once, none from a node to itself.

    An edge without its reverse gets one with the same features.
    """
    if edges.size and not 0 <= edges.min() <= edges.max() < nodes:
        raise InputError(f"an edge ends at node {edges.max()}, but there are {nodes} nodes")
    both = np.concatenate([edges, edges[::-1]], axis=1)
    _, first = np.unique(both[0] * nodes + both[1], return_index=True)
    first = first[both[0, first] != both[1, first]]
    if attributes is not None:
        attributes = attributes[first % edges.shape[1]] if len(first) else attributes[:0]
    return both[:, first], attributes


def _spans(begins: Ints, lengths: Ints) -> Ints:
    """The numbers from each begin on, as many as its length says."""
    ends = pointers(lengths)
    return np.arange(ends[-1]) + np.repeat(begins - ends[:-1], lengths)


def in_mode(graphs: Graphs, mode: str, draws: Draws, max_nodes: int | None = None) -> Graphs:
    """The graphs in another mode.

    Args:
        graphs: as they are.
        mode: one of `MODES`.
        draws: for what is random.
        max_nodes: for complete_features, how wide the node numbers are; by default as wide as the
            largest of these graphs needs.
    """
    if mode == "original":
        return graphs
    if mode in STRUCTURE_FREE:
        return _restructured(graphs, mode, draws)
    if mode not in FEATURE_FREE:
        raise InputError(f"unknown mode '{mode}'; {nearest(mode, MODES)}")
    return replace(graphs, x=_new_features(graphs, mode, draws, max_nodes))


def _new_features(
    graphs: Graphs, mode: str, draws: Draws, max_nodes: int | None
) -> npt.NDArray[np.generic]:
    x, nodes = graphs.x, len(graphs.x)
    as_float = x.dtype if x.dtype.kind == "f" else np.dtype(np.float32)
    if mode == "empty_features":
        return np.zeros_like(x)
    if mode == "shuffled_features":
        # Sorted by graph, and within each graph by fresh words.
        return x[np.lexsort([draws.words(nodes), graphs.owner])]
    if mode == "complete_features":
        number = np.arange(nodes) - np.repeat(graphs.node_ptr[:-1], graphs.sizes)
        if x.ndim == 1:
            return number
        largest = int(graphs.sizes.max(initial=0))
        width = largest if max_nodes is None else max_nodes
        if width < largest:
            raise InputError(f"max_nodes is {width}, but a graph has {largest} nodes")
        return np.eye(width, dtype=as_float)[number]
    if x.ndim == 1:
        return below(draws.words(nodes), int(x.max(initial=0)) + 1).astype(x.dtype)
    return _normal(x.size, draws).reshape(x.shape).astype(as_float)


def _normal(count: int, draws: Draws) -> npt.NDArray[np.float64]:
    """Standard normal numbers (Box and Muller)."""
    first, second = uniform(draws.words(2 * count)).reshape(2, count)
    normal: npt.NDArray[np.float64] = np.sqrt(-2 * np.log1p(-first)) * np.cos(2 * np.pi * second)
    return normal


def _restructured(graphs: Graphs, mode: str, draws: Draws) -> Graphs:
    possible = graphs.sizes * (graphs.sizes - 1) // 2
    begins = pointers(possible)
    old = np.flatnonzero(graphs.edges[0] < graphs.edges[1])  # one edge for each joined pair
    count = np.bincount(graphs.owner[graphs.edges[0, old]], minlength=len(possible))
    if mode == "empty_graph":
        chosen = np.empty(0, np.int64)
    elif mode == "complete_graph":
        chosen = np.arange(begins[-1])
    elif mode == "random_graph":
        chosen = _distinct(count, possible, np.empty(0, np.int64), draws)
    else:
        tree = _random_trees(graphs, begins, draws)
        chosen = _distinct(
            np.maximum(count, np.maximum(graphs.sizes - 1, 0)), possible, tree, draws
        )
    which = np.searchsorted(begins, chosen, side="right") - 1
    low, high = _pair_of_code(chosen - begins[which])
    ends = np.stack([low, high]) + graphs.node_ptr[which]
    both = np.concatenate([ends, ends[::-1]], axis=1)
    order = np.lexsort([both[1], both[0]])
    attributes = None
    if graphs.edge_attr is not None:
        dealt = _dealt_out(graphs, mode, old, count, which, draws)
        attributes = np.concatenate([dealt, dealt])[order]
    return replace(graphs, edges=both[:, order], edge_attr=attributes)


def _distinct(count: Ints, possible: Ints, given: Ints, draws: Draws) -> Ints:
    """Codes of `count` distinct pairs in each graph, at random, those `given` among them.

    The pairs of graph i have the codes from the sum of the `possible` before it. Where more than
    half of them are wanted and none are given, those left out are drawn.
    """
    begins = pointers(possible)
    inverted = (2 * count > possible) if not len(given) else np.zeros(len(count), bool)
    wanted = np.where(inverted, possible - count, np.minimum(count, possible))
    codes = np.sort(given)
    while True:
        have = np.bincount(np.searchsorted(begins, codes, side="right") - 1, minlength=len(count))
        missing = wanted - have
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
    """Codes of a random tree on each graph: nodes in random order, each joined to one before it."""
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
    """The pair (low, high) whose code is high * (high - 1) / 2 + low."""
    high = ((1 + np.sqrt(1 + 8 * code.astype(float))) / 2).astype(np.int64)
    high -= high * (high - 1) // 2 > code  # rounding may have gone one too far
    high += (high + 1) * high // 2 <= code
    return code - high * (high - 1) // 2, high


def _dealt_out(
    graphs: Graphs, mode: str, old: Ints, count: Ints, which: Ints, draws: Draws
) -> npt.NDArray[np.generic]:
    """Features of the new edges: those of the graph's old edges in random order, or zero."""
    attributes = graphs.edge_attr
    if attributes is None:
        raise AssertionError("only graphs with edge features have any to deal out")
    if mode == "complete_graph" or not len(which):
        return np.zeros((len(which), *attributes.shape[1:]), attributes.dtype)
    owner = graphs.owner[graphs.edges[0, old]]
    shuffled = old[np.lexsort([draws.words(len(old)), owner])]
    begins = pointers(count)
    new_begins = pointers(np.bincount(which, minlength=len(count)))
    turn = np.arange(len(which)) - new_begins[which]
    # A tree may need more edges than there were: then the features are dealt out once more.
    there = count[which] > 0
    source = begins[which] + turn % np.maximum(count[which], 1)
    dealt = np.zeros((len(which), *attributes.shape[1:]), attributes.dtype)
    dealt[there] = attributes[shuffled[source[there]]]
    return dealt
