"""Where scores come from: a built-in explainer, one of PyG, a function, or what is given."""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.explain import Explainer as PyGExplainer
from torch_geometric.explain import ExplainerAlgorithm
from torch_geometric.explain import Explanation as PyGExplanation

from graphxai_data.datasets.loader import BatchLoader
from graphxai_data.errors import InputError
from graphxai_data.evaluation.floors import floor_names, floor_scores
from graphxai_data.evaluation.given_scores import array_scores, file_scores, function_scores
from graphxai_data.evaluation.parts import (
    Part,
    has_numbers,
    recipe_of,
    weights_are_for_class_1,
)
from graphxai_data.evaluation.truth import Scores, Truth
from graphxai_data.explain import Explanation, explain, nodes_from_edges
from graphxai_data.explain.files import ScoreFile, is_score_file
from graphxai_data.explain.functions import takes_model
from graphxai_data.explain.models import (
    check_ready,
    check_unmasked,
    device_of_model,
    takes_edge_masks,
)
from graphxai_data.explain.pyg_explainers import PyGFunction, pyg_function
from graphxai_data.explain.variants import (
    Variant,
    check_contrast,
    kind_of,
    select_variants,
    variants_for,
)
from graphxai_data.graphs.schema import Label
from graphxai_data.progress import Progress, no_progress
from graphxai_data.recipe import Recipe

log = logging.getLogger(__name__)

# What is computed already: arrays or explanations, of all graphs or one per graph.
Given: TypeAlias = Sequence[Any] | np.ndarray | Tensor | Explanation | PyGExplanation
Explainer: TypeAlias = (
    str | Path | ScoreFile | Callable[..., Any] | PyGExplainer | ExplainerAlgorithm | Given
)
# An explainer that was looked up or loaded; a function is one of a single graph.
Source: TypeAlias = Variant | ScoreFile | Callable[[Any], Any] | PyGFunction | Given


def built_in(names: Iterable[str], model: nn.Module | None, part: Part) -> dict[str, str]:
    """Return built-in explainers by name; "all" leaves out those that do not suit the model."""
    names = [names] if isinstance(names, str) else list(names)
    recipe = recipe_of(part)
    variants = select_variants(names, recipe, floor_names(part, names))
    if "all" in names:
        suitable = variants_for(None, recipe) + (variants_for(model, recipe) if model else [])
        _note_missing(model)
        variants = [v for v in variants if v in suitable or v.origin or v.is_floor]
    return {variant.name: variant.name for variant in variants}


def _note_missing(model: nn.Module | None) -> None:
    """Log which rows of "all" a model cannot have."""
    if model is not None and not takes_edge_masks(model):
        log.warning(
            "'all' without gnn-explainer: %s takes no edge_weight and has no MessagePassing layers "
            "of PyG, so its edges cannot be masked",
            type(model).__name__,
        )


def check_model(model: nn.Module) -> None:
    """Raise an `InputError` unless a model can be explained: in evaluation mode, without masks."""
    check_ready(model)
    check_unmasked(model)


def resolve(
    name: str,
    explainer: Explainer,
    model: nn.Module | None,
    recipe: Recipe | None = None,
    label: Label = "class",
) -> Source:
    """Look up a built-in explainer by its name, load a file, or bind the model to a function.

    `label` says what the model predicts: a "class", or a "number".
    """
    if isinstance(explainer, str) and not is_score_file(explainer):
        return _variant_for(explainer, model, recipe)
    if isinstance(explainer, str | Path):
        return ScoreFile.load(explainer)
    if isinstance(explainer, PyGExplainer | ExplainerAlgorithm):
        return pyg_function(name, explainer, model, label)
    if isinstance(explainer, type):
        raise InputError(
            f"explainer '{name}': expected an explainer, got the class {explainer.__name__}; make "
            f"one, as in {explainer.__name__}(…)"
        )
    return _function_of_graph(name, explainer, model) if is_function(explainer) else explainer


def scores_of(
    name: str,
    source: Source,
    truth: Truth,
    model: nn.Module | None,
    batch_size: int,
    force: bool,
    progress: Progress,
) -> dict[str, Scores]:
    """Return the scores that an explainer of any kind gives to the graphs of a `Truth`.

    They are by the name of their row: one row, or several for scores of edges alone.
    """
    if isinstance(source, Variant):
        scores = variant_scores([source], model, truth.part, batch_size, progress=progress)
        return {name: scores[source.name]}
    if isinstance(source, ScoreFile):
        return {name: file_scores(source, truth, model, force)}
    if is_function(source):
        device = device_of_model(explained_model(source, model))
        return function_scores(name, source, truth, device, progress)
    return array_scores(name, source, truth)


def is_function(source: Any) -> TypeGuard[Callable[..., Any]]:
    """Return whether an explainer is a function; PyG's explanations can be called as well."""
    return callable(source) and not isinstance(source, Variant | PyGExplanation)


def explained_model(source: Source, model: nn.Module | None) -> nn.Module | None:
    """Return the model that is called for an explainer; None if there is none that we know of."""
    if isinstance(source, PyGFunction):
        return source.model
    if isinstance(source, Variant):  # `explain` states the explained logit, whatever the method
        return model
    is_given = isinstance(source, partial) and any(arg is model for arg in source.args)
    return model if is_given else None


def _variant_for(name: str, model: nn.Module | None, recipe: Recipe | None) -> Variant:
    """Return the one variant of this name; an `InputError` if it cannot explain the model."""
    variant, *others = select_variants([name], recipe)
    if others:
        names = ", ".join(v.name for v in (variant, *others))
        raise InputError(f"explainer '{name}' has several rows; choose one of {names}")
    check_contrast(variant, recipe)
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

    All variants have the same method and options, and only their rules differ; or all are floors.
    `seed` is for explainers that draw at random.
    """
    first = variants[0]
    if first.is_floor:
        return floor_scores(variants, part)
    options = first.options_for(recipe_of(part), seed)
    target = 1 if weights_are_for_class_1(part) else None
    device = device_of_model(model)
    explanations: list[Explanation] = []
    for i, batch in enumerate(BatchLoader(part, batch_size)):
        explanation = explain(
            model, batch.to(device), target=target, method=first.method, **options
        )
        explanations.append(replace(explanation, data=None))  # data would keep the batch in memory
        progress(min((i + 1) * batch_size, len(part)), len(part), first.name)
    nodes = torch.cat([e.node_scores for e in explanations]).cpu()
    edge_parts = [e.edge_scores for e in explanations if e.edge_scores is not None]
    edges = torch.cat(edge_parts).cpu() if len(edge_parts) == len(explanations) else None
    predicted = target is None and not has_numbers(part)
    properties = _properties(first, explanations, predicted) if model is not None else {}
    whole = next(iter(BatchLoader(part, len(part), keys=("x", "edge_index"))))
    scores = {}
    for variant in variants:
        if variant.rule and edges is not None:
            nodes = nodes_from_edges(edges, whole.edge_index, len(nodes), variant.rule)
        edge_scores = None if edges is None else edges.double().numpy()
        scores[variant.name] = Scores(nodes.double().numpy(), edge_scores, properties)
    return scores


def _properties(
    variant: Variant, explanations: list[Explanation], is_class: bool
) -> dict[str, float]:
    """Return further columns; `is_class`: the predicted class is explained."""
    properties, options = {}, variant.options
    if options.get("row") != "contrast" and is_class:  # a contrast of the winner is never negative
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


def _function_of_graph(
    name: str, function: Callable[..., Any], model: nn.Module | None
) -> Callable[[Any], Any]:
    """Return a user's `fn(data)` or `fn(model, data)` as a function of one graph."""
    if not takes_model(function, f"explainer '{name}'"):
        return function
    if model is None:
        raise InputError(f"explainer '{name}' is a function of a model and a graph; give a model")
    return partial(function, model)
