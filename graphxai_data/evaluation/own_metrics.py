"""Metrics of one's own: functions of the scores and the rationale of one graph, as columns.

Other packages offer them by entry points; `evaluate` also takes functions.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from graphxai_data.errors import CheckFailedError, InputError, finite_number, nearest
from graphxai_data.evaluation.truth import Scores, Truth
from graphxai_data.explain.functions import load_function
from graphxai_data.files.plugins import Group, Origin, blamed, described

MetricFunction = Callable[[Any, Any], float]

# Every other column of a table of explainers, by the function that makes it.
COLUMNS = frozenset(
    (
        # explanation_metrics
        "jaccard", "auroc", "auroc_average", "precision", "auroc_pooled", "auroc_pooled_average",
        "edge_auroc_pooled", "worst_class_jaccard", "constant", "graphs", "negative_winners",
        "completeness_gap", "completeness_gap_max", "edge_share",
        # explanation_metrics, where a sufficient part is known
        "jaccard_sufficient",
        # explanation_metrics, where there are alternatives, null graphs or weights
        "jaccard_union", "auroc_union", "null_outliers", "null_outliers_both", "null_graphs",
        "spearman", "auroc_positive", "auroc_negative", "top_positive", "top_negative",
        "sign_accuracy", "rmse_scaled", "unranked_graphs",
        # times_of
        "ms_per_graph", "ms_per_graph_batched", "ms_forward_batched", "timed_on", "timed_threads",
        # fidelity, sparsity_curves, retrained_accuracy and retrained_r2
        "fidelity_plus", "fidelity_minus", "fidelity_plus_probability",
        "fidelity_minus_probability", "characterisation", "retrained_accuracy", "retrained_r2",
        "curves",
        # compare and summarise
        "model", "explainer", "seed", "plugin", "accuracy", "f1", "mae", "rmse", "r2",
        "seeds", "paper", "metrics",
    )
)  # fmt: skip
METRICS = Group("graphxai_data.metrics", "metric", COLUMNS)


@dataclass(frozen=True)
class Metric:
    """A column: the mean over ranked graphs of a function of scores [n] and rationale [n] bool."""

    name: str
    function: MetricFunction
    origin: Origin | None = None  # of a plug-in

    @property
    def by(self) -> str:
        """Package and version of a plug-in; empty for a function."""
        return self.origin.words if self.origin else ""

    def mean(self, explainer: str, scores: Scores, truth: Truth) -> float:
        """Return the mean over ranked graphs; an error names the graph without a finite value."""
        with blamed(self.origin):
            return float(np.mean([*self._values(explainer, scores, truth)]))

    def _values(self, explainer: str, scores: Scores, truth: Truth) -> Iterable[float]:
        for i, (first, last) in enumerate(pairwise(truth.node_ptr)):
            if not truth.rationales.ranked[i]:  # a metric may divide by the size of the rationale
                continue
            where = f"scores of '{explainer}', graph {i}"
            # Copies: a function that changes its arguments must not change the next column.
            nodes, mask = scores.nodes[first:last].copy(), truth.node_mask[first:last].copy()
            try:
                value = self.function(nodes, mask)
            except Exception as error:
                if self.origin is None:  # a traceback shows users their own function
                    raise
                raise CheckFailedError(f"{where}: {described(error)}") from error
            if hasattr(value, "item") and np.ndim(value) == 0:  # a scalar of NumPy or torch
                value = value.item()
            what = where if self.origin else f"metric '{self.name}': {where}"
            yield finite_number(what, value)


def select_metrics(metrics: Mapping[str, Any] | Iterable[str] | None) -> list[Metric]:
    """Return the metrics of these names, or these functions by the name of their column."""
    if metrics is None:
        return []
    if isinstance(metrics, Mapping):
        for name, function in metrics.items():
            _check_name(name)
            if not callable(function):
                kind = type(function).__name__
                raise InputError(f"metric '{name}': expected fn(scores, mask), got {kind}")
        return [Metric(name, function) for name, function in metrics.items()]
    if not isinstance(metrics, Iterable):
        raise InputError(f"metrics: expected names or functions by name, got {metrics!r}")
    names = [metrics] if isinstance(metrics, str) else metrics
    return [_plugin(name) for name in dict.fromkeys(names)]


def check_names(metrics: Sequence[str]) -> tuple[str, ...]:
    """Return names of metrics; an `InputError` unless all of them are plug-ins that work."""
    if isinstance(metrics, Mapping):
        raise InputError(
            "metrics: a comparison saves its results, so it takes names of plug-ins, got "
            "functions; give them to `evaluate`"
        )
    return tuple(metric.name for metric in select_metrics(metrics))


def metric_means(
    metrics: Iterable[Metric], explainer: str, scores: Scores, truth: Truth
) -> dict[str, float]:
    """Return the columns of some metrics for the scores of an explainer."""
    return {metric.name: metric.mean(explainer, scores, truth) for metric in metrics}


def _plugin(name: str) -> Metric:
    _check_name(name)
    if name not in METRICS.names():
        raise InputError(
            f"unknown metric '{name}'; {nearest(name, METRICS.names())}; packages offer metrics by "
            "entry points of the group graphxai_data.metrics"
        )
    function, origin = load_function(METRICS, name, "a function fn(scores, mask)")
    return Metric(name, function, origin)


def _check_name(name: str) -> None:
    if not isinstance(name, str) or not name:
        raise InputError(f"metric: expected a name, got {name!r}")
    if name in COLUMNS:
        raise InputError(f"metric '{name}': a column of this name exists already; choose another")
    if name.endswith("_std"):
        raise InputError(f"metric '{name}': columns of deviations end like this; choose another")
