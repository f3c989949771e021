"""Score explainers against the ground truth of a dataset.

A score is a number per node, higher for nodes that matter more. Scores come from a built-in
explainer, a function, an array or a file; all of them are measured in the same way.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from torch import nn
from torch.utils.data import Dataset
from torch_geometric.data import Data

from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.errors import InputError
from graphxai_data.evaluation.faithfulness import fidelity
from graphxai_data.evaluation.model_outputs import check_outputs
from graphxai_data.evaluation.other_datasets import OtherGraphs, load_fitting_model
from graphxai_data.evaluation.own_metrics import MetricFunction, metric_means, select_metrics
from graphxai_data.evaluation.pairs import Pair, evaluate_pair
from graphxai_data.evaluation.parts import has_numbers, recipe_of, select_part
from graphxai_data.evaluation.score_sources import (
    Explainer,
    built_in,
    check_model,
    explained_model,
    resolve,
    scores_of,
)
from graphxai_data.evaluation.timing import times_of
from graphxai_data.evaluation.truth import Scores, Truth
from graphxai_data.explain.pyg_explainers import PyGFunction
from graphxai_data.explain.variants import Variant
from graphxai_data.graphs.schema import Label
from graphxai_data.metrics import Floats, Ints, auroc_per_graph, checked_scores
from graphxai_data.progress import Progress, no_progress
from graphxai_data.training.checkpoint import load_model

Row = dict[str, Any]


def evaluate(
    dataset: GraphXAIDataset | Dataset[Any] | Sequence[Data] | Pair,
    explainers: Mapping[str, Explainer] | Iterable[str],
    model: nn.Module | str | Path | Sequence[nn.Module | str | Path] | None = None,
    *,
    split: str | None = None,
    batch_size: int = 64,
    timing: bool = False,
    faithfulness: bool = False,
    metrics: Mapping[str, MetricFunction] | Iterable[str] | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Score explainers on the graphs of one split.

    Args:
        dataset: a whole dataset, or one split. Or any other PyG dataset or list of graphs that have
            their ground truth as `node_mask`, `edge_mask`, `alternatives` or `node_weight`: all of
            them are evaluated. Or a `Pair`, whose columns `evaluate_pair` describes.
        explainers: by the name of their row. Each is an array of the scores of all nodes, a list
            with one array or `Explanation`, ours or PyG's, per graph, a `ScoreFile` or its path,
            the name of a built-in explainer, an `Explainer` of PyG or one of its algorithms, or a
            function of one graph, `fn(data)` or `fn(model, data)`, that returns [n] scores or an
            `Explanation`. Functions do not see the ground truth, nor fields that tell it. Scores of
            edges alone give three rows, `name-mean`, `name-max` and `name-sum` over the edges of a
            node. Or just names of built-in explainers or plug-ins. "all" is the built-in ones that
            suit the model and the dataset, with the strongest floors; "floors" is all rules that
            look at no model.
        model: to be explained, or its name or folder; None for explainers that need no model. Its
            forward is given what it has as parameters of x [n, p], edge_index [2, m], edge_attr
            [m, q], batch [n], edge_weight [m] and batch_size, and returns logits [g, c]. For a
            pair two models, (model_a, model_b), each trained on its own half.
        split: whose graphs; if None those that are loaded, and "test" of a whole dataset.
        batch_size: graphs per batch of the built-in explainers.
        timing: also measure how long an explanation takes; not for arrays and files.
        faithfulness: also measure what the model predicts without the highest-scored nodes, and
            from them alone.
        metrics: further columns: names of plug-ins, or functions `fn(scores, mask)` of one graph,
            NumPy arrays [n] of floats and bools, by the name of their column.
        force: accept a model or a file that was made with another build of the dataset.
        progress: called with the number of graphs that an explainer has done, and of all graphs.

    Returns:
        A row per explainer; docs/metrics.md describes the columns.
    """
    progress = progress or no_progress
    if isinstance(dataset, Pair):
        if timing or faithfulness or metrics is not None:
            raise InputError("a pair has no timing, faithfulness or further metrics; leave it out")
        return evaluate_pair(
            dataset, explainers, _two(model), split=split, batch_size=batch_size, force=force,
            progress=progress,
        )  # fmt: skip
    if isinstance(model, Sequence) and not isinstance(model, str):
        raise InputError("model: expected one model, got several; two models are for a Pair")
    own_metrics = select_metrics(metrics)
    part = select_part(dataset, split)
    truth = Truth.of(part)
    truth.rationales.check()
    if isinstance(model, str | Path):
        if isinstance(part, OtherGraphs):
            model = load_fitting_model(model, part)
        else:
            model = load_model(model, part, force)
    if model is not None:
        check_model(model)
    elif faithfulness:
        raise InputError("faithfulness is to a model; give one")
    if faithfulness:
        check_outputs(model, part)
    if not isinstance(explainers, Mapping):
        explainers = built_in(explainers, model, part)
    rows: dict[str, Row] = {}
    for name, explainer in explainers.items():
        label: Label = "number" if has_numbers(part) else "class"
        source = resolve(name, explainer, model, recipe_of(part), label)
        if isinstance(source, Variant | PyGFunction):
            check_outputs(explained_model(source, model), part)
        named = scores_of(name, source, truth, model, batch_size, force, progress)
        times = times_of(source, model, truth, batch_size) if timing else {}
        for row, scores in named.items():
            if row in rows:
                raise InputError(f"explainers: two rows have the name '{row}'; rename one")
            rows[row] = explanation_metrics(row, scores, truth)
            rows[row] |= metric_means(own_metrics, row, scores, truth) | times
            if faithfulness and model is not None:
                rows[row] |= fidelity(model, truth, scores.nodes, batch_size)
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("explainer")


def _two(model: Any) -> Sequence[nn.Module | str | Path] | None:
    """Return the two models of a pair, or None."""
    if model is not None and not isinstance(model, list | tuple):
        raise InputError(
            "model: a pair needs two, one trained on each half, as (model_a, model_b); got one"
        )
    return model


def explanation_metrics(name: str, scores: Scores, truth: Truth) -> Row:
    """Return all metrics of some scores; an `InputError` if they are constant in every graph."""
    rationales = truth.rationales
    nodes = checked_scores(scores.nodes, truth.node_ptr, f"scores of '{name}'")
    constant = rationales.constant(nodes)
    if constant.all():
        raise InputError(
            f"scores of '{name}': the same for all nodes of every graph, which ranks nothing; "
            "expected higher scores for nodes that count more"
        )
    jaccard = rationales.jaccard(nodes)
    row = {
        "jaccard": jaccard.mean(),
        "auroc": rationales.auroc(nodes).mean(),
        "auroc_average": rationales.auroc(nodes, "average").mean(),
        "precision": rationales.precision(nodes).mean(),
        "auroc_pooled": rationales.pooled_auroc(nodes),
        "auroc_pooled_average": rationales.pooled_auroc(nodes, "average"),
        "edge_auroc_pooled": _pooled_edge_auroc(name, scores, truth),
        **_worst_class(jaccard, truth.label[rationales.ranked]),
        "constant": constant.mean(),
        "graphs": len(jaccard),
        **_sufficient(nodes, truth),
        **rationales.union_columns(nodes),
        **rationales.null_columns(nodes),
        **rationales.signed_columns(nodes),
        **scores.properties,
    }
    return {key: float(value) for key, value in row.items()}


def _worst_class(jaccard: Floats, label: Ints | Floats) -> Row:
    """Return the lowest mean Jaccard@k of a class with rationales; nothing if labels are numbers.

    Args:
        jaccard: [r] of the ranked graphs.
        label: [r] their labels.
    """
    if label.dtype.kind == "f":
        return {}
    return {"worst_class_jaccard": min(jaccard[label == one].mean() for one in np.unique(label))}


def _sufficient(nodes: Floats, truth: Truth) -> Row:
    """Return the mean Jaccard@k against the best sufficient part; nothing if none is known."""
    if truth.sufficient is None:
        return {}
    return {"jaccard_sufficient": truth.sufficient.jaccard(nodes).mean()}


def _pooled_edge_auroc(name: str, scores: Scores, truth: Truth) -> float:
    """Return the AUROC of the edges of all ranked graphs in one ranking; nan without scores."""
    if scores.edges is None:
        return math.nan
    edges = checked_scores(scores.edges, truth.edge_ptr, f"edge scores of '{name}'")
    inside = np.repeat(truth.rationales.ranked, np.diff(truth.edge_ptr))
    edges, mask = edges[inside], truth.edge_mask[inside]
    if not 0 < mask.sum() < len(mask):
        return math.nan
    return float(auroc_per_graph(edges, mask, np.array([0, len(edges)]), "average")[0])
