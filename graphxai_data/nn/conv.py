"""Message passing as explainers of PyG and DIG see it: edge masks reach the messages.

These explainers look for `MessagePassing` modules, set an edge mask on each, and read their outputs
as node states. A `Conv` is such a module for one layer of a network. It has no weights, so that
those of a network keep their names. A network calls it if there is a mask or a hook: PyG's own
`propagate` then makes every message and multiplies it. If not, the network's fast sum makes none.
"""

from typing import Any, Protocol

from torch import Tensor, nn
from torch_geometric.nn import MessagePassing

from graphxai_data.errors import InputError
from graphxai_data.nn.sums import Edges

# DIG, and PyG before 2.1, set a flag and a mask by the names with two underscores on either side.
_MASKS = ("_edge_mask", "__edge_mask__")
_FLAGS = ("_explain", "__explain__")


class Network(Protocol):
    """What a layer needs of its network."""

    updates: nn.ModuleList

    def message(self, layer: int, h_j: Tensor, edge_attr: Tensor | None) -> Tensor:
        """Return [m, …] the messages of edges, for the states [m, …] of their sources."""

    def aggregate(self, layer: int, h: Tensor, edges: Edges) -> Tensor:
        """Return [n, …] what enters an update: own states and sums of messages, combined."""

    def combine(self, layer: int, h: Tensor, messages: Tensor) -> Tensor:
        """Return [n, …] own states and sums of messages, added or side by side."""


class Conv(MessagePassing):
    """One layer of a network: update((1 + ε) h_i + Σ_j mask_ji · weight_ji · message_ji).

    A mask of 0 is the same as no edge, and a node's own state is no edge.

    Args:
        width: width of the states that enter the layer, and of its messages.
        attended: whether edge weights are an attention, for PyG's `AttentionExplainer`.
    """

    def __init__(self, width: int, *, attended: bool = False) -> None:
        super().__init__(aggr=None)
        self.__explain__, self.__edge_mask__ = False, None
        # GraphMask sizes its gates by these: what it calls the output is the message. With other
        # widths it would guess again and train nothing.
        self.in_channels = self.out_channels = width
        self.attended = attended
        self._alpha: Tensor | None = None
        # PyG looks this up in its setter of `explain`, which DIG does not use.
        self.inspector.inspect_signature(self.explain_message, exclude=[0])

    def forward(self, h: Tensor, edges: Edges, network: Network, layer: int) -> Tensor:
        """Return the states [n, hidden] after a layer of the network, for the states before it."""
        if self.makes_messages:
            total = network.combine(layer, h, self._sum(h, edges, network, layer))
        else:
            total = network.aggregate(layer, h, edges)
        states: Tensor = network.updates[layer](total)
        return states

    def _sum(self, h: Tensor, edges: Edges, network: Network, layer: int) -> Tensor:
        """Return [n, width] the sum of the messages into each node, made one by one."""
        _check_has_messages(network)
        self._alpha = edges.weight if self.attended else None
        try:
            summed: Tensor = self.propagate(
                edges.index,
                size=(edges.nodes, edges.nodes),
                x=h,
                edge_attr=edges.attr,
                edges=edges,
                network=network,
                layer=layer,
            )
        finally:
            self._alpha = None
        return summed

    @property
    def observed(self) -> bool:
        """Return whether an explainer wants to change or see messages or states."""
        return bool(
            self._forward_hooks
            or self._forward_pre_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or self.makes_messages
        )

    @property
    def makes_messages(self) -> bool:
        """Return whether an explainer wants to change or see messages."""
        return bool(
            self._explain
            or self._propagate_forward_pre_hooks
            or self._propagate_forward_hooks
            or self._message_forward_pre_hooks
            or self._message_forward_hooks
            or self._aggregate_forward_pre_hooks
            or self._aggregate_forward_hooks
        )

    def edge_mask(self, count: int) -> Tensor | None:
        """Return [m] the factors of the messages of m edges; None if no explainer has set any."""
        if not self._explain:
            return None
        mask: Tensor | None = self._edge_mask
        squash = self._apply_sigmoid
        if mask is None:  # the layers of PyG before 2.1 took the sigmoid, those of DIG do not
            mask, squash = self.__edge_mask__, self.__explain__
        if mask is None:
            return None
        if mask.numel() != count:
            raise InputError(
                f"edge mask: expected [{count}], one per edge, got {list(mask.shape)}; these "
                "models add no self-loops. If an explainer has left the mask behind, call "
                "torch_geometric.explain.algorithm.utils.clear_masks(model)"
            )
        return (mask.sigmoid() if squash else mask).reshape(count)

    def message(
        self, x_j: Tensor, edge_attr: Any, edges: Edges, network: Network, layer: int
    ) -> Tensor:
        """Return [m, width] the messages, times the weights of their edges."""
        return edges.weigh(network.message(layer, x_j, edge_attr))

    def explain_message(self, inputs: Tensor) -> Tensor:
        """Return messages [m, width] times the mask."""
        mask = self.edge_mask(inputs.shape[0])
        if mask is None:
            raise InputError(
                "edge mask: an explainer announced one but set none; call "
                "torch_geometric.explain.algorithm.utils.clear_masks(model)"
            )
        return inputs * mask.unsqueeze(1)

    def aggregate(self, inputs: Tensor, edges: Edges) -> Tensor:
        """Return [n, width] the sum of the messages into each node."""
        return edges.sum_at_targets(inputs)

    @property
    def explain(self) -> bool | None:
        """Return whether messages are masked; False for a layer that PyG is to leave out."""
        explain: bool | None = self._explain
        return explain

    @explain.setter
    def explain(self, explain: bool | None) -> None:
        MessagePassing.explain.fset(self, explain)
        self.__dict__["_explain"] = explain

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _MASKS:
            # Not as a parameter of the model, which it would become: it would appear in the state
            # dict, and `set_masks` would cut the gradient of every later mask.
            self.__dict__[name] = value
            if value is not None:
                self._restore_messages()
            return
        if name == "_explain":  # DIG ends with False, which PyG takes for a layer to leave out
            value = value or None
            if not value:
                self._restore_messages()
        super().__setattr__(name, value)
        if name == "__explain__":  # PyG looks at the other flag
            self._explain = value

    def _restore_messages(self) -> None:
        """Undo what GraphMask leaves behind: messages of its own, which ignore edge masks."""
        if self.__dict__.pop("explain_message", None) is not None:
            self.inspector.remove_signature(self.explain_message)
            self.inspector.inspect_signature(self.explain_message, exclude=[0])

    def _set_jittable_templates(self, raise_on_error: bool = False) -> None:
        """Write no code for TorchScript: `propagate` runs for explainers only."""

    def extra_repr(self) -> str:
        """Return what `print` shows."""
        return f"{self.in_channels}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.extra_repr()})"


class BlindConv(Conv):
    """A layer of a network that sees no edges: an edge mask, which changes nothing, is refused.

    Without such a layer PyG would find nothing to set the mask on and score it as perfect.
    """

    makes_messages = False

    def __setattr__(self, name: str, value: Any) -> None:
        if name in (*_MASKS, *_FLAGS) and value is not None and value is not False:
            raise InputError(
                "edge mask: this model sees no edges, so a mask of them changes nothing; explain "
                "node features, or another model"
            )
        super().__setattr__(name, value)


def _check_has_messages(network: Network) -> None:
    """Raise an `InputError` if the sum of a network was replaced, but not the messages in it."""
    order = type(network).__mro__
    sums, messages = (
        next(rank for rank, cls in enumerate(order) if name in vars(cls))
        for name in ("aggregate", "message")
    )
    if sums < messages:
        raise InputError(
            f"{order[sums].__name__} has an `aggregate` of its own, whose messages a mask cannot "
            "reach; give it a `message` as well, as graphxai_data.nn.gin.GraphNetwork has"
        )
