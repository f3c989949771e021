"""The cells of a reproduction: how each is done, what they add up to, and how long they take."""

import dataclasses
import json
import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

from torch import nn

from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.evaluation.comparison import (
    compare,
    paper_predictions,
    paper_sweep,
    summarise,
)
from graphxai_data.evaluation.evaluate import Row
from graphxai_data.evaluation.paper_figures import draw_explanations
from graphxai_data.evaluation.reproduction import SCORES
from graphxai_data.evaluation.study import without_nan
from graphxai_data.metrics import mean_and_deviation
from graphxai_data.training.checkpoint import Card
from graphxai_data.training.train import HISTORY, run_folder, train

log = logging.getLogger(__name__)

Part = Literal["table 2", "table 3", "figure b", "figure qualitative"]
PARTS: tuple[Part, ...] = ("table 2", "table 3", "figure b", "figure qualitative")
# About how much longer a training takes than on ba2motif, with all graphs: for the time left.
_COSTS = {"ba2motif": 1, "nci1": 4, "dihalo": 15, "pattern": 25, "molhiv": 25, "mnist75sp-r23": 90}

# Six B-cos layers in all, as on ba2motif: through ten, logits underflow at the start for B = 2.5.
_SWEEP_CHANGES = {"dihalo": {"update_layers": 1}}

# What is being done, which cell of how many it is, and seconds left in all, or nan.
Told = Callable[[str, int, int, float], None]


@dataclass(frozen=True)
class Cell:
    """One model with one seed on one dataset, for one part; `b` in the sweep only."""

    part: Part
    dataset: str
    model: str
    seed: int
    b: float | None = None

    def __str__(self) -> str:
        b = "" if self.b is None else f", B = {self.b:g}"
        return f"{self.part}: {self.model} on {self.dataset}{b}, seed {self.seed}"


@dataclass
class Reproduction:
    """What was found so far.

    Attributes:
        budget: its name.
        configuration: of the models.
        parts: tables and figures.
        seeds: of the trainings.
        conditions: threads and versions of this run.
        predictions: table 2, a row for each dataset and model.
        explanations: table 3, a row for each dataset, explainer and model.
        sweep: figure b, a row for each dataset and value of B.
        figures: names of the files drawn.
        builds: content SHA-256 of every dataset.
        left_out: what is not here, and why.
        missing: cells that are not done yet; None before they are counted.
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
    builds: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    missing: int | None = None

    def to_json(self) -> str:
        """Everything, for machines; what was not measured is null."""
        return json.dumps(without_nan(dataclasses.asdict(self)), indent=2, allow_nan=False)


class Results:
    """Does cells, or finds them done, and sums up what they gave.

    Args:
        out: folder of all trainings.
        configuration: of the models.
        device: of the models.
        changes: settings that differ from the configuration's.
        within: told what is being done for a cell.
    """

    def __init__(
        self,
        out: str | Path,
        configuration: str,
        device: str,
        changes: Mapping[str, Any],
        within: Callable[[str], None],
    ) -> None:
        self._out = Path(out)
        self._options: dict[str, Any] = {
            "configuration": configuration, "device": device, "changes": changes,
        }  # fmt: skip
        self._within = within
        self._cards: dict[Cell, tuple[Card, float]] = {}
        self._rows: dict[str, dict[tuple[str, str, int], Row]] = {}
        self._swept: dict[str, list[Row]] = {}
        self._figures: list[str] = []

    def run(self, cell: Cell, dataset: GraphXAIDataset, results: Path) -> None:
        """Do one cell, or find it done; figures go to the folder of results."""
        options = self._options
        if cell.part == "table 2":
            card = self._trained(cell, dataset, self._out, options)[1]
            self._cards[cell] = card, self._seconds(self._out, cell)
        elif cell.part == "table 3":
            found = compare(dataset, (cell.model,), ("all",), (cell.seed,), self._out,
                            progress=self._measured, **options)  # fmt: skip
            rows = self._rows.setdefault(cell.dataset, {})
            for row in found.rows:  # the floor comes with every model
                rows.setdefault((row["model"], row["explainer"], row["seed"]), row)
        elif cell.part == "figure b":
            self._swept.setdefault(cell.dataset, []).append(self._with_b(cell, dataset))
        else:
            model, _ = self._trained(cell, dataset, self._out, options)
            self._figures += draw_explanations(dataset, model, results)

    def _trained(
        self, cell: Cell, dataset: GraphXAIDataset, out: Path, options: Mapping[str, Any]
    ) -> tuple[nn.Module, Card]:
        return train(
            dataset, cell.model, seed=cell.seed, out=out, **options,
            progress=lambda done, total, _: self._within(f"epoch {done} of {total}"),
        )  # fmt: skip

    def _measured(self, done: int, total: int, what: str) -> None:
        self._within(what)

    def _with_b(self, cell: Cell, dataset: GraphXAIDataset) -> Row:
        """What a cell of the sweep gives: of predictions and, where masks are known, of maps."""
        out = self._out / "sweep" / f"b-{cell.b}"
        changes = self._options["changes"] | _SWEEP_CHANGES.get(cell.dataset, {}) | {"b": cell.b}
        options = {**self._options, "changes": changes}
        if "auroc" in paper_sweep(cell.dataset):
            found = compare(dataset, (cell.model,), ("bcos",), (cell.seed,), out, timing=False,
                            progress=self._measured, **options)  # fmt: skip
            (row,) = found.rows
        else:
            row = self._trained(cell, dataset, out, options)[1].scores["test"]
        return {**row, "b": cell.b, "seconds": self._seconds(out, cell)}

    def summarise(self, found: Reproduction) -> None:
        """Bring a report up to date."""
        found.predictions = self._predictions()
        found.explanations = [
            {"dataset": name, **row, **_compared(row, next(iter(rows.values()))["graphs"])}
            for name, rows in self._rows.items()
            for row in summarise(name, list(rows.values()))
        ]
        found.sweep = sweep_rows(self._swept)
        found.figures = list(dict.fromkeys(self._figures))

    def _predictions(self) -> list[Row]:
        rows = []
        for (dataset, model), cells in groupby(self._cards, lambda c: (c.dataset, c.model)):
            of_seeds = [self._cards[cell] for cell in cells]
            scores = [card.scores["test"] for card, _ in of_seeds]
            f1, f1_std = mean_and_deviation([score["f1"] for score in scores])
            paper = paper_predictions(dataset, model)
            row = {
                "dataset": dataset, "model": model, "seeds": len(of_seeds),
                "f1": f1, "f1_std": f1_std, "paper": paper, "difference": f1 - paper,
                "seconds": sum(seconds for _, seconds in of_seeds),
            }  # fmt: skip
            for key in ("accuracy", "roc_auc", "weighted_accuracy"):
                if all(key in score for score in scores):
                    row[key] = mean_and_deviation([score[key] for score in scores])[0]
            rows.append(row)
        return rows

    def _seconds(self, out: Path, cell: Cell) -> float:
        """What a training took, as its history has it."""
        path = run_folder(out, cell.model, cell.dataset, cell.seed) / HISTORY
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
            return float(sum(json.loads(line)["seconds"] for line in lines))
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.warning("%s: cannot be read (%s): how long it took is not known", path, error)
            return math.nan


def sweep_rows(swept: Mapping[str, list[Row]]) -> list[Row]:
    """For each dataset and value of B: what the panels show, over seeds, and the paper's."""
    rows = []
    for dataset, found in swept.items():
        paper = paper_sweep(dataset)
        predictions = next(key for key in SCORES if key in paper)
        shown = [key for key in (predictions, "auroc") if key in paper]
        for b in sorted({row["b"] for row in found}):
            of_seeds = [row for row in found if row["b"] == b]
            row: Row = {"dataset": dataset, "b": float(b), "seeds": len(of_seeds)}
            row["seconds"] = sum(r["seconds"] for r in of_seeds)
            row |= {"predictions": predictions, "changes": _SWEEP_CHANGES.get(dataset, {})}
            for key in (*shown, *(["jaccard"] if "jaccard" in of_seeds[0] else [])):
                row[key], row[f"{key}_std"] = mean_and_deviation([r[key] for r in of_seeds])
            for key in shown:
                theirs = paper[key][paper["b"].index(b)]
                row |= {f"{key}_paper": theirs, f"{key}_difference": row[key] - theirs}
            rows.append(row)
    return rows


def _compared(row: Row, graphs: float) -> Row:
    """How far a row is from the paper's, and what explaining all test graphs one by one takes."""
    paper = row["paper"]
    return {
        "difference": {key: row[key] - theirs for key, theirs in paper.items() if key in row},
        "seconds": row.get("ms_per_graph", math.nan) * graphs * row["seeds"] / 1000,
    }


class Walk:
    """Which cell of how many, and about how long the rest will take.

    Args:
        cells: all of them.
        opened: the datasets by name.
        told: progress, or None.
    """

    def __init__(
        self, cells: Sequence[Cell], opened: Mapping[str, GraphXAIDataset], told: Told | None
    ) -> None:
        self._cells, self._told = cells, told
        self._costs = [_cost(cell, opened[cell.dataset]) for cell in cells]
        self._at, self._spent, self._cost = 0, 0.0, 0.0

    @property
    def missing(self) -> int:
        """Cells that are still to be done."""
        return len(self._cells) - self._at

    def within(self, what: str) -> None:
        """Tell what is being done for the cell."""
        self._tell(f"{self._cells[self._at]}: {what}")

    def _tell(self, what: str) -> None:
        if self._told:
            left = math.nan
            if self._cost:
                left = self._spent / self._cost * sum(self._costs[self._at :])
            self._told(what, self._at, len(self._cells), left)

    @contextmanager
    def step(self, cell: Cell) -> Iterator[None]:
        """The next cell, while it is being done."""
        self._tell(str(cell))
        begin = time.monotonic()
        yield
        seconds = time.monotonic() - begin
        if seconds > 1:  # else it was done before, which says nothing about the time of others
            self._spent += seconds
            self._cost += self._costs[self._at]
        self._at += 1


def _cost(cell: Cell, dataset: GraphXAIDataset) -> float:
    share: float = dataset.manifest.graphs / dataset.manifest.load_recipe().params.graphs
    return _COSTS[cell.dataset] * share * (0.05 if cell.part == "figure qualitative" else 1)
