"""A comparison on a pair of causes as rows of text."""

from graphxai_data.evaluation.pair_study import PairComparison
from graphxai_data.evaluation.tables import KNOWS_LABELS, explainer_cell, with_deviation
from graphxai_data.metrics import mean_and_deviation, plus_minus

_COLUMNS = {
    "own_a": "A, model of A", "own_b": "B, model of B", "jaccard": "mean", "other": "other cause",
    "auroc": "AUROC",
}  # fmt: skip
_BOTH = {"both_jaccard": "mean, -both", "both_other": "other cause, -both"}
MODEL_HEADERS = (
    "model", "trained on", "accuracy", "moves with its cause", "stays with the other", "both",
)  # fmt: skip
_FACTS = ("accuracy", "moves", "stays", "agrees")


def headers(comparison: PairComparison) -> tuple[str, ...]:
    """Return the headers of `rows`."""
    return ("explainer", "model", *_columns(comparison).values())


def rows(comparison: PairComparison) -> list[list[str]]:
    """Return a row per explainer and model: mean ± standard deviation over seeds."""
    columns = _columns(comparison)
    return [
        [explainer_cell(row), row["model"], *(with_deviation(row, key) for key in columns)]
        for row in comparison.summary()
    ]


def notes(comparison: PairComparison) -> list[str]:
    """Return the bounds in words."""
    lines = [
        "bound of the mean for what looks neither at the model nor at labels: "
        f"{comparison.bounds['a']:.3f}",
    ]
    if "both" in comparison.bounds:
        lines.append(
            "bound of the mean on -both for what looks at no model: "
            f"{comparison.bounds['both']:.3f}"
        )
    rules = [
        row for row in comparison.summary()
        if row["model"] == "-" and explainer_cell(row) == row["explainer"] != "oracle"
    ]  # fmt: skip
    if rules:
        best = max(rules, key=lambda row: float(row["jaccard"]))
        lines.append(f"best rule without labels: {best['explainer']}, {best['jaccard']:.3f}")
    return [*lines, KNOWS_LABELS]


def model_rows(comparison: PairComparison) -> list[list[str]]:
    """Return a row per model and half: accuracy and interventions, over seeds."""
    groups: dict[tuple[str, str], list[dict[str, float]]] = {}
    for row in comparison.models:
        groups.setdefault((row["model"], row["half"]), []).append(row)
    return [
        [
            model,
            half.upper(),
            *(plus_minus(*mean_and_deviation(row.get(key) for row in seeds)) for key in _FACTS),
        ]
        for (model, half), seeds in groups.items()
    ]


def _columns(comparison: PairComparison) -> dict[str, str]:
    return _COLUMNS | (_BOTH if "both" in comparison.pair else {})
