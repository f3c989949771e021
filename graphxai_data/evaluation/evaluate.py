"""Score explainers against the ground truth of a dataset.

A score is a number per node, higher for nodes that matter more. Scores come from a built-in
explainer, a function, an array or a file; all of them are measured in the same way.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from torch import nn

from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.errors import InputError
from graphxai_data.evaluation.faithfulness import fidelity
from graphxai_data.evaluation.score_sources import (
    Explainer,
    Scores,
    Source,
    Truth,
    array_scores,
    file_scores,
    function_scores,
    resolve,
    select_split,
    variant_scores,
    without_answers,
)
from graphxai_data.evaluation.timing import (
    SINGLE_GRAPHS,
    conditions,
    median_milliseconds,
    time_explainer,
)
from graphxai_data.explain.base import check_ready
from graphxai_data.explain.files import ScoreFile
from graphxai_data.explain.variants import Variant, select_variants, variants_for
from graphxai_data.metrics import (
    auroc_per_graph,
    checked_scores,
    jaccard_per_graph,
    precision_per_graph,
)
from graphxai_data.progress import Progress, no_progress
from graphxai_data.training.checkpoint import load_model

Row = dict[str, Any]


@dataclass(frozen=True)
class Options:
    """How explanations are measured: the arguments of `evaluate` and `compare`, described there."""

    split: str | None = None
    timing: bool = False
    faithfulness: bool = False
    force: bool = False
    batch_size: int = 64
    device: str = "auto"
    save_scores: Path | None = None
    engine: str = "serial"
    jobs: int | None = None


def evaluate(
    dataset: GraphXAIDataset,
    explainers: Mapping[str, Explainer] | Iterable[str],
    model: nn.Module | str | Path | None = None,
    *,
    split: str | None = None,
    batch_size: int = 64,
    timing: bool = False,
    faithfulness: bool = False,
    force: bool = False,
    progress: Progress = no_progress,
) -> pd.DataFrame:
    """Score explainers on the graphs of one split.

    Args:
        dataset: a whole dataset, or one split.
        explainers: by the name of their row. Each is an array of the scores of all nodes, a list
            with one array per graph, a `ScoreFile` or its path, the name of a built-in explainer,
            or a function of one graph, `fn(data)` or `fn(model, data)`, that returns [n] scores or
            an `Explanation`, ours or PyG's. Functions do not see the masks. Or just names of
            built-in explainers; "all" is those that suit the model and the dataset.
        model: to be explained, or its name or folder; None for explainers that need no model.
        split: whose graphs; if None those that are loaded, and "test" of a whole dataset.
        batch_size: graphs per batch of the built-in explainers.
        timing: also measure how long an explanation takes; not for arrays and files.
        faithfulness: also measure what the model predicts without the highest-scored nodes, and
            from them alone.
        force: accept a model or a file that was made with another build of the dataset.
        progress: called with the number of graphs that an explainer has done, and of all graphs.

    Returns:
        A row per explainer; docs/metrics.md describes the columns.
    """
    evaluator = Evaluator(dataset, Options(split, timing, faithfulness, force, batch_size))
    if isinstance(model, str | Path):
        model = load_model(model, dataset, force)
    if model is not None:
        check_ready(model)
    elif faithfulness:
        raise InputError("faithfulness is to a model; give one")
    if not isinstance(explainers, Mapping):
        explainers = _built_in(explainers, model, dataset)
    rows = {}
    for name, explainer in explainers.items():
        source = resolve(name, explainer, model)
        scores = evaluator.scores(name, source, model, progress)
        rows[name] = evaluator.measure(name, scores, model)
        if timing:
            rows[name] |= evaluator.time(source, model)
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("explainer")


def _built_in(
    names: Iterable[str], model: nn.Module | None, dataset: GraphXAIDataset
) -> dict[str, str]:
    """Return built-in explainers by name; "all" leaves out those that do not suit the model."""
    names = [names] if isinstance(names, str) else list(names)
    variants = select_variants(names)
    if "all" in names:
        recipe = dataset.manifest.load_recipe()
        suitable = variants_for(None, recipe) + (variants_for(model, recipe) if model else [])
        variants = [variant for variant in variants if variant in suitable]
    return {variant.name: variant.name for variant in variants}


class Evaluator:
    """Scores, measures and times explainers on the graphs of one split."""

    def __init__(self, dataset: GraphXAIDataset, options: Options) -> None:
        self.dataset, self.options = dataset, options
        self.part = select_split(dataset, options.split)
        self.truth = Truth.of(self.part)

    def scores(
        self, name: str, source: Source, model: nn.Module | None, progress: Progress
    ) -> Scores:
        """Return the scores that an explainer of any kind gives to the graphs."""
        if isinstance(source, Variant):
            size = self.options.batch_size
            scores = variant_scores([source], model, self.part, size, progress=progress)
            return scores[source.name]
        if isinstance(source, ScoreFile):
            return file_scores(source, self.truth, model, self.options.force)
        if callable(source):
            return function_scores(name, source, self.truth, progress)
        return array_scores(name, source, self.truth)

    def measure(self, name: str, scores: Scores, model: nn.Module | None) -> Row:
        """Return the metrics of some scores and, if asked for, their faithfulness to the model."""
        row = explanation_metrics(name, scores, self.truth)
        if self.options.faithfulness and model is not None:
            row |= fidelity(model, self.truth, scores.nodes, self.options.batch_size)
        return row

    def time(self, source: Source, model: nn.Module | None) -> Row:
        """Return how long an explanation takes; nothing for scores that were computed elsewhere."""
        if isinstance(source, Variant):
            return time_explainer(source, model, self.part, self.options.batch_size)
        if callable(source):
            graphs = [without_answers(data) for data in self.part[:SINGLE_GRAPHS]]
            return {"ms_per_graph": median_milliseconds(source, graphs)} | conditions(model)
        return {}


def explanation_metrics(name: str, scores: Scores, truth: Truth) -> dict[str, float]:
    """Return all metrics of some scores; an `InputError` if they are constant in every graph."""
    ptr, mask = truth.node_ptr, truth.node_mask
    nodes = checked_scores(scores.nodes, ptr, f"scores of '{name}'")
    starts = ptr[:-1]
    constant = np.maximum.reduceat(nodes, starts) == np.minimum.reduceat(nodes, starts)
    if constant.all():
        raise InputError(
            f"scores of '{name}': the same for all nodes of every graph, which ranks nothing; "
            "expected higher scores for nodes that count more"
        )
    jaccard = jaccard_per_graph(nodes, mask, ptr)
    pooled = np.array([0, len(nodes)])
    row = {
        "jaccard": jaccard.mean(),
        "auroc": auroc_per_graph(nodes, mask, ptr).mean(),
        "auroc_average": auroc_per_graph(nodes, mask, ptr, "average").mean(),
        "precision": precision_per_graph(nodes, mask, ptr).mean(),
        "auroc_pooled": auroc_per_graph(nodes, mask, pooled)[0],
        "auroc_pooled_average": auroc_per_graph(nodes, mask, pooled, "average")[0],
        "edge_auroc_pooled": math.nan,
        "worst_class_jaccard": min(
            jaccard[truth.label == label].mean() for label in np.unique(truth.label)
        ),
        "constant": constant.mean(),
        "graphs": len(jaccard),
        **scores.properties,
    }
    if scores.edges is not None and 0 < truth.edge_mask.sum() < len(truth.edge_mask):
        edges = checked_scores(scores.edges, truth.edge_ptr, f"edge scores of '{name}'")
        pooled = np.array([0, len(edges)])
        row["edge_auroc_pooled"] = auroc_per_graph(edges, truth.edge_mask, pooled, "average")[0]
    return {key: float(value) for key, value in row.items()}
