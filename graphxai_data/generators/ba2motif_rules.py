"""Rules that score nodes of coloured graphs with motifs, without a model."""

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import breadth_first_order

from graphxai_data.generators.motifs import MOTIF_NODES, components
from graphxai_data.graphs.columns import Ints
from graphxai_data.graphs.union import Graphs
from graphxai_data.seeds import rng_for


def one_colour_motifs(graphs: Graphs, colours: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """Return 1 [N] for the nodes of motifs that have one of these colours throughout, else 0.

    A motif is what bridges cut off: five nodes that stay connected without any bridge.
    """
    x, nodes = graphs.x.astype(np.int64), len(graphs.x)
    kept = graphs.edges[:, ~is_bridge(graphs.edges, nodes)]
    part = components(kept, nodes)
    size = np.bincount(part, minlength=nodes)
    is_motif = np.zeros(nodes, bool)
    for colour in colours:
        in_colour = np.bincount(part[x == colour], minlength=nodes)
        is_motif |= (in_colour == MOTIF_NODES) & (size == MOTIF_NODES)
    return is_motif[part].astype(np.float64)


def five_node_blocks(graphs: Graphs) -> npt.NDArray[np.float64]:
    """Return 1 [N] for nodes of parts of five nodes that are left without bridges, else 0."""
    nodes = len(graphs.x)
    part = components(graphs.edges[:, ~is_bridge(graphs.edges, nodes)], nodes)
    size = np.bincount(part, minlength=nodes)
    return np.asarray(size[part] == MOTIF_NODES, np.float64)


def is_bridge(edges: Ints, nodes: int) -> npt.NDArray[np.bool_]:
    """Return which edges [M] of `edges` [2, M] (both directions) are bridges.

    In a spanning forest, each edge outside of it closes one cycle. All edges of that cycle get the
    random number of the edge that closes it, by XOR. A bridge is on no cycle: its number is 0. That
    of another edge is 0 with probability 2**-64.
    """
    source, target = edges
    parent, depth = _forest(edges, nodes)
    closes = (source < target) & (parent[source] != target) & (parent[target] != source)
    number = rng_for(0, "bridges").words(int(closes.sum()))
    below = np.zeros(nodes, np.uint64)
    np.bitwise_xor.at(below, source[closes], number)
    np.bitwise_xor.at(below, target[closes], number)
    # The numbers of a subtree, combined: those of cycles within it appear twice and vanish.
    for level in range(int(depth.max(initial=0)), 0, -1):
        child = np.flatnonzero(depth == level)
        np.bitwise_xor.at(below, parent[child], below[child])
    up, down = parent[source] == target, parent[target] == source
    bridges: npt.NDArray[np.bool_] = (up & (below[source] == 0)) | (down & (below[target] == 0))
    return bridges


def _forest(edges: Ints, nodes: int) -> tuple[Ints, Ints]:
    """Return parent and depth [N] in a spanning forest; roots have parent -1 and depth 0."""
    _, roots = np.unique(components(edges, nodes), return_index=True)
    # One more node, joined to all roots, makes the forest a tree for SciPy.
    source = np.concatenate([edges[0], np.full(len(roots), nodes)])
    target = np.concatenate([edges[1], roots])
    ones = np.ones(len(source), np.int8)
    adjacency = coo_array((ones, (source, target)), (nodes + 1, nodes + 1)).tocsr()
    parent = breadth_first_order(adjacency, nodes)[1][:nodes].astype(np.int64)
    depth = np.full(nodes, -1, np.int64)
    depth[roots], parent[roots] = 0, -1
    level = 0
    while (deeper := (depth < 0) & (depth[parent] == level)).any():
        level += 1
        depth[deeper] = level
    return parent, depth
