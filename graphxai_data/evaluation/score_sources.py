"""Where scores come from: an explainer of ours, a function, an array, or somebody else's file."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.explain import Explanation as PyGExplanation

from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.datasets.loader import BatchLoader
from graphxai_data.errors import InputError
from graphxai_data.explain import Explanation, explain, nodes_from_edges
from graphxai_data.explain.files import ScoreFile, is_score_file
from graphxai_data.explain.variants import Variant, chosen_variants, kind_of
from graphxai_data.graphs.columns import pointers
from graphxai_data.graphs.record import SPLIT_NAMES
from graphxai_data.metrics import Bools, Floats, Ints, as_array, checked_scores
from graphxai_data.training.checkpoint import weights_digest

# What an explainer could read the answer from.
_ANSWERS = ("node_mask", "edge_mask", "split", "group")
# The explainers that claim to account for the whole of a logit.
_COMPLETE = ("bcos", "integrated-gradients")

Progress = Callable[[int, int], None]
Explainer = str | Path | ScoreFile | Callable[..., Any] | Sequence[Any] | np.ndarray | Tensor


@dataclass(frozen=True)
class Truth:
    """The graphs that are explained, and their rationales.

    Attributes:
        graph_id: [g] their numbers in the dataset.
        label: [g] their classes.
        node_ptr: [g+1] where the nodes of each begin and end.
        edge_ptr: [g+1] the same of edges.
        node_mask: [N] the nodes that the class was made by.
        edge_mask: [M] the edges between those.
    """

    graph_id: Ints
    label: Ints
    node_ptr: Ints
    edge_ptr: Ints
    node_mask: Bools
    edge_mask: Bools

    @classmethod
    def of(cls, part: GraphXAIDataset) -> "Truth":
        """The truth about all graphs of a dataset, or of a choice of them."""
        keys = ("x", "edge_index", "y", "node_mask", "edge_mask", "graph_id")
        whole = next(iter(BatchLoader(part, len(part), keys=keys)))
        edges = np.bincount(whole.batch[whole.edge_index[0]].numpy(), minlength=len(part))
        return cls(
            whole.graph_id.numpy(),
            whole.y.numpy(),
            whole.ptr.numpy().copy(),
            pointers(edges),
            whole.node_mask.numpy(),
            whole.edge_mask.numpy(),
        )


@dataclass(frozen=True)
class Scored:
    """The scores that an explainer gives to the graphs of a `Truth`.

    Attributes:
        nodes: [N].
        edges: [M], or None.
        about: what is known of the explanations beside their scores.
    """

    nodes: Floats
    edges: Floats | None = None
    about: dict[str, float] = field(default_factory=dict)


def chosen_graphs(dataset: GraphXAIDataset, split: str | None = None) -> GraphXAIDataset:
    """The graphs of a split: the one that is loaded, or of a whole dataset "test" if None."""
    if not isinstance(dataset, GraphXAIDataset):
        raise InputError(
            f"dataset: expected a GraphXAIDataset, got {type(dataset).__name__}; scores of other "
            "data can be measured with jaccard_at_k and node_auroc"
        )
    split = split or dataset.split or "test"
    if split not in SPLIT_NAMES:
        raise InputError(f"split: expected one of {', '.join(SPLIT_NAMES)}, got {split!r}")
    if dataset.split not in (None, split):
        raise InputError(f"'{dataset.name}' is loaded with split '{dataset.split}', not '{split}'")
    if dataset.transform is not None:
        raise InputError(f"'{dataset.name}' is loaded with a transform; load it without")
    part = dataset if dataset.split else dataset[dataset.get_idx_split()[split]]
    if not dataset.has_rationale:
        raise InputError(
            f"'{dataset.name}' has no rationale: nobody knows what its classes come from, so no "
            "explanation can be scored on it; `train` measures predictions"
        )
    if not len(part):
        raise InputError(f"'{dataset.name}' has no {split} graphs here; choose another split")
    return part


def scores_of(
    name: str,
    explainer: Explainer,
    model: nn.Module | None,
    part: GraphXAIDataset,
    truth: Truth,
    batch_size: int = 64,
    force: bool = False,
    progress: Progress | None = None,
) -> Scored:
    """The scores that an explainer, whatever it is, gives to these graphs."""
    if is_ours(explainer):
        variants = chosen_variants(str(explainer))
        if len(variants) > 1:
            raise InputError(
                f"explainer '{explainer}' has several rows; choose one of "
                f"{', '.join(v.name for v in variants)}"
            )
        _check_kind(variants[0], model)
        return scored_by(variants, model, part, batch_size, progress=progress)[variants[0].name]
    if isinstance(explainer, str | Path):
        explainer = ScoreFile.load(explainer)
    if isinstance(explainer, ScoreFile):
        return scored_from_file(explainer, part, truth, model, force)
    if callable(explainer):
        return _scored_by_function(name, explainer, model, part, truth, progress)
    values = explainer
    if isinstance(values, list | tuple) and any(np.ndim(as_array(v)) for v in values):
        if len(values) != len(part):
            raise InputError(
                f"scores of '{name}': expected {len(part)} arrays, one a graph, got {len(values)}"
            )
        values = _joined(name, [as_array(v) for v in values], truth.node_ptr, "node")
    return Scored(checked_scores(values, truth.node_ptr, f"scores of '{name}'"))


def scored_by(
    variants: Sequence[Variant],
    model: nn.Module | None,
    part: GraphXAIDataset,
    batch_size: int = 64,
    seed: int = 0,
    progress: Progress | None = None,
) -> dict[str, Scored]:
    """The scores of one run of an explainer, for each variant that reads them in its own way.

    Args:
        variants: with one method and the same options; their rules may differ.
        model: that is explained; None for variants that look at none.
        part: the graphs.
        batch_size: graphs at once.
        seed: of explainers that draw at random.
        progress: called with graphs done and all graphs.
    """
    first = variants[0]
    options = first.options_for(part.manifest.load_recipe(), seed)
    found: list[Explanation] = []
    device = "cpu" if model is None else next(model.parameters()).device
    edge_index, nodes_before = [], 0
    for i, batch in enumerate(BatchLoader(part, batch_size)):
        edge_index.append(batch.edge_index + nodes_before)
        nodes_before += batch.num_nodes
        made = explain(model, batch.to(device), method=first.method, **options)
        found.append(replace(made, data=None))  # or all batches would stay in memory
        if progress:
            progress(min((i + 1) * batch_size, len(part)), len(part))
    nodes = torch.cat([e.node_scores for e in found]).cpu()
    with_edges = all(e.edge_scores is not None for e in found)
    edges = None
    if with_edges:
        edges = torch.cat([e.edge_scores for e in found]).cpu()  # type: ignore[misc]
    about = _about(first, found) if model is not None else {}
    ends = torch.cat(edge_index, dim=1)
    results = {}
    for variant in variants:
        if variant.rule and edges is not None:
            nodes = nodes_from_edges(edges, ends, len(nodes), variant.rule)
        results[variant.name] = Scored(
            nodes.double().numpy(), None if edges is None else edges.double().numpy(), about
        )
    return results


def _about(variant: Variant, found: list[Explanation]) -> dict[str, float]:
    about, options = {}, variant.options
    if options.get("row") != "contrast":  # a contrast of the winner is never negative
        logit = torch.cat([e.logit for e in found])  # type: ignore[misc]
        about["negative_winners"] = float((logit < 0).double().mean())
    if variant.method in _COMPLETE and not options.get("absolute"):
        gap = torch.cat([e.completeness_gap() for e in found])
        about["completeness_gap"] = float(gap.median())
        about["completeness_gap_max"] = float(gap.max())
    if variant.method == "bcos" and not options.get("fold_edges"):
        about["edge_share"] = float(torch.cat([e.edge_share() for e in found]).median())
    return about


def is_ours(explainer: object) -> bool:
    """Whether an explainer is given by a name, not by a path."""
    return isinstance(explainer, str) and not is_score_file(explainer)


def _check_kind(variant: Variant, model: nn.Module | None) -> None:
    if variant.kind != "none" and model is None:
        raise InputError(f"explainer '{variant.name}' explains a model; give one")
    if variant.kind in ("bcos", "gsat") and variant.kind != kind_of(model):
        wanted = {"bcos": "a B-cos model", "gsat": "GSAT"}[variant.kind]
        raise InputError(
            f"explainer '{variant.name}' is for {wanted}, got {type(model).__name__}; "
            "choose another explainer or model"
        )


def _scored_by_function(
    name: str,
    function: Callable[..., Any],
    model: nn.Module | None,
    part: GraphXAIDataset,
    truth: Truth,
    progress: Progress | None,
) -> Scored:
    run = for_one_graph(name, function, model)
    nodes: list[Any] = []
    edges: list[Any] = []
    for i in range(len(part)):
        found = run(without_answers(part[i]))
        of_nodes, of_edges = found, None
        if isinstance(found, Explanation):
            of_nodes, of_edges = found.node_scores, found.edge_scores
        elif isinstance(found, PyGExplanation):
            if found.get("node_mask") is None:
                raise InputError(f"'{name}' gave a PyG Explanation without a node_mask")
            of_nodes, of_edges = found.node_mask.sum(dim=-1), found.get("edge_mask")
        nodes.append(as_array(of_nodes))
        if of_edges is not None:
            edges.append(as_array(of_edges))
        if progress:
            progress(i + 1, len(part))
    return Scored(
        _joined(name, nodes, truth.node_ptr, "node"),
        _joined(name, edges, truth.edge_ptr, "edge") if len(edges) == len(part) else None,
    )


def for_one_graph(
    name: str, function: Callable[..., Any], model: nn.Module | None
) -> Callable[[Any], Any]:
    """A user's `fn(data)` or `fn(model, data)` as a function of a graph."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # some built-in functions do not tell
        return function
    needed = [p for p in parameters if p.default is p.empty]
    by_place = [p for p in needed if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if any(p.kind is p.KEYWORD_ONLY for p in needed) or len(by_place) > 2:
        raise InputError(f"explainer '{name}': expected fn(data) or fn(model, data), got another")
    if len(by_place) < 2:
        return function
    if model is None:
        raise InputError(f"explainer '{name}' is a function of a model and a graph; give a model")
    return partial(function, model)


def _joined(name: str, arrays: list[Any], ptr: Ints, what: str) -> Floats:
    """Scores graph by graph as one array, or an `InputError` that names the first wrong one."""
    for i, (array, size) in enumerate(zip(arrays, np.diff(ptr), strict=True)):
        if array.shape != (size,):
            raise InputError(
                f"{what} scores of '{name}': expected [{size}] for graph {i}, got "
                f"{list(array.shape)}"
            )
    return checked_scores(np.concatenate(arrays), ptr, f"{what} scores of '{name}'")


def without_answers(data: Any) -> Any:
    """A graph of one's own, without its rationale, as explainers may see it."""
    data = data.clone()  # or what a function does to it would be done to the dataset
    for key in _ANSWERS:
        if key in data:
            del data[key]
    return data


def scored_from_file(
    file: ScoreFile,
    part: GraphXAIDataset,
    truth: Truth,
    model: nn.Module | None = None,
    force: bool = False,
) -> Scored:
    """The scores in a file, in the order of these graphs; a file of anything else is refused."""
    wanted = part.manifest.content_sha256
    if file.content_sha256 != wanted and not force:
        raise InputError(
            f"scores of '{file.explainer}': made for '{file.dataset}', content "
            f"{file.content_sha256[:12]}…; this is '{part.name}', content {wanted[:12]}…"
        )
    if model is not None and file.model_sha256 and not force:
        explained = weights_digest(model)
        if file.model_sha256 != explained:
            raise InputError(
                f"scores of '{file.explainer}': they explain another model (weights "
                f"{file.model_sha256[:12]}…, expected {explained[:12]}…)"
            )
    place = {int(graph): i for i, graph in enumerate(file.graph_id)}
    missing = [int(graph) for graph in truth.graph_id if int(graph) not in place]
    if missing:
        raise InputError(
            f"scores of '{file.explainer}': none for {len(missing)} of the {len(truth.graph_id)} "
            f"graphs, the first of them graph {missing[0]}; expected scores for each"
        )
    order = [place[int(graph)] for graph in truth.graph_id]
    nodes = _in_order(file.node_scores, file.node_ptr, order, truth.node_ptr, "nodes", file, truth)
    edges = None
    if file.edge_scores is not None and file.edge_ptr is not None:
        edges = _in_order(
            file.edge_scores, file.edge_ptr, order, truth.edge_ptr, "edges", file, truth
        )
    return Scored(nodes, edges)


def _in_order(
    scores: Any, ptr: Ints, order: list[int], wanted: Ints, what: str, file: ScoreFile, truth: Truth
) -> Floats:
    counts, expected = np.diff(ptr)[order], np.diff(wanted)
    wrong = (counts != expected).nonzero()[0]
    if len(wrong):
        first = int(wrong[0])
        raise InputError(
            f"scores of '{file.explainer}': {counts[first]} {what} in graph "
            f"{truth.graph_id[first]}, expected {expected[first]}"
        )
    return np.concatenate([scores[ptr[i] : ptr[i + 1]] for i in order]).astype(np.float64)
