"""Graphs as vectors without any training: what can be seen of a graph, for a linear probe.

Every mode of the graphs gets the same vector: the shortcuts (pooled features, degrees, sizes); the
structure alone; features and structure together. Discrete features: counts of Weisfeiler–Leman
colours, the most frequent ones. Dense features, of nodes or edges: message passing with random
weights, summed over nodes after every round. Shortcuts are part of it so that no shortcut can do
better by itself only because it is simpler.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from graphxai_data.graphs.columns import Ints
from graphxai_data.rings.modes import Graphs
from graphxai_data.seeds import Draws, rng_for, uniform

Floats = npt.NDArray[np.float32]
Words = npt.NDArray[np.uint64]

ROUNDS = 3
# Colours counted in each round, of the structure alone and of both.
_FEW_COLOURS, _MANY_COLOURS = 40, 120
_WIDTH, _UNITS = 64, 96


def embed(graphs: Graphs, seed: int = 0) -> Floats:
    """[g, …] one vector for each graph."""
    shortcuts = [shortcut(graphs, seed) for shortcut in SHORTCUTS.values()]
    kinds_of_edges = graphs.edge_attr is None or graphs.edge_attr.ndim == 1
    bonds = np.zeros(graphs.edges.shape[1], np.uint64)
    if graphs.edge_attr is not None and kinds_of_edges:
        bonds = graphs.edge_attr.astype(np.uint64)
    plain = np.zeros(len(graphs.x), np.uint64)
    structure = _colour_counts(graphs, plain, bonds, _FEW_COLOURS)
    if graphs.x.ndim == 1 and kinds_of_edges:
        kinds = graphs.x.astype(np.uint64)
        both = [_colour_counts(graphs, kinds, bonds, _MANY_COLOURS)]
    else:
        draws = rng_for(seed, "rings/random-weights")
        dense = replace(graphs, x=dense_rows(graphs.x))
        alone = Graphs(dense.x, np.empty((2, 0), np.int64), None, graphs.node_ptr)
        both = [_random_messages(alone, draws), _random_messages(dense, draws)]
    return np.concatenate([*shortcuts, structure, *both], axis=1)


def dense_rows(rows: npt.NDArray[Any]) -> Floats:
    """[rows, width] of features that may be class ids."""
    if rows.ndim == 2:
        return rows.astype(np.float32)
    return np.eye(int(rows.max(initial=0)) + 1, dtype=np.float32)[rows.astype(np.int64)]


def _degree_histogram(graphs: Graphs) -> Floats:
    """[g, …] nodes of each degree; the highest degrees together."""
    top = 32
    degree = np.bincount(graphs.edges[0], minlength=len(graphs.x)).clip(max=top - 1)
    return _counted(graphs, degree, top)


def _pooled_features(graphs: Graphs) -> Floats:
    """[g, …] sums of the features of all nodes."""
    pooled: Floats = _pooling(graphs) @ dense_rows(graphs.x)
    return pooled


def _sizes(graphs: Graphs) -> Floats:
    """[g, 2] number of nodes and of edges."""
    edges = np.bincount(graphs.owner[graphs.edges[0]], minlength=len(graphs.sizes))
    return np.stack([graphs.sizes, edges], axis=1).astype(np.float32)


def _with_units(summary: Callable[[Graphs], Floats]) -> Callable[[Graphs, int], Floats]:
    """A summary of graphs with random units beside its columns.

    With them, a class that is no linear function of the columns (an exclusive or, a range) is found
    as well.
    """

    def expanded(graphs: Graphs, seed: int = 0) -> Floats:
        columns = standardised(summary(graphs))
        words = rng_for(seed, "rings/units").words((columns.shape[1] + 1) * _UNITS)
        weights = (uniform(words) * 2 - 1).reshape(-1, _UNITS).astype(np.float32)
        scale = np.float32(np.sqrt(3 / max(columns.shape[1], 1)))
        units = np.maximum(columns @ weights[:-1] * scale + 2 * weights[-1], 0)
        return np.concatenate([columns, units], axis=1)

    return expanded


def standardised(columns: Floats) -> Floats:
    """Columns of mean 0 and variance 1; those that do not vary are left out."""
    parts = [columns[:, i : i + 64] for i in range(0, columns.shape[1], 64)] or [columns]
    # A few columns at a time: sums in double precision take twice the memory.
    mean = np.concatenate([part.mean(axis=0, dtype=np.float64) for part in parts])
    spread = np.concatenate([part.std(axis=0, dtype=np.float64) for part in parts])
    # What differs by rounding only is a constant.
    varies = spread > 1e-6 * (1 + np.abs(mean))
    scaled: Floats = columns[:, varies]
    scaled -= mean[varies].astype(np.float32)
    scaled /= spread[varies].astype(np.float32)
    return scaled


# What can be said of a graph without looking at its structure, or hardly so.
SHORTCUTS: dict[str, Callable[[Graphs, int], Floats]] = {
    "pooled_features": _with_units(_pooled_features),
    "degree_histogram": _with_units(_degree_histogram),
    "sizes": _with_units(_sizes),
}


def _colour_counts(graphs: Graphs, colour: Words, bonds: Words, most: int) -> Floats:
    """[g, …] how often each graph has each of the `most` frequent colours of every round."""
    counts = []
    begins = np.searchsorted(graphs.edges[0], np.arange(len(colour) + 1))
    for _ in range(ROUNDS + 1):
        counts.append(_count_frequent(graphs, colour, most))
        # A neighbourhood is the sum of its members' hashes, whatever their order.
        messages = _hash(colour[graphs.edges[1]] * np.uint64(1021) + bonds + np.uint64(1))
        running = np.concatenate([np.zeros(1, np.uint64), np.cumsum(messages, dtype=np.uint64)])
        around = running[begins[1:]] - running[begins[:-1]]
        colour = _hash(_hash(colour) + np.uint64(3) * around)
    return np.concatenate(counts, axis=1)


def _count_frequent(graphs: Graphs, colour: Words, most: int) -> Floats:
    _, kind, frequency = np.unique(colour, return_inverse=True, return_counts=True)
    # Of equally frequent colours the smaller hash is taken: the same on every machine.
    rank = np.empty(len(frequency), np.int64)
    rank[np.argsort(-frequency, kind="stable")] = np.arange(len(frequency))
    # The rare ones are counted together.
    return _counted(graphs, np.minimum(rank[kind.ravel()], most), most + 1)


def _counted(graphs: Graphs, kind: Ints, kinds: int) -> Floats:
    """[g, kinds] nodes of each kind."""
    count = len(graphs.sizes)
    cells = np.bincount(graphs.owner * kinds + kind, minlength=count * kinds)
    return cells.reshape(count, kinds).astype(np.float32)


def _hash(words: Words) -> Words:
    """splitmix64: every bit of the result depends on every bit of the argument."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def _random_messages(graphs: Graphs, draws: Draws) -> Floats:
    """[g, …] node states summed over each graph, after every round of random message passing."""
    around, pool = _mean_of_neighbours(graphs), _pooling(graphs)
    inputs = [graphs.x]
    if graphs.edge_attr is not None:
        inputs.append(_mean_of_edges(graphs))
    state = np.maximum(_random_layer(np.concatenate(inputs, axis=1), draws), 0)
    pooled = [pool @ state]
    for _ in range(ROUNDS):
        state = np.maximum(_random_layer(np.concatenate([state, around @ state], 1), draws), 0)
        pooled.append(pool @ state)
    return np.concatenate(pooled, axis=1)


def _mean_of_edges(graphs: Graphs) -> Floats:
    """[N, …] mean features of the edges at each node."""
    nodes, edges = len(graphs.x), graphs.edges.shape[1]
    degree = np.maximum(np.bincount(graphs.edges[0], minlength=nodes), 1)
    values = (1 / degree[graphs.edges[0]]).astype(np.float32)
    mean = csr_array((values, (graphs.edges[0], np.arange(edges))), shape=(nodes, edges))
    rows: Floats = mean @ dense_rows(np.asarray(graphs.edge_attr))
    return rows


def _pooling(graphs: Graphs) -> csr_array:
    """[g, N] matrix that sums over the nodes of each graph."""
    nodes = len(graphs.x)
    places = np.ones(nodes, np.float32), np.arange(nodes), graphs.node_ptr
    return csr_array(places, shape=(len(graphs.sizes), nodes))


def _mean_of_neighbours(graphs: Graphs) -> csr_array:
    """[N, N] matrix that takes the mean over neighbours; without any, the node itself."""
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
    layer: Floats = scaled + 2 * weights[-1].astype(np.float32)
    return layer
