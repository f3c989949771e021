"""GraphRecord: one graph with its ground truth; Plan: what is fixed before any is drawn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from graphxai_data.errors import CheckFailedError, InputError
from graphxai_data.graphs.rationale import alternatives_of, bits_of, edges_inside
from graphxai_data.graphs.schema import Schema

# The position of a name is the split id stored in shards.
SPLIT_NAMES = ("train", "valid", "test")


@dataclass(frozen=True, slots=True, eq=False)
class GraphRecord:
    """One graph (n nodes, m directed edges, p node and q edge features), NumPy only.

    Attributes:
        x: [n, p] float32.
        edge_index: [2, m] int64; both directions of every edge, sorted by (source, target).
        y: class of the graph, or its number; 0 where nodes have classes.
        node_mask: [n] bool; the rationale, written by the code that grafted it; all false if it is
            null; the union of its alternatives; None where no rationale is known.
        edge_mask: [m] bool; the edges inside the rationale, or inside one of its alternatives; None
            where none is known.
        group: all graphs of a group are in the same split; a build sets it from its plan.
        edge_attr: [m, q] float32, or None.
        node_y: [n] uint8; classes of nodes, or None where graphs have classes.
        alternative_bits: [n] int64; bit j is set for the nodes of alternative j; None in datasets
            without alternatives.
        node_weight: [n] float32; signed contributions of nodes to y, or None.
        meta: the dataset's own fields; of a stored graph also its `graph_id` and `split`.
    """

    x: npt.NDArray[np.float32]
    edge_index: npt.NDArray[np.int64]
    y: int | float
    node_mask: npt.NDArray[np.bool_] | None
    edge_mask: npt.NDArray[np.bool_] | None
    group: int = 0
    edge_attr: npt.NDArray[np.float32] | None = None
    node_y: npt.NDArray[np.uint8] | None = None
    alternative_bits: npt.NDArray[np.int64] | None = None
    node_weight: npt.NDArray[np.float32] | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_edges(
        cls,
        x: npt.ArrayLike,
        edges: npt.ArrayLike,
        y: int | float,
        node_mask: npt.ArrayLike | None = None,
        edge_attr: npt.ArrayLike | None = None,
        alternatives: npt.ArrayLike | None = None,
        node_weight: npt.ArrayLike | None = None,
        **meta: Any,
    ) -> "GraphRecord":
        """Return a graph, given each of its edges once, in any order.

        Args:
            x: [n, p] features of nodes.
            edges: [k, 2] pairs of nodes; both directions are added and sorted.
            y: class of the graph, or its number.
            node_mask: [n] the rationale, all false for a null one; the edges inside it become
                `edge_mask`. Not needed with `alternatives` or `node_weight`.
            edge_attr: [k, q] features of `edges`.
            alternatives: [a, n] several rationales, each of which is enough; [] for a null one.
            node_weight: [n] signed contributions to y; the rationale is the positive ones.
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
        truth = _truth(nodes, edge_index, node_mask, alternatives, node_weight)
        return cls(x, edge_index, y, edge_attr=features, meta=meta, **truth)

    def fitted(self, schema: Schema) -> "GraphRecord":
        """Return the same graph, its one rationale as the only alternative if the schema has any.

        So a record with a `node_mask` is enough for a graph that has one rationale, or a null one.
        """
        if not schema.has_alternatives or self.alternative_bits is not None:
            return self
        bits = None if self.node_mask is None else self.node_mask.astype(np.int64)
        return replace(self, alternative_bits=bits)

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
    def alternatives(self) -> npt.NDArray[np.bool_]:
        """[a, n] the rationales, each of which is enough: none if null, else at least one."""
        if self.alternative_bits is not None:
            return alternatives_of(self.alternative_bits)
        return self.rationale[None][: int(self.rationale.any())]

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


def _truth(
    nodes: int,
    edge_index: npt.NDArray[np.int64],
    node_mask: npt.ArrayLike | None,
    alternatives: npt.ArrayLike | None,
    node_weight: npt.ArrayLike | None,
) -> dict[str, Any]:
    """Return the fields of a record that are its ground truth."""
    bits = None if alternatives is None else bits_of(alternatives, nodes)
    weight = None if node_weight is None else np.asarray(node_weight, np.float32)
    if weight is not None and weight.shape != (nodes,):
        raise InputError(f"node_weight: expected [{nodes}] numbers, got {list(weight.shape)}")
    mask = None if node_mask is None else _mask(node_mask, nodes)
    implied, source = (None, "") if weight is None else (weight > 0, "nodes with a positive weight")
    if bits is not None:
        implied, source = bits != 0, "union of the alternatives"
    if mask is not None and implied is not None and not np.array_equal(mask, implied):
        raise InputError(f"node_mask: not the {source}; leave it out")
    mask = implied if mask is None else mask
    marks = mask if bits is None else bits
    inside = None if marks is None else edges_inside(marks, edge_index[0], edge_index[1])
    return {
        "node_mask": mask, "edge_mask": inside, "alternative_bits": bits, "node_weight": weight,
    }  # fmt: skip


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
    label: npt.NDArray[np.int64]  # class; 0 for graphs whose label is a number
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
