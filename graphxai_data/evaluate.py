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

from graphxai_data.checkpoint import load_model
from graphxai_data.dataset import GraphXAIDataset
from graphxai_data.errors import InputError
from graphxai_data.explain.variants import chosen_variants
from graphxai_data.faithfulness import fidelity
from graphxai_data.metrics import (
    auroc_per_graph,
    checked_scores,
    jaccard_per_graph,
    precision_per_graph,
)
from graphxai_data.scores import (
    Explainer,
    Progress,
    Scored,
    Truth,
    chosen_graphs,
    is_ours,
    scores_of,
)
from graphxai_data.timing import time_explainer


def evaluate(
    dataset: GraphXAIDataset,
    explainers: Mapping[str, Explainer] | Iterable[str],
    model: nn.Module | str | Path | None = None,
    *,
    split: str = "test",
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
            `Explanation`. Functions do not see the masks. Or just names of ours.
        model: what is explained, or its name or folder; None for what needs no model.
        split: which graphs, if all are loaded.
        batch_size: graphs that our explainers take at once.
        timing: measure how long an explanation takes, too.
        faithfulness: measure what the model says without the highest nodes, and of them alone, too.
        force: allow a model, or a file, that was made with another build of the dataset.
        progress: called with graphs done and all graphs of an explainer.

    Returns:
        A row for each explainer: see `docs/metrics.md` for the columns.
    """
    if isinstance(model, str | Path):
        model = load_model(model, dataset, force)
    part = chosen_graphs(dataset, split)
    truth = Truth.of(part)
    if not isinstance(explainers, Mapping):
        explainers = {v.name: v.name for v in chosen_variants(tuple(explainers))}
    rows = {}
    for name, explainer in explainers.items():
        scored = scores_of(name, explainer, model, part, truth, batch_size, force, progress)
        rows[name] = measured(name, scored, truth)
        if timing and is_ours(explainer):  # arrays and files were made elsewhere
            (variant,) = chosen_variants((str(explainer),))
            rows[name] |= time_explainer(variant, model, part, batch_size).row()
        if faithfulness and model is not None:
            rows[name] |= fidelity(model, part, scored.nodes, truth.node_mask, batch_size)
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("explainer")


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
        "auroc_pooled": auroc_per_graph(nodes, mask, everything, "average")[0],
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
