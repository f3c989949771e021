"""What is measured of one trained model: all explainers that it is for, on the graphs of a split.

It is kept beside the model, in `evaluation.json`, so that nothing is measured twice.
"""

import json
import logging
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from torch import nn

from graphxai_data import __version__
from graphxai_data.checkpoint import Card, weights_digest
from graphxai_data.dataset import GraphXAIDataset
from graphxai_data.disk import explained_disk_errors, write_atomically
from graphxai_data.evaluate import measured
from graphxai_data.explain.files import ScoreFile
from graphxai_data.explain.variants import Variant, variants_for
from graphxai_data.faithfulness import fidelity, highest, retrained_accuracy, sparsity_curves
from graphxai_data.scores import Scored, Truth, chosen_graphs, scored_by
from graphxai_data.timing import time_explainer

log = logging.getLogger(__name__)

RESULTS = "evaluation.json"
# So many training graphs are explained and trained on with for the retraining check.
_RETRAINING_GRAPHS = 1000
_PREDICTIVE = ("accuracy", "f1")

# What is being done, how much of it is done, and how much there is.
Told = Callable[[str, int, int], None]
Row = dict[str, Any]


class Study:
    """Measures models on the same graphs in the same ways.

    Args:
        dataset: all of it.
        split: which graphs are explained.
        wanted: the rows that are asked for.
        timing: measure how long an explanation takes.
        faithfulness: measure fidelity, its curves, and accuracy after retraining.
        save_scores: folder for an explanation file of each row, or None.
        told: progress, or None.
    """

    def __init__(
        self,
        dataset: GraphXAIDataset,
        split: str,
        wanted: list[Variant],
        timing: bool,
        faithfulness: bool,
        save_scores: Path | None,
        told: Told | None,
    ) -> None:
        self.dataset, self.split, self.part = dataset, split, chosen_graphs(dataset, split)
        self.truth = Truth.of(self.part)
        self.wanted, self.timing, self.faithfulness = wanted, timing, faithfulness
        self.told, self.save_scores = told, save_scores
        self.recipe = dataset.manifest.load_recipe()
        self.curves: dict[str, dict[str, list[float]]] = {}

    def of_model(
        self, name: str, model: nn.Module, card: Card, folder: Path, force: bool
    ) -> Iterator[Row]:
        """The rows of one trained model; measured now, or as they are kept beside it."""
        variants = variants_for(model, self.recipe)
        if self.faithfulness:  # of the floor and the ceiling, too: what is high depends on a model
            variants += variants_for(None, self.recipe)
        scores = card.scores.get(self.split, {})
        predictive = {key: scores.get(key, math.nan) for key in _PREDICTIVE}
        identity = {
            "content_sha256": self.dataset.manifest.content_sha256,
            "weights_sha256": card.weights_sha256,
            "split": self.split,
            "graphxai_data": __version__,
        }
        kept = {} if force else _read_results(folder / RESULTS, identity)
        for group in _groups([v for v in variants if v in self.wanted]):
            missing = [v for v in group if not self._is_whole(kept.get(v.name))]
            if missing or self.save_scores:
                kept |= self._measured(name, model, card, group)
                text = json.dumps(without_nan({"of": identity, "rows": kept}), indent=2)
                with explained_disk_errors(folder, "--out", "what is measured already"):
                    write_atomically(folder / RESULTS, text.encode())
            for variant in group:
                row = dict(kept[variant.name])
                curves = row.pop("curves", None)
                if self.faithfulness and curves:
                    self.curves[f"{name}/{variant.name}/{card.seed}"] = curves
                yield {
                    "model": name, "explainer": variant.name, "seed": card.seed,
                    **predictive, **row,
                }  # fmt: skip

    def of_no_model(self, seed: int) -> Iterator[Row]:
        """The floor and the ceiling."""
        for variant in variants_for(None, self.recipe):
            if variant in self.wanted and not self.faithfulness:
                (scored,) = scored_by([variant], None, self.part, seed=seed).values()
                row: Row = {"model": "-", "explainer": variant.name, "seed": seed}
                row |= measured(variant.name, scored, self.truth)
                if self.timing:
                    row |= time_explainer(variant, None, self.part).row()
                self._save(scored, variant, "", f"none-{seed}")
                yield row

    def _measured(
        self, name: str, model: nn.Module, card: Card, group: list[Variant]
    ) -> dict[str, Row]:
        what = f"{', '.join(v.name for v in group)} of {name}, seed {card.seed}"
        if self.told:
            self.told(what, 0, len(self.part))
        scored = scored_by(group, model, self.part, seed=card.seed, progress=self._progress(what))
        taken = time_explainer(group[0], model, self.part).row() if self.timing else {}
        training: dict[str, Scored] = {}
        if self.faithfulness:
            some = self._training()
            training = scored_by(group, model, some, seed=card.seed)
        rows: dict[str, Row] = {}
        for variant in group:
            found = scored[variant.name]
            row: Row = measured(variant.name, found, self.truth) | taken
            if self.faithfulness:
                row |= self._faithful(model, card, found, training[variant.name])
            self._save(found, variant, weights_digest(model), f"{name}-{card.seed}")
            rows[variant.name] = row
        return rows

    def _faithful(self, model: nn.Module, card: Card, found: Scored, training: Scored) -> Row:
        some = self._training()
        taken_out = (
            ~highest(training.nodes, some, Truth.of(some).node_mask),
            ~highest(found.nodes, self.part, self.truth.node_mask),
        )
        loss = card.training.loss
        return {
            **fidelity(model, self.part, found.nodes, self.truth.node_mask),
            "retrained_accuracy": retrained_accuracy(
                model, some, self.part, taken_out, loss, seed=card.seed
            ),
            "curves": sparsity_curves(model, self.part, found.nodes),
        }

    def _training(self) -> GraphXAIDataset:
        rows = self.dataset.get_idx_split()["train"][:_RETRAINING_GRAPHS]
        some: GraphXAIDataset = self.dataset[rows]
        return some

    def _is_whole(self, row: Row | None) -> bool:
        """Whether what is known of a variant is all that is asked for."""
        return (
            row is not None
            and ("ms_per_graph" in row or not self.timing)
            and ("retrained_accuracy" in row or not self.faithfulness)
        )

    def _progress(self, what: str) -> Callable[[int, int], None] | None:
        told = self.told
        return None if told is None else lambda done, total: told(what, done, total)

    def _save(self, scored: Scored, variant: Variant, model_sha256: str, place: str) -> None:
        if self.save_scores is None:
            return
        ScoreFile(
            dataset=self.dataset.name,
            content_sha256=self.dataset.manifest.content_sha256,
            explainer=variant.name,
            graph_id=self.truth.graph_id,
            node_ptr=self.truth.node_ptr,
            node_scores=scored.nodes,
            edge_ptr=None if scored.edges is None else self.truth.edge_ptr,
            edge_scores=scored.edges,
            model_sha256=model_sha256,
        ).save(self.save_scores / f"{variant.name}-{place}.h5")


def _groups(variants: list[Variant]) -> list[list[Variant]]:
    """Variants that one run of an explainer serves."""
    groups: dict[str, list[Variant]] = {}
    for variant in variants:
        groups.setdefault(f"{variant.method} {sorted(variant.options.items())}", []).append(variant)
    return list(groups.values())


def _read_results(path: Path, identity: dict[str, str]) -> dict[str, Row]:
    """What is kept of this very model and dataset; of anything else, or damaged, nothing is."""
    if not path.is_file():
        return {}
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        if kept["of"] != identity:
            return {}
        return {
            name: {k: math.nan if v is None else v for k, v in row.items()}
            for name, row in kept["rows"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        log.warning("%s: damaged (%s); measured anew", path, error)
        return {}


def without_nan(value: Any) -> Any:
    """The same with None, null in JSON, for what is not a finite number."""
    if isinstance(value, dict):
        return {key: without_nan(v) for key, v in value.items()}
    if isinstance(value, list):
        return [without_nan(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
