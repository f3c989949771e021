"""Explainers: each scores the nodes, and maybe the features and edges, of a batch of graphs.

`explain(model, batch)` is the contribution map of a B-cos model; `method` names other explainers.
"""

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from graphxai_data.errors import InputError, nearest
from graphxai_data.explain.attention import attention
from graphxai_data.explain.base import Inputs
from graphxai_data.explain.bcos import BcosExplainer, all_contribution_maps, contribution_map
from graphxai_data.explain.edges import RULES, nodes_from_edges
from graphxai_data.explain.explanation import Explanation
from graphxai_data.explain.gnn_explainer import gnn_explainer
from graphxai_data.explain.gradients import input_x_gradient, integrated_gradients, saliency
from graphxai_data.explain.models import further_arguments
from graphxai_data.explain.plugins import plugin_explanation
from graphxai_data.explain.targets import ROWS, Row
from graphxai_data.explain.trivial import (
    halogen_closeness,
    intensity,
    random_scores,
    rule_scores,
)
from graphxai_data.explain.variants import EXPLAINERS
from graphxai_data.rings.rules import GENERAL

__all__ = [
    "METHODS",
    "ROWS",
    "RULES",
    "BcosExplainer",
    "Explanation",
    "Inputs",
    "all_contribution_maps",
    "explain",
    "nodes_from_edges",
]

_MODEL_METHODS: dict[str, Callable[..., Explanation]] = {
    "bcos": contribution_map,
    "integrated-gradients": integrated_gradients,
    "gnn-explainer": gnn_explainer,
    "gsat": attention,
    "saliency": saliency,
    "input-x-gradient": input_x_gradient,
}
_GRAPH_METHODS: dict[str, Callable[..., Tensor]] = {
    "random": random_scores,
    **{rule.name: partial(rule_scores, rule) for rule in GENERAL},
    "intensity": intensity,
    "halogen-closeness": halogen_closeness,
}
METHODS = (*_MODEL_METHODS, *_GRAPH_METHODS, "oracle")


def explain(
    model: nn.Module | None,
    data: Any,
    target: int | Tensor | None = None,
    method: str = "bcos",
    *,
    row: Row = "logit",
    node: int | None = None,
    **options: Any,
) -> Explanation:
    """Explain the outputs of a model for some graphs.

    Args:
        model: in evaluation mode; may be None for methods that look at no model.
        data: a PyG `Data`, or a `Batch` of many, which are explained at once.
        target: the class to explain, one for all graphs or [g] one per graph; if None, the
            predicted class.
        method: one of `METHODS`, or the name of a plug-in.
        row: "logit" of the target, or "contrast", its difference to the mean of the other logits.
        node: the node whose output is explained, for node-level models; then `data` is one graph.
        options: of the method, such as `fold_edges` (bcos), `steps`, `absolute`
            (integrated-gradients), `epochs`, `edge_to_node`, `seed` (gnn-explainer), or arguments
            of a plug-in's function.
    """
    name = str(method).replace("_", "-")
    if name not in METHODS:
        if method in EXPLAINERS.names():
            explanation = plugin_explanation(method, model, data, target, row, node, options)
            return _about(explanation, model, data)
        known = (*METHODS, *EXPLAINERS.names())
        raise InputError(f"unknown method '{method}'; {nearest(name, known)}")
    inputs = Inputs.of(data, node)
    if model is not None:
        inputs.check_fits(model)
    function: Callable[..., Any] | None = _MODEL_METHODS.get(name) or _GRAPH_METHODS.get(name)
    _check_options(name, function, options)
    if name in _MODEL_METHODS:
        if model is None:
            raise InputError(
                f"'{name}' explains a model, got none; methods that need none: "
                f"{', '.join((*_GRAPH_METHODS, 'oracle'))}"
            )
        explanation = _MODEL_METHODS[name](model, inputs, target, row=row, **options)
        return _about(explanation, model, data)
    scores = _ground_truth(data) if function is None else function(inputs, **options)
    value, classes = (None, None) if model is None else inputs.explained(model, target, row)
    return _about(inputs.explanation(scores, value, classes), model, data)


def _about(explanation: Explanation, model: nn.Module | None, data: Any) -> Explanation:
    """Return an explanation that knows its graphs and what its model takes."""
    if model is None:
        return replace(explanation, data=data)
    return replace(explanation, data=data, arguments=further_arguments(model))


def _check_options(name: str, function: Callable[..., Any] | None, options: dict[str, Any]) -> None:
    arguments = inspect.signature(function).parameters if function else ()
    known = [key for key in arguments if key not in ("model", "inputs", "target", "row")]
    for key in options:
        if key not in known:
            raise InputError(f"'{name}' has no option '{key}'; {nearest(key, known)}")
    if name == "halogen-closeness" and "atoms" not in options:
        raise InputError("'halogen-closeness' needs atoms, the element of each column of x")


def _ground_truth(data: Any) -> Tensor:
    """Return the weights [n], or the rationale [n], its first alternative above the others."""
    weight, bits = (getattr(data, key, None) for key in ("node_weight", "alternative_bits"))
    if weight is not None:
        return torch.as_tensor(weight, dtype=torch.float32)
    if bits is not None:
        # The top k are then one alternative, not nodes of several.
        first = torch.frexp((bits & -bits).double())[1]  # number of the first alternative, plus 1
        return torch.where(bits != 0, (65 - first) / 64, 0.0)
    mask = getattr(data, "node_mask", None)
    if mask is None:
        raise InputError("'oracle' is the ground truth; these graphs have no node_mask")
    scores: Tensor = mask.to(torch.float32)
    return scores
