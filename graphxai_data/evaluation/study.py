"""Train one model with one seed and measure all its explainers: a task of a comparison.

Results are saved next to the model, in `evaluation.json`, so that nothing is measured twice.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import nn

from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.evaluation.evaluate import Row, explanation_metrics
from graphxai_data.evaluation.faithfulness import (
    fidelity,
    highest,
    retrained_accuracy,
    retrained_r2,
    sparsity_curves,
)
from graphxai_data.evaluation.floors import floor_scores
from graphxai_data.evaluation.own_metrics import metric_means, select_metrics
from graphxai_data.evaluation.parts import select_split
from graphxai_data.evaluation.saved_rows import SavedRows
from graphxai_data.evaluation.score_sources import variant_scores
from graphxai_data.evaluation.timing import conditions, time_explainer
from graphxai_data.evaluation.truth import Scores, Truth
from graphxai_data.explain.files import SUFFIX, ScoreFile
from graphxai_data.explain.variants import Variant
from graphxai_data.progress import Progress, no_progress
from graphxai_data.training.checkpoint import Card
from graphxai_data.training.train import device_of, run_folder, train

RESULTS = "evaluation.json"
_TIMES = ("ms_", "timed_")
_FAITHFULNESS = ("fidelity_", "characterisation", "retrained_", "curves")


@dataclass(frozen=True)
class Options:
    """How explanations are measured: arguments of `compare`, described there."""

    split: str
    timing: bool
    faithfulness: bool
    device: str
    force: bool
    save_scores: Path | None
    engine: str
    jobs: int | None
    metrics: tuple[str, ...] = ()


@dataclass(frozen=True)
class ModelTask:
    """One model to train with one seed in the folder `out`, and the explainers to measure on it."""

    model: str
    seed: int
    variants: tuple[Variant, ...]
    out: Path
    configuration: str
    changes: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.model}, seed {self.seed}"

    def folder(self, dataset: GraphXAIDataset) -> Path:
        """Return the folder of the training."""
        return run_folder(self.out, self.model, dataset.name, self.seed)

    @property
    def steps(self) -> int:
        """Number of steps: the training, and each run of an explainer."""
        return 1 + len(group_by_run(self.variants))


@dataclass(frozen=True)
class Measurement:
    """The rows of a `ModelTask`, its curves by "model/explainer/seed", and its device's type."""

    rows: list[Row]
    curves: dict[str, dict[str, list[float]]]
    device: str


class Study:
    """Measures models on the same graphs, and saves what it measures next to each model."""

    def __init__(self, dataset: GraphXAIDataset, options: Options) -> None:
        self.dataset, self.options = dataset, options
        self.part = select_split(dataset, options.split)
        self.truth = Truth.of(self.part)
        self.truth.rationales.check()
        self.metrics = select_metrics(options.metrics)
        self._floors: dict[str, Scores] = {}

    def run(self, task: ModelTask, progress: Progress = no_progress) -> Measurement:
        """Train the model of a task, or load it, and measure what is not saved yet.

        `progress` is called with the steps done and all steps of the task, while it works.
        """
        dataset, steps = self.dataset, task.steps
        model, card = train(
            dataset, task.model, task.configuration, task.seed, task.out,
            changes=task.changes, device=self.options.device,
            progress=lambda done, total, _: progress(
                0, steps, f"training {task}: epoch {done} of {total}"
            ),
        )  # fmt: skip
        device = device_of(self.options.device)
        model = model.to(device)  # a checkpoint is loaded on the CPU
        split, path = self.options.split, task.folder(dataset) / RESULTS
        saved = SavedRows(path, dataset, card, split, self.options.force)
        rows, curves = [], {}
        for step, group in enumerate(group_by_run(task.variants), 1):
            what = f"{', '.join(variant.name for variant in group)} of {task}"

            def report(done: int, total: int, _: str, step: int = step, what: str = what) -> None:
                progress(step, steps, f"{what}: {done} of {total}")

            self._measure_missing(saved, group, model, card, report)
            for variant in group:
                row = self._asked_for(saved.row(variant))
                if "curves" in row:
                    curves[f"{task.model}/{variant.name}/{task.seed}"] = row.pop("curves")
                keys = self._predictive if variant.kind != "none" else ()
                predictive = {key: card.scores.get(split, {}).get(key) for key in keys}
                rows.append(_identity(task.model, variant, task.seed) | predictive | row)
        return Measurement(rows, curves, device.type)

    @cached_property
    def _predictive(self) -> tuple[str, ...]:
        """The scores of a model's predictions that its rows have."""
        is_number = self.dataset.manifest.load_recipe().schema.label == "number"
        return ("mae", "rmse", "r2") if is_number else ("accuracy", "f1")

    def measure_without_model(self, variants: Iterable[Variant], seed: int) -> list[Row]:
        """Return the rows of explainers that look at no model; they are quick and never saved."""
        rows = []
        variants = list(variants)
        known = self._floors_of(variants)
        for variant in variants:
            if variant.is_floor:
                scores = known[variant.name]
            else:
                scores = variant_scores([variant], None, self.part, seed=seed)[variant.name]
            plugin = {} if variant.origin is None else {"plugin": variant.origin.words}
            metrics = explanation_metrics(variant.name, scores, self.truth)
            own = metric_means(self.metrics, variant.name, scores, self.truth)
            timed = self.options.timing and not variant.is_floor
            times = time_explainer(variant, None, self.part) if timed else {}
            rows.append(_identity("-", variant, seed) | plugin | metrics | times | own)
            self._save_scores(scores, variant, "", f"none-{seed}")
        return rows

    def _floors_of(self, variants: Iterable[Variant]) -> dict[str, Scores]:
        """Return the scores of rules, which are the same for every seed: computed once."""
        missing = [v for v in variants if v.is_floor and v.name not in self._floors]
        if missing:
            self._floors |= floor_scores(missing, self.part)
        return self._floors

    def _measure_missing(
        self,
        saved: SavedRows,
        group: list[Variant],
        model: nn.Module,
        card: Card,
        progress: Progress,
    ) -> None:
        """Complete the saved rows of the explainers that are read from one run."""
        rows, options = [saved.row(variant) for variant in group], self.options
        times = conditions(model).items()
        timed = not options.timing or all(times <= row.items() for row in rows)
        retrained = ("retrained_accuracy", "retrained_r2")
        faithful = not options.faithfulness or all(row.keys() & set(retrained) for row in rows)
        scored = faithful and not options.save_scores and all(map(self._is_scored, rows))
        if timed and scored:
            return
        progress(0, len(self.part), "")
        if not timed:
            times_taken = time_explainer(group[0], model, self.part)
            for row in rows:
                row |= times_taken
        if not scored:
            scores = variant_scores(group, model, self.part, seed=card.seed, progress=progress)
            for variant, row in zip(group, rows, strict=True):
                own = scores[variant.name]
                row |= explanation_metrics(variant.name, own, self.truth)
                self._add_metrics(row, variant, own)
                if options.faithfulness:
                    row |= fidelity(model, self.truth, own.nodes)
                self._save_scores(own, variant, card.weights_sha256, f"{card.model}-{card.seed}")
        if not faithful:
            training = variant_scores(group, model, self._training.part, seed=card.seed)
            for variant, row in zip(group, rows, strict=True):
                row |= self._retrain(model, card, training[variant.name], scores[variant.name])
        saved.write({v.name: row for v, row in zip(group, rows, strict=True)})

    def _add_metrics(self, row: Row, variant: Variant, scores: Scores) -> None:
        """Add the columns of plug-ins to a row that is saved."""
        means = metric_means(self.metrics, variant.name, scores, self.truth)
        for metric in self.metrics:
            column = {"value": means[metric.name], "by": metric.by}
            row["metrics"] = row.get("metrics", {}) | {metric.name: column}

    def _is_scored(self, row: Row) -> bool:
        """Return whether a saved row has all metrics, those of plug-ins by their version of now."""
        known = row.get("metrics", {})
        own = all(known.get(metric.name, {}).get("by") == metric.by for metric in self.metrics)
        parts = self.truth.sufficient is None or "jaccard_sufficient" in row
        return "jaccard" in row and parts and own

    def _retrain(self, model: nn.Module, card: Card, training: Scores, scores: Scores) -> Row:
        """Return the accuracy, or R², after retraining without the highest nodes, and curves."""
        part, loss = self._training.part, card.training.loss
        keep = ~highest(training.nodes, self._training), ~highest(scores.nodes, self.truth)
        curves = sparsity_curves(model, self.truth, scores.nodes)
        if card.shape.label == "number":
            r2 = retrained_r2(model, part, self.part, keep, loss, seed=card.seed)
            return {"retrained_r2": r2, "curves": curves}
        accuracy = retrained_accuracy(model, part, self.part, keep, loss, seed=card.seed)
        return {"retrained_accuracy": accuracy, "curves": curves}

    @cached_property
    def _training(self) -> Truth:
        rows = self.dataset.get_idx_split()["train"][:1000]  # enough for fine-tuning
        return Truth.of(self.dataset[rows])

    def _asked_for(self, row: Row) -> Row:
        """Leave out what is saved but was not asked for: tables must not depend on history."""
        left_out = (() if self.options.timing else _TIMES) + (
            () if self.options.faithfulness else _FAITHFULNESS
        )
        asked = {key: value for key, value in row.items() if not key.startswith(left_out)}
        saved = asked.pop("metrics", {})
        return asked | {metric.name: saved[metric.name]["value"] for metric in self.metrics}

    def _save_scores(self, scores: Scores, variant: Variant, model_sha256: str, place: str) -> None:
        if self.options.save_scores is None:
            return
        ScoreFile(
            dataset=self.dataset.name,
            content_sha256=self.dataset.manifest.content_sha256,
            explainer=variant.name,
            graph_id=self.truth.graph_id,
            node_ptr=self.truth.node_ptr,
            node_scores=scores.nodes,
            edge_ptr=None if scores.edges is None else self.truth.edge_ptr,
            edge_scores=scores.edges,
            model_sha256=model_sha256,
        ).save(self.options.save_scores / f"{variant.name}-{place}{SUFFIX}")


def _identity(model: str, variant: Variant, seed: int) -> Row:
    return {"model": model, "explainer": variant.name, "seed": seed}


def group_by_run(variants: Sequence[Variant]) -> list[list[Variant]]:
    """Group variants by method and options: one run of the explainer serves a group."""
    groups: dict[str, list[Variant]] = {}
    for variant in variants:
        run = f"{variant.method} {sorted(variant.options.items())}"
        groups.setdefault("floors" if variant.is_floor else run, []).append(variant)
    return list(groups.values())
