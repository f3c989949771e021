"""Graphs as vectors without any training: what can be seen of a graph, for a linear probe.

Three blocks: the features alone, the structure alone, and both together. Discrete features: counts
of Weisfeiler–Leman colours, the most frequent ones. Dense features: message passing with random
weights, summed over nodes after every round. Graphs in every mode get the same blocks, so that no
mode has more columns to learn from, and none hides behind what another one shows.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from graphxai_data.columns import Ints
from graphxai_data.rings.modes import Graphs
from graphxai_data.seeds import Draws, rng_for, uniform

Floats = npt.NDArray[np.float32]
Words = npt.NDArray[np.uint64]

ROUNDS = 3
# Colours counted in each round, of the structure alone and of both.
_FEW_COLOURS, _MANY_COLOURS = 60, 160
_WIDTH = 64


def embed(graphs: Graphs, seed: int = 0) -> Floats:
    """[g, …] one vector for each graph."""
    bonds = np.zeros(graphs.edges.shape[1], np.uint64)
    if graphs.edge_attr is not None:
        bonds = _discrete(graphs.edge_attr)
    plain = np.zeros(len(graphs.x), np.uint64)
    structure = _colour_counts(graphs, plain, bonds, _FEW_COLOURS)
    if graphs.x.ndim == 1:
        kinds = graphs.x.astype(np.uint64)
        return np.concatenate(
            [structure, _colour_counts(graphs, kinds, bonds, _MANY_COLOURS)], axis=1
        )
    draws = rng_for(seed, "rings/random-weights")
    alone = Graphs(graphs.x, np.empty((2, 0), np.int64), None, graphs.node_ptr)
    return np.concatenate(
        [structure, _random_messages(alone, draws), _random_messages(graphs, draws)], axis=1
    )


def degree_histogram(graphs: Graphs) -> Floats:
    """[g, …] nodes of each degree; the highest degrees together."""
    top = 32
    degree = np.bincount(graphs.edges[0], minlength=len(graphs.x)).clip(max=top - 1)
    return _counted(graphs, degree, top)


def pooled_features(graphs: Graphs) -> Floats:
    """[g, …] sums of the features of all nodes."""
    if graphs.x.ndim == 1:
        return _counted(graphs, graphs.x.astype(np.int64), int(graphs.x.max(initial=0)) + 1)
    pooled: Floats = _pooling(graphs) @ graphs.x.astype(np.float32)
    return pooled


def sizes(graphs: Graphs) -> Floats:
    """[g, 2] number of nodes and of edges."""
    edges = np.bincount(graphs.owner[graphs.edges[0]], minlength=len(graphs.sizes))
    return np.stack([graphs.sizes, edges], axis=1).astype(np.float32)


def _discrete(rows: npt.NDArray[Any]) -> Words:
    """A number for each kind of row."""
    if rows.ndim == 1:
        return rows.astype(np.uint64)
    _, kind = np.unique(rows, axis=0, return_inverse=True)
    return kind.astype(np.uint64).ravel()


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
    state = np.maximum(_random_layer(graphs.x.astype(np.float32), draws), 0)
    pooled = [pool @ state]
    for _ in range(ROUNDS):
        state = np.maximum(_random_layer(np.concatenate([state, around @ state], 1), draws), 0)
        pooled.append(pool @ state)
    return np.concatenate(pooled, axis=1)


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
