"""Explainers: each gives scores of nodes, and maybe of features and edges, for a batch of graphs.

`explain(model, batch)` is the contribution map of a B-cos model; `method` names other explainers.
"""

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from graphxai_data.errors import InputError, nearest
from graphxai_data.explain.attention import attention
from graphxai_data.explain.base import (
    ROWS,
    RULES,
    Explanation,
    Inputs,
    Row,
    check_ready,
    explained_outputs,
    nodes_from_edges,
)
from graphxai_data.explain.bcos import BcosExplainer, all_contribution_maps, contribution_map
from graphxai_data.explain.gnn_explainer import gnn_explainer
from graphxai_data.explain.gradients import input_x_gradient, integrated_gradients, saliency
from graphxai_data.explain.trivial import (
    degree,
    feature_norm,
    halogen_closeness,
    intensity,
    random_scores,
)

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

_OF_MODELS: dict[str, Callable[..., Explanation]] = {
    "bcos": contribution_map,
    "integrated-gradients": integrated_gradients,
    "gnn-explainer": gnn_explainer,
    "gsat": attention,
    "saliency": saliency,
    "input-x-gradient": input_x_gradient,
}
_OF_GRAPHS: dict[str, Callable[..., Tensor]] = {
    "random": random_scores,
    "degree": degree,
    "feature-norm": feature_norm,
    "intensity": intensity,
    "halogen-closeness": halogen_closeness,
}
METHODS = (*_OF_MODELS, *_OF_GRAPHS, "oracle")


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
    """Explain what a model makes of some graphs.

    Args:
        model: in evaluation mode; may be None for methods that look at no model.
        data: a PyG `Data`, or a `Batch` of many: all are explained at once.
        target: the class to explain, one for all graphs or [g] one each; the predicted one if None.
        method: one of `METHODS`.
        row: "logit", the target's; or "contrast", how far it is above the mean of the others.
        node: of a node-level model, the node whose output is explained; `data` is one graph then.
        options: of the method, such as `fold_edges` (bcos), `steps`, `absolute`
            (integrated-gradients), `epochs`, `edge_to_node`, `seed` (gnn-explainer).
    """
    name = str(method).replace("_", "-")
    if name not in METHODS:
        raise InputError(f"unknown method '{method}'; {nearest(name, METHODS)}")
    inputs = Inputs.of(data, node)
    if model is not None:
        check_ready(model)
        inputs.check_fits(model)
    function: Callable[..., Any] | None = _OF_MODELS.get(name) or _OF_GRAPHS.get(name)
    _check_options(name, function, options)
    if name in _OF_MODELS:
        if model is None:
            raise InputError(
                f"'{name}' explains a model, got none; methods that need none: "
                f"{', '.join((*_OF_GRAPHS, 'oracle'))}"
            )
        found = _OF_MODELS[name](model, inputs, target, row=row, **options)
        return replace(found, data=data)
    scores = _mask_of(data) if function is None else function(inputs, **options)
    value = chosen = None
    if model is not None:
        value, chosen = explained_outputs(model, inputs, target, row)
    return replace(inputs.explained(scores, value, chosen), data=data)


def _check_options(name: str, function: Callable[..., Any] | None, options: dict[str, Any]) -> None:
    if function is None:
        known: list[str] = []
    else:
        taken = ("model", "inputs", "target", "row")
        known = [key for key in inspect.signature(function).parameters if key not in taken]
    for key in options:
        if key not in known:
            raise InputError(f"'{name}' has no option '{key}'; {nearest(key, known)}")
    if name == "halogen-closeness" and "atoms" not in options:
        raise InputError("'halogen-closeness' needs atoms, the element of each column of x")


def _mask_of(data: Any) -> Tensor:
    mask = getattr(data, "node_mask", None)
    if mask is None:
        raise InputError("'oracle' is the ground truth; these graphs have no node_mask")
    scores: Tensor = mask.to(torch.float32)
    return scores
