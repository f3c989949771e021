"""A comparison of explainers as rows of text, next to the paper's figures."""

import math
from collections.abc import Callable, Collection
from typing import Any

from graphxai_data.evaluation.comparison import Comparison
from graphxai_data.explain.variants import FLOORS
from graphxai_data.metrics import plus_minus

KNOWS_LABELS = "* knows the labels of training graphs, and which class is explained"
_KNOWING = {variant.name for variant in FLOORS if variant.knows_labels}
_FAITHFULNESS = {
    "fidelity_plus": "fidelity+", "fidelity_minus": "fidelity-",
    "characterisation": "characterisation", "retrained_accuracy": "accuracy retrained",
    "retrained_r2": "R² retrained",
}  # fmt: skip
# Columns that only some datasets have; the others of such rows are in the JSON and the CSV.
_OF_UNIONS = {"jaccard_union": "J (union)", "auroc_union": "AUROC (union)"}
_OF_NULL_GRAPHS = {"null_outliers": "null outliers"}
_OF_WEIGHTS = {
    "spearman": "Spearman", "auroc_positive": "AUROC +", "auroc_negative": "AUROC -",
    "sign_accuracy": "signs", "rmse_scaled": "RMSE scaled",
}  # fmt: skip
_OF_CLASSES = {"accuracy": "accuracy", "f1": "F1"}
_OF_NUMBERS = {"mae": "MAE", "rmse": "RMSE", "r2": "R²"}

Cell = Callable[[dict[str, Any]], str]


def headers(comparison: Comparison) -> tuple[str, ...]:
    """Return the headers of `table_rows`: the last ones are metrics of plug-ins."""
    return tuple(header for header, *_ in _filled_columns(comparison))


def table_rows(comparison: Comparison) -> list[list[str]]:
    """Return a row per explainer and model: mean ± standard deviation over seeds."""
    cells = [cells for _, *cells in _filled_columns(comparison)]
    return [list(row) for row in zip(*cells, strict=True)]


def _filled_columns(comparison: Comparison) -> list[list[str]]:
    """Return header and cells of each column in which at least one cell is not empty."""
    rows = comparison.summary()
    columns = [[header, *map(cell, rows)] for header, cell in _columns(comparison)]
    return [column for column in columns if any(column[1:])]


def _columns(comparison: Comparison) -> list[tuple[str, Cell]]:
    """Return headers and cells of the columns that a comparison may have."""
    measured = {key for row in comparison.rows for key in row}
    has_classes = "worst_class_jaccard" in measured  # otherwise labels are numbers
    worst = {"worst_class_jaccard": "worst class J"}
    return [
        ("explainer", explainer_cell),
        ("model", lambda row: str(row["model"])),
        ("Jaccard@k", _mean_of("jaccard")),
        ("paper", _paper("jaccard")),
        ("AUROC", _mean_of("auroc")),
        ("paper", _paper("auroc")),
        *(
            (header, _mean_of(key))
            for key, header in (worst | _OF_UNIONS | _OF_NULL_GRAPHS | _OF_WEIGHTS).items()
            if key in measured
        ),
        ("ms/graph", lambda row: number(row.get("ms_per_graph"))),
        ("paper", _paper("ms_per_graph")),
        ("batched", lambda row: number(row.get("ms_per_graph_batched"))),
        *(
            (header, _mean_of(key))
            for key, header in (_OF_CLASSES if has_classes else _OF_NUMBERS).items()
        ),
        *((metric, _mean_of(metric)) for metric in comparison.metrics),
    ]


def _mean_of(key: str) -> Cell:
    return lambda row: with_deviation(row, key)


def _paper(key: str) -> Cell:
    return lambda row: number(row["paper"].get(key))


def explanation_cells(row: dict[str, Any]) -> list[str]:
    """Return the cells of a row on pages: up to the milliseconds per graph."""
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
        key, title = ("jaccard", "Jaccard@k")
        if any(math.isfinite(row.get("spearman", math.nan)) for row in floors):
            key, title = ("spearman", "Spearman")
        best = max(floors, key=lambda row: float(row[key]))
        lines.append(f"best floor: {best['explainer']}, {title} {best[key]:.3f}")
    if shown := [row["explainer"] for row in rows if row["explainer"] in definitions]:
        lines.append(f"the definition of the rationale itself, no floor: {', '.join(shown)}")
    if any(row["explainer"] in _KNOWING for row in rows):
        lines.append(KNOWS_LABELS)
    return lines


def faithfulness_headers(comparison: Comparison) -> tuple[str, ...]:
    """Return the headers of `faithfulness_rows`."""
    return ("explainer", "model", *_faithfulness_columns(comparison).values())


def faithfulness_rows(comparison: Comparison) -> list[list[str]]:
    """Return the rows of faithfulness, where it was measured."""
    keys = _faithfulness_columns(comparison)
    return [
        [explainer_cell(row), row["model"], *(with_deviation(row, key) for key in keys)]
        for row in comparison.summary()
        if "fidelity_plus" in row
    ]


def _faithfulness_columns(comparison: Comparison) -> dict[str, str]:
    measured = {key for row in comparison.rows for key in row}
    return {key: header for key, header in _FAITHFULNESS.items() if key in measured}


def with_deviation(row: dict[str, Any], key: str) -> str:
    """Return a value such as "0.95 ± 0.01", or "" if it was not measured."""
    return plus_minus(row.get(key, math.nan), row.get(f"{key}_std", math.nan))


def number(value: float | None, digits: int = 2, sign: str = "") -> str:
    """Return a value such as "0.95", or "" if it was not measured; `sign` "+" also shows plus."""
    return "" if value is None or not math.isfinite(value) else f"{value:{sign}.{digits}f}"
