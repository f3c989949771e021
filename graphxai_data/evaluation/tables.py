"""A comparison of explainers as rows of text, next to the paper's figures."""

import math
from collections.abc import Collection
from typing import Any

from graphxai_data.evaluation.comparison import Comparison
from graphxai_data.explain.variants import FLOORS
from graphxai_data.metrics import plus_minus

KNOWS_LABELS = "* knows the labels of training graphs, and of the graph that it scores"
_KNOWING = {variant.name for variant in FLOORS if variant.knows_labels}
HEADERS = (
    "explainer", "model", "Jaccard@k", "paper", "AUROC", "paper", "worst class J", "ms/graph",
    "paper", "batched", "accuracy", "F1",
)  # fmt: skip
FAITHFULNESS_HEADERS = (
    "explainer", "model", "fidelity+", "fidelity-", "characterisation", "accuracy retrained",
)  # fmt: skip


def headers(comparison: Comparison) -> tuple[str, ...]:
    """Return the headers of `table_rows`: the last ones are metrics of plug-ins."""
    return (*HEADERS, *comparison.metrics)


def table_rows(comparison: Comparison) -> list[list[str]]:
    """Return a row per explainer and model: mean ± standard deviation over seeds."""
    return [
        [
            *explanation_cells(row),
            number(row["paper"].get("ms_per_graph")),
            number(row.get("ms_per_graph_batched")),
            with_deviation(row, "accuracy"),
            with_deviation(row, "f1"),
            *(with_deviation(row, metric) for metric in comparison.metrics),
        ]
        for row in comparison.summary()
    ]


def explanation_cells(row: dict[str, Any]) -> list[str]:
    """Return the first cells of such a row, up to the milliseconds per graph."""
    return [
        explainer_cell(row),
        row["model"],
        with_deviation(row, "jaccard"),
        number(row["paper"].get("jaccard")),
        with_deviation(row, "auroc"),
        number(row["paper"].get("auroc")),
        with_deviation(row, "worst_class_jaccard"),
        number(row.get("ms_per_graph")),
    ]


def explainer_cell(row: dict[str, Any]) -> str:
    """Return the name of an explainer, with a star if it knows labels of training graphs."""
    name: str = row["explainer"]
    return f"{name} *" if name in _KNOWING else name


def floor_lines(comparison: Comparison, definitions: Collection[str]) -> list[str]:
    """Return sentences about floors: which is the best, and what the table's marks mean.

    `definitions` are rules that repeat how the dataset defines its rationale.
    """
    rows = [row for row in comparison.summary() if row["model"] == "-"]
    others = {"oracle", *definitions}
    lines = []
    if floors := [row for row in rows if row["explainer"] not in others]:
        best = max(floors, key=lambda row: float(row["jaccard"]))
        lines.append(f"best floor: {best['explainer']}, Jaccard@k {best['jaccard']:.3f}")
    if shown := [row["explainer"] for row in rows if row["explainer"] in definitions]:
        lines.append(f"the definition of the rationale itself, no floor: {', '.join(shown)}")
    if any(row["explainer"] in _KNOWING for row in rows):
        lines.append(KNOWS_LABELS)
    return lines


def faithfulness_rows(comparison: Comparison) -> list[list[str]]:
    """Return the rows of faithfulness, where it was measured."""
    keys = ("fidelity_plus", "fidelity_minus", "characterisation", "retrained_accuracy")
    return [
        [explainer_cell(row), row["model"], *(with_deviation(row, key) for key in keys)]
        for row in comparison.summary()
        if keys[0] in row
    ]


def with_deviation(row: dict[str, Any], key: str) -> str:
    """Return a value such as "0.95 ± 0.01", or "" if it was not measured."""
    return plus_minus(row.get(key, math.nan), row.get(f"{key}_std", math.nan))


def number(value: float | None, digits: int = 2, sign: str = "") -> str:
    """Return a value such as "0.95", or "" if it was not measured; `sign` "+" also shows plus."""
    return "" if value is None or not math.isfinite(value) else f"{value:{sign}.{digits}f}"
