"""Explainers from gradients: saliency, input times gradient, integrated gradients."""

import numpy as np
import torch
from torch import Tensor, nn

from graphxai_data.errors import whole_number
from graphxai_data.explain.base import (
    Explanation,
    Inputs,
    Row,
    chosen_target,
    disclosed_bias,
    explained_outputs,
    explained_value,
)

# Nodes in one pass of integrated gradients: more graphs and steps at once fill the caches instead
# of using them (`python -m benchmarks.explain`).
_NODES_AT_ONCE = 8192


def saliency(
    model: nn.Module, inputs: Inputs, target: int | Tensor | None = None, row: Row = "logit"
) -> Explanation:
    """|gradient| of every node feature, summed over a node's features."""
    gradient, value, chosen = _gradient(model, inputs, target, row)
    scores = gradient.abs()
    return inputs.explained(scores.sum(dim=1), value, chosen, features=scores)


def input_x_gradient(
    model: nn.Module, inputs: Inputs, target: int | Tensor | None = None, row: Row = "logit"
) -> Explanation:
    """Feature times gradient, summed over a node's features.

    On a B-cos model this is not the contribution map, though without edge features its sum is the
    same: here the gradient also goes through the dynamic weights.
    """
    gradient, value, chosen = _gradient(model, inputs, target, row)
    scores, bias = inputs.x * gradient, disclosed_bias(model, row)
    return inputs.explained(scores.sum(dim=1), value, chosen, features=scores, bias=bias)


def integrated_gradients(
    model: nn.Module,
    inputs: Inputs,
    target: int | Tensor | None = None,
    row: Row = "logit",
    steps: int = 50,
    absolute: bool = False,
) -> Explanation:
    """X ⊙ the mean gradient on the way from zero features to x (Sundararajan et al., 2017).

    The mean is a Gauss–Legendre sum, as Captum's is by default; edges and their features stay as
    they are. The scores add up to the logit but for that of zero features, which is the `bias`, and
    the error of the sum: see `completeness_gap`.

    Args:
        model: any.
        inputs: the graphs.
        target: class to explain, one for all or one a graph; the predicted one if None.
        row: the target's logit, or its contrast to the mean of the others.
        steps: points on the way.
        absolute: sum |…| over a node's features instead.
    """
    whole_number("steps", steps, 1, 10_000)
    value, chosen = explained_outputs(model, inputs, target, row)
    with torch.no_grad():
        nothing = inputs.logits(model, x=torch.zeros_like(inputs.x))
        bias = explained_value(nothing, chosen, row)
    places, weights = np.polynomial.legendre.leggauss(steps)
    at_once = max(1, _NODES_AT_ONCE // len(inputs.x)) if inputs.node is None else 1
    mean = torch.zeros_like(inputs.x)
    for first in range(0, steps, at_once):
        part = slice(first, first + at_once)
        where = torch.from_numpy((1 + places[part]) / 2).to(inputs.x)
        weight = torch.from_numpy(weights[part] / 2).to(inputs.x)
        x, repeated = _repeated(inputs, where)
        gradient, *_ = _gradient(model, repeated._replace(x=x), chosen.repeat(len(where)), row)
        of_steps = gradient.view(len(where), *inputs.x.shape)
        mean += torch.einsum("s,snp->np", weight, of_steps)
    scores = inputs.x * mean
    scores = scores.abs() if absolute else scores
    return inputs.explained(scores.sum(dim=1), value, chosen, features=scores, bias=bias)


def _repeated(inputs: Inputs, scales: Tensor) -> tuple[Tensor, Inputs]:
    """The batch once for each scale of its features, side by side."""
    count, nodes = len(scales), len(inputs.x)
    x = (scales.view(-1, 1, 1) * inputs.x).flatten(0, 1)
    shift = torch.arange(count, device=inputs.x.device)
    edge_index = inputs.edge_index.unsqueeze(1) + (shift * nodes).view(1, -1, 1)
    batch = inputs.batch.unsqueeze(0) + (shift * inputs.graphs).view(-1, 1)
    attr = inputs.edge_attr
    return x, Inputs(
        x,
        edge_index.flatten(1),
        None if attr is None else attr.repeat(count, 1),
        batch.flatten(),
        inputs.graphs * count,
        inputs.ids.repeat(count),
        inputs.node,
    )


def _gradient(
    model: nn.Module, inputs: Inputs, target: int | Tensor | None, row: Row
) -> tuple[Tensor, Tensor, Tensor]:
    """[n, p] the gradient of the explained values, those values [g], and the classes [g]."""
    with torch.enable_grad():
        x = inputs.x.detach().clone().requires_grad_()
        logits = inputs.logits(model, x=x)
        chosen = chosen_target(logits, target)
        value = explained_value(logits, chosen, row)
        (gradient,) = torch.autograd.grad(value.sum(), x)
    return gradient.detach(), value.detach(), chosen
