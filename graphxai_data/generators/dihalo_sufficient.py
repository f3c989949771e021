"""The smallest parts of di-halo rings that decide the class; vectorised over all graphs.

Halogen and position can be read from the atoms of a shortest path between the two halogens: four
atoms for ortho, five for meta, six for para, where each side of the ring has such a path. The other
carbons of the ring are not needed.
"""

import numpy as np
import numpy.typing as npt

from graphxai_data.graphs.columns import Ints
from graphxai_data.graphs.union import Graphs, spans

Mask = npt.NDArray[np.bool_]


def halogen_paths(graphs: Graphs, mask: Mask, halogens: Mask) -> Ints:
    """Return [N] bit j for the nodes of the j-th shortest path between two halogens of a graph.

    Args:
        graphs: the graphs.
        mask: [N] nodes that paths may use. If they are two rings, the shortest paths of both count.
        halogens: [N] which nodes are halogens.
    """
    source, target = graphs.edges[:, mask[graphs.edges].all(axis=0)]
    first = np.searchsorted(source, np.arange(len(mask) + 1))
    owner, bits = graphs.owner, np.zeros(len(mask), np.int64)
    paths = np.flatnonzero(mask & halogens)[:, None]  # [p, length], in the order of graphs
    while len(paths):  # ends: no node is visited twice
        last = paths[:, -1]
        branches = np.diff(first)[last]
        following = target[spans(first[last], branches)]
        paths = np.column_stack([np.repeat(paths, branches, axis=0), following])
        paths = paths[(paths[:, :-1] != following[:, None]).all(axis=1)]
        # Every path is walked from both ends; one of them is enough.
        complete = paths[halogens[paths[:, -1]] & (paths[:, 0] < paths[:, -1])]
        graph = owner[complete[:, 0]]
        number = np.arange(len(graph)) - np.searchsorted(graph, graph)
        np.bitwise_or.at(bits, complete, np.left_shift(1, number)[:, None])
        paths = paths[~np.isin(owner[paths[:, 0]], graph)]
    return bits
