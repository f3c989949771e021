"""GSAT: a GIN or GINE that learns which edges to attend to, under an information bottleneck.

Paper, tables "GSAT + GIN" and "GSAT + GINE". One network runs over all edges, for the states that
attention is computed from; then one runs with every message multiplied by the attention of its
edge. In the method's reference implementation they are the same network.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from graphxai_data.errors import InputError, finite_number
from graphxai_data.nn.gin import GIN, GINE, GINOptions, relu_layers
from graphxai_data.nn.sums import Edges

# In float32 the uniform draw may be 0, and its logit minus infinity.
_NOISE_EPSILON = 1e-7


class Attended(NamedTuple):
    """What GSAT makes of a batch.

    Attributes:
        logits: [g, c], or [n, c] for node-level models.
        attention: [m] in (0, 1), that of both directions of an edge the same.
        scores: [m] its logits before any noise, of each direction by itself.
    """

    logits: Tensor
    attention: Tensor
    scores: Tensor


class GSAT(nn.Module):
    """Graph stochastic attention, learned at edge level.

    Args:
        in_features: width of node features.
        classes: number of logits.
        hidden: width of node states.
        layers: number of updates of the backbone.
        edge_features: width of edge features; 0 for a GIN backbone, else GINE.
        update_layers: linear layers in each update of the backbone.
        norm: "batch" for batch normalisation before every ReLU, or "none".
        own_encoder: attention has a network of its own. With batch normalisation it needs one: the
            statistics of states with and without attention differ.
        dropout: share of units dropped in the classifier, while training.
        prior: r; attention is drawn towards 1 − r, as the paper's tables have it.
        information: λ, the weight of that pull beside the loss of the prediction.
        temperature: of the noise in attention, at the beginning and at the end of training.
        level: "graph" for logits of graphs, "node" for logits of nodes.
    """

    def __init__(
        self,
        in_features: int,
        classes: int,
        hidden: int = 64,
        layers: int = 4,
        *,
        edge_features: int = 0,
        update_layers: int = 2,
        norm: str = "none",
        own_encoder: bool = False,
        dropout: float = 0.3,
        prior: float = 0.7,
        information: float = 1.0,
        temperature: tuple[float, float] = (1.0, 0.1),
        level: str = "graph",
    ) -> None:
        super().__init__()
        if not isinstance(temperature, Sequence) or len(temperature) != 2:
            raise InputError(f"temperature: expected two numbers, got {temperature!r}")
        first, last = (finite_number("temperature", t, 1e-3, 1e3) for t in temperature)
        options: GINOptions = {"update_layers": update_layers, "norm": norm, "level": level}

        def backbone() -> GIN:
            made = (
                GINE(in_features, edge_features, classes, hidden, layers, **options)
                if edge_features
                else GIN(in_features, classes, hidden, layers, **options)
            )
            # Its own readout is not part of GSAT: a classifier of pooled states is.
            made.readout = nn.Identity()
            return made

        self.level = level
        self.backbone = backbone()
        self.encoder = backbone() if own_encoder else None
        half = max(1, hidden // 2)
        finite_number("dropout", dropout, 0, 0.99)
        self.classifier = nn.Sequential(
            nn.Linear(hidden, half), nn.ReLU(), nn.Dropout(dropout), nn.Linear(half, classes)
        )
        self.attention = relu_layers([2 * hidden + edge_features, hidden, hidden], "none")
        self.attention.append(nn.Linear(hidden, 1))
        self.prior = finite_number("prior", prior, 0, 1)
        self.information = finite_number("information", information, 0)
        self.temperatures = first, last
        self.temperature = first

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        edge_weight: Tensor | None = None,
        batch_size: int | None = None,
    ) -> Tensor:
        """Logits [g, c], or [n, c] for node-level models; arguments as for `GIN`."""
        return self.attend(
            x, edge_index, edge_attr, batch, edge_weight=edge_weight, batch_size=batch_size
        ).logits

    def attend(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        edge_weight: Tensor | None = None,
        batch_size: int | None = None,
    ) -> Attended:
        """Logits, and the attention behind them; arguments as for `forward`."""
        edges = Edges(edge_index, len(x))
        scores = self._scores(x, edges, edge_attr)
        attention = both_ways(torch.sigmoid(self._sampled(scores)), edge_index, len(x))
        weight = attention if edge_weight is None else attention * edge_weight
        h = self.backbone.states(x, edges, edge_attr, weight)
        pooled = self.backbone.pooled(h, batch, batch_size)
        return Attended(self.classifier(pooled), attention, scores)

    def information_loss(self, scores: Tensor) -> Tensor:
        """λ · BCE(σ(scores), 1 − r), of every direction by itself; 0 where there are no edges.

        It is about the probability of an edge, as the method derives it, not about the sample that
        noise makes of it: at the lowest temperature samples are all but 0 or 1, whose cross-entropy
        is so large that nothing else is learned (Di-Halo-Benzene stays at chance).
        """
        if not len(scores):
            return scores.sum()
        wanted = torch.full_like(scores, 1 - self.prior)
        loss = nn.functional.binary_cross_entropy_with_logits(scores, wanted)
        return self.information * loss

    def anneal(self, progress: float) -> None:
        """Set the temperature for a share of training that is done, falling linearly."""
        first, last = self.temperatures
        self.temperature = first + (last - first) * min(max(progress, 0.0), 1.0)

    def _scores(self, x: Tensor, edges: Edges, edge_attr: Tensor | None) -> Tensor:
        """[m] the logit of the attention of every edge."""
        h = (self.encoder or self.backbone).states(x, edges, edge_attr)
        ends = [edges.at_sources(h), edges.at_targets(h)]
        if self.backbone.edge_features and edge_attr is not None:
            ends.append(edge_attr)
        scores: Tensor = self.attention(torch.cat(ends, dim=1)).squeeze(1)
        return scores

    def _sampled(self, scores: Tensor) -> Tensor:
        """Scores with logistic noise, sharpened by the temperature, while training."""
        if not self.training:
            return scores
        noise = torch.logit(torch.rand_like(scores), eps=_NOISE_EPSILON)
        return (scores + noise) / self.temperature


def both_ways(values: Tensor, edge_index: Tensor, nodes: int) -> Tensor:
    """[m] the mean of an edge's value and that of the edge back, where there is one."""
    key = edge_index[0] * nodes + edge_index[1]
    back = edge_index[1] * nodes + edge_index[0]
    order = torch.argsort(key, stable=True)
    place = torch.searchsorted(key[order], back).clamp_max(max(len(key) - 1, 0))
    partner = order[place]
    there = key[partner] == back
    return torch.where(there, (values + values.index_select(0, partner)) / 2, values)
