"""GraphRecord: one graph with its label and its ground truth; Schema: what all graphs share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from graphxai_data.errors import CheckFailedError

# The position of a name is the split id stored in shards.
SPLIT_NAMES = ("train", "valid", "test")

Encoding = Literal["onehot", "multihot", "dense"]
Level = Literal["node", "graph", "text"]


@dataclass(frozen=True)
class Feature:
    """How one feature matrix looks in memory ([rows, width] float32) and on disk.

    A one-hot row is stored as its class id in one byte; a multi-hot row, several one-hot ones side
    by side of given `widths`, as one byte each; a dense row as it is.
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
        """Several one-hot features of these widths side by side."""
        return cls(sum(widths), "multihot", tuple(widths))


@dataclass(frozen=True)
class Extra:
    """A field that one dataset has beside the usual ones, such as the SMILES of a molecule.

    Attributes:
        name: of the array, and of the record's entry in `meta`.
        level: one row for each "node" or "graph"; "text" is one string a graph.
        dtype: of the array, as NumPy writes it.
        shape: of one row.
    """

    name: str
    level: Level
    dtype: str = "|u1"
    shape: tuple[int, ...] = ()


@dataclass(frozen=True)
class Schema:
    """What every graph of a dataset has in common.

    Attributes:
        node_features: of `x`.
        edge_features: of `edge_attr`, or None where edges have none.
        num_classes: of graphs, or of nodes.
        extras: the dataset's own fields.
        has_rationale: whether it is known which nodes and edges a class was made by.
        task: "graph" where graphs have classes, "node" where nodes have.
    """

    node_features: Feature
    edge_features: Feature | None
    num_classes: int
    extras: tuple[Extra, ...] = ()
    has_rationale: bool = True
    task: Literal["graph", "node"] = "graph"


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
        group: graphs of one group never straddle a split.
        edge_attr: [m, q] float32, or None.
        node_y: [n] uint8; classes of nodes, or None where graphs have classes.
        meta: what else is known of the graph.
    """

    x: npt.NDArray[np.float32]
    edge_index: npt.NDArray[np.int64]
    y: int
    node_mask: npt.NDArray[np.bool_] | None
    edge_mask: npt.NDArray[np.bool_] | None
    group: int
    edge_attr: npt.NDArray[np.float32] | None = None
    node_y: npt.NDArray[np.uint8] | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def rationale(self) -> npt.NDArray[np.bool_]:
        """[n] the node mask, where a rationale is known."""
        if self.node_mask is None:
            raise CheckFailedError("a rationale is asked for, but none is known of this graph")
        return self.node_mask

    @property
    def num_nodes(self) -> int:
        """Number of nodes, isolated ones included."""
        return len(self.x)


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """What is settled about graphs before any is drawn: arrays of one length.

    Attributes:
        index: position in the whole build.
        raw: what each graph is made from, where it is made from a source.
    """

    index: npt.NDArray[np.int64]
    label: npt.NDArray[np.int64]
    group: npt.NDArray[np.int64]
    split: npt.NDArray[np.uint8]
    raw: Sequence[Any] | None = None

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Return the columns that the plan settles: `y`, `split`, `graph_id` and `group`."""
        return {"y": self.label, "split": self.split, "graph_id": self.index, "group": self.group}

    def cut(self, first: int, graphs: int) -> "Plan":
        """The plan of the graphs from `first` on."""
        span = slice(first, first + graphs)
        raw = None if self.raw is None else self.raw[span]
        return Plan(self.index[span], self.label[span], self.group[span], self.split[span], raw)
