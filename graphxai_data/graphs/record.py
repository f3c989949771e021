"""GraphRecord: one graph with its ground truth; Plan: what is fixed before any is drawn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from graphxai_data.errors import CheckFailedError, InputError
from graphxai_data.graphs.schema import Schema

# The position of a name is the split id stored in shards.
SPLIT_NAMES = ("train", "valid", "test")


@dataclass(frozen=True, slots=True, eq=False)
class GraphRecord:
    """One graph (n nodes, m directed edges, p node and q edge features), NumPy only.

    Attributes:
        x: [n, p] float32.
        edge_index: [2, m] int64; both directions of every edge, sorted by (source, target).
        y: class of the graph; 0 where nodes have classes.
        node_mask: [n] bool; the rationale, written by the code that grafted it; None where no
            rationale is known.
        edge_mask: [m] bool; the edges inside the rationale; None where none is known.
        group: all graphs of a group are in the same split; a build sets it from its plan.
        edge_attr: [m, q] float32, or None.
        node_y: [n] uint8; classes of nodes, or None where graphs have classes.
        meta: the dataset's own fields; of a stored graph also its `graph_id` and `split`.
    """

    x: npt.NDArray[np.float32]
    edge_index: npt.NDArray[np.int64]
    y: int
    node_mask: npt.NDArray[np.bool_] | None
    edge_mask: npt.NDArray[np.bool_] | None
    group: int = 0
    edge_attr: npt.NDArray[np.float32] | None = None
    node_y: npt.NDArray[np.uint8] | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_edges(
        cls,
        x: npt.ArrayLike,
        edges: npt.ArrayLike,
        y: int,
        node_mask: npt.ArrayLike | None = None,
        edge_attr: npt.ArrayLike | None = None,
        **meta: Any,
    ) -> "GraphRecord":
        """Return a graph, given each of its edges once, in any order.

        Args:
            x: [n, p] features of nodes.
            edges: [k, 2] pairs of nodes; both directions are added and sorted.
            y: class of the graph.
            node_mask: [n] the rationale; the edges inside it become `edge_mask`.
            edge_attr: [k, q] features of `edges`.
            meta: the dataset's own fields.
        """
        x = np.asarray(x, np.float32)
        if x.ndim != 2:
            raise InputError(f"x: expected [nodes, features], got {list(x.shape)}")
        nodes, pairs = len(x), _pairs(edges)
        outside = ((pairs < 0) | (pairs >= nodes)).any(axis=1)
        if outside.any():
            pair = tuple(pairs[int(np.argmax(outside))].tolist())
            raise InputError(f"edges: {pair} is not between nodes 0 to {nodes - 1}")
        both = np.concatenate([pairs, pairs[:, ::-1]])
        _, first, again = np.unique(both @ [nodes, 1], return_index=True, return_inverse=True)
        edge_index = np.ascontiguousarray(both[first].T)
        features = None
        if edge_attr is not None:
            given = np.asarray(edge_attr, np.float32)
            if given.ndim != 2 or len(given) != len(pairs):
                raise InputError(
                    f"edge_attr: expected [{len(pairs)}, features], got {list(given.shape)}"
                )
            doubled = np.concatenate([given, given])
            features = doubled[first]
            if not np.array_equal(features[again.reshape(-1)], doubled):
                raise InputError("edges: one is given twice, with different edge_attr")
        mask = None if node_mask is None else _mask(node_mask, nodes)
        inside = None if mask is None else mask[edge_index[0]] & mask[edge_index[1]]
        return cls(x, edge_index, y, mask, inside, edge_attr=features, meta=meta)

    def reordered(self, order: npt.NDArray[np.int64], schema: Schema) -> "GraphRecord":
        """Return the same graph with its nodes in another order [n]: node order[i] becomes i."""
        ends = np.argsort(order)[self.edge_index]
        edge_order = np.argsort(ends[0] * len(order) + ends[1])
        positions = {"node": order, "edge": edge_order}
        values: dict[str, Any] = {"edge_index": ends[:, edge_order]}
        meta = dict(self.meta)
        for column in schema.columns():
            if column.level not in positions or column.name == "edge_index":
                continue
            if column.name in RECORD_FIELDS:
                values[column.name] = getattr(self, column.name)[positions[column.level]]
            else:
                meta[column.name] = meta[column.name][positions[column.level]]
        return replace(self, **values, meta=meta)

    def equals(self, other: "GraphRecord") -> bool:
        """Return whether two graphs are the same, in every field and bit."""
        if self.meta.keys() != other.meta.keys():
            return False
        pairs = [(getattr(self, name), getattr(other, name)) for name in RECORD_FIELDS]
        pairs += [(self.meta[key], other.meta[key]) for key in self.meta]
        return all(_same(mine, theirs) for mine, theirs in pairs)

    @property
    def rationale(self) -> npt.NDArray[np.bool_]:
        """[n] node mask of a graph whose rationale is known."""
        if self.node_mask is None:
            raise CheckFailedError("this graph has no known rationale")
        return self.node_mask

    @property
    def num_nodes(self) -> int:
        """Number of nodes, isolated ones included."""
        return len(self.x)


def _pairs(edges: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return edges as an array [k, 2], or raise an `InputError`."""
    try:
        pairs = np.asarray(edges)
    except ValueError as error:
        raise InputError(f"edges: expected pairs of nodes ({error})") from None
    if not pairs.size:
        return np.zeros((0, 2), np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        advice = "; PyG's edge_index is given as edge_index.T" if len(pairs) == 2 else ""
        raise InputError(f"edges: expected pairs [k, 2], got {list(pairs.shape)}{advice}")
    if pairs.dtype.kind not in "iu":
        raise InputError(f"edges: expected whole numbers, got {pairs.dtype}")
    return pairs.astype(np.int64)


def _mask(node_mask: npt.ArrayLike, nodes: int) -> npt.NDArray[np.bool_]:
    """Return a mask [n] as bool, or raise an `InputError`."""
    mask = np.asarray(node_mask)
    if mask.shape != (nodes,) or not np.isin(mask, (0, 1)).all():
        raise InputError(
            f"node_mask: expected true or false for each of {nodes} nodes, got {mask.dtype} "
            f"{list(mask.shape)}"
        )
    return mask.astype(bool)


def _same(one: Any, other: Any) -> bool:
    if not (isinstance(one, np.ndarray) and isinstance(other, np.ndarray)):
        return type(one) is type(other) and bool(one == other)
    same_form = one.dtype == other.dtype and one.shape == other.shape
    return same_form and one.tobytes() == other.tobytes()


RECORD_FIELDS = tuple(entry.name for entry in fields(GraphRecord) if entry.name != "meta")


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """What is fixed about graphs before any is drawn: arrays [g]."""

    index: npt.NDArray[np.int64]  # position in the whole build
    label: npt.NDArray[np.int64]
    group: npt.NDArray[np.int64]  # all graphs of a group are in the same split
    split: npt.NDArray[np.uint8]  # position in SPLIT_NAMES
    raw: Sequence[Any] | None = None  # what each graph is built from, for datasets with a source

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Return the columns that the plan settles: `y`, `split`, `graph_id` and `group`."""
        return {"y": self.label, "split": self.split, "graph_id": self.index, "group": self.group}

    def cut(self, first: int, graphs: int) -> "Plan":
        """Return the plan of so many graphs, beginning with `first`."""
        span = slice(first, first + graphs)
        raw = None if self.raw is None else self.raw[span]
        return Plan(self.index[span], self.label[span], self.group[span], self.split[span], raw)
