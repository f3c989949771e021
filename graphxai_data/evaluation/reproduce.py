"""The paper's tables and figures again, from recipes to a report: one walk over a grid of cells.

A cell is one model trained with one seed on one dataset, for one table or figure. Trainings and
what is measured of them are kept where `train` and `compare` keep them; so a walk that was stopped
goes on where it was, and what is finished is never done again. The report is written after every
cell, as soon as it has no less than the one before.
"""

import json
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from graphxai_data import __version__
from graphxai_data.building.build import build
from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.errors import CheckFailedError, InputError, SourceMissingError, known_name
from graphxai_data.evaluation.comparison import check_seeds, paper_sweep, usual_models
from graphxai_data.evaluation.paper_figures import draw_sweep
from graphxai_data.evaluation.reproduce_cells import (
    PARTS,
    Cell,
    Part,
    Reproduction,
    Results,
    Told,
    Walk,
)
from graphxai_data.evaluation.reproduction import report_text
from graphxai_data.files.disk import explained_disk_errors, write_atomically
from graphxai_data.files.urls import inside
from graphxai_data.nn.zoo import CONFIGURATIONS
from graphxai_data.recipe import Recipe
from graphxai_data.remote import is_built
from graphxai_data.sources import registry
from graphxai_data.training.train import device_of

log = logging.getLogger(__name__)

REPORT, NUMBERS = "report.md", "report.json"
# The datasets of each part, cheap ones first; of MNIST-75sp the reading with connected graphs.
EXPLAINED = ("ba2motif", "dihalo", "mnist75sp-r23")
PREDICTED = ("ba2motif", "nci1", "dihalo", "pattern", "molhiv", "mnist75sp-r23")
SWEPT = ("ba2motif", "nci1", "dihalo", "molhiv")
DATASETS: dict[Part, tuple[str, ...]] = {
    "table 2": PREDICTED, "table 3": EXPLAINED, "figure b": SWEPT, "figure qualitative": EXPLAINED,
}  # fmt: skip
_PAPER_SEEDS = 5


@dataclass(frozen=True)
class Budget:
    """How much is spent.

    Attributes:
        graphs: so many graphs of these datasets, instead of all.
        seeds: of the trainings.
        swept: datasets of the sweep over B.
        changes: settings of all trainings that differ from the configuration's.
    """

    graphs: Mapping[str, int] = field(default_factory=dict)
    seeds: tuple[int, ...] = tuple(range(_PAPER_SEEDS))
    swept: tuple[str, ...] = SWEPT
    changes: Mapping[str, Any] = field(default_factory=dict)


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
        configuration: of the models: "default", ours, or "paper", as the appendix states it.
        root: folder of all builds; those of fewer graphs go to a folder `small` in it.
        out: folder of all trainings; alike, and those of the paper's configuration go to `paper`.
        results: folder for the report and the figures; an earlier report in it is replaced.
        sources: where raw files of datasets lie that are neither shipped nor downloaded.
        device: "auto" is CUDA where there is one, else the CPU.
        told: progress.

    Returns:
        What is in the report. A dataset whose raw files cannot be had is left out, with the reason,
        and so is a training that diverges.
    """
    spend: Budget = BUDGETS[known_name("budget", budget, BUDGETS)]
    known_name("configuration", configuration, CONFIGURATIONS)
    for part in parts:
        known_name("part", part, PARTS)
    chosen: list[Part] = [part for part in PARTS if part in parts]
    wanted = _wanted(chosen, datasets, spend)
    numbers = check_seeds(spend.seeds if seeds is None else seeds)
    _check_sources(sources or {})
    device_of(device)
    if budget == "small":
        root, out = inside(root, "small"), Path(out) / "small"
    if configuration != "default":
        out = Path(out) / configuration
    conditions = {
        "threads": torch.get_num_threads(), "torch": torch.__version__,
        "graphxai_data": __version__,
    }  # fmt: skip
    found = Reproduction(budget, configuration, chosen, numbers, conditions)
    results = Path(results)
    with explained_disk_errors(results, "--results", "what is trained already"):
        results.mkdir(parents=True, exist_ok=True)
        before = _report_in(results)
        if not before:  # a folder that cannot be written to is found out now
            _write(results, found)
        opened = _open_datasets(wanted, spend, root, sources or {}, found, told)
        cells = _grid(chosen, opened, spend, numbers)
        if not cells:
            raise InputError(f"nothing could be done: {'; '.join(found.left_out)}")
        found.left_out += _saved(chosen, opened, numbers, spend, datasets)
        walk = Walk(cells, opened, told)
        done = Results(out, configuration, device, spend.changes, walk.within)
        for cell in cells:
            with walk.step(cell):
                try:
                    done.run(cell, opened[cell.dataset], results)
                except CheckFailedError as error:  # a training that diverged; others may not
                    found.left_out.append(f"{cell}: {error}")
            found.missing = walk.missing
            done.summarise(found)
            if found.missing <= _missing_before(before, found):
                _write(results, found)
    return found


def _wanted(parts: Sequence[Part], datasets: Sequence[str] | None, spend: Budget) -> list[str]:
    """The datasets that the parts need; an `InputError` for one that none of them has."""
    names = [name for name in PREDICTED if any(name in _of(part, spend) for part in parts)]
    for name in datasets or ():
        known_name("dataset", name, PREDICTED)
        if name in names:
            continue
        else_there = any(name in DATASETS[part] for part in parts)
        raise InputError(
            f"dataset '{name}' is not in {', '.join(parts)}"
            + (" with this budget; try --budget paper" if else_there else "")
            + f"; there are {', '.join(names)}"
        )
    return [name for name in names if datasets is None or name in datasets]


def _of(part: Part, spend: Budget) -> tuple[str, ...]:
    """The datasets of a part with a budget."""
    return spend.swept if part == "figure b" else DATASETS[part]


def _check_sources(sources: Mapping[str, str | Path]) -> None:
    known = sorted({key for name in PREDICTED for key in Recipe.load(name).sources})
    for key, path in sources.items():
        known_name("source", key, known)
        if str(path) not in registry() and not Path(path).expanduser().exists():
            raise InputError(f"--source {key}={path}: no such file or folder")


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
    for name in wanted:
        recipe = Recipe.load(name)
        graphs = spend.graphs.get(name, recipe.params.graphs)
        theirs = {key: path for key, path in sources.items() if key in recipe.sources}

        def progress(done: int, total: int, what: str) -> None:
            if told:
                told(what, done, total, math.nan)

        try:
            if not is_built(root, name, 0):
                build(recipe, root=root, graphs=graphs, sources=theirs, rings=False,
                      progress=progress, wait=True)  # fmt: skip
        except SourceMissingError as error:
            log.warning("%s is left out: %s", name, error)
            found.left_out.append(f"{name}: {error}")
            continue
        dataset = GraphXAIDataset(root, name)
        if dataset.manifest.graphs != graphs:
            raise InputError(
                f"{dataset.folder}: a build of {dataset.manifest.graphs} graphs, expected {graphs} "
                "for this budget; choose another --root"
            )
        opened[name] = dataset
        found.builds[name] = dataset.manifest.content_sha256
    return opened


def _saved(
    parts: Sequence[Part],
    opened: Mapping[str, GraphXAIDataset],
    seeds: Sequence[int],
    spend: Budget,
    datasets: Sequence[str] | None,
) -> list[str]:
    """What the paper has, was not declined, and this run has not, in words."""
    saved = []
    if len(seeds) < _PAPER_SEEDS:
        saved.append(f"seeds: {len(seeds)} instead of the paper's {_PAPER_SEEDS}")
    for name, dataset in opened.items():
        all_graphs = dataset.manifest.load_recipe().params.graphs
        if dataset.manifest.graphs < all_graphs:
            saved.append(f"{name}: {dataset.manifest.graphs:,} of its {all_graphs:,} graphs")
    if "figure b" in parts:
        missed = [name for name in datasets or SWEPT if name in SWEPT and name not in spend.swept]
        saved += [f"the sweep over B on {name}" for name in missed]
    return saved


def _grid(
    parts: Sequence[Part],
    opened: Mapping[str, GraphXAIDataset],
    spend: Budget,
    seeds: Sequence[int],
) -> list[Cell]:
    """All cells, dataset by dataset."""
    cells: list[Cell] = []
    for name, dataset in opened.items():
        models = usual_models(dataset)
        bcos = models[0]
        for part in parts:
            if name not in _of(part, spend):
                continue
            if part in ("table 2", "table 3"):
                cells += [Cell(part, name, model, seed) for model in models for seed in seeds]
            elif part == "figure qualitative":
                cells.append(Cell(part, name, bcos, seeds[0]))
            else:  # seed by seed, so that a run that is stopped has whole curves
                values = paper_sweep(name)["b"]
                cells += [Cell(part, name, bcos, seed, b) for seed in seeds for b in values]
    return cells


def _write(results: Path, found: Reproduction) -> None:
    if found.sweep:
        found.figures += draw_sweep(found.sweep, results)
    write_atomically(results / NUMBERS, (found.to_json() + "\n").encode())
    write_atomically(results / REPORT, report_text(found).encode())


def _report_in(results: Path) -> dict[str, Any]:
    """The report that an earlier run has left, if any can be read."""
    try:
        before = json.loads((results / NUMBERS).read_text(encoding="utf-8"))
        return before if isinstance(before, dict) else {}
    except (FileNotFoundError, ValueError, RecursionError):
        return {}


def _missing_before(before: dict[str, Any], found: Reproduction) -> float:
    """Cells that the earlier report lacks, if it is of the same: it is not replaced by less."""
    same = ("budget", "configuration", "parts", "seeds", "builds")
    missing = before.get("missing")
    if any(before.get(key) != getattr(found, key) for key in same):
        return math.inf
    return missing if isinstance(missing, int) and missing >= 0 else math.inf
