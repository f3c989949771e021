"""Schema: what all graphs of a dataset have in common, and the arrays of a shard that follow."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np

# Names that mean something else in a shard, in a record, or to PyG.
_TAKEN = (
    "x", "edge_index", "edge_attr", "edge_weight", "y", "node_y", "node_mask", "edge_mask", "group",
    "alternatives", "alternative_bits", "node_weight",
    "graph_id", "split", "batch", "ptr", "num_nodes", "num_edges", "num_graphs", "num_features",
    "num_node_features", "num_edge_features", "num_classes", "keys", "face", "adj", "adj_t",
)  # fmt: skip

# Fields that pictures are drawn from: their level, and the dimensions of a row.
_DRAWN: dict[str, tuple[str, int]] = {
    "smiles": ("text", 0), "smiles_atom": ("node", 0), "segments": ("graph", 2),
}  # fmt: skip

# What they mean in every dataset.
DRAWN_DESCRIPTIONS = {
    "smiles": "SMILES of the molecule",
    "smiles_atom": "number of the node's atom in the SMILES, from 0 in the order of the text; "
    "hydrogens that the text does not list come last, as RDKit's AddHs numbers them",
    "segments": "node of each pixel, [row, column] from the top left",
}

Encoding = Literal["onehot", "multihot", "dense"]
Level = Literal["node", "edge", "graph", "text"]
Label = Literal["class", "number"]


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
    """What every graph of a dataset has in common.

    The rationale of a graph is the nodes and edges that make its label, `node_mask` and
    `edge_mask`; docs/rationales.md describes its forms.

    Attributes:
        node_features: of x.
        edge_features: of edge_attr, or None where edges have none.
        num_classes: 1 where the label is a number.
        extras: the dataset's own fields, such as the SMILES of a molecule, in the order of names.
        has_rationale: whether it is known what makes the label.
        task: whether graphs or nodes have labels.
        has_null: whether a rationale may be empty: nothing in the graph makes the label.
        has_alternatives: whether a graph may have several rationales, each of which is enough.
        has_weights: whether nodes have signed weights, `node_weight`; then `node_mask` is the nodes
            with a positive weight, unless there are alternatives.
        label: whether a label is a class, or a number.
    """

    node_features: Feature
    edge_features: Feature | None
    num_classes: int
    extras: tuple[Column, ...] = ()
    has_rationale: bool = True
    task: Literal["graph", "node"] = "graph"
    has_null: bool = False
    has_alternatives: bool = False
    has_weights: bool = False
    label: Label = "class"

    def __post_init__(self) -> None:
        object.__setattr__(self, "extras", tuple(sorted(self.extras, key=lambda c: c.name)))
        if not self.has_rationale and (self.has_null or self.has_alternatives or self.has_weights):
            raise ValueError("has_rationale is false, but a form of the rationale is given")
        if self.label == "number" and (self.num_classes != 1 or self.task != "graph"):
            raise ValueError("a label that is a number is that of a graph, with num_classes = 1")
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
            Column("y", "graph", "<f4" if self.label == "number" else "<i8"),
            Column("x", "node", *x.stored, feature=x),
            Column("edge_index", "edge", "<i8", (2,), axis=1),
        ]
        if edge_attr is not None:
            columns.append(Column("edge_attr", "edge", *edge_attr.stored, feature=edge_attr))
        if self.has_rationale:
            columns += [Column("node_mask", "node", "|b1"), Column("edge_mask", "edge", "|b1")]
        if self.has_alternatives:
            columns.append(Column("alternative_bits", "node", "<i8"))
        if self.has_weights:
            columns.append(Column("node_weight", "node", "<f4"))
        if self.task == "node":
            columns.append(Column("node_y", "node"))
        return (*columns, *self.extras)
