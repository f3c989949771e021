"""B-cos GIN and GINE: graph isomorphism networks whose logits are sums over their inputs.

Paper, section "B-cos graph neural networks": sums over neighbours and over graphs are linear, so a
network with B-cos layers as updates and readout is dynamically linear as a whole.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn

from graphxai_data.errors import InputError
from graphxai_data.nn.bcos import BcosLinear, DynamicLinear, RMSNorm
from graphxai_data.nn.config import BcosGINConfig, BcosGINEConfig
from graphxai_data.nn.gin import GraphNetwork
from graphxai_data.nn.sums import Edges


class BcosGIN(GraphNetwork):
    """GIN whose updates and readout are B-cos layers: each logit is a sum over the inputs.

    logit = logit_scale · Σ_i Θ(h_i) + logit_bias. Both are constants that training does not change:
    the scale is 1 unless `calibrate` sets it; the bias is no evidence, and explanations state it.

    Arguments are the fields of `graphxai_data.nn.config.BcosGINConfig`.
    """

    Config: ClassVar[type[BcosGINConfig]] = BcosGINConfig
    config: BcosGINConfig
    logit_scale: Tensor

    def __init__(self, *size: int, **options: Any) -> None:
        super().__init__(*size, **options)
        config = self.config
        self.concatenates = config.combine == "cat"
        inputs = 2 if self.concatenates else 1
        self.updates = nn.ModuleList(
            bcos_layers([inputs * a] + [b] * config.update_layers, config)
            for a, b in pairwise(self.widths)
        )
        self.readout = bcos_layers([config.hidden] * config.readout_layers, config)
        self.readout.append(BcosLinear(config.hidden, config.classes, config.b, config.max_out))
        self.eps, self.logit_bias = float(config.eps), float(config.logit_bias)
        self.register_buffer("logit_scale", torch.tensor(1.0))

    def own_weight(self, layer: int) -> float:
        """Return 1 + ε, the same for all layers."""
        return 1 + self.eps

    def pool(self, rows: Tensor, batch: Tensor | None, batch_size: int | None) -> Tensor:
        """Return the logits: evidence pooled as the level says, scaled and with the bias."""
        return self.logit_scale * super().pool(rows, batch, batch_size) + self.logit_bias

    @torch.no_grad()
    def calibrate(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor | None,
        batch: Tensor | None,
        numbers: Tensor | None = None,
    ) -> None:
        """Set the logit scale so that the logits of these graphs have standard deviation 1.

        Gains, if there are any, are set before, so that the outputs of layers have root mean
        square 1. The logits of a new B-cos network are almost 0 (3e-10 for B = 3), and it would not
        learn. Where labels are `numbers` [g], the outputs get their root mean square instead, both
        without the bias: layers have weights of length 1, so that the size of outputs is hard to
        learn.
        """
        with _calibrated_gains(self):
            logits = self(x, edge_index, edge_attr, batch)
        evidence = (logits - self.logit_bias) / self.logit_scale
        scale = 1 / evidence.std()
        if numbers is not None:
            wanted, actual = (
                v.square().mean().sqrt() for v in (numbers - self.logit_bias, evidence)
            )
            scale = wanted / actual
        if not torch.isfinite(scale):
            raise InputError(
                "initial logits are all alike, so there is nothing to learn from: with this depth "
                'and b they are too small for a float; use norm="rms", gains, a smaller b or fewer '
                "layers"
            )
        self.logit_scale.copy_(scale)


class BcosGINE(BcosGIN):
    """B-cos GIN with edge features, which enter linearly and without a bias.

    With additive edges a message is h_j + W e_ji (as in the paper): nodes and edges together add up
    to the logit. With multiplicative edges it is h_j · (1 + W e_ji), which is linear in the node
    features with weights that depend on the edge: nodes alone add up to the logit.

    Arguments are the fields of `graphxai_data.nn.config.BcosGINEConfig`.
    """

    Config: ClassVar[type[BcosGINEConfig]] = BcosGINEConfig
    config: BcosGINEConfig

    def __init__(self, *size: int, **options: Any) -> None:
        super().__init__(*size, **options)
        self.additive = self.config.edges == "additive"
        kind = _Additive if self.additive else _Multiplicative
        self.edges = nn.ModuleList(kind(self.edge_features, width) for width in self.widths[:-1])

    def message(self, layer: int, h_j: Tensor, edge_attr: Tensor | None) -> Tensor:
        """Return [m, …] h_j + W e_ji, or h_j · (1 + W e_ji)."""
        edges = cast(_Additive | _Multiplicative, self.edges[layer])
        return edges.message(h_j, cast(Tensor, edge_attr))

    def aggregate(self, layer: int, h: Tensor, edges: Edges) -> Tensor:
        """Return [n, …] what enters an update: `combine` of own states and sums of messages."""
        if not self.additive:
            return self.sum_messages(layer, h, edges)
        # Σ_j (h_j + W e_ji) = Σ_j h_j + W Σ_j e_ji: edges are summed while narrow.
        features = edges.sum_at_targets(edges.weigh(cast(Tensor, edges.attr)))
        messages: Tensor = self.edges[layer](features)
        if self.concatenates:
            return self.combine(layer, h, edges.sum_with_neighbours(h, 0.0) + messages)
        return super().aggregate(layer, h, edges) + messages


class Gain(nn.Module):
    """Multiply by a constant that training does not change: 1 unless `calibrate` sets it."""

    gain: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("gain", torch.tensor(1.0))

    def forward(self, x: Tensor) -> Tensor:
        """Return [n, width] for an input [n, width]."""
        return self.gain * x


@contextmanager
def _calibrated_gains(model: nn.Module) -> Iterator[None]:
    """Let every gain of a model make the root mean square of what it is given next 1."""

    def calibrate(gain: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        cast(Gain, gain).gain.copy_(inputs[0].square().mean().rsqrt())

    gains = [module for module in model.modules() if isinstance(module, Gain)]
    handles = [gain.register_forward_pre_hook(calibrate) for gain in gains]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


class _Additive(nn.Linear):
    """Messages h_j + W e_ji."""

    def __init__(self, edge_features: int, width: int) -> None:
        super().__init__(edge_features, width, bias=False)

    def message(self, h_j: Tensor, edge_attr: Tensor) -> Tensor:
        messages: Tensor = h_j + self(edge_attr)
        return messages


class _Multiplicative(DynamicLinear):
    """Messages h_j · (1 + W e_ji)."""

    def __init__(self, edge_features: int, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(edge_features, width, bias=False)

    def message(self, h_j: Tensor, edge_attr: Tensor) -> Tensor:
        weights: Tensor = 1 + self.linear(edge_attr)
        return h_j * (weights.detach() if self.hold_weights else weights)


def bcos_layers(widths: Sequence[int], config: BcosGINConfig) -> nn.Sequential:
    """Return B-cos layers from width to width, each with normalisation, if any."""
    layers = nn.Sequential()
    for in_width, out_width in pairwise(widths):
        layers.append(BcosLinear(in_width, out_width, config.b, config.max_out))
        if config.norm == "rms":
            layers.append(RMSNorm(out_width))
        if config.gains:
            layers.append(Gain())
    return layers
