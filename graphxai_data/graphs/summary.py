"""Statistics of a build, gathered shard by shard; a recipe's `[expected]` names them."""

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from graphxai_data.graphs.columns import Columns, global_edges
from graphxai_data.graphs.rationale import counts_of
from graphxai_data.metrics import count_true


@dataclass(frozen=True)
class SplitCounts:
    """Graphs in each split."""

    train: int
    valid: int
    test: int


@dataclass(frozen=True)
class Summary:
    """Statistics of a whole build, as a manifest holds them; edges count in both directions.

    Classes count graphs, or nodes where nodes have classes; there are none where the label is a
    number. The size of a rationale is the mean over graphs that have one: null ones are counted
    apart. What a dataset does not have is None.
    """

    nodes_mean: float
    nodes_min: int
    nodes_max: int
    edges_mean: float
    rationale_nodes_mean: float | None
    isolated_nodes_mean: float
    components_mean: float
    classes: dict[str, int]
    splits: SplitCounts
    class_splits: dict[str, SplitCounts]
    null_rationales: int | None = None
    alternatives_mean: float | None = None  # per graph whose rationale is not null
    y_mean: float | None = None
    y_std: float | None = None


@dataclass
class Statistics:
    """Running totals over the shards of a build."""

    graphs: int = 0
    nodes: int = 0
    edges: int = 0
    rationale_nodes: int | None = None
    isolated_nodes: int = 0
    components: int = 0
    nodes_min: int = 0
    nodes_max: int = 0
    splits: list[int] = field(default_factory=lambda: [0, 0, 0])
    # class_splits[label][split] = graphs, or nodes
    class_splits: dict[int, list[int]] = field(default_factory=dict)
    null_rationales: int = 0
    alternatives: int | None = None
    # Sums of labels that are numbers, and of their squares.
    y_sums: tuple[float, float] | None = None

    def update(self, columns: Columns) -> None:
        """Add the graphs of one shard."""
        sizes = np.diff(columns["node_ptr"])
        if not len(sizes):
            return
        low, high, nodes = int(sizes.min()), int(sizes.max()), int(sizes.sum())
        self.nodes_min = min(self.nodes_min, low) if self.graphs else low
        self.nodes_max = max(self.nodes_max, high)
        self.graphs += len(sizes)
        self.nodes += nodes
        self.edges += columns["edge_index"].shape[1]
        if "node_mask" in columns:
            mask, ptr = columns["node_mask"], columns["node_ptr"]
            self.rationale_nodes = (self.rationale_nodes or 0) + int(mask.sum())
            if "node_weight" not in columns:
                self.null_rationales += int((count_true(mask, ptr) == 0).sum())
            if "alternative_bits" in columns:
                counts = counts_of(columns["alternative_bits"], ptr)
                self.alternatives = (self.alternatives or 0) + int(counts.sum())
        source, target = global_edges(columns)
        adjacency = csr_array((np.ones(len(source), bool), (source, target)), shape=(nodes, nodes))
        self.isolated_nodes += int((np.bincount(source, minlength=nodes) == 0).sum())
        self.components += int(connected_components(adjacency, directed=False)[0])
        label, split = columns["y"], columns["split"]
        for i, count in enumerate(np.bincount(split, minlength=3).tolist()):
            self.splits[i] += count
        if label.dtype.kind == "f":
            first, second = self.y_sums or (0.0, 0.0)
            numbers = label.astype(np.float64)
            self.y_sums = first + float(numbers.sum()), second + float((numbers**2).sum())
            return
        if "node_y" in columns:
            label, split = columns["node_y"], np.repeat(split, sizes)
        pairs = np.stack([label, split]).astype(np.int64)
        cells, counts = np.unique(pairs, axis=1, return_counts=True)
        for (y, i), count in zip(cells.T.tolist(), counts.tolist(), strict=True):
            self.class_splits.setdefault(y, [0, 0, 0])[i] += count

    def to_dict(self) -> dict[str, Any]:
        """Return a `Summary` as plain data."""
        per_class = dict(sorted(self.class_splits.items()))
        known = max(self.graphs - self.null_rationales, 1)
        y_mean = y_std = None
        if self.y_sums is not None:
            y_mean = self.y_sums[0] / self.graphs
            y_std = max(self.y_sums[1] / self.graphs - y_mean**2, 0.0) ** 0.5
        summary = Summary(
            nodes_mean=self.nodes / self.graphs,
            nodes_min=self.nodes_min,
            nodes_max=self.nodes_max,
            edges_mean=self.edges / self.graphs,
            rationale_nodes_mean=None
            if self.rationale_nodes is None
            else self.rationale_nodes / known,
            isolated_nodes_mean=self.isolated_nodes / self.graphs,
            components_mean=self.components / self.graphs,
            classes={str(label): sum(counts) for label, counts in per_class.items()},
            splits=SplitCounts(*self.splits),
            class_splits={str(label): SplitCounts(*c) for label, c in per_class.items()},
            null_rationales=self.null_rationales or None,
            alternatives_mean=None if self.alternatives is None else self.alternatives / known,
            y_mean=y_mean,
            y_std=y_std,
        )
        return asdict(summary)
