"""Rationales of many graphs, and how scores of nodes are measured against them.

Which graphs a metric is a mean over is decided here, once for evaluations and for floors. A graph
is *null* if nothing in it makes the label. It is *ranked* if some of its nodes, but not all, are in
the rationale: only there can scores be right or wrong.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from graphxai_data.errors import InputError
from graphxai_data.metrics import (
    Bools,
    Floats,
    Ints,
    Ties,
    auroc_per_graph,
    constant_graphs,
    count_true,
    jaccard_per_graph,
    precision_per_graph,
    top_rows,
)
from graphxai_data.rings.rationale_metrics import (
    Sides,
    best_auroc_per_graph,
    best_jaccard_per_graph,
    best_precision_per_graph,
    graphs_taken,
    has_outlier_per_graph,
    rmse_after_scaling,
    sign_accuracy_per_graph,
    spearman_per_graph,
)


@dataclass(frozen=True)
class Rationales:
    """Rationales of g graphs with N nodes in total.

    Metrics take the scores [N] of all nodes. Where graphs have alternatives, a metric is that of
    the alternative for which it is highest.

    Attributes:
        ptr: [g+1] where the nodes of each graph begin and end.
        mask: [N] the rationale; the union of alternatives, or the nodes with a positive weight.
        bits: [N] bit j where a node belongs to alternative j, or None.
        weight: [N] signed contributions of nodes to the label, or None.
    """

    ptr: Ints
    mask: Bools
    bits: Ints | None = None
    weight: Floats | None = None

    @cached_property
    def null(self) -> Bools:
        """[g] graphs with an empty rationale; where nodes have weights, all of them are 0."""
        empty = count_true(self.mask, self.ptr) == 0
        if self.weight is not None:
            empty &= count_true(self.weight != 0, self.ptr) == 0
        return np.asarray(empty)

    @cached_property
    def ranked(self) -> Bools:
        """[g] graphs with nodes inside and outside the rationale."""
        return _divided(self.mask, self.ptr)

    def check(self) -> None:
        """Raise an `InputError` if no graph is ranked, or if one rationale is a whole graph."""
        inside, sizes = count_true(self.mask, self.ptr), np.diff(self.ptr)
        full = (inside == sizes) & (sizes > 0)
        if self.weight is None and full.any():
            graph = int(full.nonzero()[0][0])
            raise InputError(
                f"mask: {sizes[graph]} of the {sizes[graph]} in graph {graph}; where all belong to "
                "the rationale there is nothing to rank: leave such graphs out"
            )
        if not self.ranked.any():
            reason = (
                "is null: nothing in these graphs makes their labels"
                if self.null.all()
                else "has no positive weight, or only positive ones"
            )
            raise InputError(
                f"rationales: each of the {len(sizes)} graphs {reason}, so there is nothing to "
                "rank; choose a split or a dataset in which graphs have a rationale"
            )

    def jaccard(self, scores: Floats) -> Floats:
        """Return Jaccard@k [r] of every ranked graph."""
        scores, part = self._ranked(scores)
        if part.bits is not None:
            return best_jaccard_per_graph(scores, part.bits, part.ptr)
        return jaccard_per_graph(scores, part.mask, part.ptr)

    def precision(self, scores: Floats) -> Floats:
        """Return precision at k [r] of every ranked graph."""
        scores, part = self._ranked(scores)
        if part.bits is not None:
            return best_precision_per_graph(scores, part.bits, part.ptr)
        return precision_per_graph(scores, part.mask, part.ptr)

    def auroc(self, scores: Floats, ties: Ties = "strict") -> Floats:
        """Return the AUROC [r] of every ranked graph."""
        scores, part = self._ranked(scores)
        if part.bits is not None:
            return best_auroc_per_graph(scores, part.bits, part.ptr, ties)
        return auroc_per_graph(scores, part.mask, part.ptr, ties)

    def constant(self, scores: Floats) -> Bools:
        """Return [r] whether all nodes of a ranked graph have the same score."""
        scores, part = self._ranked(scores)
        return constant_graphs(scores, part.ptr)

    def pooled_auroc(self, scores: Floats, ties: Ties = "strict") -> float:
        """Return the AUROC of the nodes of all ranked graphs in one ranking, against the union."""
        scores, part = self._ranked(scores)
        return float(auroc_per_graph(scores, part.mask, np.array([0, len(scores)]), ties)[0])

    def union_columns(self, scores: Floats) -> dict[str, float]:
        """Return metrics against the union of alternatives; none where there are no alternatives.

        Means over ranked graphs; k is the size of the union.
        """
        if self.bits is None:
            return {}
        scores, part = self._ranked(scores)
        return {
            "jaccard_union": mean(jaccard_per_graph(scores, part.mask, part.ptr)),
            "auroc_union": mean(auroc_per_graph(scores, part.mask, part.ptr)),
        }

    def null_columns(self, scores: Floats) -> dict[str, float]:
        """Return the shares of null graphs in which a score stands out; nothing without any."""
        if not self.null.any():
            return {}
        scores, part = self._taken(scores, self.null)

        def share(sides: Sides) -> float:
            return mean(has_outlier_per_graph(scores, part.ptr, sides))

        return {
            "null_outliers": share("high"),
            "null_outliers_both": share("both"),
            "null_graphs": float(self.null.sum()),
        }

    def spearman(self, scores: Floats) -> float | None:
        """Return the mean rank correlation with weights; None where nodes have no weights.

        Graphs whose weights are all equal are left out; it is nan if there are no others.
        """
        if self.weight is None:
            return None
        selected = ~constant_graphs(self.weight, self.ptr)
        if not selected.any():
            return math.nan
        rows, ptr = graphs_taken(self.ptr, selected.nonzero()[0])
        return mean(spearman_per_graph(scores[rows], self.weight[rows], ptr))

    def signed_columns(self, scores: Floats) -> dict[str, float]:
        """Return metrics against weights, each over the graphs in which it exists.

        There are none where nodes have no weights. `docs/metrics.md` defines the columns.
        """
        if self.weight is None:
            return {}
        up, down = self.weight > 0, self.weight < 0
        signed = (count_true(up | down, self.ptr) > 0).nonzero()[0]
        signs = math.nan
        if len(signed):
            rows, ptr = graphs_taken(self.ptr, signed)
            signs = mean(sign_accuracy_per_graph(scores[rows], self.weight[rows], ptr))
        spearman = self.spearman(scores)
        return {
            "spearman": math.nan if spearman is None else spearman,
            "auroc_positive": self._sign_auroc(scores, up),
            "auroc_negative": self._sign_auroc(-scores, down),
            "top_positive": self._sign_top(scores, up),
            "top_negative": self._sign_top(-scores, down),
            "sign_accuracy": signs,
            "rmse_scaled": rmse_after_scaling(scores, self.weight, self.ptr),
            "unranked_graphs": float((~self.ranked & ~self.null).sum()),
        }

    def _sign_auroc(self, scores: Floats, sign: Bools) -> float:
        """Return the mean AUROC, ties half, of nodes of one sign against all others."""
        scores, part = Rationales(self.ptr, sign)._ranked(scores)
        if len(part.ptr) == 1:
            return math.nan
        return mean(auroc_per_graph(scores, part.mask, part.ptr, "average"))

    def _sign_top(self, scores: Floats, sign: Bools) -> float:
        """Return the share of hits among the top n of all graphs together; n nodes have the sign.

        As in ibenchmark (Matveieva and Polishchuk, 2021): hits are summed before the division.
        """
        scores, part = Rationales(self.ptr, sign)._ranked(scores)
        sizes = count_true(part.mask, part.ptr)
        if not len(sizes):
            return math.nan
        hits = top_rows(scores, part.ptr, sizes) & part.mask
        return float(hits.sum() / sizes.sum())

    def _ranked(self, scores: Floats) -> tuple[Floats, "Rationales"]:
        return self._taken(scores, self.ranked)

    def _taken(self, scores: Floats, selected: Bools) -> tuple[Floats, "Rationales"]:
        """Return the scores and rationales of the selected graphs [g]."""
        if selected.all():
            return scores, self
        rows, ptr = graphs_taken(self.ptr, selected.nonzero()[0])
        part = Rationales(
            ptr,
            self.mask[rows],
            None if self.bits is None else self.bits[rows],
            None if self.weight is None else self.weight[rows],
        )
        return scores[rows], part


def mean(values: Floats | Bools) -> float:
    """Return the mean as a plain number."""
    return float(values.mean())


def _divided(mask: Bools, ptr: Ints) -> Bools:
    inside = count_true(mask, ptr)
    return np.asarray((inside > 0) & (inside < np.diff(ptr)))
