"""The report of a reproduction: the paper's tables beside ours, in Markdown."""

import math
from typing import TYPE_CHECKING, Any

from graphxai_data.report.card import markdown_table
from graphxai_data.report.comparison_table import number, with_deviation

if TYPE_CHECKING:
    from graphxai_data.reproduce_cells import Reproduction

Row = dict[str, Any]
_FLOOR = ("random", "degree", "intensity", "halogen-closeness")


def report_text(found: "Reproduction") -> str:
    """Markdown."""
    seeds = ", ".join(map(str, found.seeds))
    versions = (
        f"graphxai-data {found.conditions['graphxai_data']}, torch {found.conditions['torch']}"
    )
    lines = [
        "# The paper's tables and figures, made anew",
        "",
        f"Budget `{found.budget}`, seeds {seeds}; {versions}, "
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
            "there. Rows without the paper's figures are the floor. Seconds: all test graphs of "
            "all seeds, one by one.",
            "",
            markdown_table(
                (
                    "dataset", "explainer", "model", "Jaccard@k", "paper", "difference", "AUROC",
                    "paper", "difference", "ms/graph", "paper", "accuracy", "F1", "seeds",
                    "seconds",
                ),
                (
                    _explanation(row)
                    for row in found.explanations
                    if row["paper"] or row["explainer"] in _FLOOR
                ),
            ),
            "",
        ]  # fmt: skip
    if found.sweep:
        lines += [
            "## Figure: sensitivity to B",
            "",
            markdown_table(
                (
                    "dataset", "B", "accuracy", "paper", "difference", "AUROC", "paper",
                    "difference", "seeds", "seconds",
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
    paper, difference = row["paper"], row["difference"]
    return [
        f"`{row['dataset']}`", row["explainer"], row["model"],
        with_deviation(row, "jaccard"), number(paper.get("jaccard")),
        _signed(difference.get("jaccard")),
        with_deviation(row, "auroc"), number(paper.get("auroc")),
        _signed(difference.get("auroc")),
        number(row.get("ms_per_graph")), number(paper.get("ms_per_graph")),
        number(row.get("accuracy"), 3), number(row.get("f1"), 3), str(row["seeds"]),
        number(row["seconds"], 0),
    ]  # fmt: skip


def _swept(row: Row) -> list[str]:
    cells = [f"`{row['dataset']}`", f"{row['b']:g}"]
    for key in ("accuracy", "auroc"):
        cells += [
            with_deviation(row, key),
            number(row[f"{key}_paper"], 3),
            _signed(row[f"{key}_difference"]),
        ]
    return [*cells, str(row["seeds"]), number(row["seconds"], 0)]


def _signed(value: float | None) -> str:
    return "" if value is None or not math.isfinite(value) else f"{value:+.3f}"
