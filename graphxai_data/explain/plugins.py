"""Run explainers of other packages, which offer them by entry points.

A plug-in is a function of a batch, or of a model and a batch. It sees no rationale, and whatever
goes wrong in it is an error that names it.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from graphxai_data.errors import CheckFailedError, InputError, nearest, whole_number
from graphxai_data.explain.base import Inputs
from graphxai_data.explain.explanation import Explanation
from graphxai_data.explain.functions import node_and_edge_scores, without_answers
from graphxai_data.explain.targets import Row, Target
from graphxai_data.explain.variants import EXPLAINERS, Variant, plugin_variant
from graphxai_data.files.plugins import blamed
from graphxai_data.graphs.columns import pointers
from graphxai_data.metrics import checked_scores
from graphxai_data.nn.random import seeded, torch_seed
from graphxai_data.seeds import MAX_SEED


def plugin_explanation(
    name: str,
    model: nn.Module | None,
    data: Any,
    target: Target,
    row: Row,
    node: int | None,
    options: Mapping[str, Any],
) -> Explanation:
    """Return what a plug-in says about some graphs; arguments as for `explain`.

    A plug-in that explains a model is told target, row and node if it has arguments of these
    names, and refused otherwise if they are given.
    """
    variant = plugin_variant(name)
    inputs = Inputs.of(data, node)
    if model is not None:
        inputs.check_fits(model)
    asked = dict(options)
    if variant.kind == "any":
        choices = {"target": target, "row": None if row == "logit" else row, "node": node}
        asked |= {key: value for key, value in choices.items() if value is not None}
    run = plugin_function(variant, model, asked)
    with guarded(variant, asked):
        nodes, edges = node_and_edge_scores(run(plugin_batch(data)), "its result")
        if nodes is None and edges is not None:
            raise InputError(
                "it gave a PyG Explanation without a node_mask; make scores of nodes from its "
                "edge_mask with graphxai_data.explain.nodes_from_edges"
            )
        node_scores = _checked(nodes, inputs, inputs.batch, "node")
        edge_scores = None if edges is None else _checked(edges, inputs, inputs.edge_graph, "edge")
    value, classes = (None, None) if model is None else inputs.explained(model, target, row)
    return inputs.explanation(node_scores, value, classes, edges=edge_scores)


def plugin_function(
    variant: Variant, model: nn.Module | None, options: Mapping[str, Any]
) -> Callable[[Any], Any]:
    """Return a plug-in as a function of a batch; an `InputError` for options it does not have."""
    function = EXPLAINERS.load(variant.name)
    arguments = _optional_arguments(function)
    for key in options:
        if key not in (*arguments, "seed"):
            raise InputError(f"{variant.origin} has no argument '{key}'; {nearest(key, arguments)}")
    known = {key: value for key, value in options.items() if key in arguments}
    if variant.kind == "none":
        return partial(function, **known)
    if model is None:
        raise InputError(f"{variant.origin} explains a model, got none; give one")
    return partial(function, model, **known)


def plugin_batch(data: Any) -> Any:
    """Return a copy of a graph or batch as plug-ins see it: a `Batch` without the rationale."""
    return without_answers(data if isinstance(data, Batch) else Batch.from_data_list([data]))


@contextmanager
def guarded(variant: Variant, options: Mapping[str, Any]) -> Iterator[None]:
    """Let errors name the plug-in, and seed torch's global generator, which is restored after."""
    seed = whole_number("seed", options.get("seed", 0), 0, MAX_SEED)
    with blamed(variant.origin), seeded(torch_seed(seed, "explain/plugin")):
        yield


def _optional_arguments(function: Callable[..., Any]) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # some built-in functions have no signature
        return []
    named = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    return [p.name for p in named if p.default is not p.empty]


def _checked(scores: Any, inputs: Inputs, graph: Tensor, what: str) -> Tensor:
    """Return the scores of all nodes or edges; `graph` says which graph each one belongs to."""
    ptr = pointers(torch.bincount(graph, minlength=inputs.graphs).cpu().numpy())
    try:
        array = checked_scores(scores, ptr, f"{what} scores of a batch")
    except InputError as error:  # the error of the plug-in, not of who uses it
        raise CheckFailedError(str(error)) from error
    return torch.from_numpy(array).to(inputs.x.device)
