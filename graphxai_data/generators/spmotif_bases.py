"""The bases of Spurious-Motif: balanced binary trees, ladders and wheels, as arrays of edges.

The width of a base is the height of a tree, the number of rungs of a ladder, or the number of nodes
of a wheel, its hub included.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from graphxai_data.graphs.columns import Ints, pointers


class Base(NamedTuple):
    """One kind of base."""

    edges: Callable[[int], Ints]  # [e, 2] from its width; its nodes are 0, 1, …
    nodes: Callable[[int], int]  # from its width
    least: int  # width of the smallest
    most: int


def tree_edges(height: int) -> Ints:
    """Return the edges [e, 2] of a balanced binary tree; node i hangs on (i - 1) // 2."""
    child = np.arange(1, 2 ** (height + 1) - 1)
    return np.stack([(child - 1) // 2, child], axis=1)


def ladder_edges(rungs: int) -> Ints:
    """Return the edges [e, 2] of a ladder with the rails 0, 1, … and `rungs`, `rungs` + 1, …."""
    rail, rung = np.arange(rungs - 1), np.arange(rungs)
    rails = [np.stack([rail + first, rail + first + 1], axis=1) for first in (0, rungs)]
    return np.concatenate([*rails, np.stack([rung, rung + rungs], axis=1)])


def wheel_edges(nodes: int) -> Ints:
    """Return the edges [e, 2] of a wheel: node 0 is joined to all nodes of a cycle."""
    rim = np.arange(1, nodes)
    spokes = np.stack([np.zeros_like(rim), rim], axis=1)
    return np.concatenate([spokes, np.stack([rim, np.roll(rim, -1)], axis=1)])


BASES = {
    "tree": Base(tree_edges, lambda height: int(2 ** (height + 1) - 1), 0, 7),
    "ladder": Base(ladder_edges, lambda rungs: 2 * rungs, 2, 150),
    "wheel": Base(wheel_edges, lambda nodes: nodes, 4, 300),
}


@dataclass(frozen=True)
class Catalogue:
    """All bases that can be drawn, one after the other.

    Attributes:
        nodes: [t] nodes of each base.
        edges: [E, 2] edges of all bases.
        edge_ptr: [t+1] where the edges of each base begin.
        first: [k, 2] the first base of each kind, for its usual and its large widths.
        count: [k, 2] how many there are, one for each width.
    """

    nodes: Ints
    edges: Ints
    edge_ptr: Ints
    first: Ints
    count: Ints

    @classmethod
    def of(cls, kinds: Sequence[str], widths: Sequence[Sequence[range]]) -> "Catalogue":
        """Return the bases of these kinds, each with its usual and its large `widths` [k][2]."""
        count = np.array([[len(span) for span in spans] for spans in widths], np.int64)
        drawn = [
            (BASES[kind], width)
            for kind, spans in zip(kinds, widths, strict=True)
            for span in spans
            for width in span
        ]
        edges = [base.edges(width) for base, width in drawn]
        return cls(
            np.array([base.nodes(width) for base, width in drawn], np.int64),
            np.concatenate(edges),
            pointers([len(part) for part in edges]),
            pointers(count.ravel())[:-1].reshape(count.shape),
            count,
        )
