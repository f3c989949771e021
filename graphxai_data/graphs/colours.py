"""Weisfeiler–Leman colours of nodes as 64-bit hashes: equal for nodes that look alike."""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphxai_data.graphs.columns import Ints
from graphxai_data.graphs.union import Graphs

Words = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]

# Dense features are cut into this many steps between their lowest and highest value.
STEPS = 8


def first_colours(rows: npt.NDArray[Any] | None, count: int, bounds: npt.NDArray[Any]) -> Words:
    """Return a colour [count] for each row of features: class ids as they are, dense ones in steps.

    Class ids are [count], or [count, parts] of several one-hot features.

    `bounds` [2, p] are the lowest and highest value of each dense column, see `bounds_of`.
    """
    if rows is None:
        return np.zeros(count, np.uint64)
    if rows.ndim == 1:
        return rows.astype(np.uint64)
    steps = rows.astype(np.uint64) if rows.dtype.kind in "iu" else _steps(rows, *bounds)
    colour = np.zeros(count, np.uint64)
    for column in steps.T:
        colour = hashed(colour * np.uint64(1021) + column + np.uint64(1))
    return colour


def _steps(rows: npt.NDArray[Any], low: Floats, high: Floats) -> Words:
    width = np.where(high > low, high - low, 1)
    return np.clip((rows - low) / width * STEPS, 0, STEPS - 1).astype(np.uint64)


def bounds_of(rows: npt.NDArray[Any] | None) -> npt.NDArray[np.float64]:
    """Return the lowest and highest value [2, p] of each dense column; [2, 0] for class ids."""
    if rows is None or rows.ndim == 1 or not len(rows):
        return np.zeros((2, 0))
    return np.stack([rows.min(axis=0), rows.max(axis=0)]).astype(np.float64)


def edge_begins(graphs: Graphs) -> Ints:
    """Return [N+1] where the edges of each node begin, which are sorted by their source."""
    return np.searchsorted(graphs.edges[0], np.arange(len(graphs.x) + 1))


def refined(graphs: Graphs, colour: Words, bonds: Words, begins: Ints) -> Words:
    """Return the colours [N] after one more round: of a node and the multiset around it.

    `bonds` [M] are the colours of edges, `begins` is `edge_begins(graphs)`.
    """
    # The sum of hashes does not depend on the order of neighbours.
    messages = hashed(colour[graphs.edges[1]] * np.uint64(1021) + bonds + np.uint64(1))
    running = np.concatenate([np.zeros(1, np.uint64), np.cumsum(messages, dtype=np.uint64)])
    around = running[begins[1:]] - running[begins[:-1]]
    return hashed(hashed(colour) + np.uint64(3) * around)


def hashed(words: Words) -> Words:
    """splitmix64: every bit of the result depends on every bit of the argument."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
