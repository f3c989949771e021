"""Where scores come from: a built-in explainer, a function, an array, or an explanation file."""

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
from graphxai_data.explain.variants import Variant, kind_of, select_variants
from graphxai_data.graphs.columns import pointers
from graphxai_data.graphs.record import SPLIT_NAMES
from graphxai_data.metrics import Bools, Floats, Ints, as_array, checked_scores
from graphxai_data.progress import Progress, no_progress
from graphxai_data.training.checkpoint import weights_digest

Explainer = str | Path | ScoreFile | Callable[..., Any] | Sequence[Any] | np.ndarray | Tensor
# An explainer that was looked up or loaded; a function is one of a single graph.
Source = Variant | ScoreFile | Callable[[Any], Any] | Sequence[Any] | np.ndarray | Tensor


@dataclass(frozen=True)
class Truth:
    """Labels and rationales of the graphs that are explained."""

    part: GraphXAIDataset
    graph_id: Ints  # [g] numbers of the graphs in the dataset
    label: Ints  # [g]
    node_ptr: Ints  # [g+1] where the nodes of each graph begin and end
    edge_ptr: Ints  # [g+1]
    node_mask: Bools  # [N] nodes of the rationales
    edge_mask: Bools  # [M]

    @classmethod
    def of(cls, part: GraphXAIDataset) -> "Truth":
        """Return the truth about all graphs of a dataset or of a part of it."""
        keys = ("x", "edge_index", "y", "node_mask", "edge_mask", "graph_id")
        whole = next(iter(BatchLoader(part, len(part), keys=keys)))
        edges = np.bincount(whole.batch[whole.edge_index[0]].numpy(), minlength=len(part))
        return cls(
            part,
            whole.graph_id.numpy(),
            whole.y.numpy(),
            whole.ptr.numpy().copy(),
            pointers(edges),
            whole.node_mask.numpy(),
            whole.edge_mask.numpy(),
        )


@dataclass(frozen=True)
class Scores:
    """Scores that one explainer gives to the graphs of a `Truth`.

    `properties` are further columns of the explainer's row, such as its completeness gap.
    """

    nodes: Floats  # [N]
    edges: Floats | None = None  # [M]
    properties: dict[str, float] = field(default_factory=dict)


def select_split(dataset: GraphXAIDataset, split: str | None = None) -> GraphXAIDataset:
    """Return the graphs of a split; if None, of the one that is loaded, else of "test"."""
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
            f"'{dataset.name}' has no rationale: what its classes come from is unknown, so no "
            "explanation can be scored on it; `train` measures predictions"
        )
    if not len(part):
        raise InputError(f"'{dataset.name}' has no {split} graphs here; choose another split")
    return part


def resolve(name: str, explainer: Explainer, model: nn.Module | None) -> Source:
    """Look up a built-in explainer by its name, load a file, or bind the model to a function."""
    if isinstance(explainer, str) and not is_score_file(explainer):
        return _variant_for(explainer, model)
    if isinstance(explainer, str | Path):
        return ScoreFile.load(explainer)
    return _function_of_graph(name, explainer, model) if callable(explainer) else explainer


def scores_of(
    name: str,
    source: Source,
    truth: Truth,
    model: nn.Module | None,
    batch_size: int,
    force: bool,
    progress: Progress,
) -> Scores:
    """Return the scores that an explainer of any kind gives to the graphs of a `Truth`."""
    if isinstance(source, Variant):
        scores = variant_scores([source], model, truth.part, batch_size, progress=progress)
        return scores[source.name]
    if isinstance(source, ScoreFile):
        return file_scores(source, truth, model, force)
    if callable(source):
        return _function_scores(name, source, truth, progress)
    return _array_scores(name, source, truth)


def _variant_for(name: str, model: nn.Module | None) -> Variant:
    """Return the one variant of this name; an `InputError` if it cannot explain the model."""
    variant, *others = select_variants(name)
    if others:
        names = ", ".join(v.name for v in (variant, *others))
        raise InputError(f"explainer '{name}' has several rows; choose one of {names}")
    if variant.kind != "none" and model is None:
        raise InputError(f"explainer '{variant.name}' explains a model; give one")
    if variant.kind in ("bcos", "gsat") and variant.kind != kind_of(model):
        expected = {"bcos": "a B-cos model", "gsat": "GSAT"}[variant.kind]
        raise InputError(
            f"explainer '{variant.name}' is for {expected}, got {type(model).__name__}; "
            "choose another explainer or model"
        )
    return variant


def variant_scores(
    variants: Sequence[Variant],
    model: nn.Module | None,
    part: GraphXAIDataset,
    batch_size: int = 64,
    seed: int = 0,
    progress: Progress = no_progress,
) -> dict[str, Scores]:
    """Run an explainer once and return the scores of every variant that is read from that run.

    All variants have the same method and options; only their rules differ. `seed` is for explainers
    that draw at random.
    """
    first = variants[0]
    options = first.options_for(part.manifest.load_recipe(), seed)
    device = "cpu" if model is None else next(model.parameters()).device
    explanations: list[Explanation] = []
    for i, batch in enumerate(BatchLoader(part, batch_size)):
        explanation = explain(model, batch.to(device), method=first.method, **options)
        explanations.append(replace(explanation, data=None))  # data would keep the batch in memory
        progress(min((i + 1) * batch_size, len(part)), len(part), first.name)
    nodes = torch.cat([e.node_scores for e in explanations]).cpu()
    edge_parts = [e.edge_scores for e in explanations if e.edge_scores is not None]
    edges = torch.cat(edge_parts).cpu() if len(edge_parts) == len(explanations) else None
    properties = _properties(first, explanations) if model is not None else {}
    whole = next(iter(BatchLoader(part, len(part), keys=("x", "edge_index"))))
    scores = {}
    for variant in variants:
        if variant.rule and edges is not None:
            nodes = nodes_from_edges(edges, whole.edge_index, len(nodes), variant.rule)
        edge_scores = None if edges is None else edges.double().numpy()
        scores[variant.name] = Scores(nodes.double().numpy(), edge_scores, properties)
    return scores


def _properties(variant: Variant, explanations: list[Explanation]) -> dict[str, float]:
    properties, options = {}, variant.options
    if options.get("row") != "contrast":  # a contrast of the winner is never negative
        logit = torch.cat([e.logit for e in explanations])  # type: ignore[misc]
        properties["negative_winners"] = float((logit < 0).double().mean())
    is_complete = variant.method in ("bcos", "integrated-gradients")
    if is_complete and not options.get("absolute"):  # contributions should sum to the logit
        gap = torch.cat([e.completeness_gap() for e in explanations])
        properties["completeness_gap"] = float(gap.median())
        properties["completeness_gap_max"] = float(gap.max())
    if variant.method == "bcos" and not options.get("fold_edges"):
        share = torch.cat([e.edge_share() for e in explanations])
        properties["edge_share"] = float(share.median())
    return properties


def _array_scores(name: str, values: Any, truth: Truth) -> Scores:
    """Return scores that are given as one array, or as a list with one array per graph."""
    if isinstance(values, list | tuple) and any(np.ndim(as_array(v)) for v in values):
        graphs = len(truth.graph_id)
        if len(values) != graphs:
            raise InputError(
                f"scores of '{name}': expected {graphs} arrays, one per graph, got {len(values)}"
            )
        values = _concatenate(name, [as_array(v) for v in values], truth.node_ptr, "node")
    return Scores(checked_scores(values, truth.node_ptr, f"scores of '{name}'"))


def _function_scores(
    name: str, run: Callable[[Any], Any], truth: Truth, progress: Progress
) -> Scores:
    """Return the scores of a function of one graph."""
    nodes: list[Any] = []
    edges: list[Any] = []
    for i, data in enumerate(truth.part):
        node_scores, edge_scores = _split_result(name, run(without_answers(data)))
        nodes.append(as_array(node_scores))
        if edge_scores is not None:
            edges.append(as_array(edge_scores))
        progress(i + 1, len(truth.part), name)
    return Scores(
        _concatenate(name, nodes, truth.node_ptr, "node"),
        _concatenate(name, edges, truth.edge_ptr, "edge") if len(edges) == len(nodes) else None,
    )


def _split_result(name: str, result: Any) -> tuple[Any, Any]:
    """Return node scores and edge scores, or None, of what a user's function returned."""
    if isinstance(result, Explanation):
        return result.node_scores, result.edge_scores
    if isinstance(result, PyGExplanation):
        if result.get("node_mask") is None:
            raise InputError(f"'{name}' gave a PyG Explanation without a node_mask")
        return result.node_mask.sum(dim=-1), result.get("edge_mask")
    return result, None


def _function_of_graph(
    name: str, function: Callable[..., Any], model: nn.Module | None
) -> Callable[[Any], Any]:
    """Return a user's `fn(data)` or `fn(model, data)` as a function of one graph."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # some built-in functions have no signature
        return function
    required = [p for p in parameters if p.default is p.empty]
    positional = [p for p in required if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if any(p.kind is p.KEYWORD_ONLY for p in required) or len(positional) > 2:
        raise InputError(f"explainer '{name}': expected fn(data) or fn(model, data), got another")
    if len(positional) < 2:
        return function
    if model is None:
        raise InputError(f"explainer '{name}' is a function of a model and a graph; give a model")
    return partial(function, model)


def without_answers(data: Any) -> Any:
    """Return a copy of a graph without its rationale, as explainers may see it."""
    data = data.clone()  # a function that changes its argument must not change the dataset
    for key in ("node_mask", "edge_mask", "split", "group"):
        if key in data:
            del data[key]
    return data


def _concatenate(name: str, arrays: list[Any], ptr: Ints, what: str) -> Floats:
    """Return one array of all graphs' scores; an `InputError` names the first wrong graph."""
    for i, (array, size) in enumerate(zip(arrays, np.diff(ptr), strict=True)):
        if array.shape != (size,):
            raise InputError(
                f"{what} scores of '{name}': expected [{size}] for graph {i}, got "
                f"{list(array.shape)}"
            )
    return checked_scores(np.concatenate(arrays), ptr, f"{what} scores of '{name}'")


def file_scores(
    file: ScoreFile, truth: Truth, model: nn.Module | None = None, force: bool = False
) -> Scores:
    """Return a file's scores in the order of these graphs; `force` allows another build, model."""
    expected = truth.part.manifest.content_sha256
    if file.content_sha256 != expected and not force:
        raise InputError(
            f"scores of '{file.explainer}': made for '{file.dataset}', content "
            f"{file.content_sha256[:12]}…; this is '{truth.part.name}', content {expected[:12]}…"
        )
    if model is not None and file.model_sha256 and not force:
        digest = weights_digest(model)
        if file.model_sha256 != digest:
            raise InputError(
                f"scores of '{file.explainer}': they explain another model (weights "
                f"{file.model_sha256[:12]}…, expected {digest[:12]}…)"
            )
    position = {int(graph): i for i, graph in enumerate(file.graph_id)}
    missing = [int(graph) for graph in truth.graph_id if int(graph) not in position]
    if missing:
        raise InputError(
            f"scores of '{file.explainer}': none for {len(missing)} of the {len(truth.graph_id)} "
            f"graphs, the first of them graph {missing[0]}; expected scores for each"
        )
    order = [position[int(graph)] for graph in truth.graph_id]

    def in_order(scores: Any, ptr: Ints, expected_ptr: Ints, what: str) -> Floats:
        counts, sizes = np.diff(ptr)[order], np.diff(expected_ptr)
        for graph in (counts != sizes).nonzero()[0][:1]:
            raise InputError(
                f"scores of '{file.explainer}': {counts[graph]} {what} in graph "
                f"{truth.graph_id[graph]}, expected {sizes[graph]}"
            )
        return np.concatenate([scores[ptr[i] : ptr[i + 1]] for i in order]).astype(np.float64)

    nodes = in_order(file.node_scores, file.node_ptr, truth.node_ptr, "nodes")
    if file.edge_scores is None or file.edge_ptr is None:
        return Scores(nodes)
    return Scores(nodes, in_order(file.edge_scores, file.edge_ptr, truth.edge_ptr, "edges"))
