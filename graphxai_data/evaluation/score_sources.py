"""Where scores come from: a built-in explainer, a function, an array, or an explanation file."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from graphxai_data.datasets.loader import BatchLoader
from graphxai_data.errors import InputError
from graphxai_data.evaluation.other_datasets import OtherGraphs
from graphxai_data.evaluation.parts import Part, recipe_of
from graphxai_data.explain import Explanation, explain, nodes_from_edges
from graphxai_data.explain.files import ScoreFile, is_score_file
from graphxai_data.explain.functions import node_and_edge_scores, takes_model, without_answers
from graphxai_data.explain.variants import Variant, kind_of, select_variants
from graphxai_data.graphs.columns import pointers
from graphxai_data.metrics import Bools, Floats, Ints, as_array, checked_scores
from graphxai_data.progress import Progress, no_progress
from graphxai_data.training.checkpoint import weights_digest

Explainer = str | Path | ScoreFile | Callable[..., Any] | Sequence[Any] | np.ndarray | Tensor
# An explainer that was looked up or loaded; a function is one of a single graph.
Source = Variant | ScoreFile | Callable[[Any], Any] | Sequence[Any] | np.ndarray | Tensor


@dataclass(frozen=True)
class Truth:
    """Labels and rationales of the graphs that are explained."""

    part: Part
    graph_id: Ints  # [g] numbers of the graphs in the dataset
    label: Ints  # [g]
    node_ptr: Ints  # [g+1] where the nodes of each graph begin and end
    edge_ptr: Ints  # [g+1]
    node_mask: Bools  # [N] nodes of the rationales
    edge_mask: Bools  # [M]

    @classmethod
    def of(cls, part: Part) -> "Truth":
        """Return the truth about all graphs of a dataset or of a part of it."""
        keys = ("x", "edge_index", "y", "node_mask", "edge_mask", "graph_id")
        whole = next(iter(BatchLoader(part, len(part), keys=[k for k in keys if k in part._data])))
        edges = np.bincount(whole.batch[whole.edge_index[0]].numpy(), minlength=len(part))
        return cls(
            part,
            whole.graph_id.numpy(),
            whole.y.numpy() if "y" in whole else np.zeros(len(part), np.int64),
            whole.ptr.numpy().copy(),
            pointers(edges),
            whole.node_mask.numpy(),
            whole.edge_mask.numpy(),
        )

    def shown(self) -> Iterator[Any]:
        """Yield a copy of every graph without its rationale, as functions may see it."""
        for i in range(len(self.part)):
            if isinstance(self.part, OtherGraphs):
                yield self.part.shown(i)
            else:
                yield without_answers(self.part[i])


@dataclass(frozen=True)
class Scores:
    """Scores that one explainer gives to the graphs of a `Truth`.

    `properties` are further columns of the explainer's row, such as its completeness gap.
    """

    nodes: Floats  # [N]
    edges: Floats | None = None  # [M]
    properties: dict[str, float] = field(default_factory=dict)


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
    part: Part,
    batch_size: int = 64,
    seed: int = 0,
    progress: Progress = no_progress,
) -> dict[str, Scores]:
    """Run an explainer once and return the scores of every variant that is read from that run.

    All variants have the same method and options; only their rules differ. `seed` is for explainers
    that draw at random.
    """
    first = variants[0]
    options = first.options_for(recipe_of(part), seed)
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
    for i, data in enumerate(truth.shown()):
        node_scores, edge_scores = node_and_edge_scores(run(data), f"'{name}'")
        nodes.append(as_array(node_scores))
        if edge_scores is not None:
            edges.append(as_array(edge_scores))
        progress(i + 1, len(truth.part), name)
    return Scores(
        _concatenate(name, nodes, truth.node_ptr, "node"),
        _concatenate(name, edges, truth.edge_ptr, "edge") if len(edges) == len(nodes) else None,
    )


def _function_of_graph(
    name: str, function: Callable[..., Any], model: nn.Module | None
) -> Callable[[Any], Any]:
    """Return a user's `fn(data)` or `fn(model, data)` as a function of one graph."""
    if not takes_model(function, f"explainer '{name}'"):
        return function
    if model is None:
        raise InputError(f"explainer '{name}' is a function of a model and a graph; give a model")
    return partial(function, model)


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
    if isinstance(truth.part, OtherGraphs):
        raise InputError(
            f"scores of '{file.explainer}': an explanation file is for one build, and these graphs "
            "are of none; give its scores as an array"
        )
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
