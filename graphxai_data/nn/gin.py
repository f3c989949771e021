"""The common base of all graph isomorphism networks here, and those with ReLU: GIN, GINE, DeepSets.

Paper, sections "B-cos graph neural networks" and "Model Architectures and Hyperparameters": update
every node from its own state and the sum over its neighbours, L times; then apply the readout Θ to
every node and sum over the graph ("readout, then aggregate").
"""

import inspect
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar, get_type_hints

import torch
from torch import Tensor, nn

from graphxai_data.errors import InputError, nearest
from graphxai_data.nn.config import GINConfig, GINEConfig, NetworkConfig
from graphxai_data.nn.conv import BlindConv, Conv
from graphxai_data.nn.sums import Edges, sum_per_graph


class GraphModel(nn.Module):
    """The base of all models: their arguments, and their signature, are the fields of `Config`."""

    Config: ClassVar[type[NetworkConfig]]
    __signature__: ClassVar[inspect.Signature | None]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "Config" in vars(cls):
            cls.__signature__ = _signature(cls.Config)
        elif "__init__" in vars(cls):  # a user's model with arguments of its own
            cls.__signature__ = None

    def __init__(self, *size: int, **options: Any) -> None:
        super().__init__()
        signature = _signature(self.Config)
        known, name = signature.parameters, type(self).__name__
        for key in options:
            if key not in known:
                raise InputError(f"{name}: unknown option '{key}'; {nearest(key, known)}")
        try:
            signature.bind(*size, **options)
        except TypeError as error:
            raise TypeError(f"{name}: {error}; expected {signature}") from None
        self.config = self.Config(*size, **options)
        self.level = self.config.level

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
        """Return the logits.

        Args:
            x: [n, p] node features.
            edge_index: [2, m] source and target of every edge.
            edge_attr: [m, q] edge features, for models that use them.
            batch: [n] the graph of every node; None for a single graph.
            edge_weight: [m] a factor for every message, such as an attention.
            batch_size: number of graphs; needed only if the last ones may have no nodes, and by
                `torch.compile(…, fullgraph=True)`, which cannot look at the values of `batch`.

        Returns:
            [g, c], or [n, c] for node-level models.
        """
        # `shape`, because `torch.export` takes the `len` of a tensor for a constant.
        edges = Edges(edge_index, x.shape[0], edge_attr, edge_weight)
        return self.logits(x, edges, batch, batch_size)

    def logits(
        self, x: Tensor, edges: Edges, batch: Tensor | None = None, batch_size: int | None = None
    ) -> Tensor:
        """Return the logits, as `forward` does."""
        raise NotImplementedError


def _signature(config: type[NetworkConfig]) -> inspect.Signature:
    """Return the signature of a dataclass, with types that do not state their bounds."""
    signature, hints = inspect.signature(config), get_type_hints(config)
    parameters = signature.parameters.values()
    return signature.replace(parameters=[p.replace(annotation=hints[p.name]) for p in parameters])


class GraphNetwork(GraphModel):
    """A graph isomorphism network: subclasses make `updates` and `readout`.

    `convs` are its layers as PyG's explainers look for them; they have no weights.
    """

    conv_class: ClassVar[type[Conv]] = Conv
    concatenates = False  # whether own state and messages enter an update side by side
    config: GINConfig
    updates: nn.ModuleList
    readout: nn.Module

    def __init__(self, *size: int, **options: Any) -> None:
        super().__init__(*size, **options)
        self.in_features = self.config.in_features
        self.edge_features = self.config.edge_features
        self.widths = [self.in_features] + [self.config.hidden] * self.config.layers
        self.dropout = nn.Dropout(self.config.dropout)
        self.convs = self.new_convs()

    def new_convs(self, *, attended: bool = False) -> nn.ModuleList:
        """Return layers of message passing for one run over the edges."""
        return nn.ModuleList(
            self.conv_class(width, attended=attended) for width in self.widths[:-1]
        )

    def logits(
        self, x: Tensor, edges: Edges, batch: Tensor | None = None, batch_size: int | None = None
    ) -> Tensor:
        """Return the readout of all nodes, pooled."""
        return self.pool(self.readout(self.states(x, edges)), batch, batch_size)

    def states(self, x: Tensor, edges: Edges, convs: nn.ModuleList | None = None) -> Tensor:
        """Return the states [n, hidden] of all nodes after the last update.

        A second run over the edges in the same forward pass needs `convs` of its own.
        """
        self._check_shapes(x, edges)
        h = x
        convs = self.convs if convs is None else convs
        for layer, (conv, update) in enumerate(zip(convs, self.updates, strict=True)):
            if conv.observed:
                h = conv(h, edges, self, layer)
            else:
                h = update(self.aggregate(layer, h, edges))
            h = self.dropout(h)
        return h

    def message(self, layer: int, h_j: Tensor, edge_attr: Tensor | None) -> Tensor:
        """Return [m, …] the messages of edges, for the states [m, …] of their sources: these."""
        return h_j

    def aggregate(self, layer: int, h: Tensor, edges: Edges) -> Tensor:
        """Return [n, …] what enters an update: `combine` of own states and sums of messages.

        Where messages are not the states of sources, it has to be overridden with `message`.
        """
        if self.concatenates:
            return self.combine(layer, h, edges.sum_with_neighbours(h, 0.0))
        return edges.sum_with_neighbours(h, self.own_weight(layer))

    def sum_messages(self, layer: int, h: Tensor, edges: Edges) -> Tensor:
        """Return what `aggregate` returns, from the messages of all edges."""
        messages = self.message(layer, edges.at_sources(h), edges.attr)
        return self.combine(layer, h, edges.sum_at_targets(edges.weigh(messages)))

    def combine(self, layer: int, h: Tensor, messages: Tensor) -> Tensor:
        """Return [n, …] (1 + ε) times own states `h`, plus or next to the sums of messages."""
        own = self.own_weight(layer) * h
        return torch.cat([own, messages], dim=1) if self.concatenates else own + messages

    def own_weight(self, layer: int) -> Tensor | float:
        """Return 1 + ε, the factor of a node's own state."""
        return 1.0

    def pool(self, rows: Tensor, batch: Tensor | None, batch_size: int | None) -> Tensor:
        """Return the rows of nodes: summed per graph, or unchanged in a node-level model."""
        return rows if self.level == "node" else sum_per_graph(rows, batch, batch_size)

    def _check_shapes(self, x: Tensor, edges: Edges) -> None:
        if x.ndim != 2 or x.shape[1] != self.in_features:
            raise InputError(
                f"x: expected [nodes, {self.in_features}], got {list(x.shape)}; "
                "this model was made for other node features"
            )
        count, width = edges.index.shape[1], self.edge_features
        attr, weight = edges.attr, edges.weight
        if weight is not None and weight.shape != (count,):
            raise InputError(
                f"edge_weight: expected [{count}], one per edge, got {list(weight.shape)}"
            )
        if not width and attr is not None and count and attr.shape[0] != count:
            # Captum's explainer passes arguments by position, whatever their names are.
            raise InputError(
                f"edge_attr: expected [{count} edges, …], got {list(attr.shape)}; it is the third "
                "argument, and `batch` the fourth"
            )
        if width and (attr is None or attr.shape != (count, width)):
            got = "none; a model without edge features is GIN"
            if attr is not None:
                got = f"{list(attr.shape)}; this model was made for other edge features"
            raise InputError(f"edge_attr: expected [{count} edges, {width}], got {got}")


class GIN(GraphNetwork):
    """GIN with ReLU, the twin of `BcosGIN`: same depth, width and readout; ε is learned.

    Arguments are the fields of `graphxai_data.nn.config.GINConfig`.
    """

    Config: ClassVar[type[GINConfig]] = GINConfig

    def __init__(self, *size: int, **options: Any) -> None:
        super().__init__(*size, **options)
        config = self.config
        self.eps = nn.Parameter(torch.zeros(config.layers))
        self.updates = nn.ModuleList(
            relu_layers([a] + [b] * config.update_layers, config.norm)
            for a, b in pairwise(self.widths)
        )
        self.readout = relu_layers([config.hidden] * config.readout_layers, config.norm)
        self.readout.append(nn.Linear(config.hidden, config.classes))

    def own_weight(self, layer: int) -> Tensor:
        """Return 1 + ε, learned."""
        return 1 + self.eps[layer]


class GINE(GIN):
    """GIN with edge features: the message of an edge is ReLU(state of its source + W e_ji).

    Arguments are the fields of `graphxai_data.nn.config.GINEConfig`.
    """

    Config: ClassVar[type[GINEConfig]] = GINEConfig

    def __init__(self, *size: int, **options: Any) -> None:
        super().__init__(*size, **options)
        self.edges = nn.ModuleList(nn.Linear(self.edge_features, w) for w in self.widths[:-1])

    def message(self, layer: int, h_j: Tensor, edge_attr: Tensor | None) -> Tensor:
        """Return [m, …] ReLU(h_j + W e_ji)."""
        return torch.relu(h_j + self.edges[layer](edge_attr))

    def aggregate(self, layer: int, h: Tensor, edges: Edges) -> Tensor:
        """Return [n, …] (1 + ε) h_i + Σ_j ReLU(h_j + W e_ji)."""
        return self.sum_messages(layer, h, edges)


class DeepSets(GIN):
    """GIN that sees no edges: what the features alone give. Arguments as for `GIN`."""

    conv_class: ClassVar[type[Conv]] = BlindConv

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | None = None,
        *args: Any,
        edge_weight: Tensor | None = None,
        **options: Any,
    ) -> Tensor:
        """Return the logits, as any model; edges may be left out."""
        if edge_index is None:
            edge_index = torch.empty((2, 0), dtype=torch.long, device=x.device)
        return super().forward(x, edge_index, *args, **options)

    def aggregate(self, layer: int, h: Tensor, edges: Edges) -> Tensor:
        """Return (1 + ε) h, whatever the edges are."""
        return self.own_weight(layer) * h


class BatchNorm(nn.BatchNorm1d):
    """Batch normalisation that uses its running statistics for a single node, which has none."""

    def forward(self, x: Tensor) -> Tensor:
        """Return [n, width] for an input [n, width]."""
        if x.shape[0] > 1:
            return super().forward(x)
        return nn.functional.batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
        )


def relu_layers(widths: Sequence[int], norm: str) -> nn.Sequential:
    """Return linear layers from width to width, each with normalisation, if any, and ReLU."""
    layers = nn.Sequential()
    for in_width, out_width in pairwise(widths):
        layers.append(nn.Linear(in_width, out_width))
        if norm == "batch":
            layers.append(BatchNorm(out_width))
        layers.append(nn.ReLU(inplace=True))
    return layers
