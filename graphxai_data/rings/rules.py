"""Rules that score nodes without looking at a model, for graphs of all datasets.

An explainer that is not better than the best of them shows nothing about its model. A dataset's own
rules are in `Generator.rules`.
"""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from graphxai_data.generators.base import Rule
from graphxai_data.graphs.columns import Ints, pointers
from graphxai_data.graphs.union import Graphs, spans
from graphxai_data.seeds import rng_for, uniform

Floats = npt.NDArray[np.float64]

# Distances need memory for all pairs of nodes of a graph; larger graphs have no such rules.
MAX_NODES = 500
_PAIRS_AT_ONCE = 4_000_000
_DAMPING, _PAGERANK_ROUNDS = 0.85, 50


def random_scores(ids: Ints, sizes: Ints, seed: int = 0) -> Floats:
    """Return uniform draws [N], which depend on the seed and the ids [g] of the graphs only."""
    pairs = zip(ids.tolist(), sizes.tolist(), strict=True)
    draws = [uniform(rng_for(seed, "explain/random", i).words(n)) for i, n in pairs]
    return np.concatenate(draws) if draws else np.zeros(0)


def degree(graphs: Graphs) -> Floats:
    """Return the number of neighbours [N]."""
    return np.bincount(graphs.edges[0], minlength=len(graphs.x)).astype(np.float64)


def feature_norm(graphs: Graphs) -> Floats:
    """Return the Euclidean norm [N] of each node's features; 1 where they are class ids."""
    if graphs.x.dtype.kind in "iu":
        return np.ones(len(graphs.x))
    return np.asarray(np.linalg.norm(graphs.x.astype(np.float64), axis=1), np.float64)


def core_number(graphs: Graphs) -> Floats:
    """Return the largest k [N] for which a node is in the k-core."""
    source, target = graphs.edges
    core = np.zeros(len(graphs.x))
    left = np.ones(len(graphs.x), bool)
    k = 0
    while left.any():
        k += 1
        while True:
            source, target = (ends[left[source] & left[target]] for ends in (source, target))
            leaves = left & (np.bincount(source, minlength=len(left)) < k)
            if not leaves.any():
                break
            core[leaves] = k - 1
            left &= ~leaves
    return core


def two_core(graphs: Graphs) -> Floats:
    """Return 1 for nodes [N] that are left after leaves are removed until none is left."""
    return (core_number(graphs) >= 2).astype(np.float64)


def triangles(graphs: Graphs) -> Floats:
    """Return the number of triangles [N] at each node."""
    adjacency = _adjacency(graphs)
    closed = (adjacency @ adjacency).multiply(adjacency).sum(axis=1)
    return np.asarray(closed, np.float64).ravel() / 2


def pagerank(graphs: Graphs) -> Floats:
    """Return the PageRank [N] of each node within its graph."""
    own = 1 / np.repeat(graphs.sizes, graphs.sizes)
    neighbours = np.maximum(degree(graphs), 1)
    adjacency, rank = _adjacency(graphs), own
    isolated = degree(graphs) == 0
    for _ in range(_PAGERANK_ROUNDS):
        # A node without neighbours keeps its rank.
        moved = adjacency @ (rank / neighbours) + np.where(isolated, rank, 0)
        rank = (1 - _DAMPING) * own + _DAMPING * moved
    return np.asarray(rank, np.float64)


def closeness(graphs: Graphs) -> Floats:
    """Return the harmonic closeness [N]: the sum of 1 / distance to all other nodes."""
    scores = np.zeros(len(graphs.x))
    for rows, balls in _balls(graphs):
        reached = np.zeros(rows.shape)
        before = np.ones(rows.shape)
        for distance, ball in enumerate(balls, 1):
            size = ball.sum(axis=2)
            reached += (size - before) / distance
            before = size
        exists = rows >= 0
        scores[rows[exists]] = reached[exists]
    return scores


def within(graphs: Graphs, values: Floats, radius: int) -> Floats:
    """Return the sum [N] of values [N] over all nodes at most `radius` edges away."""
    if radius == 0:
        return values
    sums = np.zeros(len(values))
    for rows, balls in _balls(graphs, radius):
        exists = rows >= 0
        padded = np.where(exists, values[rows], 0)
        for ball in balls:
            last = ball
        sums[rows[exists]] = np.matmul(last, padded[:, :, None])[:, :, 0][exists]
    return sums


def _balls(
    graphs: Graphs, most: int | None = None
) -> Iterator[tuple[Ints, Iterator[npt.NDArray[np.float32]]]]:
    """Yield for some graphs at a time their nodes, and which nodes are within 1, 2, … edges.

    Nodes [k, n] are rows of the union, -1 where a graph has fewer than n. The balls [k, n, n] of
    each radius end when they grow no more, or with the radius `most`.
    """
    order = np.argsort(graphs.sizes, kind="stable")
    edge_ptr = np.searchsorted(graphs.edges[0], graphs.node_ptr)
    begin = 0
    while begin < len(order):
        sizes = graphs.sizes[order[begin:]].astype(np.int64)
        fits = np.arange(1, len(sizes) + 1) * sizes**2 <= _PAIRS_AT_ONCE
        count = max(1, int(fits.sum()))
        selected, n = order[begin : begin + count], int(sizes[count - 1])
        place = np.arange(n)
        rows = np.where(
            place < graphs.sizes[selected, None], graphs.node_ptr[selected, None] + place, -1
        )
        adjacency = np.zeros((count, n, n), np.float32)
        adjacency[:, place, place] = 1
        edges = np.diff(edge_ptr)[selected]
        ends = graphs.edges[:, spans(edge_ptr[selected], edges)]
        source, target = ends - np.repeat(graphs.node_ptr[selected], edges)
        adjacency[np.repeat(np.arange(count), edges), source, target] = 1
        yield rows, _growing(adjacency, most)
        begin += count


def _growing(
    adjacency: npt.NDArray[np.float32], most: int | None
) -> Iterator[npt.NDArray[np.float32]]:
    ball, radius = adjacency, 1
    yield ball
    while most is None or radius < most:
        larger = (np.matmul(ball, adjacency) > 0).astype(np.float32)
        if most is None and larger.sum() == ball.sum():
            return
        ball, radius = larger, radius + 1
        yield ball


def _adjacency(graphs: Graphs) -> csr_array:
    nodes = len(graphs.x)
    begins = pointers(np.bincount(graphs.edges[0], minlength=nodes))
    return csr_array((np.ones(graphs.edges.shape[1]), graphs.edges[1], begins), (nodes, nodes))


def _reversed(score: Callable[[Graphs], Floats]) -> Callable[[Graphs], Floats]:
    return lambda graphs: -score(graphs)


GENERAL = (
    Rule("degree", "number of neighbours", degree),
    Rule("low-degree", "few neighbours first", _reversed(degree)),
    Rule("feature-norm", "length of a node's features", feature_norm),
    Rule("two-core", "what is left after leaves are removed until none is left", two_core),
    Rule("core-number", "largest k for which a node is in the k-core", core_number),
    Rule("triangles", "number of triangles at a node", triangles),
    Rule("pagerank", "PageRank", pagerank),
    Rule("low-pagerank", "low PageRank first", _reversed(pagerank)),
    Rule("closeness", "sum of 1 / distance to all other nodes", closeness),
    Rule("low-closeness", "far nodes first", _reversed(closeness)),
)
# Rules that need the distances of all pairs of nodes.
OF_DISTANCES = ("closeness", "low-closeness")
