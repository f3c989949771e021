"""GSAT: a GIN or GINE that learns which edges to attend to, under an information bottleneck.

Paper, tables "GSAT + GIN" and "GSAT + GINE". A network runs over all edges and gives the states
that attention is computed from; a second one multiplies every message by the attention of its edge.
In the method's reference implementation they are the same network.
"""

from typing import Any, ClassVar, NamedTuple, cast

import torch
from torch import Tensor, nn

from graphxai_data.nn.config import GSATConfig
from graphxai_data.nn.conv import Conv
from graphxai_data.nn.gin import GIN, GINE, GraphModel, relu_layers
from graphxai_data.nn.sums import Edges

# In float32 the uniform draw may be 0, and its logit minus infinity.
_NOISE_EPSILON = 1e-7


class Attended(NamedTuple):
    """The result of GSAT for a batch.

    Attributes:
        logits: [g, c], or [n, c] for node-level models.
        attention: [m] in (0, 1), the same for both directions of an edge.
        scores: [m] the logits of the attention before any noise, for each direction separately.
    """

    logits: Tensor
    attention: Tensor
    scores: Tensor


class GSAT(GraphModel):
    """Graph stochastic attention, learned at edge level.

    Arguments are the fields of `graphxai_data.nn.config.GSATConfig`.
    """

    Config: ClassVar[type[GSATConfig]] = GSATConfig
    config: GSATConfig

    def __init__(self, *size: int, **options: Any) -> None:
        super().__init__(*size, **options)
        config = self.config
        hidden, half = config.hidden, max(1, config.hidden // 2)
        self.backbone = _backbone(config)
        self.backbone.convs = self.backbone.new_convs(attended=True)
        self.encoder = _backbone(config) if config.own_encoder else None
        # The backbone runs twice if it is the encoder as well. PyG counts layers to know how far a
        # node sees, and GraphMask stores the messages of each.
        self.convs = None if config.own_encoder else self.backbone.new_convs()
        self.classifier = nn.Sequential(
            nn.Linear(hidden, half),
            nn.ReLU(),
            nn.Dropout(config.dropout),
            nn.Linear(half, config.classes),
        )
        self.attention = relu_layers([2 * hidden + config.edge_features, hidden, hidden], "none")
        self.attention.append(nn.Linear(hidden, 1))
        self.temperature = config.temperature[0]

    def logits(
        self, x: Tensor, edges: Edges, batch: Tensor | None = None, batch_size: int | None = None
    ) -> Tensor:
        """Return the logits of `attend`."""
        return self.attend(x, edges, batch, batch_size).logits

    def attend(
        self, x: Tensor, edges: Edges, batch: Tensor | None = None, batch_size: int | None = None
    ) -> Attended:
        """Return logits and the attention behind them; arguments as for `forward`."""
        scores = self._scores(x, edges.with_weight(None))
        noisy = scores
        if self.training:
            noise = torch.logit(torch.rand_like(scores), eps=_NOISE_EPSILON)
            noisy = (scores + noise) / self.temperature
        first = cast(Conv, self.backbone.convs[0])
        mask = first.edge_mask(edges.index.shape[1]) if first.observed else None
        attention = both_ways(torch.sigmoid(noisy), edges.index, x.shape[0], mask)
        weight = attention if edges.weight is None else attention * edges.weight
        h = self.backbone.states(x, edges.with_weight(weight))
        pooled = self.backbone.pool(h, batch, batch_size)
        return Attended(self.classifier(pooled), attention, scores)

    def information_loss(self, scores: Tensor) -> Tensor:
        """Return λ · BCE(σ(scores), 1 − r), over single directions; 0 where there are no edges.

        The loss is on the probability of an edge, as the method derives it, not on the noisy
        sample: at the lowest temperature samples are almost 0 or 1, and their cross-entropy is so
        large that nothing else is learned (Di-Halo-Benzene stays at chance).
        """
        if not len(scores):
            return scores.sum()
        target = torch.full_like(scores, 1 - self.config.prior)
        loss = nn.functional.binary_cross_entropy_with_logits(scores, target)
        return self.config.information * loss

    def anneal(self, progress: float) -> None:
        """Set the temperature, which falls linearly, for the share of training that is done."""
        first, last = self.config.temperature
        self.temperature = first + (last - first) * min(max(progress, 0.0), 1.0)

    def _scores(self, x: Tensor, edges: Edges) -> Tensor:
        """Return [m] the logit of the attention of every edge."""
        h = (self.encoder or self.backbone).states(x, edges, self.convs)
        parts = [edges.at_sources(h), edges.at_targets(h)]
        if self.backbone.edge_features and edges.attr is not None:
            parts.append(edges.attr)
        scores: Tensor = self.attention(torch.cat(parts, dim=1)).squeeze(1)
        return scores


def _backbone(config: GSATConfig) -> GIN:
    """Return a GIN or GINE for node states, without dropout."""
    keys = ("in_features", "classes", "hidden", "layers", "update_layers", "norm", "level")
    options, width = {key: getattr(config, key) for key in keys}, config.edge_features
    backbone = GINE(edge_features=width, **options) if width else GIN(**options)
    # GSAT classifies pooled states, so the readout of the backbone is not used.
    backbone.readout = nn.Identity()
    return backbone


def both_ways(values: Tensor, edge_index: Tensor, nodes: int, mask: Tensor | None = None) -> Tensor:
    """Return [m] the mean of an edge's value and that of the reverse edge, where there is one.

    The share of a reverse edge is half its mask [m]: one with mask 0 counts as absent.
    """
    key = edge_index[0] * nodes + edge_index[1]
    reverse_key = edge_index[1] * nodes + edge_index[0]
    order = torch.argsort(key, stable=True)
    position = torch.searchsorted(key[order], reverse_key).clamp_max(max(key.shape[0] - 1, 0))
    partner = order[position]
    has_reverse = key[partner] == reverse_key
    of_partner = values.index_select(0, partner)
    if mask is None:
        return torch.where(has_reverse, (values + of_partner) / 2, values)
    share = has_reverse * mask.index_select(0, partner) / 2
    return values + share * (of_partner - values)
