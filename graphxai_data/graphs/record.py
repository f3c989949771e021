"""GraphRecord: one graph with its label and ground truth; Schema: what all graphs share."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from graphxai_data.errors import CheckFailedError, InputError

# The position of a name is the split id stored in shards.
SPLIT_NAMES = ("train", "valid", "test")

# Names that mean something else in a shard, in a record, or to PyG.
_TAKEN = (
    "x", "edge_index", "edge_attr", "edge_weight", "y", "node_y", "node_mask", "edge_mask", "group",
    "graph_id", "split", "batch", "ptr", "num_nodes", "num_edges", "num_graphs", "num_features",
    "num_node_features", "num_edge_features", "num_classes", "keys", "face", "adj", "adj_t",
)  # fmt: skip

# Fields that pictures are drawn from: their level, and the dimensions of a row.
_DRAWN: dict[str, tuple[str, int]] = {
    "smiles": ("text", 0), "smiles_atom": ("node", 0), "segments": ("graph", 2),
}  # fmt: skip

Encoding = Literal["onehot", "multihot", "dense"]
Level = Literal["node", "edge", "graph", "text"]


@dataclass(frozen=True)
class Feature:
    """How one feature matrix looks in memory ([rows, width] float32) and on disk.

    A one-hot row is stored as its class id in one byte. A multi-hot row is several one-hot rows of
    given `widths` next to each other, one byte each. A dense row is stored as it is.
    """

    width: int
    encoding: Encoding
    widths: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= self.width <= (256 if self.encoding == "onehot" else 2**20):
            raise ValueError(f"a {self.encoding} feature cannot be {self.width} wide")
        parts = self.encoding == "multihot"
        if parts != bool(self.widths) or (parts and sum(self.widths) != self.width):
            raise ValueError(f"widths {self.widths} do not make a {self.encoding} of {self.width}")
        if self.widths and not 1 <= min(self.widths) <= max(self.widths) <= 256:
            raise ValueError(f"widths must be from 1 to 256, got {self.widths}")

    @classmethod
    def multihot(cls, widths: Sequence[int]) -> "Feature":
        """Return several one-hot features of these widths next to each other."""
        return cls(sum(widths), "multihot", tuple(widths))

    @property
    def stored(self) -> tuple[str, tuple[int, ...]]:
        """Type and shape of one row on disk."""
        if self.encoding == "dense":
            return "<f4", (self.width,)
        return "|u1", (len(self.widths),) if self.widths else ()


@dataclass(frozen=True)
class Column:
    """One array of a shard: the values of one field, graph after graph.

    There is one row per node, edge or graph, as `level` says; "text" is one string per graph, as
    UTF-8. A dataset's own field has this `name` in a record's `meta`.
    """

    name: str
    level: Level
    dtype: str = "|u1"  # on disk, as NumPy writes it
    shape: tuple[int, ...] = ()  # of one row on disk
    feature: Feature | None = None  # the encoding of the rows, for x and edge_attr
    axis: int = 0  # along which graphs follow each other; 1 for edge_index [2, M]

    def __post_init__(self) -> None:
        if self.level not in get_args(Level):
            raise ValueError(f"array '{self.name}' is of an unknown level {self.level!r}")
        if self.level == "text" and (self.dtype, self.shape) != ("|u1", ()):
            raise ValueError(f"array '{self.name}' is text, but not stored as single bytes")

    @property
    def pointer(self) -> str | None:
        """The array of where each graph's rows begin; None if every graph has one row."""
        if self.level == "graph":
            return None
        return f"{self.name if self.level == 'text' else self.level}_ptr"

    @property
    def expanded(self) -> "Column":
        """The same column as a record has it, with features as float32."""
        if self.feature is None:
            return self
        return replace(self, dtype="<f4", shape=(self.feature.width,), feature=None)

    def array_shape(self, rows: int) -> tuple[int, ...]:
        """Return the shape of the array with this many rows."""
        return (*self.shape, rows) if self.axis else (rows, *self.shape)


@dataclass(frozen=True)
class Schema:
    """What every graph of a dataset has in common."""

    node_features: Feature  # of x
    edge_features: Feature | None  # of edge_attr, or None where edges have none
    num_classes: int
    # The dataset's own fields, such as the SMILES of a molecule; kept in the order of names.
    extras: tuple[Column, ...] = ()
    has_rationale: bool = True  # whether the nodes and edges that make the class are known
    task: Literal["graph", "node"] = "graph"  # whether graphs or nodes have classes

    def __post_init__(self) -> None:
        object.__setattr__(self, "extras", tuple(sorted(self.extras, key=lambda c: c.name)))
        names = [extra.name for extra in self.extras]
        for name in names:
            if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or names.count(name) > 1:
                raise ValueError(f"extras: '{name}' is no name, or there twice")
            if name in _TAKEN or name.endswith("_ptr"):
                raise ValueError(f"extras: '{name}' is a name with a meaning; choose another")
        for extra in self.extras:
            level, dimensions = _DRAWN.get(extra.name, (extra.level, len(extra.shape)))
            number = extra.name == "smiles_atom" and np.dtype(extra.dtype).kind != "u"
            if (extra.level, len(extra.shape)) != (level, dimensions) or number:
                raise ValueError(
                    f"extras: '{extra.name}', which pictures are drawn from, is not of level "
                    f"'{level}' with {dimensions} dimensions per row, or of another type"
                )

    def columns(self) -> tuple[Column, ...]:
        """Return all arrays of a shard but the pointers, which each `Column.pointer` names.

        This is the only declaration of the layout: packing, checks, shards and datasets follow it.
        """
        return self._columns

    @cached_property  # records are read one at a time, and each needs the columns
    def _columns(self) -> tuple[Column, ...]:
        x, edge_attr = self.node_features, self.edge_features
        columns = [
            Column("graph_id", "graph", "<i8"),
            Column("group", "graph", "<i8"),
            Column("split", "graph"),
            Column("y", "graph", "<i8"),
            Column("x", "node", *x.stored, feature=x),
            Column("edge_index", "edge", "<i8", (2,), axis=1),
        ]
        if edge_attr is not None:
            columns.append(Column("edge_attr", "edge", *edge_attr.stored, feature=edge_attr))
        if self.has_rationale:
            columns += [Column("node_mask", "node", "|b1"), Column("edge_mask", "edge", "|b1")]
        if self.task == "node":
            columns.append(Column("node_y", "node"))
        return (*columns, *self.extras)


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

    def reordered(self, order: npt.NDArray[np.int64], schema: "Schema") -> "GraphRecord":
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
