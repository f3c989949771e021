"""The paper's tables and figures again, from recipes to a report: one walk over a grid of cells.

A cell is one model trained with one seed on one dataset, for one table or figure. Trainings and
what is measured of them are kept where `train` and `compare` keep them; so a walk that was stopped
goes on where it was, and what is finished is never done again. The report is written after every
cell.
"""

import dataclasses
import json
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from graphxai_data import __version__
from graphxai_data.build import build
from graphxai_data.checkpoint import Card
from graphxai_data.comparison import (
    compare,
    paper_predictions,
    paper_sweep,
    summary_of,
    sweep,
    usual_models,
)
from graphxai_data.dataset import GraphXAIDataset
from graphxai_data.disk import explained_disk_errors, write_atomically
from graphxai_data.errors import InputError, whole_number
from graphxai_data.recipe import Recipe
from graphxai_data.report.figures import draw_explanations, draw_sweep
from graphxai_data.report.reproduction import report_text
from graphxai_data.seeds import MAX_SEED
from graphxai_data.study import Row, without_nan
from graphxai_data.train import HISTORY, run_folder, train
from graphxai_data.typed_table import nearest

log = logging.getLogger(__name__)

REPORT, NUMBERS = "report.md", "report.json"
PARTS = ("table 2", "table 3", "figure b", "figure qualitative")
Part = Literal["table 2", "table 3", "figure b", "figure qualitative"]
# The datasets of each part; of MNIST-75sp the reading that gives connected graphs.
EXPLAINED = ("ba2motif", "dihalo", "mnist75sp-r23")
PREDICTED = (*EXPLAINED, "pattern", "nci1", "molhiv")
SWEPT = ("ba2motif", "dihalo")
# About how much longer one training takes than on ba2motif: for a guess at the time left.
_COSTS = {"ba2motif": 1, "nci1": 4, "dihalo": 12, "pattern": 12, "molhiv": 15, "mnist75sp-r23": 30}

# What is being done, which cell of how many it is, and seconds left in all, or nan.
Told = Callable[[str, int, int, float], None]


@dataclass(frozen=True)
class Budget:
    """How much is spent.

    Attributes:
        graphs: so many graphs of these datasets, instead of all.
        seeds: of the trainings.
        swept: datasets of the sweep over B.
        changes: settings of all trainings that differ from the default configuration's.
        left_out: what the paper has and this has not, in words.
    """

    graphs: Mapping[str, int] = field(default_factory=dict)
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    swept: tuple[str, ...] = SWEPT
    changes: Mapping[str, Any] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()


BUDGETS = {
    "paper": Budget(),
    "small": Budget(
        {"dihalo": 1800, "mnist75sp-r23": 2600, "pattern": 350, "nci1": 1000, "molhiv": 2000},
        (0,),
        ("ba2motif",),
        left_out=(
            "one seed instead of five, so that there are no deviations",
            "a fifth of dihalo, a tenth of mnist75sp-r23, and less of the other datasets",
            "the sweep over B on dihalo",
        ),
    ),
}


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
        seeds: of the trainings.
        predictions: table 2, a row for each dataset and model.
        explanations: table 3, a row for each dataset, explainer and model.
        sweep: figure b, a row for each dataset and value of B.
        figures: names of the files drawn.
        builds: content SHA-256 of every dataset.
        left_out: what is not here, and why.
        missing: cells that are not done yet.
        conditions: threads and versions.
    """

    budget: str
    seeds: list[int]
    predictions: list[Row] = field(default_factory=list)
    explanations: list[Row] = field(default_factory=list)
    sweep: list[Row] = field(default_factory=list)
    figures: list[str] = field(default_factory=list)
    builds: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    missing: int = 0
    conditions: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> str:
        """Everything, for machines; what was not measured is null."""
        return json.dumps(without_nan(dataclasses.asdict(self)), indent=2, allow_nan=False)


def reproduce(
    parts: Sequence[str] = PARTS,
    datasets: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
    budget: str = "small",
    *,
    root: str | Path = "data",
    out: str | Path = "runs",
    results: str | Path = "reproduce",
    sources: Mapping[str, str | Path] | None = None,
    device: str = "auto",
    told: Told | None = None,
) -> Reproduction:
    """Make the paper's tables and figures anew, and write them into a folder.

    Args:
        parts: some of "table 2", "table 3", "figure b" and "figure qualitative".
        datasets: only these.
        seeds: of the trainings, instead of the budget's.
        budget: "small", some 15 minutes on two cores, or "paper", the whole protocol.
        root: folder of all builds; those of fewer graphs go to a folder `small` in it.
        out: folder of all trainings; alike.
        results: folder for the report and the figures.
        sources: where raw files of datasets lie that are neither shipped nor downloaded.
        device: "auto" is CUDA where there is one, else the CPU.
        told: progress.

    Returns:
        What is in the report. A dataset that cannot be built is left out, with the reason.
    """
    spend = _known("budget", budget, BUDGETS)
    for part in parts:
        _known("part", part, PARTS)
    for name in datasets or ():
        _known("dataset", name, PREDICTED)
    numbers = [whole_number("seed", seed, 0, MAX_SEED) for seed in seeds or spend.seeds]
    wanted = _wanted(parts, datasets, spend)
    known = {key for name in PREDICTED for key in Recipe.load(name).sources}
    for key in sources or ():
        _known("source", key, sorted(known))
    if budget == "small":
        root, out = Path(root) / "small", Path(out) / "small"
    results = Path(results)
    with explained_disk_errors(results, "--results", "the report so far"):
        results.mkdir(parents=True, exist_ok=True)
    found = Reproduction(budget, numbers, left_out=list(spend.left_out))
    found.conditions = {
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "graphxai_data": __version__,
    }
    opened = _open_datasets(wanted, spend, root, sources or {}, found, told)
    cells = _grid(parts, opened, spend, numbers)
    walk = _Walk(cells, told)
    done = _Done(out, device, spend.changes)
    for cell in cells:
        with walk.step(cell):
            done.run(cell, opened[cell.dataset], results)
        found.missing = walk.missing
        done.summarise(found)
        with explained_disk_errors(results, "--results", "the report so far"):
            _write(results, found)
    with explained_disk_errors(results, "--results", "the report so far"):
        _write(results, found)
    return found


def _wanted(parts: Sequence[str], datasets: Sequence[str] | None, spend: Budget) -> list[str]:
    """The datasets that the parts need; an `InputError` for one that none of them has."""
    needed = {
        "table 2": PREDICTED, "table 3": EXPLAINED, "figure b": spend.swept,
        "figure qualitative": EXPLAINED,
    }  # fmt: skip
    names = [name for name in PREDICTED if any(name in needed[part] for part in parts)]
    for name in datasets or ():
        if name not in names:
            raise InputError(
                f"dataset '{name}' is not in {', '.join(parts)} with this budget; "
                f"there are {', '.join(names)}"
            )
    return [name for name in names if datasets is None or name in datasets]


def _open_datasets(
    wanted: Sequence[str],
    spend: Budget,
    root: str | Path,
    sources: Mapping[str, str | Path],
    found: Reproduction,
    told: Told | None,
) -> dict[str, GraphXAIDataset]:
    """Every dataset that is needed, built if need be; what cannot be had is left out, and said."""
    opened = {}
    for place, name in enumerate(wanted):
        if told:
            told(f"opening {name}, built if need be", place, len(wanted), math.nan)
        recipe = Recipe.load(name)
        theirs = {key: path for key, path in sources.items() if key in recipe.sources}
        try:
            if not (Path(root) / name / "seed-0").exists():
                build(recipe, root=root, graphs=spend.graphs.get(name), sources=theirs)
            opened[name] = GraphXAIDataset(root, name)
        except InputError as error:
            log.warning("%s is left out: %s", name, error)
            found.left_out.append(f"{name}: {error}")
            continue
        found.builds[name] = opened[name].manifest.content_sha256
    return opened


def _grid(
    parts: Sequence[str],
    opened: Mapping[str, GraphXAIDataset],
    spend: Budget,
    seeds: Sequence[int],
) -> list[Cell]:
    """All cells, cheap datasets first."""
    cells: list[Cell] = []
    for name, dataset in opened.items():
        models = usual_models(dataset)
        bcos = models[0]
        if "table 2" in parts:
            cells += [Cell("table 2", name, model, seed) for model in models for seed in seeds]
        if "table 3" in parts and name in EXPLAINED:
            cells += [Cell("table 3", name, model, seed) for model in models for seed in seeds]
        if "figure qualitative" in parts and name in EXPLAINED:
            cells.append(Cell("figure qualitative", name, bcos, seeds[0]))
        if "figure b" in parts and name in spend.swept:
            values = paper_sweep(name)["b"]
            cells += [Cell("figure b", name, bcos, seed, b) for b in values for seed in seeds]
    return sorted(cells, key=lambda cell: _COSTS[cell.dataset])


class _Done:
    """What the cells gave, and how it is summed up."""

    def __init__(self, out: str | Path, device: str, changes: Mapping[str, Any]) -> None:
        self.out = Path(out)
        self.options: dict[str, Any] = {"device": device, "changes": changes}
        self.cards: dict[Cell, tuple[Card, float]] = {}
        self.rows: dict[str, dict[tuple[str, str, int], Row]] = {}
        self.swept: dict[str, list[Row]] = {}
        self.figures: list[str] = []

    def run(self, cell: Cell, dataset: GraphXAIDataset, results: Path) -> None:
        """Do one cell, or find it done."""
        if cell.part == "table 2":
            _, card = train(dataset, cell.model, seed=cell.seed, out=self.out, **self.options)
            self.cards[cell] = card, self._seconds(cell)
        elif cell.part == "table 3":
            found = compare(dataset, (cell.model,), ("all",), (cell.seed,), self.out,
                            **self.options)  # fmt: skip
            rows = self.rows.setdefault(cell.dataset, {})
            for row in found.rows:  # the floor comes with every model
                rows.setdefault((row["model"], row["explainer"], row["seed"]), row)
        elif cell.part == "figure b":
            frame = sweep(dataset, cell.model, "b", [cell.b], (cell.seed,), self.out / "sweep",
                          **self.options)  # fmt: skip
            self.swept.setdefault(cell.dataset, []).extend(
                json.loads(frame.to_json(orient="records"))
            )
            self.figures += draw_sweep(sweep_rows(self.swept), results)
        else:
            model, _ = train(dataset, cell.model, seed=cell.seed, out=self.out, **self.options)
            self.figures += draw_explanations(dataset, model, results)

    def summarise(self, found: Reproduction) -> None:
        """Bring the report up to date."""
        found.predictions = self._predictions()
        found.explanations = [
            {"dataset": name, **row, **_compared(row, graphs)}
            for name, rows in self.rows.items()
            for graphs in {row["graphs"] for row in rows.values()}
            for row in summary_of(name, list(rows.values()))
        ]
        found.sweep = sweep_rows(self.swept)
        found.figures = list(dict.fromkeys(self.figures))

    def _predictions(self) -> list[Row]:
        rows = []
        for (dataset, model), cells in groupby(self.cards, lambda c: (c.dataset, c.model)):
            of_seeds = list(cells)
            scores = [self.cards[cell][0].scores["test"] for cell in of_seeds]
            paper = paper_predictions(dataset, model)
            f1 = [score["f1"] for score in scores]
            row = {
                "dataset": dataset, "model": model, "seeds": len(of_seeds),
                "f1": float(np.mean(f1)), "f1_std": _deviation(f1), "paper": paper,
                "difference": float(np.mean(f1)) - paper,
                "seconds": sum(self.cards[cell][1] for cell in of_seeds),
            }  # fmt: skip
            for key in ("accuracy", "roc_auc", "weighted_accuracy"):
                if key in scores[0]:
                    row[key] = float(np.mean([score[key] for score in scores]))
            rows.append(row)
        return rows

    def _seconds(self, cell: Cell) -> float:
        """What a training took, as its history has it."""
        path = run_folder(self.out, cell.model, cell.dataset, cell.seed) / HISTORY
        lines = path.read_text(encoding="utf-8").splitlines()
        return float(sum(json.loads(line)["seconds"] for line in lines))


def sweep_rows(swept: Mapping[str, list[Row]]) -> list[Row]:
    """For each dataset and value of B: accuracy and AUROC over seeds, and the paper's."""
    rows = []
    for dataset, found in swept.items():
        paper = paper_sweep(dataset)
        for b in sorted({row["b"] for row in found}):
            of_seeds = [row for row in found if row["b"] == b]
            row: Row = {"dataset": dataset, "b": b, "seeds": len(of_seeds)}
            for key in ("accuracy", "auroc"):
                values = [r[key] for r in of_seeds]
                theirs = paper[key][paper["b"].index(b)]
                row |= {
                    key: float(np.mean(values)), f"{key}_std": _deviation(values),
                    f"{key}_paper": theirs, f"{key}_difference": float(np.mean(values)) - theirs,
                }  # fmt: skip
            rows.append(row)
    return rows


class _Walk:
    """Which cell of how many, and about how long the rest will take."""

    def __init__(self, cells: Sequence[Cell], told: Told | None) -> None:
        self._cells, self._told = cells, told
        self._at, self._spent, self._cost = 0, 0.0, 0.0

    @property
    def missing(self) -> int:
        return len(self._cells) - self._at

    def step(self, cell: Cell) -> "_Walk":
        self._begin = time.monotonic()
        if self._told:
            rest = sum(_COSTS[c.dataset] for c in self._cells[self._at :])
            left = self._spent / self._cost * rest if self._cost else math.nan
            self._told(str(cell), self._at, len(self._cells), left)
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(self, *failed: object) -> None:
        seconds = time.monotonic() - self._begin
        if seconds > 1:  # else it was done before, which tells nothing about the rest
            self._spent += seconds
            self._cost += _COSTS[self._cells[self._at].dataset]
        self._at += 1


def _write(results: Path, found: Reproduction) -> None:
    write_atomically(results / NUMBERS, (found.to_json() + "\n").encode())
    write_atomically(results / REPORT, report_text(found).encode())


def _compared(row: Row, graphs: float) -> Row:
    """How far a row is from the paper's, and what explaining all test graphs one by one takes."""
    paper = row["paper"]
    return {
        "difference": {key: row[key] - theirs for key, theirs in paper.items() if key in row},
        "seconds": row.get("ms_per_graph", math.nan) * graphs * row["seeds"] / 1000,
    }


def _deviation(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else math.nan


def _known(what: str, name: str, known: Any) -> Any:
    if name not in known:
        raise InputError(f"unknown {what} '{name}'; {nearest(name, known)}")
    return known[name] if isinstance(known, dict) else name
