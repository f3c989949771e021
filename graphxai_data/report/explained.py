"""What a page shows of explainers: their scores of graphs, and their metrics on test graphs.

Everything comes from what `graphxai-data evaluate` writes: models with their saved results, printed
tables, and explanation files. Without any, the shipped models of the dataset are explained.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from torch import nn

from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.errors import InputError
from graphxai_data.evaluation.comparison import summarise
from graphxai_data.evaluation.evaluate import Row, explanation_metrics
from graphxai_data.evaluation.faithfulness import graph_logits
from graphxai_data.evaluation.floors import floor_names
from graphxai_data.evaluation.given_scores import file_scores
from graphxai_data.evaluation.score_sources import variant_scores
from graphxai_data.evaluation.study import group_by_run
from graphxai_data.evaluation.truth import Scores, Truth
from graphxai_data.explain.files import ScoreFile
from graphxai_data.explain.variants import (
    VARIANTS,
    Variant,
    check_contrast,
    select_variants,
    variants_for,
)
from graphxai_data.graphs.rationale import alternatives_of
from graphxai_data.manifest import Manifest
from graphxai_data.metrics import Bools, Floats, jaccard_at_k
from graphxai_data.progress import Progress, no_progress
from graphxai_data.report.evaluations import read_evaluations
from graphxai_data.training.checkpoint import Card, Shape, check_fits, load_checkpoint

# The explainers of the paper that take no time; the strongest floors are added.
_DEFAULT = ("bcos", "integrated-gradients", "gsat-mean", "degree")
_BOUNDS = ("random", "oracle")
_UNEXPLAINED = "Explanations are made for test graphs and a sample of others."
_FOREIGN = " of another build"


@dataclass(frozen=True)
class Shown:
    """One explainer of a page, with its scores of nodes [n] and its Jaccard@k, by graph."""

    title: str
    what: str
    model: str | None  # a key of `Explained.predicted`
    unexplained: str  # why other graphs have no scores
    scores: dict[int, Floats]
    jaccard: dict[int, float]  # by graph with a rationale: that of the best alternative


@dataclass
class Explained:
    """What a page knows about explainers; the table is that of `evaluate`, averaged over seeds."""

    shown: list[Shown] = field(default_factory=list)
    # Class, or number, by model and graph.
    predicted: dict[str, dict[int, float]] = field(default_factory=dict)
    models: list[str] = field(default_factory=list)  # one line about each
    table: list[Row] = field(default_factory=list)


def explained(
    folder: Path,
    manifest: Manifest,
    evaluations: Sequence[str | Path],
    explainers: Sequence[str],
    sample: Sequence[int],
    progress: Progress = no_progress,
) -> Explained:
    """Explain the test graphs and a `sample` of others; other arguments as for `write_report`."""
    given = read_evaluations(evaluations, manifest)
    recipe = manifest.load_recipe()
    if not (given.models or given.files or manifest.has_rationale):
        return Explained(table=summarise(manifest.dataset, given.rows))
    dataset = GraphXAIDataset.from_folder(folder)
    if dataset.task == "node":
        if evaluations:
            raise InputError(
                f"{folder}: its classes are of nodes, but a page shows explanations of graphs; "
                "leave --evaluation out"
            )
        return Explained()
    floors = floor_names(dataset, ("all", "floors"))
    definitions = [rule.name for rule in recipe.generator_object.rules() if rule.is_definition]
    shown = [name for name in floors.strongest if name not in (*_BOUNDS, *definitions)]
    names = explainers or [*_DEFAULT, *shown]
    page = _Page(dataset, sample, select_variants(names, recipe, floors), progress)
    for path, name in given.models.items():
        page.add_model(path, name, any_build=not evaluations)
    for path, file in given.files.items():
        page.add_file(path, file)
    page.add_bounds()
    if explainers and "all" not in explainers:
        page.refuse_unused()
    known = {_identity(row) for row in given.rows}
    rows = given.rows + [row for row in page.rows if _identity(row) not in known]
    page.result.table = summarise(manifest.dataset, rows)
    for row in page.result.table:
        if row["model"].endswith(_FOREIGN):  # it may have been trained on these test graphs
            row["paper"] = {}
    return page.result


class _Page:
    """Collects explainers, model by model."""

    def __init__(
        self,
        dataset: GraphXAIDataset,
        sample: Sequence[int],
        variants: Sequence[Variant],
        progress: Progress,
    ) -> None:
        self.dataset, self.progress, self.variants = dataset, progress, variants
        self.recipe = dataset.manifest.load_recipe()
        self.result = Explained()
        self.rows: list[Row] = []
        test = dataset.get_idx_split()["test"].tolist()
        others = sorted(set(sample) - set(test))
        self.test, self.parts = dataset[test], [ids for ids in (test, others) if ids]
        self.node_ptr = dataset.slices["x"].numpy()
        is_known = dataset.has_rationale and any(len(self._alternatives(i)) for i in test)
        self.truth = Truth.of(self.test) if is_known else None
        self._names: dict[str, str] = {}
        self._used: set[str] = set()

    def add_model(self, folder: Path, row_name: str, any_build: bool) -> None:
        """Add the predictions of a model, and the explainers that apply to it."""
        model, card = load_checkpoint(folder)
        if card.shape != Shape.of(self.dataset) or not any_build:
            check_fits(card, self.dataset, folder)
        name = f"{card.model}-{card.data.dataset}" + (f", seed {card.seed}" if card.seed else "")
        if name in self.result.predicted:
            name += f" ({folder})"
        if card.data.content_sha256 != self.dataset.manifest.content_sha256:
            row_name += _FOREIGN
        self._names[card.weights_sha256] = name
        self.result.models.append(_about(name, card, self.dataset.manifest))
        predicted = self.result.predicted.setdefault(name, {})
        for ids in self.parts:
            logits = graph_logits(model, self.dataset[ids], 256)
            is_number = self.dataset.label == "number"
            labels = logits[:, 0] if is_number else logits.argmax(dim=1)
            predicted |= dict(zip(ids, labels.tolist(), strict=True))
        self._explain(model, name, row_name, card.seed)

    def add_bounds(self) -> None:
        """Add explainers without a model; the table has the lower and upper bound in any case."""
        if not self.dataset.has_rationale:
            return
        self._explain(None, None, "-", 0)
        for variant in select_variants(_BOUNDS):
            if variant.name not in self._used and len(self.test):
                scores = variant_scores([variant], None, self.test)[variant.name]
                self._measure(variant.name, scores, "-", 0)

    def add_file(self, path: Path, file: ScoreFile) -> None:
        """Add an explanation file; the table has it if it explains all test graphs."""
        ids, count = file.graph_id.tolist(), len(self.dataset)
        if outside := [graph for graph in ids if not 0 <= graph < count]:
            raise InputError(f"{path}: graph {outside[0]}, but there are {count} graphs")
        for graph, nodes in zip(ids, np.diff(file.node_ptr), strict=True):
            expected = self.node_ptr[graph + 1] - self.node_ptr[graph]
            if nodes != expected:
                raise InputError(f"{path}: {nodes} nodes in graph {graph}, expected {expected}")
        model, title = self._names.get(file.model_sha256), file.explainer
        if _full_title(title, model) in {shown.title for shown in self.result.shown}:
            title += f" ({path.name})"
        unexplained = f"{path.name} has no scores of it."
        scores = self._by_graph(ids, file.node_scores)
        self._show(title, f"scores in {path.name}", model, unexplained, scores)
        if self.truth is not None and set(self.truth.graph_id.tolist()) <= scores.keys():
            self._measure(title, file_scores(file, self.truth), model or "-", 0)

    def refuse_unused(self) -> None:
        """Raise an `InputError` for an explainer that was requested and applies to no model."""
        for variant in self.variants:
            if variant.name not in self._used:
                check_contrast(variant, self.recipe)
                models = ", ".join(self.result.predicted) or "no model"
                raise InputError(
                    f"explainer '{variant.name}' is not for '{self.dataset.name}' with {models}: "
                    f"{variant.what}"
                )

    def _explain(self, model: nn.Module | None, name: str | None, row_name: str, seed: int) -> None:
        others = [variant for variant in self.variants if variant.origin or variant.is_floor]
        applicable = variants_for(model, self.recipe, (*VARIANTS, *others))
        for group in group_by_run([v for v in applicable if v in self.variants]):
            self.progress(len(self.result.shown), 0, f"{group[0].name} of {name or 'no model'}")
            parts = (self.dataset[ids] for ids in self.parts)
            runs = [variant_scores(group, model, part, seed=seed) for part in parts]
            for variant in group:
                scores: dict[int, Floats] = {}
                for ids, run in zip(self.parts, runs, strict=True):
                    scores |= self._by_graph(ids, run[variant.name].nodes)
                self._show(variant.name, variant.what, name, _UNEXPLAINED, scores)
                self._measure(variant.name, runs[0][variant.name], row_name, seed)
                self._used.add(variant.name)

    def _by_graph(self, ids: Sequence[int], nodes: Floats) -> dict[int, Floats]:
        """Return the scores [N] of the nodes of some graphs, by graph."""
        ends = np.cumsum(np.diff(self.node_ptr)[ids])
        return dict(zip(ids, np.split(nodes, ends[:-1]), strict=True)) if ids else {}

    def _show(
        self, title: str, what: str, model: str | None, unexplained: str, scores: dict[int, Floats]
    ) -> None:
        jaccard = {}
        for graph in scores if self.dataset.has_rationale else ():
            masks = self._alternatives(graph)
            if len(masks) and not masks.all():
                jaccard[graph] = max(jaccard_at_k(scores[graph], mask) for mask in masks)
        self.result.shown.append(
            Shown(_full_title(title, model), what, model, unexplained, scores, jaccard)
        )

    def _alternatives(self, graph: int) -> Bools:
        """Return [a, n] the rationales of a graph, each of which is enough; none if it is null."""
        stored = self.dataset._data._store
        marks = stored["alternative_bits" if self.dataset.has_alternatives else "node_mask"]
        nodes = slice(*self.node_ptr[graph : graph + 2].tolist())
        return alternatives_of(marks[nodes].numpy())

    def _measure(self, explainer: str, scores: Scores, row_name: str, seed: int) -> None:
        """Add a row for scores of the test graphs, if their rationale is known."""
        if self.truth is not None:
            row = {"model": row_name, "explainer": explainer, "seed": seed}
            self.rows.append(row | explanation_metrics(explainer, scores, self.truth))


def _full_title(title: str, model: str | None) -> str:
    return f"{title} of {model}" if model else title


def _identity(row: Row) -> tuple[str, str, int]:
    return row["model"], row["explainer"], row["seed"]


def _about(name: str, card: Card, manifest: Manifest) -> str:
    titles = {
        "accuracy": "accuracy", "f1": "macro F1", "roc_auc": "ROC AUC", "mae": "MAE",
        "rmse": "RMSE", "r2": "R²",
    }  # fmt: skip
    test = card.scores.get("test", {})
    values = [f"{title} {test[key]:.3f}" for key, title in titles.items() if key in test]
    scores = f"{', '.join(values)} on its test graphs" if values else "it has no test scores"
    build = "trained on this build"
    if card.data.content_sha256 != manifest.content_sha256:
        build = (
            f"trained on another build of this recipe (seed {card.data.seed}, content "
            f"{card.data.content_sha256[:12]}…), so some graphs here may be its training graphs"
        )
    return f"{name}: {build}; {scores}"
