"""Explainers scored against the ground truth of a dataset, on one page.

A score is a number for every node, higher for what counts more. It comes from an explainer of ours,
from a function, an array or a file that somebody else made: what is done with it is the same.
"""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from torch import nn

from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.errors import InputError
from graphxai_data.evaluation.faithfulness import fidelity
from graphxai_data.evaluation.score_sources import (
    Explainer,
    Progress,
    Scored,
    Truth,
    chosen_graphs,
    for_one_graph,
    is_ours,
    scores_of,
    without_answers,
)
from graphxai_data.evaluation.timing import time_explainer, time_function
from graphxai_data.explain.base import check_ready
from graphxai_data.explain.variants import Variant, chosen_variants, variants_for
from graphxai_data.metrics import (
    auroc_per_graph,
    checked_scores,
    jaccard_per_graph,
    precision_per_graph,
)
from graphxai_data.training.checkpoint import load_model


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
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Score explainers on the graphs of one split.

    Args:
        dataset: all of it, or one split.
        explainers: by the name of their row; each is an array of the scores of all nodes, a list of
            one array a graph, a `ScoreFile` or the path of one, the name of one of ours, or a
            function of one graph, `fn(data)` or `fn(model, data)`, that gives [n] scores or an
            `Explanation`, ours or PyG's. Functions do not see the masks. Or just names of ours;
            "all" is those that make sense for the model and the dataset.
        model: what is explained, or its name or folder; None for what needs no model.
        split: which graphs; if None those that are loaded, and of a whole dataset "test".
        batch_size: graphs that our explainers take at once.
        timing: measure how long an explanation takes, too, where it is made here.
        faithfulness: measure what the model says without the highest nodes, and of them alone, too.
        force: allow a model, or a file, that was made with another build of the dataset.
        progress: called with graphs done and all graphs of an explainer.

    Returns:
        A row for each explainer; docs/metrics.md says what the columns are.
    """
    part = chosen_graphs(dataset, split)
    if isinstance(model, str | Path):
        model = load_model(model, dataset, force)
    if model is not None:
        check_ready(model)
    elif faithfulness:
        raise InputError("faithfulness is to a model; give one")
    if not isinstance(explainers, Mapping):
        explainers = {variant.name: variant.name for variant in _named(explainers, model, part)}
    truth, rows = Truth.of(part), {}
    for name, explainer in explainers.items():
        scored = scores_of(name, explainer, model, part, truth, batch_size, force, progress)
        rows[name] = measured(name, scored, truth)
        if timing and is_ours(explainer):
            (variant,) = chosen_variants(str(explainer))
            rows[name] |= time_explainer(variant, model, part, batch_size)
        elif timing and callable(explainer):
            run = for_one_graph(name, explainer, model)
            rows[name] |= time_function(run, model, [without_answers(data) for data in part[:20]])
        if faithfulness and model is not None:
            rows[name] |= fidelity(model, part, scored.nodes, truth.node_mask, batch_size)
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("explainer")


def _named(names: Iterable[str], model: nn.Module | None, part: GraphXAIDataset) -> list[Variant]:
    names = [names] if isinstance(names, str) else list(names)
    chosen = chosen_variants(names)
    if "all" not in names:
        return chosen
    recipe = part.manifest.load_recipe()
    sensible = variants_for(None, recipe) + (variants_for(model, recipe) if model else [])
    return [variant for variant in chosen if variant in sensible]


def measured(name: str, scored: Scored, truth: Truth) -> dict[str, float]:
    """All metrics of some scores; a constant score is an error, since it ranks nothing."""
    ptr, mask = truth.node_ptr, truth.node_mask
    nodes = checked_scores(scored.nodes, ptr, f"scores of '{name}'")
    starts = ptr[:-1]
    constant = np.maximum.reduceat(nodes, starts) == np.minimum.reduceat(nodes, starts)
    if constant.all():
        raise InputError(
            f"scores of '{name}': the same for all nodes of every graph, which ranks nothing; "
            "expected higher scores for nodes that count more"
        )
    jaccard = jaccard_per_graph(nodes, mask, ptr)
    everything = np.array([0, len(nodes)])
    row = {
        "jaccard": jaccard.mean(),
        "auroc": auroc_per_graph(nodes, mask, ptr).mean(),
        "auroc_average": auroc_per_graph(nodes, mask, ptr, "average").mean(),
        "precision": precision_per_graph(nodes, mask, ptr).mean(),
        "auroc_pooled": auroc_per_graph(nodes, mask, everything)[0],
        "auroc_pooled_average": auroc_per_graph(nodes, mask, everything, "average")[0],
        "edge_auroc_pooled": math.nan,
        "worst_class_jaccard": min(
            jaccard[truth.label == label].mean() for label in np.unique(truth.label)
        ),
        "constant": constant.mean(),
        "graphs": len(jaccard),
        **scored.about,
    }
    if scored.edges is not None and 0 < truth.edge_mask.sum() < len(truth.edge_mask):
        edges = checked_scores(scored.edges, truth.edge_ptr, f"edge scores of '{name}'")
        whole = np.array([0, len(edges)])
        row["edge_auroc_pooled"] = auroc_per_graph(edges, truth.edge_mask, whole, "average")[0]
    return {key: float(value) for key, value in row.items()}
