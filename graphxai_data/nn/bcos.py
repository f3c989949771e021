"""The B-cos transform (paper, section "B-cos networks") and what keeps a network of them exact.

A B-cos layer is linear with weights that depend on its input, W(x) = diag(|cos(x, ŵ)|^(B−1)) Ŵ.
Inside `explanation_mode` those weights count as constants, so that one backward pass gives the
product of the W(x) of all layers: the exact contribution map (equations 5 to 7). By node features,
and by edge features that are added, that holds for a backward pass alone, too: a training step asks
for the map of logits that it computed outside, and outside again for the gradient of that map, in
which the weights W(x) count in full (`contributions`).
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from graphxai_data.errors import finite_number, whole_number

# The share of the mean over all channels that is added to the mean square of each.
_FLOOR = 1e-3


class DynamicLinear(nn.Module):
    """A layer that is linear with input-dependent weights; those can be held constant."""

    def __init__(self) -> None:
        super().__init__()
        self.hold_weights = False

    def held(self, weights: Tensor) -> Tensor:
        """Dynamic weights as they are, or as constants inside `explanation_mode`."""
        return weights.detach() if self.hold_weights else weights


class BcosLinear(DynamicLinear):
    """|cos(x, ŵ_j)|^(B−1) ŵ_j·x for every output j, with unit-norm rows ŵ_j (equation 4).

    Args:
        in_features: width of the input.
        out_features: width of the output.
        b: alignment pressure, at least 1; 1 is a linear layer with unit-norm rows.
        max_out: each output is the largest of so many candidates.
    """

    def __init__(
        self, in_features: int, out_features: int, b: float = 2.0, max_out: int = 1
    ) -> None:
        super().__init__()
        self.in_features = whole_number("in_features", in_features, 1, 2**20)
        self.out_features = whole_number("out_features", out_features, 1, 2**20)
        self.b = finite_number("b", b, low=1)
        self.max_out = whole_number("max_out", max_out, 1, 1024)
        self.weight = nn.Parameter(torch.empty(out_features * max_out, in_features))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """New random weights; only their directions count."""
        nn.init.kaiming_uniform_(self.weight, a=5**0.5)

    def forward(self, x: Tensor) -> Tensor:
        """[…, out_features] of an input […, in_features]."""
        out = nn.functional.linear(x, _unit_rows(self.weight))
        if self.max_out > 1:
            out = out.unflatten(-1, (self.out_features, self.max_out)).max(dim=-1).values
        if self.b == 1:
            return out
        aligned: Tensor = _Aligned.apply(out, x, self)
        return aligned

    def extra_repr(self) -> str:
        """What `print` shows."""
        max_out = f", max_out={self.max_out}" if self.max_out > 1 else ""
        return f"{self.in_features}, {self.out_features}, b={self.b:g}{max_out}"


class RMSNorm(DynamicLinear):
    """Each channel divided by its root mean square over the nodes of the batch, uncentred.

    A mean or a bias would add what no input accounts for; a division is a diagonal matrix, and in
    evaluation a constant one, so that a B-cos network stays dynamically linear.

    Args:
        width: number of channels.
        momentum: share of the newest batch in the running mean square.
    """

    mean_square: Tensor

    def __init__(self, width: int, momentum: float = 0.1) -> None:
        super().__init__()
        self.momentum = momentum
        self.register_buffer("mean_square", torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        """[n, width] of an input [n, width]."""
        if self.training and len(x):
            mean_square = torch.linalg.vector_norm(x.detach(), dim=0).square() / len(x)
            self.mean_square.lerp_(mean_square.to(self.mean_square.dtype), self.momentum)
        else:
            mean_square = self.mean_square
        scale = _scale(mean_square)
        if not self.training or self.hold_weights:
            constant: Tensor = x * scale
            return constant
        normed: Tensor = _Normed.apply(x, scale, self)
        return normed


class _Aligned(torch.autograd.Function):
    """out · (|out| / ‖x‖)^(B−1), its gradient written out.

    It is finite everywhere, though that of |cos|^(B−1) by itself is not at 0 for B < 2; the public
    B-cos v2 layer adds 1e-6 to the cosine there. And it takes half the time.
    """

    @staticmethod
    def forward(ctx: Any, out: Tensor, x: Tensor, layer: BcosLinear) -> Tensor:
        norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True).clamp_min_(_shortest(x))
        weight = out.abs().div_(norm)
        if layer.b != 2:
            weight.pow_(layer.b - 1)
        ctx.layer, ctx.held_forward = layer, layer.hold_weights
        ctx.save_for_backward(out, x, norm, weight)
        return out * weight

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None, None]:
        out, x, norm, weight = ctx.saved_tensors
        b, held_now = ctx.layer.b, ctx.layer.hold_weights
        _check_order(ctx.held_forward, held_now)
        if ctx.held_forward or held_now:
            if torch.is_grad_enabled():  # the map itself is to be differentiated
                weight = _alignment(out, x, b)
            return grad * weight, None, None
        through_out = grad * weight
        through_norm = torch.linalg.vecdot(through_out, out).unsqueeze(-1) * (1 - b) / norm
        return through_out.mul_(b), x * (through_norm / norm), None


class _Normed(torch.autograd.Function):
    """x · scale, where scale is the inverse root mean square of each column of x."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: Tensor, layer: RMSNorm) -> Tensor:
        ctx.layer = layer
        ctx.save_for_backward(x, scale)
        return x * scale

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        x, scale = ctx.saved_tensors
        _check_order(held_forward=False, held_now=ctx.layer.hold_weights)
        if ctx.layer.hold_weights:
            if torch.is_grad_enabled():
                scale = _scale(x.square().mean(dim=0))
            return grad * scale, None, None
        normed = x * scale
        # The scale of a channel depends on its own mean square and, by the floor, on all others'.
        # Relative to the largest, since the square of a scale may be too large for a float.
        largest = scale.max()
        pull = torch.linalg.vecdot(grad, normed, dim=0) / len(x)
        of_floor = _FLOOR * (pull * (scale / largest).square()).mean() * largest
        through_scale = pull * scale + of_floor * (largest / scale)
        return (grad * scale).addcmul_(normed, through_scale, value=-1), None, None


@contextmanager
def explanation_mode(model: nn.Module) -> Iterator[nn.Module]:
    """Hold the dynamic weights of a model constant; whatever happens, they are let go again.

    The gradient of an output is then its row of W*(X, A), and input times gradient the contribution
    map. Models are explained in evaluation mode, which is entered and left here, too.
    """
    layers = [module for module in model.modules() if isinstance(module, DynamicLinear)]
    before = [layer.hold_weights for layer in layers]
    modes = [(module, module.training) for module in model.modules()]
    try:
        model.train(mode=False)
        for layer in layers:
            layer.hold_weights = True
        yield model
    finally:
        for layer, held in zip(layers, before, strict=True):
            layer.hold_weights = held
        for module, training in modes:
            module.training = training


def contributions(value: Tensor, leaves: Sequence[Tensor], model: nn.Module) -> list[Tensor]:
    """Each leaf's contributions to values of a B-cos model, [rows] each, to be differentiated.

    Both the values and the gradient of what is made of the contributions belong outside of
    `explanation_mode`: inside, dynamic weights would be constants to them.

    Args:
        value: some of the logits that the model gave for the leaves.
        leaves: node features [n, p], and edge features [m, q] where messages add them.
        model: of B-cos layers, in training mode or not.
    """
    with explanation_mode(model):
        rows = torch.autograd.grad(value.sum(), leaves, create_graph=True)
    return [(leaf * row).sum(dim=1) for leaf, row in zip(leaves, rows, strict=True)]


def _alignment(out: Tensor, x: Tensor, b: float) -> Tensor:
    """|cos|^(B−1) as a function that can be differentiated."""
    norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True).clamp_min(_shortest(x))
    cosine: Tensor = out.abs() / norm
    if b == 2:
        return cosine
    aligned: Tensor = cosine ** (b - 1)
    if b < 2:  # the slope at 0 is infinite: next to it, values without one
        sloping = cosine.clamp_min(1e-6) ** (b - 1)
        aligned = torch.where(cosine < 1e-6, aligned.detach(), sloping)
    return aligned


def _scale(mean_square: Tensor) -> Tensor:
    # Outputs of B-cos layers may all be as small as 1e-5: what counts as nothing is relative.
    floor = _FLOOR * mean_square.mean() + torch.finfo(mean_square.dtype).tiny
    scale: Tensor = (mean_square + floor).rsqrt()
    return scale


def _check_order(held_forward: bool, held_now: bool) -> None:
    """Refuse second derivatives that would be wrong: they are those of a contribution map alone."""
    if torch.is_grad_enabled() and (held_forward or not held_now):
        raise RuntimeError(
            "of a B-cos model only contribution maps can be differentiated: compute the logits "
            "outside of explanation_mode, their gradient inside, and its own outside again, as "
            "graphxai_data.nn.bcos.contributions does"
        )


def _unit_rows(weight: Tensor) -> Tensor:
    norm = torch.linalg.vector_norm(weight, dim=1, keepdim=True)
    unit: Tensor = weight / norm.clamp_min(_shortest(weight))
    return unit


def _shortest(x: Tensor) -> float:
    """The length below which squares underflow, so that there is no telling it from zero."""
    return float(torch.finfo(x.dtype).tiny ** 0.5)
