"""The inputs of explainers, for a whole batch of graphs at once."""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from graphxai_data.errors import InputError, whole_number
from graphxai_data.explain.explanation import Explanation
from graphxai_data.explain.models import call_model, check_logits, check_ready, device_of_model
from graphxai_data.explain.targets import Row, Target, explained


class Inputs(NamedTuple):
    """The graphs of a batch, as models take them.

    Attributes:
        x: [n, p] node features.
        edge_index: [2, m] source and target of every edge.
        edge_attr: [m, q] edge features, or None.
        batch: [n] the graph of every node.
        graphs: number of graphs.
        ids: [g] the `graph_id` of each graph, else its position; random draws depend on it.
        node: the node whose output is explained, for node-level models; then there is one graph.
    """

    x: Tensor
    edge_index: Tensor
    edge_attr: Tensor | None
    batch: Tensor
    graphs: int
    ids: Tensor
    node: int | None = None

    @classmethod
    def of(cls, data: Any, node: int | None = None) -> "Inputs":
        """Return the inputs in a PyG `Data` or `Batch`."""
        for key in ("x", "edge_index"):
            if not isinstance(getattr(data, key, None), Tensor):
                raise InputError(
                    f"data: expected a PyG Data or Batch with '{key}', got {type(data).__name__}"
                )
        x, attr, batch = data.x, getattr(data, "edge_attr", None), getattr(data, "batch", None)
        if not len(x):
            raise InputError("data: expected at least one node, got none; leave empty graphs out")
        if batch is None:
            batch = torch.zeros(len(x), dtype=torch.int64, device=x.device)
        graphs = int(batch.max()) + 1
        if isinstance(data, Batch):  # graphs without nodes may be missing at the end of `batch`
            graphs = max(graphs, data.num_graphs)
        sizes = torch.bincount(batch, minlength=graphs)
        if not sizes.all():
            raise InputError(
                f"data: graph {int((sizes == 0).nonzero()[0])} has no nodes; leave empty graphs out"
            )
        for key, value in (("x", x), ("edge_attr", attr)):
            if value is not None and not torch.isfinite(value).all():
                raise InputError(f"data: {key} has a value that is not finite; correct it first")
        ids = torch.as_tensor(getattr(data, "graph_id", torch.arange(graphs))).flatten()
        if len(ids) != graphs or ids.is_floating_point() or (ids < 0).any():
            raise InputError(f"data: expected a graph_id from 0 for each of {graphs} graphs")
        return cls(x, data.edge_index, attr, batch, graphs, ids, node)

    def check_fits(self, model: nn.Module) -> None:
        """Raise an `InputError` unless a model is ready and can take these inputs."""
        self.check_takes(model)
        # A model that does not say what its outputs are for has one per node if a node is given.
        level = getattr(model, "level", "graph" if self.node is None else "node")
        if level == "graph":
            if self.node is not None:
                raise InputError("this model has one output per graph: there is no node to choose")
            return
        if self.node is None or self.graphs > 1:
            raise InputError("this model has an output for each node: give one graph, and a node")
        whole_number("node", self.node, 0, len(self.x) - 1)

    def check_takes(self, model: nn.Module) -> None:
        """Raise an `InputError` unless a model is ready, with the type and device of the data."""
        check_ready(model)
        dtypes = {p.dtype for p in model.parameters() if p.is_floating_point()}
        if dtypes and self.x.dtype not in dtypes:
            raise InputError(
                f"data: x is {self.x.dtype}, the model {dtypes.pop()}; convert one of them"
            )
        device = device_of_model(model)
        if self.x.device != device and any(True for _ in model.parameters()):
            raise InputError(f"data: on {self.x.device}, the model on {device}; move one of them")

    @property
    def edge_graph(self) -> Tensor:
        """Return [m] the graph of every edge."""
        return self.batch.index_select(0, self.edge_index[0])

    def explanation(
        self,
        nodes: Tensor,
        value: Tensor | None,
        target: Tensor | None,
        *,
        features: Tensor | None = None,
        edges: Tensor | None = None,
        bias: float | Tensor = 0.0,
    ) -> Explanation:
        """Return an `Explanation` of these graphs; without a model, value and target are None."""
        biases = None if value is None else torch.as_tensor(bias).to(value).expand_as(value)
        return Explanation(
            nodes, features, edges, biases, value, target, self.batch, self.edge_graph,
            node=self.node,
        )  # fmt: skip

    def logits(self, model: nn.Module, edge_weight: Tensor | None = None, **changes: Any) -> Tensor:
        """Return the logits [g, c] of a model, or [1, c] of the node, with some inputs changed."""
        outputs = self._replace(**changes).outputs(model, edge_weight)
        rows = self.graphs if self.node is None else len(self.x)
        logits = check_logits(outputs, rows, len(self.x))
        return logits if self.node is None else logits[[self.node]]

    def outputs(self, model: nn.Module, edge_weight: Tensor | None = None) -> Any:
        """Return all that a model returns, whatever it is."""
        return call_model(
            model, self.x, self.edge_index, self.edge_attr, self.batch,
            edge_weight=edge_weight, batch_size=self.graphs,
        )  # fmt: skip

    def explained(self, model: nn.Module, target: Target, row: Row) -> tuple[Tensor, Tensor]:
        """Return [g] the explained values of a model, and [g] the classes they are for."""
        with torch.no_grad():
            return explained(self.logits(model), target, row)
