"""Motifs of five nodes, how their graphs are put together, and how they are recognised."""

from collections.abc import Mapping, Sequence
from itertools import permutations
from math import prod

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from graphxai_data.graphs.columns import Columns, Ints, global_edges, graph_of_rows
from graphxai_data.seeds import Words, rng_for

# Nodes are numbered by falling degree, so that a node of one motif and the node of the same number
# of its counterfactual twin have the same degree (House and K2,3: 3, 3, 2, 2, 2).
MOTIFS: dict[str, tuple[tuple[int, int], ...]] = {
    "house": ((0, 1), (0, 2), (1, 2), (0, 3), (1, 4), (3, 4)),
    "cycle": ((0, 1), (1, 2), (2, 3), (3, 4), (4, 0)),
    "crane": ((0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (2, 4)),
    "k23": ((0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 4)),
}
MOTIF_NODES = 5


def motif_edges(names: Sequence[str]) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Return the ends [k, e, 2] of the edges of motifs, and which edges [k, e] exist."""
    most = max(len(MOTIFS[name]) for name in names)
    # A motif with fewer edges than the other is filled up with loops, which do not exist.
    ends = np.array([[*MOTIFS[n], *[(0, 0)] * (most - len(MOTIFS[n]))] for n in names])
    return ends, ends[:, :, 0] != ends[:, :, 1]


def words_of_groups(
    shapes: Mapping[str, tuple[int, ...]], group: Ints, seed: int, stream: str
) -> tuple[dict[str, Words], Ints]:
    """Return random words [k, …] of the k different groups, by what they decide.

    Also returns the position [g] of each graph's group among them.
    """
    ends = np.cumsum([prod(shape) for shape in shapes.values()])
    groups, position = np.unique(group, return_inverse=True)
    streams = [rng_for(seed, stream, g).words(ends[-1]) for g in groups.tolist()]
    parts = np.split(np.stack(streams), ends[:-1], axis=1)
    words = {
        name: part.reshape(len(groups), *shape)
        for (name, shape), part in zip(shapes.items(), parts, strict=True)
    }
    return words, position


def both_directions_sorted(owner: Ints, u: Ints, v: Ints, nodes: int) -> tuple[Ints, Ints]:
    """Return graph [m] and ends [2, m] of edges in both directions, sorted by graph and ends."""
    code = np.concatenate([(owner * nodes + u) * nodes + v, (owner * nodes + v) * nodes + u])
    code.sort()
    rest, target = np.divmod(code, nodes)
    sorted_owner, source = np.divmod(rest, nodes)
    return sorted_owner, np.stack([source, target])


def is_connected(columns: Columns) -> npt.NDArray[np.bool_]:
    """Return which graphs [g] are connected."""
    nodes, owner = len(columns["x"]), graph_of_rows(columns["node_ptr"])
    component = components(global_edges(columns), nodes)
    first = np.unique(np.stack([owner, component]), axis=1)[0]
    parts: Ints = np.bincount(first, minlength=len(columns["y"]))
    return np.asarray(parts == 1)


def components(edges: Ints, nodes: int) -> Ints:
    """Return the number [N] of the connected component of each node; `edges` is [2, M]."""
    adjacency = coo_array((np.ones(edges.shape[1], np.int8), tuple(edges)), (nodes, nodes))
    component: Ints = connected_components(adjacency, directed=False)[1].astype(np.int64)
    return component


def recognised_motifs(names: Sequence[str], columns: Columns, mask: npt.NDArray[np.bool_]) -> Ints:
    """Return which motif [g] the five nodes of `mask` [N] form, in whatever order, or -1."""
    source, target = global_edges(columns)
    marked = mask[source] & mask[target]
    # The marked nodes of every graph are numbered 0 to 4. One bit per pair makes a code per graph.
    rank = (np.cumsum(mask) - 1) % MOTIF_NODES
    bit = MOTIF_NODES * rank[source[marked]] + rank[target[marked]]
    owner = graph_of_rows(columns["edge_ptr"])[marked]
    code = np.bincount(owner, weights=2.0**bit, minlength=len(columns["y"]))
    orders = np.array(list(permutations(range(MOTIF_NODES))))
    motif = np.full(len(code), -1, np.int64)
    for position, name in enumerate(names):
        u, v = np.array([*MOTIFS[name], *(edge[::-1] for edge in MOTIFS[name])]).T
        codes = (2.0 ** (MOTIF_NODES * orders[:, u] + orders[:, v])).sum(axis=1)
        motif[np.isin(code, codes)] = position
    return motif
