"""Explainers from gradients: saliency, input times gradient, integrated gradients."""

import numpy as np
import torch
from torch import Tensor, nn

from graphxai_data.errors import whole_number
from graphxai_data.explain.base import Inputs
from graphxai_data.explain.explanation import Explanation
from graphxai_data.explain.targets import Row, Target, disclosed_bias, explained

# Nodes per pass of integrated gradients: larger passes do not fit in the caches and are slower
# (`python -m benchmarks.explain`).
_NODES_PER_PASS = 8192


def saliency(
    model: nn.Module, inputs: Inputs, target: Target = None, row: Row = "logit"
) -> Explanation:
    """Return |gradient| for every node feature, and its sum over the features of a node."""
    gradient, value, classes = _gradient(model, inputs, target, row)
    scores = gradient.abs()
    return inputs.explanation(scores.sum(dim=1), value, classes, features=scores)


def input_x_gradient(
    model: nn.Module, inputs: Inputs, target: Target = None, row: Row = "logit"
) -> Explanation:
    """Return feature times gradient, and its sum over the features of a node.

    For a B-cos model this is not the contribution map, as the gradient also goes through the
    dynamic weights; but without edge features its sum is the same.
    """
    gradient, value, classes = _gradient(model, inputs, target, row)
    scores, bias = inputs.x * gradient, disclosed_bias(model, row)
    return inputs.explanation(scores.sum(dim=1), value, classes, features=scores, bias=bias)


def integrated_gradients(
    model: nn.Module,
    inputs: Inputs,
    target: Target = None,
    row: Row = "logit",
    steps: int = 50,
    absolute: bool = False,
) -> Explanation:
    """Return x ⊙ the mean gradient between zero features and x (Sundararajan et al., 2017).

    The mean is a Gauss–Legendre sum, as Captum's is by default; edges and their features do not
    change. The scores and the logit of zero features, the `bias`, add up to the logit, up to the
    error of the sum over `steps` points: see `completeness_gap`. With `absolute`, the magnitudes
    of a node's feature scores are summed instead.
    """
    whole_number("steps", steps, 1, 10_000)
    value, classes = inputs.explained(model, target, row)
    bias, _ = inputs._replace(x=torch.zeros_like(inputs.x)).explained(model, classes, row)
    points, weights = np.polynomial.legendre.leggauss(steps)
    per_pass = max(1, _NODES_PER_PASS // len(inputs.x)) if inputs.node is None else 1
    mean = torch.zeros_like(inputs.x)
    for first in range(0, steps, per_pass):
        part = slice(first, first + per_pass)
        scales = torch.from_numpy((1 + points[part]) / 2).to(inputs.x)
        weight = torch.from_numpy(weights[part] / 2).to(inputs.x)
        gradient, *_ = _gradient(model, _repeated(inputs, scales), classes.repeat(len(scales)), row)
        mean += torch.einsum("s,snp->np", weight, gradient.view(len(scales), *inputs.x.shape))
    scores = inputs.x * mean
    scores = scores.abs() if absolute else scores
    return inputs.explanation(scores.sum(dim=1), value, classes, features=scores, bias=bias)


def _repeated(inputs: Inputs, scales: Tensor) -> Inputs:
    """Return a batch that contains the given one once per scale, with its features scaled."""
    count, attr = len(scales), inputs.edge_attr
    copy = torch.arange(count, device=inputs.x.device).view(-1, 1)
    edge_index = inputs.edge_index.unsqueeze(1) + copy * len(inputs.x)
    return inputs._replace(
        x=(scales.view(-1, 1, 1) * inputs.x).flatten(0, 1),
        edge_index=edge_index.flatten(1),
        edge_attr=None if attr is None else attr.repeat(count, 1),
        batch=(inputs.batch + copy * inputs.graphs).flatten(),
        graphs=inputs.graphs * count,
        ids=inputs.ids.repeat(count),
    )


def _gradient(
    model: nn.Module, inputs: Inputs, target: Target, row: Row
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradient [n, p] of the explained values, these values [g] and the classes [g]."""
    with torch.enable_grad():
        x = inputs.x.detach().clone().requires_grad_()
        value, classes = explained(inputs.logits(model, x=x), target, row)
        (gradient,) = torch.autograd.grad(value.sum(), x)
    return gradient.detach(), value.detach(), classes
