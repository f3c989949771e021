"""The ground truth of the graphs that are explained, and the scores that explainers give them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from graphxai_data.datasets.loader import BatchLoader
from graphxai_data.errors import CheckFailedError
from graphxai_data.evaluation.other_datasets import OtherGraphs
from graphxai_data.evaluation.parts import Part, recipe_of, union_of
from graphxai_data.explain.functions import without_answers
from graphxai_data.files.plugins import blamed
from graphxai_data.graphs.columns import pointers
from graphxai_data.metrics import Bools, Floats, Ints, count_true
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

    @cached_property
    def sufficient(self) -> Rationales | None:
        """The smallest parts of the rationales that decide the label; None if not known.

        Several parts of a graph are alternatives.
        """
        return self.sufficient_in(self.node_mask)

    def sufficient_in(self, mask: Bools) -> Rationales | None:
        """Return what `sufficient` is for rationales [N] such as one cause of a pair's `both`."""
        recipe = recipe_of(self.part)
        if recipe is None or not recipe.generator_object.knows_sufficient:
            return None
        keys = [key for key in ("x", "edge_index", "edge_attr") if key in self.part._data]
        whole = next(iter(BatchLoader(self.part, len(self.part), keys=keys)))
        with blamed(recipe.plugin):
            bits = recipe.generator_object.sufficient(union_of(self.part, whole), mask.copy())
            if bits is None:
                return None
            bits = _checked_bits(bits, mask, self.node_ptr)
        return Rationales(self.node_ptr, bits > 0, bits)

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


def _checked_bits(bits: Any, mask: Bools, ptr: Ints) -> Ints:
    """Return the bits [N] of a generator's sufficient parts; an error if they break its promise."""
    array = np.asarray(bits)
    if array.shape != mask.shape or array.dtype.kind not in "iu" or (array < 0).any():
        raise CheckFailedError(
            f"sufficient: expected whole numbers [{len(mask)}], none of them negative, got "
            f"{array.dtype} {list(array.shape)}"
        )
    if (array[~mask] != 0).any():
        raise CheckFailedError("sufficient: a part has a node outside its rationale")
    if ((count_true(array > 0, ptr) > 0) != (count_true(mask, ptr) > 0)).any():
        raise CheckFailedError("sufficient: a graph with a rationale has no part")
    return array.astype(np.int64)
