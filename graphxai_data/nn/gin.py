"""Graph isomorphism networks with ReLU, and DeepSets: the same without edges.

Paper, section "B-cos graph neural networks": after every update nodes are read out by a sum over
the graph, and the readouts of all layers are added up ("readout, then aggregate").
"""

from itertools import pairwise

import torch
from torch import Tensor, nn


class GIN(nn.Module):
    """GIN: each update is a two-layer MLP of (1 + eps) h plus the sum over neighbours.

    Args:
        in_features: width of node features.
        classes: number of logits.
        hidden: width of node states.
        layers: number of updates.
    """

    def __init__(self, in_features: int, classes: int, hidden: int = 64, layers: int = 3) -> None:
        super().__init__()
        widths = [in_features] + [hidden] * layers
        self.updates = nn.ModuleList(_update(a, b) for a, b in pairwise(widths))
        self.eps = nn.Parameter(torch.zeros(layers))
        self.readouts = nn.ModuleList(nn.Linear(width, classes) for width in widths)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Tensor:
        """Logits [g, c] of graphs, or [1, c] of one graph without `batch`."""
        batch = x.new_zeros(len(x), dtype=torch.long) if batch is None else batch
        graphs = int(batch.max()) + 1 if len(batch) else 1
        h = x
        logits: Tensor = self.readouts[0](_summed(h, batch, graphs))
        for layer, update in enumerate(self.updates):
            messages = self.messages(layer, h, edge_index, edge_attr)
            around = _summed(messages, edge_index[1], len(h))
            h = update((1 + self.eps[layer]) * h + around)
            logits = logits + self.readouts[layer + 1](_summed(h, batch, graphs))
        return logits

    def messages(
        self, layer: int, h: Tensor, edge_index: Tensor, edge_attr: Tensor | None
    ) -> Tensor:
        """[m, …] what each edge carries: the state of its source."""
        return h[edge_index[0]]


class GINE(GIN):
    """GIN with edge features: an edge carries ReLU(state of its source + W edge features).

    Args:
        in_features: width of node features.
        edge_features: width of edge features.
        classes: number of logits.
        hidden: width of node states.
        layers: number of updates.
    """

    def __init__(
        self,
        in_features: int,
        edge_features: int,
        classes: int,
        hidden: int = 64,
        layers: int = 3,
    ) -> None:
        super().__init__(in_features, classes, hidden, layers)
        widths = [in_features] + [hidden] * (layers - 1)
        self.edges = nn.ModuleList(nn.Linear(edge_features, width) for width in widths)

    def messages(
        self, layer: int, h: Tensor, edge_index: Tensor, edge_attr: Tensor | None
    ) -> Tensor:
        """[m, …] what each edge carries: the state of its source, changed by its features."""
        if edge_attr is None:
            raise ValueError("GINE needs edge_attr; use GIN for graphs without edge features")
        messages: Tensor = torch.relu(h[edge_index[0]] + self.edges[layer](edge_attr))
        return messages


class DeepSets(GIN):
    """GIN that sees no edges: what the features alone give. Arguments as for `GIN`."""

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Tensor:
        """Logits [g, c]; edges are ignored."""
        return super().forward(x, x.new_zeros((2, 0), dtype=torch.long), None, batch)


def _update(width: int, hidden: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(width, hidden),
        nn.BatchNorm1d(hidden),
        nn.ReLU(),
        nn.Linear(hidden, hidden),
        nn.BatchNorm1d(hidden),
        nn.ReLU(),
    )


def _summed(rows: Tensor, owner: Tensor, count: int) -> Tensor:
    return rows.new_zeros((count, rows.shape[1])).index_add_(0, owner, rows)
