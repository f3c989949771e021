"""B-cos GIN and GINE: graph isomorphism networks whose logits are sums over their inputs.

Paper, section "B-cos graph neural networks": sums over neighbours and over graphs are linear, so
that with B-cos layers as updates and readout the whole network is dynamically linear.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Unpack

import torch
from torch import Tensor, nn

from graphxai_data.errors import InputError, finite_number, whole_number
from graphxai_data.nn.bcos import BcosLinear, DynamicLinear, RMSNorm
from graphxai_data.nn.gin import GINOptions, GraphNetwork, check_depths
from graphxai_data.nn.sums import Edges


class BcosGINOptions(GINOptions, total=False):
    """The keyword arguments of `BcosGIN`, for those that hand them on."""

    b: float
    max_out: int
    eps: float
    logit_bias: float


class BcosGIN(GraphNetwork):
    """GIN whose updates and readout are B-cos layers: each logit is a sum over the inputs.

    logit = logit_scale · Σ_i Θ(h_i) + logit_bias, both constants that training does not change: the
    scale is 1 unless `calibrate` has set it; the bias is no evidence, and disclosed.

    Args:
        in_features: width of node features.
        classes: number of logits.
        hidden: width of node states.
        layers: number of updates.
        b: alignment pressure B.
        max_out: candidates for each unit of a B-cos layer.
        eps: ε, fixed: a node's own state counts 1 + ε times (the paper's is 0). Cosines see degrees
            only as the angle between a state and the sum of its neighbours', so that 1 + ε should
            be of the order of the degrees where degrees are what counts.
        update_layers: B-cos layers in each update.
        readout_layers: B-cos layers of Θ.
        norm: "rms" for `RMSNorm` after every B-cos layer but the last, or "none".
        dropout: share of states dropped after every update, while training.
        logit_bias: fixed and, if negative, a threshold that the evidence for a class has to pass.
        level: "graph" for logits of graphs, "node" for logits of nodes.
        edge_features: width of edge features, for subclasses that use them.
    """

    logit_scale: Tensor

    def __init__(
        self,
        in_features: int,
        classes: int,
        hidden: int = 64,
        layers: int = 3,
        *,
        b: float = 2.0,
        max_out: int = 1,
        eps: float = 0.0,
        update_layers: int = 2,
        readout_layers: int = 3,
        norm: str = "none",
        dropout: float = 0.0,
        logit_bias: float = 0.0,
        level: str = "graph",
        edge_features: int = 0,
    ) -> None:
        super().__init__(in_features, edge_features, hidden, layers, dropout, level)
        check_depths(update_layers, readout_layers)
        self.updates = nn.ModuleList(
            bcos_layers([a] + [w] * update_layers, b, max_out, norm)
            for a, w in pairwise(self.widths)
        )
        self.readout = bcos_layers([hidden] * readout_layers, b, max_out, norm)
        self.readout.append(BcosLinear(hidden, classes, b, max_out))
        self.eps = finite_number("eps", eps, low=0)
        self.logit_bias = finite_number("logit_bias", logit_bias)
        self.register_buffer("logit_scale", torch.tensor(1.0))

    def own_weight(self, layer: int) -> float:
        """1 + ε, the same for all layers."""
        return 1 + self.eps

    def pooled(self, rows: Tensor, batch: Tensor | None, batch_size: int | None) -> Tensor:
        """Evidence summed as the level wants it, scaled, and the bias added."""
        return self.logit_scale * super().pooled(rows, batch, batch_size) + self.logit_bias

    @torch.no_grad()
    def calibrate(
        self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None, batch: Tensor | None
    ) -> None:
        """Set the logit scale so that logits of these graphs have standard deviation 1.

        At initialisation a B-cos network answers with next to nothing (3e-10 for B = 3), and would
        not learn from there.
        """
        evidence = (self(x, edge_index, edge_attr, batch) - self.logit_bias) / self.logit_scale
        scale = 1 / evidence.std()
        if not torch.isfinite(scale):
            raise InputError(
                "initial logits are all alike, so there is nothing to learn from: with this depth "
                'and b they are too small for a float; use norm="rms", a smaller b or fewer layers'
            )
        self.logit_scale.copy_(scale)


class BcosGINE(BcosGIN):
    """B-cos GIN with edge features, on a linear path without bias.

    With additive edges a message is h_j + W e_ji (the paper's): nodes and edges together add up to
    the logit. With multiplicative ones it is h_j · (1 + W e_ji), which is linear in the node
    features with weights that depend on the edge: nodes alone add up to the logit.

    Args:
        in_features: width of node features.
        edge_features: width of edge features.
        classes: number of logits.
        hidden: width of node states.
        layers: number of updates.
        edges: "additive" or "multiplicative".
        options: the keyword arguments of `BcosGIN`.
    """

    def __init__(
        self,
        in_features: int,
        edge_features: int,
        classes: int,
        hidden: int = 64,
        layers: int = 3,
        *,
        edges: str = "additive",
        **options: Unpack[BcosGINOptions],
    ) -> None:
        whole_number("edge_features", edge_features, 1, 2**20)
        super().__init__(
            in_features, classes, hidden, layers, edge_features=edge_features, **options
        )
        if edges not in ("additive", "multiplicative"):
            raise InputError(f"edges: expected 'additive' or 'multiplicative', got {edges!r}")
        self.additive = edges == "additive"
        kind = _Additive if self.additive else _Multiplicative
        self.edges = nn.ModuleList(kind(edge_features, width) for width in self.widths[:-1])

    def gathered(
        self,
        layer: int,
        h: Tensor,
        edges: Edges,
        edge_attr: Tensor | None,
        edge_weight: Tensor | None,
    ) -> Tensor:
        """[n, …] a node's own state, and the sum of messages over the edges into it."""
        gathered: Tensor = self.edges[layer](
            h, self.own_weight(layer), edges, edge_attr, edge_weight
        )
        return gathered


class _Additive(nn.Linear):
    """c h_i + Σ_j (h_j + W e_ji) = c h_i + Σ_j h_j + W Σ_j e_ji: edges are summed while narrow."""

    def __init__(self, edge_features: int, width: int) -> None:
        super().__init__(edge_features, width, bias=False)

    def forward(  # type: ignore[override]
        self,
        h: Tensor,
        own_weight: float,
        edges: Edges,
        edge_attr: Tensor,
        edge_weight: Tensor | None,
    ) -> Tensor:
        if edge_weight is not None:
            edge_attr = edge_attr * edge_weight.unsqueeze(1)
        states = edges.sum_with_neighbours(h, own_weight, edge_weight)
        return states + super().forward(edges.sum_at_targets(edge_attr))


class _Multiplicative(DynamicLinear):
    """c h_i + Σ_j h_j · (1 + W e_ji)."""

    def __init__(self, edge_features: int, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(edge_features, width, bias=False)

    def forward(
        self,
        h: Tensor,
        own_weight: float,
        edges: Edges,
        edge_attr: Tensor,
        edge_weight: Tensor | None,
    ) -> Tensor:
        weights = self.held(1 + self.linear(edge_attr))
        if edge_weight is not None:
            weights = weights * edge_weight.unsqueeze(1)
        return own_weight * h + edges.sum_at_targets(edges.at_sources(h) * weights)


def bcos_layers(widths: Sequence[int], b: float, max_out: int, norm: str) -> nn.Sequential:
    """B-cos layers from width to width, each with normalisation, if any."""
    if norm not in ("rms", "none"):
        raise InputError(f"norm: expected 'rms' or 'none' for a B-cos model, got {norm!r}")
    layers = nn.Sequential()
    for in_width, out_width in pairwise(widths):
        layers.append(BcosLinear(in_width, out_width, b, max_out))
        if norm == "rms":
            layers.append(RMSNorm(out_width))
    return layers
