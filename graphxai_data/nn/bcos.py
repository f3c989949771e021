"""The B-cos transform (paper, section "B-cos networks") and a normalisation that keeps it exact.

A B-cos layer is linear with weights that depend on its input, W(x) = diag(|cos(x, ŵ)|^(B−1)) Ŵ.
Inside `explanation_mode` these weights count as constants, so that one backward pass gives the
product of the W(x) of all layers: the exact contribution map (equations 5 to 7).

To train on the map: forward outside `explanation_mode`, first gradient inside, second outside
(`contributions`). This holds for node features, and for edge features that are added to messages.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import Node

from graphxai_data.errors import InputError, finite_number, whole_number
from graphxai_data.nn.sums import full_precision, plain

_SHORTEST = {
    dtype: float(torch.finfo(dtype).tiny ** 0.5)
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16)
}
# The share of the mean over all channels that is added to the mean square of each.
_FLOOR = 1e-3


class DynamicLinear(nn.Module):
    """A layer that is linear with weights that depend on the input."""

    def __init__(self) -> None:
        super().__init__()
        self.hold_weights = False  # whether they count as constants; set by `explanation_mode`

    def set_explanation_mode(self, activate: bool = True) -> None:
        """Hold the weights or not; by this name the `explanation_mode` of B-cos v2 finds it."""
        self.hold_weights = activate


class BcosLinear(DynamicLinear):
    """The B-cos transform |cos(x, ŵ_j)|^(B−1) ŵ_j·x for every output j (equation 4).

    Args:
        in_features: width of the input.
        out_features: width of the output.
        b: alignment pressure B, at least 1; 1 is a linear layer with unit-norm rows.
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
        """Draw new weights; only their directions count."""
        nn.init.kaiming_uniform_(self.weight, a=5**0.5)

    def forward(self, x: Tensor) -> Tensor:
        """Return […, out_features] for an input […, in_features]."""
        # ŵ_j = w_j / ‖w_j‖
        length = torch.linalg.vector_norm(self.weight, dim=1, keepdim=True)
        unit_weight = self.weight / length.clamp_min(_shortest(self.weight))
        # ŵ_j·x = ‖x‖ cos(x, ŵ_j)
        out = nn.functional.linear(x, unit_weight)
        if self.max_out > 1:
            out = out.unflatten(-1, (self.out_features, self.max_out)).max(dim=-1).values
        if self.b == 1:
            return out
        # |cos(x, ŵ_j)|^(B−1) ŵ_j·x
        if plain():
            scale = _differentiable_scale(out, x, self.b)
            return out * (scale.detach() if self.hold_weights else scale)
        scaled: Tensor = _ScaleByCosine.apply(out, x, self)
        return scaled

    def extra_repr(self) -> str:
        """Return what `print` shows."""
        max_out = f", max_out={self.max_out}" if self.max_out > 1 else ""
        return f"{self.in_features}, {self.out_features}, b={self.b:g}{max_out}"


class _ScaleByCosine(torch.autograd.Function):
    """y = |cos|^(B−1) z, with z = ŵ·x and |cos| = |z| / ‖x‖.

    The gradient is ∂y/∂z = B |cos|^(B−1) and, through ‖x‖, ∂y/∂x = (1 − B) y x / ‖x‖². Where
    weights are held, ∂y/∂z = |cos|^(B−1) and ∂y/∂x = 0. Written out, both are finite everywhere,
    which the gradient of |cos|^(B−1) is not at 0 for B < 2 (B-cos v2 adds 1e-6 to the cosine), and
    take half the time.
    """

    @staticmethod
    def forward(ctx: Any, z: Tensor, x: Tensor, layer: BcosLinear) -> Tensor:
        norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True).clamp_min_(_shortest(x))
        scale = z.abs().div_(norm)
        if layer.b != 2:
            scale.pow_(layer.b - 1)
        ctx.layer, ctx.held_forward = layer, layer.hold_weights
        ctx.save_for_backward(z, x, norm, scale)
        return z * scale

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None, None]:
        z, x, norm, scale = ctx.saved_tensors
        b, held_now = ctx.layer.b, ctx.layer.hold_weights
        _check_order(ctx.held_forward, held_now)
        if ctx.held_forward or held_now:
            if torch.is_grad_enabled():  # the map itself will be differentiated
                scale = _differentiable_scale(z, x, b)
            return grad * scale, None, None
        through_z = grad * scale
        through_norm = torch.linalg.vecdot(through_z, z).unsqueeze(-1) * (1 - b) / norm
        return through_z.mul_(b), x * (through_norm / norm), None


def _differentiable_scale(z: Tensor, x: Tensor, b: float) -> Tensor:
    """Return |cos|^(B−1) by operations that autograd can differentiate."""
    norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True).clamp_min(_shortest(x))
    cosine: Tensor = z.abs() / norm
    if b == 2:
        return cosine
    scale: Tensor = cosine ** (b - 1)
    if b < 2:  # the slope at 0 is infinite: cosines below 1e-6 pass the value without gradient
        sloping = cosine.clamp_min(1e-6) ** (b - 1)
        scale = torch.where(cosine < 1e-6, scale.detach(), sloping)
    return scale


def _shortest(x: Tensor) -> float:
    """Return the length below which squares underflow: shorter vectors count as zero."""
    return _SHORTEST[x.dtype]


class RMSNorm(DynamicLinear):
    """Divide each channel by its root mean square over the nodes of the batch, uncentred.

    A mean or a bias would add what no input accounts for. A division is a diagonal matrix, and a
    constant one in evaluation, so a B-cos network stays dynamically linear. The momentum is the
    share of the newest batch in the running mean square.
    """

    mean_square: Tensor

    def __init__(self, width: int, momentum: float = 0.1) -> None:
        super().__init__()
        self.momentum = momentum
        self.register_buffer("mean_square", torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        """Return [n, width] for an input [n, width]."""
        if self.training and x.shape[0]:
            mean_square = torch.linalg.vector_norm(x.detach(), dim=0).square() / x.shape[0]
            self.mean_square.lerp_(mean_square.to(self.mean_square.dtype), self.momentum)
        else:
            mean_square = self.mean_square
        scale = _inverse_root(mean_square)
        if not self.training or self.hold_weights:
            constant: Tensor = x * scale
            return constant
        if plain():
            return x * _inverse_root(torch.linalg.vector_norm(x, dim=0).square() / x.shape[0])
        normed: Tensor = _DivideByRMS.apply(x, scale, self)
        return normed


class _DivideByRMS(torch.autograd.Function):
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
                scale = _inverse_root(x.square().mean(dim=0))
            return grad * scale, None, None
        normed = x * scale
        # The scale of a channel depends on its own mean square and, by the floor, on all others'.
        # Relative to the largest, since the square of a scale may be too large for a float.
        largest = scale.max()
        pull = torch.linalg.vecdot(grad, normed, dim=0) / len(x)
        through_floor = _FLOOR * (pull * (scale / largest).square()).mean() * largest
        through_scale = pull * scale + through_floor * (largest / scale)
        return (grad * scale).addcmul_(normed, through_scale, value=-1), None, None


def _inverse_root(mean_square: Tensor) -> Tensor:
    # Outputs of B-cos layers may all be as small as 1e-5, so the floor is relative to them.
    floor = _FLOOR * mean_square.mean() + torch.finfo(mean_square.dtype).tiny
    scale: Tensor = (mean_square + floor).rsqrt()
    return scale


@contextmanager
def explanation_mode(model: nn.Module) -> Iterator[nn.Module]:
    """Hold the dynamic weights of a model constant, and put it in evaluation mode, for a while.

    The gradient of an output is then its row of W*(X, A), and input times gradient the contribution
    map. On leaving, also by an exception, every module gets its former modes back. Autocast is off
    inside: in half precision the map would add up to the logit with two digits only. A compiled
    model has to run inside, for its backward pass is compiled with its forward pass.
    """
    device = next((parameter.device.type for parameter in model.parameters()), "cpu")
    layers = [module for module in model.modules() if isinstance(module, DynamicLinear)]
    held_before = [layer.hold_weights for layer in layers]
    modes = [(module, module.training) for module in model.modules()]
    try:
        model.train(mode=False)
        for layer in layers:
            layer.hold_weights = True
        with full_precision(device):
            yield model
    finally:
        for layer, held in zip(layers, held_before, strict=True):
            layer.hold_weights = held
        for module, training in modes:
            module.training = training


def contributions(value: Tensor, leaves: Sequence[Tensor], model: nn.Module) -> list[Tensor]:
    """Return each leaf's contributions [rows] to some logits of a B-cos model, differentiable.

    Leaves are node features [n, p], and edge features [m, q] where messages add them. Compute the
    logits, and the gradient of what you make of the contributions, outside `explanation_mode`:
    inside, dynamic weights would be constants to them.
    """
    if any(node.name() == "CompiledFunctionBackward" for node in _nodes(value)):
        raise InputError(
            "contributions: the logits are those of a compiled model, which cannot hold its "
            "weights in the backward pass alone; compute them by the model before torch.compile"
        )
    with explanation_mode(model):
        rows = torch.autograd.grad(value.sum(), leaves, create_graph=True)
    return [(leaf * row).sum(dim=1) for leaf, row in zip(leaves, rows, strict=True)]


def _nodes(value: Tensor) -> set[Node]:
    """Return all steps of the backward pass of a value."""
    steps: set[Node] = set()
    new = set() if value.grad_fn is None else {value.grad_fn}
    while new:
        steps |= new
        new = {node for step in new for node, _ in step.next_functions if node} - steps
    return steps


def _check_order(held_forward: bool, held_now: bool) -> None:
    """Raise an error for second derivatives that would be wrong: all but those of a map."""
    if torch.is_grad_enabled() and (held_forward or not held_now):
        raise RuntimeError(
            "only contribution maps can be differentiated in a B-cos model: compute the logits "
            "outside explanation_mode, their gradient inside, and the gradient of that outside "
            "again, as graphxai_data.nn.bcos.contributions does"
        )
