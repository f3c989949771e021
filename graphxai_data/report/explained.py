"""What a page shows of explainers: their scores of graphs, and how they do on test graphs.

It comes from what `graphxai-data evaluate` leaves: models with what is kept beside them, the JSON
that it prints, and explanation files. Without any, the shipped models of the dataset are shown.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.datasets.loader import BatchLoader
from graphxai_data.errors import InputError
from graphxai_data.evaluation.comparison import summarise
from graphxai_data.evaluation.evaluate import Row, explanation_metrics
from graphxai_data.evaluation.score_sources import Truth, file_scores, variant_scores
from graphxai_data.evaluation.study import group_by_run
from graphxai_data.explain.files import ScoreFile
from graphxai_data.explain.variants import Variant, chosen_variants, variants_for
from graphxai_data.files.shipped import shipped
from graphxai_data.manifest import Manifest
from graphxai_data.metrics import jaccard_at_k
from graphxai_data.progress import Progress, no_progress
from graphxai_data.report.evaluations import read_evaluations
from graphxai_data.training.checkpoint import (
    CARD,
    Card,
    Shape,
    check_fits,
    load_checkpoint,
    read_card,
)

# Of explainers that take no time, those that the paper compares.
_USUAL = ("bcos", "integrated-gradients", "gsat-mean", "degree", "intensity", "halogen-closeness")
_FLOOR_AND_CEILING = ("random", "oracle")
_OTHERS = "That is done for test graphs and a sample of others."


@dataclass(frozen=True)
class Shown:
    """One explainer of a page.

    Attributes:
        title: for people.
        what: one line more.
        model: whose predictions are explained, a key of `Explained.predicted`; None for none.
        others: why there are no scores of other graphs.
        scores: of the nodes of some graphs, by the graph's number.
        jaccard: of the same graphs, where their rationale is known.
    """

    title: str
    what: str
    model: str | None
    others: str
    scores: dict[int, npt.NDArray[np.float64]]
    jaccard: dict[int, float] = field(default_factory=dict)


@dataclass
class Explained:
    """All that a page knows of explainers.

    Attributes:
        shown: the explainers whose scores it has.
        predicted: for each model the class that it predicts, by graph.
        models: a line about each model.
        table: a line for each explainer and model, as `evaluate` sums them up.
    """

    shown: list[Shown] = field(default_factory=list)
    predicted: dict[str, dict[int, int]] = field(default_factory=dict)
    models: list[str] = field(default_factory=list)
    table: list[Row] = field(default_factory=list)


def explained(
    folder: Path,
    manifest: Manifest,
    evaluations: Sequence[str | Path],
    explainers: Sequence[str],
    sample: Sequence[int],
    progress: Progress = no_progress,
) -> Explained:
    """Explain the test graphs and a sample of others.

    Args:
        folder: of the build.
        manifest: of the build.
        evaluations: model folders, `evaluation.json`, output of `evaluate --json`, explanation
            files; if there are none, the shipped models of this recipe are taken.
        explainers: rows of the table of explainers to show; the usual ones that take no time if
            empty.
        sample: graphs to explain besides.
        progress: counts explainers.
    """
    found = read_evaluations(evaluations, manifest)
    if not evaluations:
        found.folders = shipped_models(manifest)
    wanted = chosen_variants(explainers) if explainers else chosen_variants(_USUAL)
    if not (found.folders or found.files or manifest.statistics["rationale_nodes_mean"]):
        return Explained(table=summarise(manifest.dataset, found.rows))
    dataset = GraphXAIDataset.from_folder(folder)
    if dataset.task == "node":
        if evaluations:
            raise InputError(
                f"{folder}: its classes are of nodes, and a page shows explanations of graphs; "
                "leave --evaluation out"
            )
        return Explained()
    page = _Page(dataset, sample, progress)
    for path in found.folders:
        page.add_model(path, wanted, found.labels, force=not evaluations)
    for path, file in found.files:
        page.add_file(path, file)
    page.add_floor([v for v in variants_for(None, page.recipe) if v in wanted])
    if explainers and "all" not in explainers:
        page.refuse_unused(wanted)
    page.result.table = summarise(manifest.dataset, _merged(found.rows, page.rows))
    for row in page.result.table:
        if row["model"] in page.foreign:  # it may have been trained on what it is measured on
            row["paper"] = {}
    return page.result


def shipped_models(manifest: Manifest) -> list[Path]:
    """Folders of the shipped models that were trained on a build of the same recipe."""
    folders = sorted(path.parent for path in shipped("models").glob(f"*/{CARD}"))
    same = manifest.recipe_sha256
    return [path for path in folders if read_card(path).data.recipe_sha256 == same]


class _Page:
    """Collects explainers, model after model."""

    def __init__(self, dataset: GraphXAIDataset, sample: Sequence[int], progress: Progress) -> None:
        self.dataset, self.progress = dataset, progress
        self.recipe = dataset.manifest.load_recipe()
        self.result, self.rows = Explained(), []  # type: tuple[Explained, list[Row]]
        test = dataset.get_idx_split()["test"]
        others = sorted(set(sample) - set(test.tolist()))
        self.test = dataset[test]
        self.parts = [part for part in (self.test, dataset[others]) if len(part)]
        self.foreign: set[str] = set()
        self._model_of_weights: dict[str, str] = {}
        self._shown_variants: set[str] = set()

    @cached_property
    def _truth(self) -> Truth | None:
        return Truth.of(self.test) if self.dataset.has_rationale and len(self.test) else None

    def add_model(
        self, folder: Path, wanted: Sequence[Variant], labels: dict[str, str], force: bool
    ) -> None:
        """Predictions of a model, and what the explainers that are for it make of them."""
        model, card = load_checkpoint(folder)
        if card.shape != Shape.of(self.dataset) or not force:
            check_fits(card, self.dataset, folder)
        name = f"{card.model}-{card.data.dataset}" + (f", seed {card.seed}" if card.seed else "")
        if name in self.result.predicted:
            name += f" ({folder})"
        kind = labels.get(card.weights_sha256, card.model)
        if card.data.content_sha256 != self.dataset.manifest.content_sha256:
            kind += " of another build"
            self.foreign.add(kind)
        self._model_of_weights[card.weights_sha256] = name
        self.result.predicted[name] = self._predictions(model)
        self.result.models.append(_about(name, card, self.dataset.manifest))
        variants = [v for v in variants_for(model, self.recipe) if v in wanted]
        self._add(variants, model, name, kind, card.seed)

    def add_floor(self, variants: Sequence[Variant]) -> None:
        """What looks at no model; the lower and upper bound are for the table at least."""
        if not self.dataset.has_rationale:
            return
        self._add(variants, None, None, "-", 0)
        for variant in chosen_variants(_FLOOR_AND_CEILING):
            if variant not in variants and len(self.test):
                (scored,) = variant_scores([variant], None, self.test).values()
                self._measure(variant.name, scored, "-", 0)

    def add_file(self, path: Path, file: ScoreFile) -> None:
        """Scores that were made elsewhere."""
        model = self._model_of_weights.get(file.model_sha256)
        scores = {}
        for i, graph in enumerate(file.graph_id.tolist()):
            if not 0 <= graph < len(self.dataset):
                raise InputError(f"{path}: graph {graph}, but there are {len(self.dataset)} graphs")
            scores[graph] = file.node_scores[file.node_ptr[i] : file.node_ptr[i + 1]]
            nodes = int(self.dataset.slices["x"][graph + 1] - self.dataset.slices["x"][graph])
            if len(scores[graph]) != nodes:
                raise InputError(
                    f"{path}: {len(scores[graph])} nodes in graph {graph}, expected {nodes}"
                )
        title = file.explainer
        if _full(title, model) in {shown.title for shown in self.result.shown}:
            title += f" ({path.name})"
        others = f"It is not among those in {path.name}."
        self._show(title, f"scores in {path.name}", model, others, scores)
        if self._truth is not None and set(self._truth.graph_id.tolist()) <= scores.keys():
            of_test = file_scores(file, self.test, self._truth)
            self._measure(title, of_test, model or "-", 0)

    def refuse_unused(self, wanted: Sequence[Variant]) -> None:
        """An `InputError` for an explainer that was asked for and is for none of the models."""
        for variant in wanted:
            if variant.name not in self._shown_variants:
                models = ", ".join(self.result.predicted) or "no model"
                raise InputError(
                    f"explainer '{variant.name}' is not for '{self.dataset.name}' with {models}: "
                    f"{variant.what}"
                )

    def _add(
        self,
        variants: Sequence[Variant],
        model: nn.Module | None,
        name: str | None,
        kind: str,
        seed: int,
    ) -> None:
        for group in group_by_run(variants):
            what = f"{group[0].name} of {name or 'no model'}"
            self.progress(len(self.result.shown), 0, what)
            scores: dict[str, dict[int, Any]] = {variant.name: {} for variant in group}
            for part in self.parts:
                scored = variant_scores(group, model, part, seed=seed)
                for variant in group:
                    scores[variant.name] |= _by_graph(part, scored[variant.name].nodes)
                    if part is self.test:
                        self._measure(variant.name, scored[variant.name], kind, seed, name)
            for variant in group:
                self._shown_variants.add(variant.name)
                self._show(variant.name, variant.what, name, _OTHERS, scores[variant.name])

    def _measure(
        self, explainer: str, scored: Any, kind: str, seed: int, name: str | None = None
    ) -> None:
        if self._truth is None:
            return
        row: Row = {"model": kind, "explainer": explainer, "seed": seed}
        if name is not None:
            predicted = [self.result.predicted[name][i] for i in self._truth.graph_id.tolist()]
            row["accuracy"] = float(np.mean(predicted == self._truth.label))
        self.rows.append(row | explanation_metrics(explainer, scored, self._truth))

    def _show(
        self,
        title: str,
        what: str,
        model: str | None,
        others: str,
        scores: dict[int, npt.NDArray[Any]],
    ) -> None:
        jaccard = {}
        if self.dataset.has_rationale:
            jaccard = {
                graph: jaccard_at_k(found, self.dataset[graph].node_mask.numpy())
                for graph, found in scores.items()
            }
        self.result.shown.append(Shown(_full(title, model), what, model, others, scores, jaccard))

    def _predictions(self, model: nn.Module) -> dict[int, int]:
        predicted: dict[int, int] = {}
        with torch.no_grad():
            for part in self.parts:
                for batch in BatchLoader(part, 256):
                    logits = model(batch.x, batch.edge_index, batch.edge_attr, batch.batch)
                    winners = logits.argmax(dim=1).tolist()
                    predicted |= dict(zip(batch.graph_id.tolist(), winners, strict=True))
        return predicted


def _full(title: str, model: str | None) -> str:
    return f"{title} of {model}" if model else title


def _by_graph(part: GraphXAIDataset, scores: npt.NDArray[Any]) -> dict[int, npt.NDArray[Any]]:
    graphs = [part[i] for i in range(len(part))]
    ends = np.cumsum([graph.num_nodes for graph in graphs])
    ids = [int(graph.graph_id) for graph in graphs]
    return dict(zip(ids, np.split(scores, ends[:-1]), strict=True))


def _about(name: str, card: Card, manifest: Manifest) -> str:
    test = card.scores.get("test", {})
    known = [
        f"{words} {test[key]:.3f}"
        for key, words in (("accuracy", "accuracy"), ("f1", "macro F1"), ("roc_auc", "ROC AUC"))
        if key in test
    ]
    scores = f"{', '.join(known)} on its test graphs" if known else "it says no scores"
    build = (
        "trained on this build"
        if card.data.content_sha256 == manifest.content_sha256
        else f"trained on another build of this recipe (seed {card.data.seed}, content "
        f"{card.data.content_sha256[:12]}…), so that some graphs here may be its training graphs"
    )
    return f"{name}: {build}; {scores}"


def _merged(kept: list[Row], now: list[Row]) -> list[Row]:
    """What was measured before, and what only this page has measured."""
    known = {(row["model"], row["explainer"], row["seed"]) for row in kept}
    return kept + [r for r in now if (r["model"], r["explainer"], r["seed"]) not in known]
