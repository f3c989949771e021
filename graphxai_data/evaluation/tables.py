"""A comparison of explainers as rows of text, beside what the paper has."""

import math
from typing import Any

from graphxai_data.evaluation.comparison import Comparison
from graphxai_data.metrics import plus_minus

HEADERS = (
    "explainer", "model", "Jaccard@k", "paper", "AUROC", "paper", "worst class J", "ms/graph",
    "paper", "batched", "accuracy", "F1",
)  # fmt: skip
FAITHFULNESS_HEADERS = (
    "explainer", "model", "fidelity+", "fidelity-", "characterisation", "accuracy retrained",
)  # fmt: skip


def table_rows(comparison: Comparison) -> list[list[str]]:
    """A row for each explainer and model: mean ± standard deviation over seeds."""
    return [
        [
            *explanation_cells(row),
            number(row["paper"].get("ms_per_graph")),
            number(row.get("ms_per_graph_batched")),
            with_deviation(row, "accuracy"),
            with_deviation(row, "f1"),
        ]
        for row in comparison.summary()
    ]


def explanation_cells(row: dict[str, Any]) -> list[str]:
    """The first cells of such a row, to the milliseconds a graph."""
    return [
        row["explainer"],
        row["model"],
        with_deviation(row, "jaccard"),
        number(row["paper"].get("jaccard")),
        with_deviation(row, "auroc"),
        number(row["paper"].get("auroc")),
        with_deviation(row, "worst_class_jaccard"),
        number(row.get("ms_per_graph")),
    ]


def faithfulness_rows(comparison: Comparison) -> list[list[str]]:
    """The same of faithfulness, for the rows where it was measured."""
    keys = ("fidelity_plus", "fidelity_minus", "characterisation", "retrained_accuracy")
    return [
        [row["explainer"], row["model"], *(with_deviation(row, key) for key in keys)]
        for row in comparison.summary()
        if keys[0] in row
    ]


def with_deviation(row: dict[str, Any], key: str) -> str:
    """Such as "0.95 ± 0.01"; nothing where nothing was measured."""
    return plus_minus(row.get(key, math.nan), row.get(f"{key}_std", math.nan))


def number(value: float | None, digits: int = 2) -> str:
    """Such as "0.95"; nothing where nothing was measured."""
    return "" if value is None or not math.isfinite(value) else f"{value:.{digits}f}"
