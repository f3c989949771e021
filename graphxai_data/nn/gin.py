"""The skeleton of all graph isomorphism networks here, and those with ReLU: GIN, GINE, DeepSets.

Paper, sections "B-cos graph neural networks" and "Model Architectures and Hyperparameters": an
update of every node from itself and the sum over its neighbours, L times; then the readout Θ of
every node, and the sum of those over the graph ("readout, then aggregate").
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import TypedDict, Unpack

import torch
from torch import Tensor, nn

from graphxai_data.errors import InputError, finite_number, whole_number
from graphxai_data.nn.sums import Edges, sum_per_graph


class GraphNetwork(nn.Module):
    """The skeleton; subclasses make `updates` and `readout`, and say what edges carry.

    Args:
        in_features: width of node features.
        edge_features: width of edge features, 0 for a model that does not use them.
        hidden: width of node states.
        layers: number of updates.
        dropout: share of states dropped after every update, while training.
        level: "graph" for logits of graphs, "node" for logits of nodes.
    """

    updates: nn.ModuleList
    readout: nn.Module

    def __init__(
        self,
        in_features: int,
        edge_features: int,
        hidden: int,
        layers: int,
        dropout: float = 0.0,
        level: str = "graph",
    ) -> None:
        super().__init__()
        self.in_features = whole_number("in_features", in_features, 1, 2**20)
        self.edge_features = whole_number("edge_features", edge_features, 0, 2**20)
        whole_number("hidden", hidden, 1, 2**16)
        whole_number("layers", layers, 1, 100)
        finite_number("dropout", dropout, 0, 0.99)
        if level not in ("graph", "node"):
            raise InputError(f"level: expected 'graph' or 'node', got {level!r}")
        self.level = level
        self.widths = [in_features] + [hidden] * layers
        self.dropout = nn.Dropout(dropout)

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
        """Logits.

        Args:
            x: [n, p] node features.
            edge_index: [2, m] source and target of every edge.
            edge_attr: [m, q] edge features, for models that use them.
            batch: [n] the graph of every node; None for a single graph.
            edge_weight: [m] what every message is multiplied by, such as an attention.
            batch_size: number of graphs; needed only if the last ones may have no nodes.

        Returns:
            [g, c], or [n, c] for node-level models.
        """
        h = self.states(x, Edges(edge_index, len(x)), edge_attr, edge_weight)
        return self.pooled(self.readout(h), batch, batch_size)

    def states(
        self,
        x: Tensor,
        edges: Edges,
        edge_attr: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        """[n, hidden] the states of nodes after the last update."""
        self._check_shapes(x, edges, edge_attr, edge_weight)
        h = x
        for layer, update in enumerate(self.updates):
            h = self.dropout(update(self.gathered(layer, h, edges, edge_attr, edge_weight)))
        return h

    def gathered(
        self,
        layer: int,
        h: Tensor,
        edges: Edges,
        edge_attr: Tensor | None,
        edge_weight: Tensor | None,
    ) -> Tensor:
        """[n, …] a node's own state, weighted, and the sum of what the edges into it carry.

        Here an edge carries the state of its source.
        """
        return edges.sum_with_neighbours(h, self.own_weight(layer), edge_weight)

    def own_weight(self, layer: int) -> Tensor | float:
        """What a node's own state is multiplied by, 1 + ε."""
        return 1.0

    def pooled(self, rows: Tensor, batch: Tensor | None, batch_size: int | None) -> Tensor:
        """Rows of nodes as they are, or summed over each graph, as the level wants it."""
        return rows if self.level == "node" else sum_per_graph(rows, batch, batch_size)

    def _check_shapes(
        self, x: Tensor, edges: Edges, edge_attr: Tensor | None, edge_weight: Tensor | None
    ) -> None:
        if x.ndim != 2 or x.shape[1] != self.in_features:
            raise InputError(
                f"x: expected [nodes, {self.in_features}], got {list(x.shape)}; "
                "this model was made for other node features"
            )
        if edge_weight is not None and edge_weight.shape != (len(edges),):
            raise InputError(
                f"edge_weight: expected [{len(edges)}], one an edge, got {list(edge_weight.shape)}"
            )
        if not self.edge_features:
            return
        wanted = f"expected [{len(edges)} edges, {self.edge_features}]"
        if edge_attr is None:
            raise InputError(f"edge_attr: {wanted}, got none; a model without edge features is GIN")
        if edge_attr.shape != (len(edges), self.edge_features):
            raise InputError(
                f"edge_attr: {wanted}, got {list(edge_attr.shape)}; "
                "this model was made for other edge features"
            )


class GINOptions(TypedDict, total=False):
    """The keyword arguments of `GIN`, for those that hand them on."""

    update_layers: int
    readout_layers: int
    norm: str
    dropout: float
    level: str


class GIN(GraphNetwork):
    """GIN with ReLU, the twin of `BcosGIN`: same depth, width and readout, ε is learned.

    Args:
        in_features: width of node features.
        classes: number of logits.
        hidden: width of node states.
        layers: number of updates.
        update_layers: linear layers in each update, every one followed by ReLU.
        readout_layers: linear layers of Θ.
        norm: "batch" for batch normalisation before every ReLU, or "none".
        dropout: share of states dropped after every update, while training.
        level: "graph" for logits of graphs, "node" for logits of nodes.
        edge_features: width of edge features, for subclasses that use them.
    """

    def __init__(
        self,
        in_features: int,
        classes: int,
        hidden: int = 64,
        layers: int = 3,
        *,
        update_layers: int = 2,
        readout_layers: int = 3,
        norm: str = "none",
        dropout: float = 0.0,
        level: str = "graph",
        edge_features: int = 0,
    ) -> None:
        super().__init__(in_features, edge_features, hidden, layers, dropout, level)
        check_depths(update_layers, readout_layers)
        self.eps = nn.Parameter(torch.zeros(layers))
        self.updates = nn.ModuleList(
            relu_layers([a] + [b] * update_layers, norm) for a, b in pairwise(self.widths)
        )
        self.readout = relu_layers([hidden] * readout_layers, norm)
        self.readout.append(nn.Linear(hidden, classes))

    def own_weight(self, layer: int) -> Tensor:
        """1 + ε, learned."""
        return 1 + self.eps[layer]


class GINE(GIN):
    """GIN with edge features: an edge carries ReLU(state of its source + W edge features).

    Args:
        in_features: width of node features.
        edge_features: width of edge features.
        classes: number of logits.
        hidden: width of node states.
        layers: number of updates.
        options: the keyword arguments of `GIN`.
    """

    def __init__(
        self,
        in_features: int,
        edge_features: int,
        classes: int,
        hidden: int = 64,
        layers: int = 3,
        **options: Unpack[GINOptions],
    ) -> None:
        whole_number("edge_features", edge_features, 1, 2**20)
        super().__init__(
            in_features, classes, hidden, layers, edge_features=edge_features, **options
        )
        self.edges = nn.ModuleList(nn.Linear(edge_features, w) for w in self.widths[:-1])

    def gathered(
        self,
        layer: int,
        h: Tensor,
        edges: Edges,
        edge_attr: Tensor | None,
        edge_weight: Tensor | None,
    ) -> Tensor:
        """[n, …] (1 + ε) h, and the sum over the edges into each node of ReLU(h_j + W e_ji)."""
        messages = torch.relu(edges.at_sources(h) + self.edges[layer](edge_attr))
        if edge_weight is not None:
            messages = messages * edge_weight.unsqueeze(1)
        return self.own_weight(layer) * h + edges.sum_at_targets(messages)


class DeepSets(GIN):
    """GIN that sees no edges: what the features alone give. Arguments as for `GIN`."""

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        edge_weight: Tensor | None = None,
        batch_size: int | None = None,
    ) -> Tensor:
        """Logits as of any `GraphNetwork`; edges may be left out."""
        if edge_index is None:
            edge_index = torch.empty((2, 0), dtype=torch.long, device=x.device)
        return super().forward(x, edge_index, None, batch, batch_size=batch_size)

    def gathered(
        self,
        layer: int,
        h: Tensor,
        edges: Edges,
        edge_attr: Tensor | None,
        edge_weight: Tensor | None,
    ) -> Tensor:
        """(1 + ε) h, whatever the edges are."""
        return self.own_weight(layer) * h


class BatchNorm(nn.BatchNorm1d):
    """Batch normalisation that takes its running statistics where one node alone has none."""

    def forward(self, x: Tensor) -> Tensor:
        """[n, width] of an input [n, width]."""
        if len(x) > 1:
            return super().forward(x)
        return nn.functional.batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
        )


def check_depths(update_layers: int, readout_layers: int) -> None:
    """An `InputError` unless both are possible numbers of layers."""
    whole_number("update_layers", update_layers, 1, 20)
    whole_number("readout_layers", readout_layers, 1, 20)


def relu_layers(widths: Sequence[int], norm: str) -> nn.Sequential:
    """Linear layers from width to width, each with normalisation, if any, and ReLU."""
    if norm not in ("batch", "none"):
        raise InputError(f"norm: expected 'batch' or 'none' for a ReLU model, got {norm!r}")
    layers = nn.Sequential()
    for a, b in pairwise(widths):
        layers.append(nn.Linear(a, b))
        if norm == "batch":
            layers.append(BatchNorm(b))
        layers.append(nn.ReLU(inplace=True))
    return layers
