"""The report of a reproduction: the paper's tables beside ours, in Markdown."""

import math
from typing import TYPE_CHECKING, Any

from graphxai_data.building.cards import markdown_table
from graphxai_data.evaluation.tables import number, with_deviation

if TYPE_CHECKING:
    from graphxai_data.evaluation.reproduce_cells import Reproduction

Row = dict[str, Any]
# What the scores of predictions are called.
SCORES = {"accuracy": "accuracy", "f1": "F1", "roc_auc": "ROC AUC"}
ZOO = "graphxai_data/nn/zoo.toml"


def report_text(found: "Reproduction") -> str:
    """Markdown."""
    seeds = ", ".join(map(str, found.seeds))
    versions = (
        f"graphxai-data {found.conditions['graphxai_data']}, torch {found.conditions['torch']}"
    )
    lines = [
        "# The paper's tables and figures, made anew",
        "",
        f"Budget `{found.budget}`, configuration `{found.configuration}` of the models "
        f"(`{ZOO}`; `paper` is what the paper states), seeds {seeds}; {versions}, "
        f"threads: {found.conditions['threads']} (a training has its own in its "
        "`model.toml`). Mean ± standard deviation over seeds; the "
        "difference is ours minus the paper's.",
        "",
    ]
    if found.missing is None:
        lines += ["**Just begun: nothing is done yet.**", ""]
    elif found.missing:
        lines += [f"**Not finished: {found.missing} cells are missing.**", ""]
    if found.predictions:
        lines += [
            "## Table 2: predictions",
            "",
            "Macro F1 on test graphs (of `pattern`, on their nodes); seconds are those of all "
            "trainings.",
            "",
            markdown_table(
                ("dataset", "model", "F1", "paper", "difference", "ROC AUC", "seeds", "seconds"),
                map(_prediction, found.predictions),
            ),
            "",
        ]
    if found.explanations:
        lines += [
            "## Table 3: explanations",
            "",
            "Test graphs. Where the paper leaves open which of several readings a row is, each is "
            "there; rows without the paper's figures are of our own: more explainers, floor and "
            "ceiling. In brackets: the paper's, and the difference. Seconds: what all test graphs "
            "of all seeds would take one by one, from the median of some.",
            "",
            markdown_table(
                (
                    "dataset", "explainer", "model", "Jaccard@k", "AUROC", "ms/graph", "accuracy",
                    "F1", "seeds", "seconds",
                ),
                map(_explanation, found.explanations),
            ),
            "",
        ]  # fmt: skip
    if found.sweep:
        lines += [
            "## Figure: sensitivity to B",
            "",
            "The score of predictions is the one that the paper's figure shows of a dataset; AUROC "
            "and Jaccard@k, which it does not show, are those of contribution maps. Test graphs; "
            "the paper's predictions are of validation graphs. Seconds are those of all trainings."
            + "".join(_changed(found.sweep)),
            "",
            markdown_table(
                (
                    "dataset", "B", "score", "predictions", "paper", "difference", "AUROC", "paper",
                    "difference", "Jaccard@k", "seeds", "seconds",
                ),
                map(_swept, found.sweep),
            ),
            "",
        ]  # fmt: skip
    lines += [f"![{name}]({name})\n" for name in found.figures if name.endswith(".png")]
    if found.left_out:
        lines += ["## Left out", "", *(f"- {reason}" for reason in found.left_out), ""]
    if found.builds:
        rows = ((f"`{name}`", f"`{digest}`") for name, digest in found.builds.items())
        lines += ["## Builds", "", markdown_table(("dataset", "content SHA-256"), rows), ""]
    return "\n".join(lines)


def _prediction(row: Row) -> list[str]:
    return [
        f"`{row['dataset']}`", row["model"], with_deviation(row, "f1"), f"{row['paper']:.2f}",
        _signed(row["difference"]), number(row.get("roc_auc"), 3), str(row["seeds"]),
        number(row["seconds"], 0),
    ]  # fmt: skip


def _explanation(row: Row) -> list[str]:
    cells = [f"`{row['dataset']}`", row["explainer"], row["model"]]
    for key, places in (
        ("jaccard", 3), ("auroc", 3), ("ms_per_graph", 2), ("accuracy", 3), ("f1", 3),
    ):  # fmt: skip
        paper, difference = row["paper"].get(key), row["difference"].get(key)
        ours = number(row.get(key), places) if key == "ms_per_graph" else with_deviation(row, key)
        beside = f" ({paper:.2f}, {difference:+.{places}f})" if ours and paper is not None else ""
        cells.append(ours + beside)
    return [*cells, str(row["seeds"]), number(row["seconds"], 0)]


def _changed(rows: list[Row]) -> list[str]:
    """Settings of the sweep that differ from the configuration's, a sentence for each dataset."""
    return [
        f" On `{dataset}`: {', '.join(f'{key} = {value}' for key, value in changes.items())}."
        for dataset, changes in {row["dataset"]: row["changes"] for row in rows}.items()
        if changes
    ]


def _swept(row: Row) -> list[str]:
    cells = [f"`{row['dataset']}`", f"{row['b']:g}", SCORES[row["predictions"]]]
    for key in (row["predictions"], "auroc"):
        cells += [
            with_deviation(row, key),
            number(row.get(f"{key}_paper"), 3),
            _signed(row.get(f"{key}_difference")),
        ]
    return [
        *cells, with_deviation(row, "jaccard"), str(row["seeds"]), number(row["seconds"], 0),
    ]  # fmt: skip


def _signed(value: float | None) -> str:
    return "" if value is None or not math.isfinite(value) else f"{value:+.3f}"
