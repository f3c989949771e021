"""Mode complementarity (RINGS, Coupette et al. 2025): how much features and edges disagree.

Edges and features each give a distance matrix over the nodes, divided by its diameter. The norm of
their difference is 0 if both agree. Disconnected graphs: the mean over components, weighted by
size. Edge cases are those of the official code (docs/rings.md has a table): a single node scores 0,
and in a graph without edges all nodes have distance 0.

Components of one size are processed together, as stacks of matrices [k, n, n].
"""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from graphxai_data.errors import InputError, known_name
from graphxai_data.graphs.columns import Ints, graph_of_rows, pointers
from graphxai_data.rings.modes import as_rows, check_ends

Floats = npt.NDArray[np.float64]
Norm = Literal["L11", "frobenius"]

# Matrix entries that are processed at once.
_ENTRIES = 2**17


def mode_complementarity(
    data: Any,
    graph_metric: str = "diffusion_distance",
    feature_metric: str | Callable[..., Any] = "euclidean",
    norm: Norm = "L11",
) -> float:
    """Return the mode complementarity of one graph.

    Args:
        data: a PyG `Data`, a `GraphRecord`, or anything with `x` [n, p] and `edge_index` [2, m].
        graph_metric: diffusion_distance, heat_kernel_distance, resistance_distance or
            shortest_path_distance.
        feature_metric: euclidean, or any metric of `sklearn.metrics.pairwise_distances`.
        norm: "L11" (mean of absolute differences) or "frobenius" (root mean square).

    Returns:
        From 0 (the modes agree) to 1; NaN where it is not defined: for a graph without nodes, and
        for features that are not finite.
    """
    graph = data.x, data.edge_index, [0, len(data.x)]
    return float(mode_complementarities(*graph, graph_metric, feature_metric, norm)[0])


def mode_complementarities(
    x: Any,
    edge_index: Any,
    node_ptr: Any,
    graph_metric: str = "diffusion_distance",
    feature_metric: str | Callable[..., Any] = "euclidean",
    norm: Norm = "L11",
) -> Floats:
    """Return the mode complementarities of many graphs [g].

    Args:
        x: [N, p] features of all nodes.
        edge_index: [2, M] edges between rows of `x`, as in a PyG `Batch` (its `ptr` is `node_ptr`);
            each counts in both directions.
        node_ptr: [g+1] first node of each graph.
        graph_metric: as for `mode_complementarity`.
        feature_metric: as for `mode_complementarity`.
        norm: as for `mode_complementarity`.
    """
    known_name("graph metric", graph_metric, GRAPH_METRICS)
    known_name("norm", norm, ("L11", "frobenius"))
    features, ptr = as_rows(x, np.float64), np.asarray(node_ptr, np.int64)
    features = np.where(np.isfinite(features), features, np.nan)  # no infinite distances
    adjacency = _adjacency(np.asarray(edge_index, np.int64), len(features))
    sizes, owner = np.diff(ptr), graph_of_rows(ptr)
    total = np.zeros(len(sizes))
    stacks = chain(_components(adjacency), _without_edges(adjacency, ptr))
    for nodes, matrices in stacks:
        # Without edges, every distance is 0, as it is between equal features.
        structure = GRAPH_METRICS[graph_metric](matrices) if matrices.any() else matrices
        distances = _feature_distances(features[nodes], feature_metric)
        difference = _normalised(distances) - _normalised(structure)
        size = nodes.shape[1]
        pairs = size * size - size
        if norm == "L11":
            scores = np.abs(difference).sum(axis=(1, 2)) / pairs
        else:
            scores = np.sqrt(np.square(difference).sum(axis=(1, 2)) / pairs)
        total += np.bincount(owner[nodes[:, 0]], scores * size, minlength=len(total))
    # Single nodes score 0, but count.
    unknown = np.bincount(owner, np.isnan(features).any(axis=1), minlength=len(total)) > 0
    defined = (sizes > 0) & ~unknown
    mean: Floats = np.divide(total, sizes, out=np.full(len(total), np.nan), where=defined)
    return mean


def _adjacency(edges: Ints, nodes: int) -> csr_array:
    check_ends(edges, nodes)
    both = np.concatenate([edges, edges[::-1]], axis=1)
    adjacency = csr_array((np.ones(both.shape[1]), both), shape=(nodes, nodes))
    adjacency.data[:] = 1  # an edge given in both directions, or a self-loop, counts once
    return adjacency


def _without_edges(adjacency: csr_array, ptr: Ints) -> Iterator[tuple[Ints, Floats]]:
    """Yield node ids [k, n] and zeros [k, n, n] of k graphs of n > 1 nodes that have no edges."""
    empty = np.diff(adjacency.indptr[ptr]) == 0
    sizes = np.diff(ptr)
    for size in np.unique(sizes[empty & (sizes > 1)]).tolist():
        begins = ptr[:-1][empty & (sizes == size)]
        at_once = max(1, _ENTRIES // size**2)
        for low in range(0, len(begins), at_once):
            nodes = begins[low : low + at_once, None] + np.arange(size)
            yield nodes, np.zeros((len(nodes), size, size))


def _components(adjacency: csr_array) -> Iterator[tuple[Ints, Floats]]:
    """Yield node ids [k, n] and adjacency matrices [k, n, n] of k components of n > 1 nodes."""
    count, component = connected_components(adjacency, directed=False)
    sizes = np.bincount(component, minlength=count)
    order = np.lexsort((component, sizes[component]))  # nodes of small components first
    sizes = np.sort(sizes)
    begins = pointers(sizes)
    ends = np.argsort(order)[np.stack(adjacency.nonzero())]
    edges = ends[:, np.argsort(ends[0], kind="stable")]
    edge_begins = np.searchsorted(edges[0], begins)
    for size in np.unique(sizes[sizes > 1]).tolist():
        first, last = np.searchsorted(sizes, [size, size + 1]).tolist()
        at_once = max(1, _ENTRIES // size**2)
        for low in range(first, last, at_once):
            high = min(low + at_once, last)
            row, column = edges[:, edge_begins[low] : edge_begins[high]] - begins[low]
            matrices = np.zeros((high - low, size, size))
            matrices[row // size, row % size, column % size] = 1
            yield order[begins[low] : begins[high]].reshape(-1, size), matrices


def _normalised_laplacian(adjacency: Floats) -> Floats:
    scale = 1 / np.sqrt(adjacency.sum(axis=2))
    identity = np.eye(adjacency.shape[1])
    laplacian: Floats = identity - scale[:, :, None] * adjacency * scale[:, None, :]
    return laplacian


def _diffusion_distance(adjacency: Floats) -> Floats:
    """Return distances between the rows of the Laplacian.

    They equal those between eigenvectors scaled by eigenvalues, since a change of basis preserves
    distances.
    """
    laplacian = _normalised_laplacian(adjacency)
    return _distances_of_products(laplacian @ laplacian)


def _heat_kernel_distance(adjacency: Floats) -> Floats:
    """Return distances between the rows of the heat kernel exp(-L)."""
    # Products of its rows are exp(-2 L) = e^-2 exp((1 - L) / 4)^8, where 1 - L has eigenvalues from
    # -1 to 1: nine terms of the series are exact to 1e-12, and need four products of matrices. The
    # factor e^-2 cancels when distances are divided by the largest. Faster than eigenvalues.
    identity = np.eye(adjacency.shape[1])
    first = (identity - _normalised_laplacian(adjacency)) / 4
    second = first @ first
    third = second @ first
    kernel = third / 362880 + second / 40320 + first / 5040 + identity / 720
    kernel = third @ kernel + second / 120 + first / 24 + identity / 6
    kernel = third @ kernel + second / 2 + first + identity
    for _ in range(3):
        kernel = kernel @ kernel
    return _distances_of_products(kernel)


def _distances_of_products(products: Floats) -> Floats:
    """Return distances of rows [k, n, n], from the products of all pairs of rows.

    Accurate if no two rows are nearly equal (those of L and exp(-L) never are), or if all products
    are exact.
    """
    squares = np.diagonal(products, axis1=1, axis2=2)
    distances = squares[:, :, None] + squares[:, None, :] - 2 * products
    diagonal = np.arange(products.shape[1])
    distances[:, diagonal, diagonal] = 0
    return np.sqrt(distances)


def _resistance_distance(adjacency: Floats) -> Floats:
    """Return the resistance between nodes if every edge is a resistor of one ohm."""
    size = adjacency.shape[1]
    laplacian = np.eye(size) * adjacency.sum(axis=2)[:, :, None] - adjacency
    # For a connected graph, L + 1/n is invertible, and its inverse differs from the pseudoinverse
    # of L by a constant, which cancels.
    inverse = np.linalg.inv(laplacian + 1 / size)
    diagonal = np.diagonal(inverse, axis1=1, axis2=2)
    resistance: Floats = diagonal[:, :, None] + diagonal[:, None, :] - 2 * inverse
    return resistance


def _shortest_path_distance(adjacency: Floats) -> Floats:
    """Return lengths of shortest paths; sets of reached nodes are bits, for all nodes at once."""
    count, size, _ = adjacency.shape
    which, row, column = np.nonzero(adjacency)
    neighbours = which * size + column
    begins = np.searchsorted(which * size + row, np.arange(count * size))
    words = -(-size // 64)
    reached = np.zeros((count * size, words), "<u8")
    own = np.tile(np.arange(size), count)
    reached[np.arange(count * size), own // 64] = np.uint64(1) << (own % 64).astype(np.uint64)
    distance = np.zeros((count * size, words * 64), np.int32)
    length = 0
    while True:
        length += 1
        further = reached | np.bitwise_or.reduceat(reached[neighbours], begins, axis=0)
        new = further & ~reached
        if not new.any():
            break
        distance += length * np.unpackbits(new.view(np.uint8), axis=1, bitorder="little")
        reached = further
    return distance[:, :size].reshape(count, size, size).astype(float)


GRAPH_METRICS: dict[str, Callable[[Floats], Floats]] = {
    "diffusion_distance": _diffusion_distance,
    "heat_kernel_distance": _heat_kernel_distance,
    "resistance_distance": _resistance_distance,
    "shortest_path_distance": _shortest_path_distance,
}


def _feature_distances(x: Floats, metric: str | Callable[..., Any]) -> Floats:
    """Return distances of nodes [k, n, n] by their features [k, n, p]."""
    if metric == "euclidean":
        # Products of whole numbers are exact, so equal rows have distance 0.
        whole = np.abs(x).max(initial=0) < 2**20 and (x == np.rint(x)).all()
        return _distances_of_products(x @ x.transpose(0, 2, 1)) if whole else _row_distances(x)
    from sklearn.metrics import pairwise_distances

    distances = np.full((*x.shape[:2], x.shape[1]), np.nan)
    for i in np.flatnonzero(np.isfinite(x).all(axis=(1, 2))):
        try:
            distances[i] = pairwise_distances(x[i], metric=metric)
        except ValueError as error:
            raise InputError(f"feature metric {metric!r}: {error}") from None
    return distances


def _row_distances(x: Floats) -> Floats:
    """Return Euclidean distances of rows [k, n, n], exactly 0 for equal rows."""
    squares = np.zeros((*x.shape[:2], x.shape[1]))
    for column in range(x.shape[2]):
        values = x[:, :, column]
        squares += np.square(values[:, :, None] - values[:, None, :])
    return np.sqrt(squares)


def _normalised(distances: Floats) -> Floats:
    """Return distances divided by the largest, unless all are 0."""
    diameter = distances.max(axis=(1, 2), keepdims=True)
    return distances / np.where(diameter == 0, 1, diameter)
