"""The results of a reproduction, next to the paper's, as JSON and as a report in Markdown."""

import dataclasses
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from graphxai_data.building.cards import markdown_table
from graphxai_data.evaluation.comparison import paper_predictions, paper_sweep, summarise
from graphxai_data.evaluation.evaluate import Row
from graphxai_data.evaluation.paper_figures import SCORES
from graphxai_data.evaluation.saved_rows import without_nan
from graphxai_data.evaluation.tables import number, with_deviation
from graphxai_data.metrics import mean_and_deviation
from graphxai_data.training.floors import DEGREE_FLOOR

Part = Literal["table 2", "table 3", "figure b", "figure qualitative"]
PARTS: tuple[Part, ...] = ("table 2", "table 3", "figure b", "figure qualitative")
# Six B-cos layers in all, as on ba2motif: through ten, logits underflow at the start for B = 2.5.
SWEEP_CHANGES = {"dihalo": {"update_layers": 1}}


@dataclass(frozen=True)
class Cell:
    """One model with one seed on one dataset, for one part; `b` is set in the sweep only."""

    part: Part
    dataset: str
    model: str
    seed: int
    b: float | None = None

    def __str__(self) -> str:
        b = "" if self.b is None else f", B = {self.b:g}"
        return f"{self.part}: {self.model} on {self.dataset}{b}, seed {self.seed}"


# The rows that each cell contributes to its table; for a figure, the files drawn.
Results = Mapping[Cell, list[Row]]


@dataclass
class Reproduction:
    """All results so far: table 2 in `predictions`, table 3 in `explanations`, figure b in `sweep`.

    `floors` has the scores of the rule by degree, for datasets whose nodes have classes; `builds`
    has the content SHA-256 of every dataset, `left_out` what is missing and why, and
    `missing` the number of cells that are not done yet, None before they are counted.
    """

    budget: str
    configuration: str
    parts: list[Part]
    seeds: list[int]
    conditions: dict[str, Any]
    predictions: list[Row] = field(default_factory=list)
    explanations: list[Row] = field(default_factory=list)
    sweep: list[Row] = field(default_factory=list)
    figures: list[str] = field(default_factory=list)
    floors: dict[str, Row] = field(default_factory=dict)
    builds: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    missing: int | None = None

    def update(self, results: Results) -> None:
        """Compute the tables from the results of cells."""
        self.predictions = prediction_rows(results, self.floors)
        self.explanations = explanation_rows(results)
        self.sweep = sweep_rows(results)
        figures = _group_rows(results, "figure qualitative", lambda cell: (cell.dataset,))
        self.figures = [row["file"] for rows in figures.values() for row in rows]

    def to_json(self) -> str:
        """Return everything as JSON; what was not measured is null."""
        return json.dumps(without_nan(dataclasses.asdict(self)), indent=2, allow_nan=False)


def _group_rows(
    results: Results, part: Part, key: Callable[[Cell], tuple[Any, ...]]
) -> dict[Any, list[Row]]:
    """Return the rows of one part, grouped by a key of their cells."""
    groups: dict[Any, list[Row]] = {}
    for cell, rows in results.items():
        if cell.part == part:
            groups.setdefault(key(cell), []).extend(rows)
    return groups


def prediction_rows(results: Results, floors: Mapping[str, Row]) -> list[Row]:
    """Return table 2: F1 over seeds, next to the paper's, and what models have to beat."""
    table: list[Row] = []
    groups = _group_rows(results, "table 2", lambda cell: (cell.dataset, cell.model))
    for (dataset, model), seeds in groups.items():
        f1, deviation = mean_and_deviation(row["f1"] for row in seeds)
        paper = paper_predictions(dataset, model)
        others = [key for key in ("accuracy", "roc_auc", "weighted_accuracy")
                  if all(key in row for row in seeds)]  # fmt: skip
        table.append({
            "dataset": dataset, "model": model, "seeds": len(seeds), "f1": f1,
            "f1_std": deviation, "paper": paper, "difference": f1 - paper,
            "seconds": sum(row["seconds"] for row in seeds),
            **{key: mean_and_deviation(row[key] for row in seeds)[0] for key in others},
        })  # fmt: skip
    unknown = dict.fromkeys(("f1_std", "paper", "difference", "seconds"), math.nan)
    for dataset in [name for name in floors if any(row["dataset"] == name for row in table)]:
        floor = {"dataset": dataset, "model": DEGREE_FLOOR, "seeds": 1}
        last = max(i for i, row in enumerate(table) if row["dataset"] == dataset)
        table.insert(last + 1, floor | unknown | dict(floors[dataset]))
    return table


def explanation_rows(results: Results) -> list[Row]:
    """Return table 3: the summary of each dataset's comparison, next to the paper's."""
    table = []
    for (dataset,), rows in _group_rows(results, "table 3", lambda c: (c.dataset,)).items():
        # Explainers that look at no model are in the comparison of every model: keep them once.
        unique = {(row["model"], row["explainer"], row["seed"]): row for row in reversed(rows)}
        for row in summarise(dataset, list(unique.values())):
            paper, graphs = row["paper"], rows[0]["graphs"]
            difference = {key: row[key] - paper[key] for key in paper if key in row}
            seconds = row.get("ms_per_graph", math.nan) * graphs * row["seeds"] / 1000
            table.append({"dataset": dataset, **row, "difference": difference, "seconds": seconds})
    return table


def sweep_rows(results: Results) -> list[Row]:
    """Return the sweep over B: what the figure's panels show over seeds, and the paper's."""
    table = []
    groups = _group_rows(results, "figure b", lambda cell: (cell.dataset, cell.b))
    datasets = list(dict.fromkeys(dataset for dataset, _ in groups))
    for dataset, b in sorted(groups, key=lambda key: (datasets.index(key[0]), key[1])):
        seeds, paper = groups[dataset, b], paper_sweep(dataset)
        predictions = next(key for key in SCORES if key in paper)
        shown = [key for key in (predictions, "auroc") if key in paper]
        row: Row = {
            "dataset": dataset, "b": float(b), "seeds": len(seeds),
            "seconds": sum(row["seconds"] for row in seeds),
            "predictions": predictions, "changes": SWEEP_CHANGES.get(dataset, {}),
        }  # fmt: skip
        for key in (*shown, *(["jaccard"] if "jaccard" in seeds[0] else [])):
            row[key], row[f"{key}_std"] = mean_and_deviation(r[key] for r in seeds)
        for key in shown:
            value = paper[key][paper["b"].index(b)]
            row |= {f"{key}_paper": value, f"{key}_difference": row[key] - value}
        table.append(row)
    return table


def report_text(result: Reproduction) -> str:
    """Return the report in Markdown."""
    conditions, seeds = result.conditions, ", ".join(map(str, result.seeds))
    lines = [
        "# The paper's tables and figures, reproduced",
        "",
        f"Budget `{result.budget}`, configuration `{result.configuration}` of the models "
        f"(`graphxai_data/nn/zoo.toml`; `paper` is what the paper states), seeds {seeds}; "
        f"graphxai-data {conditions['graphxai_data']}, torch {conditions['torch']}, "
        f"threads: {conditions['threads']} (a training has its own in its `model.toml`). "
        "Mean ± standard deviation over seeds; the difference is ours minus the paper's.",
        "",
    ]
    if result.missing is None:
        lines += ["**Just begun: nothing is done yet.**", ""]
    elif result.missing:
        lines += [f"**Not finished: {result.missing} cells are missing.**", ""]
    lines += _section(
        "Table 2: predictions",
        "Macro F1 on test graphs (for `pattern`, on their nodes); seconds are those of all "
        "trainings.",
        ("model", "F1", "paper", "difference", "ROC AUC"),
        result.predictions,
        _prediction_cells,
    )
    lines += _section(
        "Table 3: explanations",
        "Test graphs. Where the paper leaves open which of several readings a row is, each has a "
        "row; rows without the paper's figures are our own: more explainers, floor and ceiling. In "
        "brackets: the paper's figure, and the difference. Seconds: what all test graphs of all "
        "seeds would take one by one, from the median of some.",
        ("explainer", "model", "Jaccard@k", "AUROC", "ms/graph", "accuracy", "F1"),
        result.explanations,
        _explanation_cells,
    )
    changes = {row["dataset"]: row["changes"] for row in result.sweep if row["changes"]}
    lines += _section(
        "Figure: sensitivity to B",
        "The score of predictions is the one that the paper's figure shows for a dataset; AUROC "
        "and Jaccard@k, which it does not show, are those of contribution maps. Test graphs; "
        "the paper's predictions are of validation graphs. Seconds are those of all trainings."
        + "".join(
            f" On `{dataset}`: {', '.join(f'{key} = {value}' for key, value in settings.items())}."
            for dataset, settings in changes.items()
        ),
        ("B", "score", "predictions", "paper", "difference", "AUROC", "paper", "difference",
         "Jaccard@k"),
        result.sweep,
        _sweep_cells,
    )  # fmt: skip
    lines += [f"![{name}]({name})\n" for name in result.figures if name.endswith(".png")]
    if result.left_out:
        lines += ["## Left out", "", *(f"- {reason}" for reason in result.left_out), ""]
    if result.builds:
        builds = ([f"`{name}`", f"`{digest}`"] for name, digest in result.builds.items())
        lines += ["## Builds", "", markdown_table(("dataset", "content SHA-256"), builds), ""]
    return "\n".join(lines)


def _section(
    title: str,
    text: str,
    headers: Sequence[str],
    rows: Sequence[Row],
    cells: Callable[[Row], Sequence[str]],
) -> list[str]:
    """Return the lines of a heading, a text and a table; none if the table has no rows."""
    if not rows:
        return []
    table = [
        [f"`{row['dataset']}`", *cells(row), str(row["seeds"]), number(row["seconds"], 0)]
        for row in rows
    ]
    all_headers = ("dataset", *headers, "seeds", "seconds")
    return [f"## {title}", "", text, "", markdown_table(all_headers, table), ""]


def _prediction_cells(row: Row) -> list[str]:
    return [
        row["model"], with_deviation(row, "f1"), number(row["paper"]),
        number(row["difference"], 3, "+"), number(row.get("roc_auc"), 3),
    ]  # fmt: skip


def _explanation_cells(row: Row) -> list[str]:
    cells = [row["explainer"], row["model"]]
    for key in ("jaccard", "auroc", "ms_per_graph", "accuracy", "f1"):
        ours = number(row.get(key)) if key == "ms_per_graph" else with_deviation(row, key)
        if ours and key in row["paper"]:
            digits = 2 if key == "ms_per_graph" else 3
            ours += f" ({row['paper'][key]:.2f}, {row['difference'][key]:+.{digits}f})"
        cells.append(ours)
    return cells


def _sweep_cells(row: Row) -> list[str]:
    cells = [f"{row['b']:g}", SCORES[row["predictions"]]]
    for key in (row["predictions"], "auroc"):
        cells += [
            with_deviation(row, key),
            number(row.get(f"{key}_paper"), 3),
            number(row.get(f"{key}_difference"), 3, "+"),
        ]
    return [*cells, with_deviation(row, "jaccard")]
