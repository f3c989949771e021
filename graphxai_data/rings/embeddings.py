"""Vectors of graphs for a linear probe, without training.

The vector has three parts, the same for every mode: the shortcuts (pooled features, degrees,
sizes), the structure alone, and features with structure. Discrete features: counts of the most
frequent Weisfeiler–Leman colours. Dense features of nodes or edges: message passing with random
weights, summed over nodes after every round. Shortcuts are included so that no shortcut can do
better by itself only because it is simpler.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from graphxai_data.graphs.colours import Words, edge_begins, refined
from graphxai_data.graphs.columns import Ints
from graphxai_data.graphs.union import Graphs
from graphxai_data.seeds import Draws, rng_for, uniform

Floats = npt.NDArray[np.float32]

ROUNDS = 3
# Colours counted in each round, for the structure alone and for both.
_FEW_COLOURS, _MANY_COLOURS = 40, 120
_WIDTH, _UNITS = 64, 96


def embed(graphs: Graphs, seed: int = 0) -> Floats:
    """Return one vector per graph [g, …]."""
    shortcuts = [shortcut(name, graphs, seed) for name in SHORTCUTS]
    discrete_edges = graphs.edge_attr is None or graphs.edge_attr.ndim == 1
    bonds = np.zeros(graphs.edges.shape[1], np.uint64)
    if graphs.edge_attr is not None and discrete_edges:
        bonds = graphs.edge_attr.astype(np.uint64)
    plain = np.zeros(len(graphs.x), np.uint64)
    structure = _colour_counts(graphs, plain, bonds, _FEW_COLOURS)
    if graphs.x.ndim == 1 and discrete_edges:
        kinds = graphs.x.astype(np.uint64)
        both = [_colour_counts(graphs, kinds, bonds, _MANY_COLOURS)]
    else:
        draws = rng_for(seed, "rings/random-weights")
        dense = replace(graphs, x=dense_rows(graphs.x))
        alone = Graphs(dense.x, np.empty((2, 0), np.int64), None, graphs.node_ptr)
        both = [_random_messages(alone, draws), _random_messages(dense, draws)]
    return np.concatenate([*shortcuts, structure, *both], axis=1)


def dense_rows(rows: npt.NDArray[Any]) -> Floats:
    """Return features as rows [rows, width]; class ids become one-hot."""
    if rows.ndim == 2:
        return rows.astype(np.float32)
    return np.eye(int(rows.max(initial=0)) + 1, dtype=np.float32)[rows.astype(np.int64)]


def _degree_histogram(graphs: Graphs) -> Floats:
    """Return the number of nodes of each degree [g, 32]; the highest degrees together."""
    top = 32
    degree = np.bincount(graphs.edges[0], minlength=len(graphs.x)).clip(max=top - 1)
    return _counted(graphs, degree, top)


def _pooled_features(graphs: Graphs) -> Floats:
    """Return the sum of the features of all nodes [g, p]."""
    pooled: Floats = _pooling(graphs) @ dense_rows(graphs.x)
    return pooled


def _sizes(graphs: Graphs) -> Floats:
    """Return the numbers of nodes and of edges [g, 2]."""
    edges = np.bincount(graphs.owner[graphs.edges[0]], minlength=len(graphs.sizes))
    return np.stack([graphs.sizes, edges], axis=1).astype(np.float32)


# Summaries that need no structure, or hardly any.
SHORTCUTS: dict[str, Callable[[Graphs], Floats]] = {
    "pooled_features": _pooled_features,
    "degree_histogram": _degree_histogram,
    "sizes": _sizes,
}


def shortcut(name: str, graphs: Graphs, seed: int) -> Floats:
    """Return the columns of a summary, and random ReLU units of them [g, …].

    The units make classes visible to a linear probe that are not linear in the columns, such as an
    exclusive or, or a range.
    """
    columns = standardised(SHORTCUTS[name](graphs))
    words = rng_for(seed, "rings/units").words((columns.shape[1] + 1) * _UNITS)
    weights = (uniform(words) * 2 - 1).reshape(-1, _UNITS).astype(np.float32)
    scale = np.float32(np.sqrt(3 / max(columns.shape[1], 1)))
    units = np.maximum(columns @ weights[:-1] * scale + 2 * weights[-1], 0)
    return np.concatenate([columns, units], axis=1)


def standardised(columns: Floats) -> Floats:
    """Return columns of mean 0 and variance 1, without those that do not vary."""
    parts = [columns[:, i : i + 64] for i in range(0, columns.shape[1], 64)] or [columns]
    # A few columns at a time, since sums in double precision take twice the memory.
    mean = np.concatenate([part.mean(axis=0, dtype=np.float64) for part in parts])
    spread = np.concatenate([part.std(axis=0, dtype=np.float64) for part in parts])
    # Columns that differ by rounding only are constant.
    varies = spread > 1e-6 * (1 + np.abs(mean))
    scaled: Floats = columns[:, varies]
    scaled -= mean[varies].astype(np.float32)
    scaled /= spread[varies].astype(np.float32)
    return scaled


def _colour_counts(graphs: Graphs, colour: Words, bonds: Words, most: int) -> Floats:
    """Return counts of the `most` frequent colours of every round in each graph [g, …]."""
    counts = []
    begins = edge_begins(graphs)
    for _ in range(ROUNDS + 1):
        counts.append(_count_frequent(graphs, colour, most))
        colour = refined(graphs, colour, bonds, begins)
    return np.concatenate(counts, axis=1)


def _count_frequent(graphs: Graphs, colour: Words, most: int) -> Floats:
    _, kind, frequency = np.unique(colour, return_inverse=True, return_counts=True)
    # Ties are broken by the hash, so that the order is the same on every machine.
    rank = np.empty(len(frequency), np.int64)
    rank[np.argsort(-frequency, kind="stable")] = np.arange(len(frequency))
    # Rare colours are counted together.
    return _counted(graphs, np.minimum(rank[kind.ravel()], most), most + 1)


def _counted(graphs: Graphs, kind: Ints, kinds: int) -> Floats:
    """Return the number of nodes of each kind [g, kinds]."""
    count = len(graphs.sizes)
    cells = np.bincount(graphs.owner * kinds + kind, minlength=count * kinds)
    return cells.reshape(count, kinds).astype(np.float32)


def _random_messages(graphs: Graphs, draws: Draws) -> Floats:
    """Return node states after every round of random message passing, summed per graph [g, …]."""
    around, pool = _mean_of_neighbours(graphs), _pooling(graphs)
    inputs = [graphs.x]
    if graphs.edge_attr is not None:
        inputs.append(_mean_of_edges(graphs))
    state = _random_layer(np.concatenate(inputs, axis=1), draws)
    pooled = [pool @ state]
    for _ in range(ROUNDS):
        state = _random_layer(np.concatenate([state, around @ state], axis=1), draws)
        pooled.append(pool @ state)
    return np.concatenate(pooled, axis=1)


def _mean_of_edges(graphs: Graphs) -> Floats:
    """Return the mean features of the edges at each node [N, q]."""
    nodes, edges = len(graphs.x), graphs.edges.shape[1]
    degree = np.maximum(np.bincount(graphs.edges[0], minlength=nodes), 1)
    values = (1 / degree[graphs.edges[0]]).astype(np.float32)
    mean = csr_array((values, (graphs.edges[0], np.arange(edges))), shape=(nodes, edges))
    rows: Floats = mean @ dense_rows(np.asarray(graphs.edge_attr))
    return rows


def _pooling(graphs: Graphs) -> csr_array:
    """Return the matrix [g, N] that sums over the nodes of each graph."""
    nodes = len(graphs.x)
    places = np.ones(nodes, np.float32), np.arange(nodes), graphs.node_ptr
    return csr_array(places, shape=(len(graphs.sizes), nodes))


def _mean_of_neighbours(graphs: Graphs) -> csr_array:
    """Return the matrix [N, N] of means over neighbours; isolated nodes keep their own value."""
    nodes = len(graphs.x)
    degree = np.bincount(graphs.edges[0], minlength=nodes)
    alone = np.flatnonzero(degree == 0)
    rows, columns = np.concatenate([graphs.edges, np.stack([alone, alone])], axis=1)
    values = (1 / np.maximum(degree, 1)[rows]).astype(np.float32)
    return csr_array((values, (rows, columns)), shape=(nodes, nodes))


def _random_layer(state: Floats, draws: Draws) -> Floats:
    width = state.shape[1]
    weights = (uniform(draws.words((width + 1) * _WIDTH)) * 2 - 1).reshape(width + 1, _WIDTH)
    mixed = state @ weights[:-1].astype(np.float32)
    spread = mixed.std(axis=0)
    scaled = (mixed - mixed.mean(axis=0)) / np.where(spread == 0, 1, spread)
    layer: Floats = np.maximum(scaled + 2 * weights[-1].astype(np.float32), 0)
    return layer
