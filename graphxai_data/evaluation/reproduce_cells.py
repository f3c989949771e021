"""The cells of a reproduction: one model, trained with one seed on one dataset, for one part."""

import json
import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.evaluation.comparison import compare, paper_sweep
from graphxai_data.evaluation.evaluate import Row
from graphxai_data.evaluation.paper_figures import draw_explanations
from graphxai_data.progress import Progress
from graphxai_data.training.train import HISTORY, run_folder, train

log = logging.getLogger(__name__)

Part = Literal["table 2", "table 3", "figure b", "figure qualitative"]
PARTS: tuple[Part, ...] = ("table 2", "table 3", "figure b", "figure qualitative")
# How much longer a training takes than on ba2motif, with all graphs; for the time left.
_COSTS = {"ba2motif": 1, "nci1": 4, "dihalo": 15, "pattern": 25, "molhiv": 25, "mnist75sp-r23": 90}
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

    def cost(self, dataset: GraphXAIDataset) -> float:
        """Return how long the cell takes, in comparison with others."""
        share: float = dataset.manifest.graphs / dataset.manifest.load_recipe().params.graphs
        return _COSTS[self.dataset] * share * (0.05 if self.part == "figure qualitative" else 1)


@dataclass(frozen=True)
class CellResult:
    """The rows that a cell contributes to its table, and the names of the figures drawn."""

    rows: list[Row]
    figures: list[str]


def run_cell(
    cell: Cell,
    dataset: GraphXAIDataset,
    out: Path,
    results: Path,
    settings: Mapping[str, Any],
    progress: Progress,
) -> CellResult:
    """Train and measure, or load what was trained and measured before.

    Args:
        cell: what to do.
        dataset: of the cell.
        out: folder of all trainings.
        results: folder for figures.
        settings: `configuration`, `device` and `changes` of the training.
        progress: called with what is being done.
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
        return CellResult([], draw_explanations(dataset, model, results))
    if cell.part != "table 3":  # there, seconds are those of the explanations
        seconds = _training_seconds(run_folder(out, cell.model, cell.dataset, cell.seed) / HISTORY)
        rows = [{**row, "seconds": seconds} for row in rows]
    return CellResult(rows, [])


def _training_seconds(path: Path) -> float:
    """Return how long a training took according to its history."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        return float(sum(json.loads(line)["seconds"] for line in lines))
    except (OSError, ValueError, KeyError, TypeError) as error:
        log.warning("%s: cannot be read (%s): the time of the training is unknown", path, error)
        return math.nan
