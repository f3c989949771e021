"""Reproduce the paper's tables and figures, from recipes to a report, cell by cell.

Trainings and measurements are saved where `train` and `compare` save them, so a reproduction that
was stopped goes on where it was. The report is written after every cell, unless an earlier report
has more cells.
"""

import json
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graphxai_data.building.build import build
from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.errors import CheckFailedError, InputError, SourceMissingError, known_name
from graphxai_data.evaluation.comparison import (
    check_seeds,
    compare,
    paper_sweep,
    run_conditions,
    usual_models,
)
from graphxai_data.evaluation.evaluate import Row
from graphxai_data.evaluation.paper_figures import draw_explanations, draw_sweep
from graphxai_data.evaluation.reproduction import (
    PARTS,
    SWEEP_CHANGES,
    Cell,
    Part,
    Reproduction,
    report_text,
)
from graphxai_data.files.disk import explained_disk_errors, write_atomically
from graphxai_data.files.urls import inside
from graphxai_data.nn.zoo import CONFIGURATIONS
from graphxai_data.progress import Progress, no_progress, with_time_left
from graphxai_data.recipe import Recipe
from graphxai_data.remote import is_built
from graphxai_data.sources import registry
from graphxai_data.training.floors import degree_floor
from graphxai_data.training.train import HISTORY, device_of, run_folder, train

log = logging.getLogger(__name__)

REPORT, NUMBERS = "report.md", "report.json"
# The datasets of each part, cheap ones first; for MNIST-75sp the reading with connected graphs.
EXPLAINED = ("ba2motif", "dihalo", "mnist75sp-r23")
PREDICTED = ("ba2motif", "nci1", "dihalo", "pattern", "molhiv", "mnist75sp-r23")
SWEPT = ("ba2motif", "nci1", "dihalo", "molhiv")
DATASETS: dict[Part, tuple[str, ...]] = {
    "table 2": PREDICTED, "table 3": EXPLAINED, "figure b": SWEPT, "figure qualitative": EXPLAINED,
}  # fmt: skip
# How much longer a training takes than on ba2motif, with all graphs; for the time left.
_COSTS = {"ba2motif": 1, "nci1": 4, "dihalo": 15, "pattern": 25, "molhiv": 25, "mnist75sp-r23": 90}
_PAPER_SEEDS = 5
Sources = Mapping[str, str | Path]
Datasets = dict[str, GraphXAIDataset]


@dataclass(frozen=True)
class Budget:
    """How much of the paper's protocol is run; `changes` are to the settings of all trainings."""

    graphs: Mapping[str, int] = field(default_factory=dict)  # datasets that are not in it have all
    seeds: tuple[int, ...] = tuple(range(_PAPER_SEEDS))
    swept: tuple[str, ...] = SWEPT
    changes: Mapping[str, Any] = field(default_factory=dict)

    def datasets(self, part: Part) -> tuple[str, ...]:
        """Return the datasets of a part."""
        return self.swept if part == "figure b" else DATASETS[part]


BUDGETS = {
    "paper": Budget(),
    "small": Budget(
        {"dihalo": 1800, "mnist75sp-r23": 2600, "pattern": 350, "nci1": 1000, "molhiv": 2000},
        seeds=(0,),
        swept=("ba2motif",),
    ),
}


def reproduce(
    parts: Sequence[str] = PARTS,
    datasets: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
    budget: str = "small",
    configuration: str = "default",
    *,
    root: str | Path = "data",
    out: str | Path = "runs",
    results: str | Path = "reproduce",
    sources: Sources | None = None,
    device: str = "auto",
    progress: Progress | None = None,
) -> Reproduction:
    """Reproduce the paper's tables and figures, and write a report and figures into `results`.

    Builds and trainings of the small budget go to a folder `small` in `root` and `out`, trainings
    with the paper's configuration to a folder `paper` in `out`. A dataset whose raw files are
    missing, and not in `sources`, is left out, with the reason, and so is a training that diverges.
    `progress` is called with the cells done, all cells, and what is being done.
    """
    progress = progress or no_progress
    spend: Budget = BUDGETS[known_name("budget", budget, BUDGETS)]
    known_name("configuration", configuration, CONFIGURATIONS)
    for part in parts:
        known_name("part", part, PARTS)
    selected: list[Part] = [part for part in PARTS if part in parts]
    names = _select_datasets(selected, datasets, spend)
    seeds = check_seeds(spend.seeds if seeds is None else seeds)
    report = Reproduction(budget, configuration, selected, seeds, run_conditions())
    _check_sources(sources or {})
    device_of(device)
    if budget == "small":
        root, out = inside(root, "small"), Path(out) / "small"
    if configuration != "default":
        out = Path(out) / configuration
    results = Path(results)
    with explained_disk_errors(results, "--results", "what is trained already"):
        results.mkdir(parents=True, exist_ok=True)
        if not _read_report(results):  # fail now if the folder cannot be written to
            _write(results, report)
        opened = _open_datasets(names, root, sources or {}, report, progress)
        if not opened:
            raise InputError(f"nothing could be done: {'; '.join(report.left_out)}")
        report.left_out += _savings(report, opened, datasets)
        _run_cells(report, opened, Path(out), results, device, progress)
    return report


def _run_cells(
    report: Reproduction,
    opened: Datasets,
    out: Path,
    results: Path,
    device: str,
    progress: Progress,
) -> None:
    """Run every cell, and write the report after each, unless the folder has a fuller one."""
    changes = BUDGETS[report.budget].changes
    settings = {"configuration": report.configuration, "device": device, "changes": changes}
    cells = _grid(report, opened)
    if "table 2" in report.parts:
        floors = {name: degree_floor(dataset) for name, dataset in opened.items()}
        report.floors = {name: floor["test"] for name, floor in floors.items() if floor}
    progress = with_time_left(progress, [_cost(cell, opened[cell.dataset]) for cell in cells])
    done: dict[Cell, list[Row]] = {}
    for i, cell in enumerate(cells):

        def within(_: int, __: int, what: str, i: int = i, cell: Cell = cell) -> None:
            progress(i, len(cells), f"{cell}: {what}")

        progress(i, len(cells), str(cell))
        try:
            done[cell] = run_cell(cell, opened[cell.dataset], out, results, settings, within)
        except CheckFailedError as error:  # this training diverged; others may not
            report.left_out.append(f"{cell}: {error}")
        report.missing = len(cells) - i - 1
        report.update(done)
        if report.missing <= _missing_in(_read_report(results), report):
            _write(results, report)


def _cost(cell: Cell, dataset: GraphXAIDataset) -> float:
    """Return how long a cell takes, in comparison with others."""
    share: float = dataset.manifest.graphs / dataset.manifest.load_recipe().params.graphs
    return _COSTS[cell.dataset] * share * (0.05 if cell.part == "figure qualitative" else 1)


def run_cell(
    cell: Cell,
    dataset: GraphXAIDataset,
    out: Path,
    results: Path,
    settings: Mapping[str, Any],
    progress: Progress,
) -> list[Row]:
    """Train in `out` and measure, or load what was trained and measured before.

    `settings` has `configuration`, `device` and `changes` of the training; figures go to `results`.
    """
    explainers = ("all",) if cell.part == "table 3" else ()
    if cell.part == "figure b":
        out = out / "sweep" / f"b-{cell.b}"
        changes = settings["changes"] | SWEEP_CHANGES.get(cell.dataset, {}) | {"b": cell.b}
        settings = {**settings, "changes": changes}
        explainers = ("bcos",) if "auroc" in paper_sweep(cell.dataset) else ()
    if explainers:
        comparison = compare(
            dataset, (cell.model,), explainers, (cell.seed,), out,
            timing=cell.part == "table 3", progress=progress, **settings,
        )  # fmt: skip
        rows = comparison.rows
    else:
        model, card = train(
            dataset, cell.model, seed=cell.seed, out=out, **settings,
            progress=lambda done, total, _: progress(done, total, f"epoch {done} of {total}"),
        )  # fmt: skip
        rows = [card.scores["test"]]
    if cell.part == "figure qualitative":
        return [{"file": name} for name in draw_explanations(dataset, model, results)]
    if cell.part == "table 3":  # its seconds are those of the explanations
        return rows
    seconds = _training_seconds(run_folder(out, cell.model, cell.dataset, cell.seed) / HISTORY)
    return [{**row, "seconds": seconds} for row in rows]


def _training_seconds(path: Path) -> float:
    """Return how long a training took according to its history."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        return float(sum(json.loads(line)["seconds"] for line in lines))
    except (OSError, ValueError, KeyError, TypeError) as error:
        log.warning("%s: cannot be read (%s): the time of the training is unknown", path, error)
        return math.nan


def _select_datasets(
    parts: Sequence[Part], datasets: Sequence[str] | None, spend: Budget
) -> list[str]:
    """Return the datasets that the parts need; an `InputError` for one that no part has."""
    names = [name for name in PREDICTED if any(name in spend.datasets(part) for part in parts)]
    for name in datasets or ():
        known_name("dataset", name, PREDICTED)
        if name not in names:
            in_paper = any(name in DATASETS[part] for part in parts)
            raise InputError(
                f"dataset '{name}' is not in {', '.join(parts)}"
                + (" with this budget; try --budget paper" if in_paper else "")
                + f"; there are {', '.join(names)}"
            )
    return [name for name in names if datasets is None or name in datasets]


def _check_sources(sources: Sources) -> None:
    known = sorted({key for name in PREDICTED for key in Recipe.load(name).sources})
    for key, path in sources.items():
        known_name("source", key, known)
        if str(path) not in registry() and not Path(path).expanduser().exists():
            raise InputError(f"--source {key}={path}: no such file or folder")


def _open_datasets(
    names: list[str], root: str | Path, sources: Sources, report: Reproduction, progress: Progress
) -> Datasets:
    """Open every dataset, built if it is not yet; the report says which could not be built."""
    opened = {}
    for name in names:
        recipe = Recipe.load(name)
        graphs = BUDGETS[report.budget].graphs.get(name, recipe.params.graphs)
        own_sources = {key: path for key, path in sources.items() if key in recipe.sources}
        try:
            if not is_built(root, name, 0):
                build(recipe, root=root, graphs=graphs, sources=own_sources, rings=False,
                      progress=progress, wait=True)  # fmt: skip
        except SourceMissingError as error:
            log.warning("%s is left out: %s", name, error)
            report.left_out.append(f"{name}: {error}")
            continue
        dataset = GraphXAIDataset(root, name)
        if dataset.manifest.graphs != graphs:
            raise InputError(
                f"{dataset.folder}: a build of {dataset.manifest.graphs} graphs, expected {graphs} "
                "for this budget; choose another --root"
            )
        opened[name] = dataset
        report.builds[name] = dataset.manifest.content_sha256
    return opened


def _savings(report: Reproduction, opened: Datasets, datasets: Sequence[str] | None) -> list[str]:
    """Return the parts of the paper's protocol that this run skips, in words."""
    savings = []
    if len(report.seeds) < _PAPER_SEEDS:
        savings.append(f"seeds: {len(report.seeds)} instead of the paper's {_PAPER_SEEDS}")
    for name, dataset in opened.items():
        all_graphs = dataset.manifest.load_recipe().params.graphs
        if dataset.manifest.graphs < all_graphs:
            savings.append(f"{name}: {dataset.manifest.graphs:,} of its {all_graphs:,} graphs")
    if "figure b" in report.parts:
        skipped = set(SWEPT) - set(BUDGETS[report.budget].swept)
        savings += [f"the sweep over B on {n}" for n in datasets or SWEPT if n in skipped]
    return savings


def _grid(report: Reproduction, opened: Datasets) -> list[Cell]:
    """Return all cells, dataset by dataset."""
    cells: list[Cell] = []
    spend, seeds = BUDGETS[report.budget], report.seeds
    for name, dataset in opened.items():
        models = usual_models(dataset)
        for part in report.parts:
            if name not in spend.datasets(part):
                continue
            if part in ("table 2", "table 3"):
                cells += [Cell(part, name, model, seed) for model in models for seed in seeds]
            elif part == "figure qualitative":
                cells.append(Cell(part, name, models[0], seeds[0]))
            else:  # seed by seed, so that a run that is stopped has whole curves
                values = paper_sweep(name)["b"]
                cells += [Cell(part, name, models[0], seed, b) for seed in seeds for b in values]
    return cells


def _write(results: Path, report: Reproduction) -> None:
    if report.sweep:
        report.figures += draw_sweep(report.sweep, results)
    write_atomically(results / NUMBERS, (report.to_json() + "\n").encode())
    write_atomically(results / REPORT, report_text(report).encode())


def _read_report(results: Path) -> dict[str, Any]:
    """Return the report of an earlier run; empty if there is none that can be read."""
    try:
        before = json.loads((results / NUMBERS).read_text(encoding="utf-8"))
        return before if isinstance(before, dict) else {}
    except (FileNotFoundError, ValueError, RecursionError):
        return {}


def _missing_in(before: Mapping[str, Any], report: Reproduction) -> float:
    """Return how many cells an earlier report lacks; infinity if it is about something else."""
    same = ("budget", "configuration", "parts", "seeds", "builds")
    missing = before.get("missing")
    if any(before.get(key) != getattr(report, key) for key in same):
        return math.inf
    return missing if isinstance(missing, int) and missing >= 0 else math.inf
