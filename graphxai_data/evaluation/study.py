"""What is measured of one trained model: all explainers that it is for, on the graphs of a split.

It is kept beside the model, in `evaluation.json`, so that nothing is measured twice.
"""

import json
import logging
import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from torch import nn

from graphxai_data import __version__
from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.evaluation.evaluate import measured
from graphxai_data.evaluation.faithfulness import (
    fidelity,
    highest,
    retrained_accuracy,
    sparsity_curves,
)
from graphxai_data.evaluation.score_sources import Scored, Truth, chosen_graphs, scored_by
from graphxai_data.evaluation.timing import conditions, time_explainer
from graphxai_data.explain.files import SUFFIX, ScoreFile
from graphxai_data.explain.variants import Variant
from graphxai_data.files.disk import explained_disk_errors, folder_lock, write_atomically
from graphxai_data.training.checkpoint import Card, weights_digest

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
        timing: measure how long an explanation takes.
        faithfulness: measure fidelity, its curves, and accuracy after retraining.
        save_scores: folder for an explanation file of each row, or None.
        told: progress, or None.
    """

    def __init__(
        self,
        dataset: GraphXAIDataset,
        split: str,
        *,
        timing: bool,
        faithfulness: bool,
        save_scores: Path | None,
        told: Told | None,
    ) -> None:
        self.dataset, self.split, self.part = dataset, split, chosen_graphs(dataset, split)
        self.truth = Truth.of(self.part)
        self.timing, self.faithfulness = timing, faithfulness
        self.told, self.save_scores = told, save_scores
        self.curves: dict[str, dict[str, list[float]]] = {}

    def of_model(
        self,
        variants: Sequence[Variant],
        name: str,
        model: nn.Module,
        card: Card,
        folder: Path,
        force: bool,
    ) -> Iterator[Row]:
        """The rows of one trained model; measured now, or as they are kept beside it."""
        kept = _Kept(folder / RESULTS, self.dataset, card, self.split, force)
        for group in groups(variants):
            self._complete(kept, group, name, model, card)
            for variant in group:
                row = self._wanted(kept.rows[variant.name])
                if curves := row.pop("curves", None):
                    self.curves[f"{name}/{variant.name}/{card.seed}"] = curves
                predictive = {k: card.scores.get(self.split, {}).get(k) for k in _PREDICTIVE}
                if variant.kind == "none":
                    predictive = {}
                yield {
                    "model": name, "explainer": variant.name, "seed": card.seed,
                    **predictive, **row,
                }  # fmt: skip

    def of_no_model(self, variants: Sequence[Variant], seed: int) -> Iterator[Row]:
        """The floor and the ceiling: measured anew, since that takes no time."""
        for variant in variants:
            (scored,) = scored_by([variant], None, self.part, seed=seed).values()
            row: Row = {"model": "-", "explainer": variant.name, "seed": seed}
            row |= measured(variant.name, scored, self.truth)
            if self.timing:
                row |= time_explainer(variant, None, self.part)
            self._save(scored, variant, "", f"none-{seed}")
            yield row

    def _complete(
        self, kept: "_Kept", group: list[Variant], name: str, model: nn.Module, card: Card
    ) -> None:
        """Measure what is not known yet of the variants that one run of an explainer serves."""
        rows = {variant.name: kept.rows.setdefault(variant.name, {}) for variant in group}
        known = list(rows.values())
        plain = all("jaccard" in row for row in known)
        faithful = all("retrained_accuracy" in row for row in known) or not self.faithfulness
        now = conditions(model)
        timed = all(now.items() <= row.items() for row in known) or not self.timing
        if plain and faithful and timed and self.save_scores is None:
            return
        what = f"{', '.join(rows)} of {name}, seed {card.seed}"
        if self.told:
            self.told(what, 0, len(self.part))
        progress = None if self.told is None else partial(self.told, what)
        if not timed:
            taken = time_explainer(group[0], model, self.part)
            for row in known:
                row |= taken
        if not (plain and faithful and self.save_scores is None):
            scored = scored_by(group, model, self.part, seed=card.seed, progress=progress)
            for variant in group:
                found = scored[variant.name]
                rows[variant.name] |= measured(variant.name, found, self.truth)
                self._save(found, variant, weights_digest(model), f"{name}-{card.seed}")
            if not faithful:
                training = scored_by(group, model, self._training[0], seed=card.seed)
                for variant in group:
                    both = training[variant.name], scored[variant.name]
                    rows[variant.name] |= self._faithful(model, card, *both)
        kept.write(rows)

    def _faithful(self, model: nn.Module, card: Card, training: Scored, found: Scored) -> Row:
        some, truth = self._training
        left = (
            ~highest(training.nodes, some, truth.node_mask),
            ~highest(found.nodes, self.part, self.truth.node_mask),
        )
        loss = card.training.loss
        return {
            **fidelity(model, self.part, found.nodes, self.truth.node_mask),
            "retrained_accuracy": retrained_accuracy(
                model, some, self.part, left, loss, seed=card.seed
            ),
            "curves": sparsity_curves(model, self.part, found.nodes),
        }

    @cached_property
    def _training(self) -> tuple[GraphXAIDataset, Truth]:
        rows = self.dataset.get_idx_split()["train"][:_RETRAINING_GRAPHS]
        return self.dataset[rows], Truth.of(self.dataset[rows])

    def _wanted(self, row: Row) -> Row:
        """Without what is known but was not asked for, so that tables do not depend on history."""
        left_out: tuple[str, ...] = ()
        if not self.timing:
            left_out += ("ms_", "timed_")
        if not self.faithfulness:
            left_out += ("fidelity_", "characterisation", "retrained_", "curves")
        return {key: value for key, value in row.items() if not key.startswith(left_out)}

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
        ).save(self.save_scores / f"{variant.name}-{place}{SUFFIX}")


def groups(variants: Sequence[Variant]) -> list[list[Variant]]:
    """Variants that one run of an explainer serves."""
    found: dict[str, list[Variant]] = {}
    for variant in variants:
        found.setdefault(f"{variant.method} {sorted(variant.options.items())}", []).append(variant)
    return list(found.values())


class _Kept:
    """The rows that are known of a model, by split; of other weights or data none are.

    With `force` none are known, and what is written replaces rows instead of adding to them.
    """

    def __init__(
        self, path: Path, dataset: GraphXAIDataset, card: Card, split: str, force: bool
    ) -> None:
        self._path, self._split, self._force = path, split, force
        self._identity = {
            "content_sha256": dataset.manifest.content_sha256,
            "weights_sha256": card.weights_sha256,
            "graphxai_data": __version__,
        }
        self.rows: dict[str, Row] = {} if force else self._read().get(split, {})

    def write(self, rows: dict[str, Row]) -> None:
        """Put some rows on disk, beside whatever another process has put there meanwhile."""
        with (
            explained_disk_errors(self._path.parent, "--out", "what is measured already"),
            folder_lock(self._path, wait=True),
        ):
            splits = self._read()
            there = splits.setdefault(self._split, {})
            for name, row in rows.items():
                there[name] = row if self._force else there.get(name, {}) | row
            whole = without_nan({"of": self._identity, "splits": splits})
            write_atomically(self._path, json.dumps(whole, indent=2).encode())

    def _read(self) -> dict[str, dict[str, Row]]:
        if not self._path.is_file():
            return {}
        try:
            kept = json.loads(self._path.read_text(encoding="utf-8"))
            if kept["of"] != self._identity:
                return {}
            return {
                split: {
                    name: {k: math.nan if v is None else v for k, v in row.items()}
                    for name, row in rows.items()
                }
                for split, rows in kept["splits"].items()
            }
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            log.warning("%s: damaged (%s); measured anew", self._path, error)
            return {}


def without_nan(value: Any) -> Any:
    """The same with None, null in JSON, for what is not a finite number."""
    if isinstance(value, dict):
        return {key: without_nan(v) for key, v in value.items()}
    if isinstance(value, list):
        return [without_nan(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
