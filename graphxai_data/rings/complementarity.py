"""Mode complementarity (RINGS, Coupette et al. 2025): how differently features and edges see nodes.

Two distance matrices over the nodes of a graph, one from the edges and one from the features, each
divided by its diameter; their difference, measured by a norm, is 0 where both modes say the same.
Disconnected graphs: component by component, weighted by size.

Components of one size are treated together, as stacks of matrices [k, n, n].
"""

from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from graphxai_data.columns import Ints, pointers
from graphxai_data.errors import InputError
from graphxai_data.typed_table import nearest

Floats = npt.NDArray[np.float64]
Norm = Literal["L11", "frobenius"]

# Matrices of so many entries are treated at once.
_ENTRIES = 2**21


def mode_complementarity(
    data: Any,
    graph_metric: str = "diffusion_distance",
    feature_metric: str | Callable[..., Any] = "euclidean",
    norm: Norm = "L11",
) -> float:
    """Mode complementarity of one graph.

    Args:
        data: a PyG `Data`, a `GraphRecord`, or anything with `x` [n, p] and `edge_index` [2, m].
        graph_metric: diffusion_distance, heat_kernel_distance, resistance_distance or
            shortest_path_distance.
        feature_metric: euclidean, or any metric of `sklearn.metrics.pairwise_distances`.
        norm: of the difference: "L11" (mean of absolute values) or "frobenius" (root mean square).

    Returns:
        From 0 (the modes agree) to 1; NaN where it is not defined, that is for a graph in which
        every component is a single node, and for features that are not finite.
    """
    x, edges = _feature_matrix(data.x), np.asarray(data.edge_index, np.int64)
    ptr = np.array([0, len(x)])
    return float(mode_complementarities(x, edges, ptr, graph_metric, feature_metric, norm)[0])


def mode_complementarities(
    x: Any,
    edge_index: Any,
    node_ptr: Any,
    graph_metric: str = "diffusion_distance",
    feature_metric: str | Callable[..., Any] = "euclidean",
    norm: Norm = "L11",
) -> Floats:
    """[g] mode complementarity of many graphs at once.

    Args:
        x: [N, p] features of all nodes.
        edge_index: [2, M] edges between rows of `x`, as in a PyG `Batch` (its `ptr` is `node_ptr`);
            each counts in both directions.
        node_ptr: [g+1] where the nodes of each graph begin.
        graph_metric: as for `mode_complementarity`.
        feature_metric: as for `mode_complementarity`.
        norm: as for `mode_complementarity`.
    """
    if graph_metric not in GRAPH_METRICS:
        raise InputError(
            f"unknown graph metric '{graph_metric}'; {nearest(graph_metric, GRAPH_METRICS)}"
        )
    if norm not in ("L11", "frobenius"):
        raise InputError(f"unknown norm '{norm}'; known: L11, frobenius")
    features, edges = _feature_matrix(x), np.asarray(edge_index, np.int64)
    ptr = np.asarray(node_ptr, np.int64)
    adjacency = _adjacency(edges, len(features))
    total, weight = np.zeros(len(ptr) - 1), np.zeros(len(ptr) - 1)
    for nodes in _components(adjacency):
        structure = GRAPH_METRICS[graph_metric](_dense(adjacency, nodes))
        distances = _feature_distances(features[nodes], feature_metric)
        difference = _normalised(distances) - _normalised(structure)
        count, size = nodes.shape
        if norm == "L11":
            scores = np.abs(difference).sum(axis=(1, 2)) / (size * size - size)
        else:
            scores = np.sqrt(np.square(difference).sum(axis=(1, 2)) / (size * size - size))
        graph = np.searchsorted(ptr, nodes[:, 0], side="right") - 1
        total += np.bincount(graph, scores * size, minlength=len(total))
        weight += np.bincount(graph, np.full(count, size), minlength=len(total))
    # Where every component is a single node nothing was added: there is no pair to compare.
    mean: Floats = np.divide(total, weight, out=np.full(len(total), np.nan), where=weight > 0)
    return mean


def _feature_matrix(x: Any) -> Floats:
    features = np.asarray(x, np.float64)
    return features[:, None] if features.ndim == 1 else features


def _adjacency(edges: Ints, nodes: int) -> csr_array:
    apart = edges[0] != edges[1]
    source, target = edges[:, apart]
    ones = np.ones(2 * len(source))
    ends = np.concatenate([source, target]), np.concatenate([target, source])
    adjacency = csr_array((ones, ends), shape=(nodes, nodes))
    adjacency.data[:] = 1  # an edge given in both directions is one edge
    return adjacency


def _components(adjacency: csr_array) -> Iterator[Ints]:
    """Connected components of two nodes or more: [k, n] node ids, k components of the same size."""
    _, component = connected_components(adjacency, directed=False)
    members = np.argsort(component, kind="stable")
    sizes = np.bincount(component)
    begins = pointers(sizes)
    for size in np.unique(sizes[sizes > 1]).tolist():
        first = begins[:-1][sizes == size]
        at_once = max(1, _ENTRIES // size**2)
        for i in range(0, len(first), at_once):
            yield members[first[i : i + at_once, None] + np.arange(size)]


def _dense(adjacency: csr_array, nodes: Ints) -> Floats:
    """[k, n, n] adjacency matrices of components."""
    count, size = nodes.shape
    place = np.zeros(adjacency.shape[0], np.int64)
    place[nodes] = np.arange(size)
    rows = adjacency[nodes.ravel()].tocoo()
    which, row = np.divmod(rows.row, size)
    dense = np.zeros((count, size, size))
    dense[which, row, place[rows.col]] = 1
    return dense


def _normalised_laplacian(adjacency: Floats) -> Floats:
    scale = 1 / np.sqrt(adjacency.sum(axis=2))
    identity = np.eye(adjacency.shape[1])
    laplacian: Floats = identity - scale[:, :, None] * adjacency * scale[:, None, :]
    return laplacian


def _diffusion_distance(adjacency: Floats) -> Floats:
    """Distances of nodes in the basis of the Laplacian's eigenvectors times its eigenvalues.

    A change of basis keeps distances: they are those between the rows of the Laplacian.
    """
    return _row_distances(_normalised_laplacian(adjacency))


def _heat_kernel_distance(adjacency: Floats) -> Floats:
    """The same for the heat kernel exp(-L) after one unit of time."""
    values, vectors = np.linalg.eigh(_normalised_laplacian(adjacency))
    return _row_distances(vectors * np.exp(-values)[:, None, :])


def _resistance_distance(adjacency: Floats) -> Floats:
    """Resistance between nodes if every edge is a resistor of one ohm."""
    size = adjacency.shape[1]
    laplacian = np.eye(size) * adjacency.sum(axis=2)[:, :, None] - adjacency
    # Of a connected graph, L + 1/n is invertible, and its inverse differs from the pseudoinverse of
    # L by a constant, which resistances do not see.
    inverse = np.linalg.inv(laplacian + 1 / size)
    diagonal = np.diagonal(inverse, axis1=1, axis2=2)
    resistance: Floats = diagonal[:, :, None] + diagonal[:, None, :] - 2 * inverse
    return resistance


def _shortest_path_distance(adjacency: Floats) -> Floats:
    """Number of edges on a shortest path."""
    reached = np.eye(adjacency.shape[1], dtype=np.float32) + adjacency.astype(np.float32)
    step = reached
    distance = adjacency.copy()
    length = 1
    while not reached.all():
        length += 1
        further = (reached @ step > 0).astype(np.float32)
        distance[(further > 0) & (reached == 0)] = length
        reached = further
    return distance


GRAPH_METRICS: dict[str, Callable[[Floats], Floats]] = {
    "diffusion_distance": _diffusion_distance,
    "heat_kernel_distance": _heat_kernel_distance,
    "resistance_distance": _resistance_distance,
    "shortest_path_distance": _shortest_path_distance,
}


def _feature_distances(x: Floats, metric: str | Callable[..., Any]) -> Floats:
    """[k, n, n] distances of nodes by their features [k, n, p]."""
    if metric == "euclidean":
        return _row_distances(x)
    from sklearn.metrics import pairwise_distances

    try:
        return np.stack([pairwise_distances(rows, metric=metric) for rows in x])
    except ValueError as error:
        if np.isfinite(x).all():
            raise InputError(f"feature metric {metric!r}: {error}") from None
        return np.full((*x.shape[:2], x.shape[1]), np.nan)


def _row_distances(x: Floats) -> Floats:
    """[k, n, n] Euclidean distances of the rows of [k, n, p], exactly 0 for equal rows."""
    squares = np.zeros((*x.shape[:2], x.shape[1]))
    for column in range(x.shape[2]):
        values = x[:, :, column]
        squares += np.square(values[:, :, None] - values[:, None, :])
    return np.sqrt(squares)


def _normalised(distances: Floats) -> Floats:
    """Distances divided by the largest; where all are 0 there is nothing to divide by."""
    diameter = distances.max(axis=(1, 2), keepdims=True)
    return distances / np.where(diameter == 0, 1, diameter)
