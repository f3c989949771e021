"""Statistics of a build, gathered shard by shard; they are what recipes' expectations name."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphxai_data.columns import Columns
from graphxai_data.record import SPLIT_NAMES


@dataclass
class Statistics:
    """Running totals; `edges` counts both directions, as the paper's table does."""

    graphs: int = 0
    nodes: int = 0
    edges: int = 0
    rationale_nodes: int = 0
    nodes_min: int | None = None
    nodes_max: int | None = None
    # class_splits[label][split] = graphs
    class_splits: dict[int, list[int]] = field(default_factory=dict)

    def update(self, columns: Columns) -> None:
        """Add the graphs of one shard."""
        sizes = np.diff(columns["node_ptr"].astype(np.int64))
        if not len(sizes):
            return
        low, high = int(sizes.min()), int(sizes.max())
        self.graphs += len(sizes)
        self.nodes += int(sizes.sum())
        self.edges += columns["edge_index"].shape[1]
        self.rationale_nodes += int(columns["node_mask"].sum())
        self.nodes_min = low if self.nodes_min is None else min(self.nodes_min, low)
        self.nodes_max = high if self.nodes_max is None else max(self.nodes_max, high)
        pairs, counts = np.unique(
            np.stack([columns["y"], columns["split"]]).astype(np.int64), axis=1, return_counts=True
        )
        for (label, split), count in zip(pairs.T.tolist(), counts.tolist(), strict=True):
            self.class_splits.setdefault(label, [0, 0, 0])[split] += count

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the manifest."""
        per_class = dict(sorted(self.class_splits.items()))
        return {
            "nodes_mean": self.nodes / self.graphs,
            "nodes_min": self.nodes_min,
            "nodes_max": self.nodes_max,
            "edges_mean": self.edges / self.graphs,
            "rationale_nodes_mean": self.rationale_nodes / self.graphs,
            "classes": {str(label): sum(counts) for label, counts in per_class.items()},
            "splits": {
                name: sum(counts[i] for counts in per_class.values())
                for i, name in enumerate(SPLIT_NAMES)
            },
            "class_splits": {
                str(label): dict(zip(SPLIT_NAMES, counts, strict=True))
                for label, counts in per_class.items()
            },
        }
