"""The ground truth of the graphs that are explained, and the scores that explainers give them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from graphxai_data.datasets.loader import BatchLoader
from graphxai_data.evaluation.other_datasets import OtherGraphs
from graphxai_data.evaluation.parts import Part
from graphxai_data.explain.functions import without_answers
from graphxai_data.graphs.columns import pointers
from graphxai_data.metrics import Bools, Floats, Ints
from graphxai_data.rings.scoring import Rationales

# Fields of graphs whose rationales have alternatives or signed weights.
FORMS = ("alternative_bits", "node_weight")


@dataclass(frozen=True)
class Truth:
    """Labels and rationales of the graphs that are explained."""

    part: Part
    graph_id: Ints  # [g] numbers of the graphs in the dataset
    label: Ints | Floats  # [g] classes, or numbers
    node_ptr: Ints  # [g+1] where the nodes of each graph begin and end
    edge_ptr: Ints  # [g+1]
    node_mask: Bools  # [N] nodes of the rationales
    edge_mask: Bools  # [M]
    alternative_bits: Ints | None = None  # [N] bit j of the nodes of alternative j
    node_weight: Floats | None = None  # [N] signed contributions

    @classmethod
    def of(cls, part: Part) -> "Truth":
        """Return the truth about all graphs of a dataset or of a part of it."""
        keys = ("x", "edge_index", "y", "node_mask", "edge_mask", "graph_id", *FORMS)
        whole = next(iter(BatchLoader(part, len(part), keys=[k for k in keys if k in part._data])))
        edges = np.bincount(whole.batch[whole.edge_index[0]].numpy(), minlength=len(part))
        return cls(
            part,
            whole.graph_id.numpy(),
            whole.y.numpy() if "y" in whole else np.zeros(len(part), np.int64),
            whole.ptr.numpy().copy(),
            pointers(edges),
            whole.node_mask.numpy(),
            whole.edge_mask.numpy(),
            whole.alternative_bits.numpy() if "alternative_bits" in whole else None,
            whole.node_weight.double().numpy() if "node_weight" in whole else None,
        )

    @cached_property
    def rationales(self) -> Rationales:
        """The rationales as scores are measured against them."""
        return Rationales(self.node_ptr, self.node_mask, self.alternative_bits, self.node_weight)

    def shown(self, as_given: bool = True) -> Iterator[Any]:
        """Yield a copy of every graph without its rationale, as functions may see it.

        Graphs of others have the fields that were given, or those that models take.
        """
        for i in range(len(self.part)):
            if as_given and isinstance(self.part, OtherGraphs):
                yield self.part.shown(i)
            else:
                yield without_answers(self.part[i])


@dataclass(frozen=True)
class Scores:
    """Scores that one explainer gives to the graphs of a `Truth`.

    `properties` are further columns of the explainer's row, such as its completeness gap.
    """

    nodes: Floats  # [N]
    edges: Floats | None = None  # [M]
    properties: dict[str, float] = field(default_factory=dict)
