"""The inputs and the result of explainers, for a whole batch of graphs at once."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from graphxai_data.errors import InputError, finite_number, whole_number
from graphxai_data.graphs.columns import pointers
from graphxai_data.metrics import Floats, Ints, top_rows
from graphxai_data.nn.sums import sum_per_graph

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = Literal["logit", "contrast"]
Rule = Literal["mean", "max", "sum"]
# A class for all graphs, or [g] one per graph; None is the predicted one.
Target = int | Tensor | None
ROWS: tuple[Row, ...] = ("logit", "contrast")
RULES: tuple[Rule, ...] = ("mean", "max", "sum")


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
        check_ready(model)
        dtypes = {p.dtype for p in model.parameters() if p.is_floating_point()}
        if dtypes and self.x.dtype not in dtypes:
            raise InputError(
                f"data: x is {self.x.dtype}, the model {dtypes.pop()}; convert one of them"
            )
        if getattr(model, "level", "graph") == "graph":
            if self.node is not None:
                raise InputError("this model has one output per graph: there is no node to choose")
            return
        if self.node is None or self.graphs > 1:
            raise InputError("this model has an output for each node: give one graph, and a node")
        whole_number("node", self.node, 0, len(self.x) - 1)

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
    ) -> "Explanation":
        """Return an `Explanation` of these graphs; without a model, value and target are None."""
        biases = None if value is None else torch.as_tensor(bias).to(value).expand_as(value)
        return Explanation(
            nodes, features, edges, biases, value, target, self.batch, self.edge_graph
        )

    def logits(self, model: nn.Module, edge_weight: Tensor | None = None, **changes: Any) -> Tensor:
        """Return the logits [g, c] of a model, or [1, c] of the node, with some inputs changed."""
        x, edge_index, edge_attr, batch, *_ = self._replace(**changes)
        options = {} if edge_weight is None else {"edge_weight": edge_weight}
        logits: Tensor = model(x, edge_index, edge_attr, batch, **options)
        return logits if self.node is None else logits[[self.node]]

    def explained(self, model: nn.Module, target: Target, row: Row) -> tuple[Tensor, Tensor]:
        """Return [g] the explained values of a model, and [g] the classes they are for."""
        with torch.no_grad():
            return explained(self.logits(model), target, row)


@dataclass(frozen=True)
class Explanation:
    """Scores of all nodes of a batch, and maybe of their features and edges: higher counts more.

    For B-cos, the node scores, edge scores and `bias` of a graph add up to its `logit`.

    Attributes:
        node_scores: [n].
        feature_scores: [n, p], None for explainers that do not score features.
        edge_scores: [m], None for explainers and models that do not score edges.
        bias: [g] the part of `logit` that no input accounts for; None without a model.
        logit: [g] the explained value: logit or contrast of the target; None without a model.
        target: [g] the explained class; None without a model.
        batch: [n] the graph of every node.
        edge_graph: [m] the graph of every edge.
        data: the explained graphs, for `draw`.
    """

    node_scores: Tensor
    feature_scores: Tensor | None
    edge_scores: Tensor | None
    bias: Tensor | None
    logit: Tensor | None
    target: Tensor | None
    batch: Tensor
    edge_graph: Tensor
    data: Any = field(default=None, repr=False, compare=False)

    @cached_property
    def graphs(self) -> int:
        """Return the number of graphs."""
        return int(self.batch.max()) + 1 if self.target is None else len(self.target)

    @cached_property
    def node_sums(self) -> Tensor:
        """Return [g] the sum of the node scores of each graph."""
        return sum_per_graph(self.node_scores.unsqueeze(1), self.batch, self.graphs).squeeze(1)

    @cached_property
    def edge_sums(self) -> Tensor:
        """Return [g] the sum of the edge scores of each graph."""
        if self.edge_scores is None:
            return torch.zeros_like(self.node_sums)
        return sum_per_graph(self.edge_scores.unsqueeze(1), self.edge_graph, self.graphs).squeeze(1)

    def completeness_gap(self) -> Tensor:
        """Return [g] |Σ node + Σ edge scores + bias − logit|, relative to |logit − bias|.

        It is small only for scores that are meant to add up to the logit: those of B-cos and, with
        the error of a sum instead of an integral, integrated gradients.
        """
        if self.logit is None or self.bias is None:
            raise InputError("completeness is about a logit; this explanation is of no model")
        evidence = self.logit - self.bias
        gap = (self.node_sums + self.edge_sums - evidence).abs()
        return gap / evidence.abs().clamp_min(torch.finfo(evidence.dtype).tiny)

    def edge_share(self) -> Tensor:
        """Return [g] the share of edges in the evidence Σ node + Σ edge scores; 0 without any."""
        evidence = self.node_sums + self.edge_sums
        share = self.edge_sums / evidence
        return torch.where(evidence == 0, torch.zeros_like(share), share)

    def folded(self, edge_index: Tensor) -> "Explanation":
        """Return an explanation with each edge score given to its two nodes, half to each."""
        if self.edge_scores is None:
            return self
        half = self.edge_scores / 2
        nodes = self.node_scores.index_add(0, edge_index[0], half)
        nodes = nodes.index_add(0, edge_index[1], half)
        return replace(self, node_scores=nodes, edge_scores=None, feature_scores=None)

    def top(self, m: int) -> Tensor:
        """Return [n] bool: the m nodes with the highest scores per graph; all if it has fewer."""
        whole_number("m", m, 1, 2**62)
        ptr = self._ptr()
        selected = top_rows(self._float_scores(), ptr, np.minimum(m, np.diff(ptr)))
        return torch.from_numpy(selected).to(self.batch.device)

    def smallest_set(self, fraction: float) -> Tensor:
        """Return [n] bool: the fewest nodes per graph that make up `fraction` of the response.

        The response is the evidence in nodes, Σ node scores (paper, "Explanatory subgraphs from
        contribution maps"): without the bias, and without the scores of additive edges unless they
        are folded. Where it is not positive, no set of nodes makes it up, and all are returned.
        """
        finite_number("fraction", fraction, 0, 1)
        ptr, scores = self._ptr(), self._float_scores()
        selected = np.ones(len(scores), bool)
        # One graph at a time, so that the rounding of its sums does not depend on the others.
        for first, last in pairwise(ptr):
            graph_scores = scores[first:last]
            response = graph_scores.sum()
            if response <= 0:
                continue
            order = np.argsort(-graph_scores, kind="stable")
            sum_before = np.insert(graph_scores[order].cumsum(), 0, 0.0)[:-1]
            needed = (sum_before <= fraction * response) & (graph_scores[order] > 0)
            selected[first:last][order] = needed
        return torch.from_numpy(selected).to(self.batch.device)

    def draw(self, i: int = 0) -> "Figure":
        """Return a figure of graph i of the batch: its rationale, if known, and its node scores.

        Red nodes speak for the explained class, blue ones against it.
        """
        from graphxai_data.drawing.graphs import drawing

        whole_number("i", i, 0, self.graphs - 1)
        if self.data is None:
            raise InputError("this explanation has no graph to draw; use the result of `explain`")
        graph = self.data[i] if isinstance(self.data, Batch) else self.data
        scores = self.node_scores[self.batch == i].detach()
        title = "scores" if self.target is None else f"for class {int(self.target[i])}"
        return drawing(graph, scores, title)

    def _ptr(self) -> Ints:
        if (self.batch.diff() < 0).any():
            raise InputError("batch: expected the nodes of each graph together, in rising order")
        counts = torch.bincount(self.batch, minlength=self.graphs)
        return pointers(counts.cpu().numpy())

    def _float_scores(self) -> Floats:
        return self.node_scores.detach().cpu().numpy().astype(np.float64)


def nodes_from_edges(edge_scores: Tensor, edge_index: Tensor, nodes: int, rule: Rule) -> Tensor:
    """Return [n] scores of nodes by a rule over those [m] of their incoming and outgoing edges.

    A node without edges has score 0.
    """
    if rule not in RULES:
        raise InputError(f"rule: expected one of {', '.join(RULES)}, got {rule!r}")
    ends = edge_index.flatten()
    reduce = {"mean": "mean", "max": "amax", "sum": "sum"}[rule]
    zeros = edge_scores.new_zeros(nodes)
    return zeros.scatter_reduce(0, ends, edge_scores.repeat(2), reduce, include_self=False)


def explained(logits: Tensor, target: Target, row: Row) -> tuple[Tensor, Tensor]:
    """Return [g] the explained values of logits [g, c], and [g] the classes they are for.

    A value is the logit of the class, or its difference to the mean of the other logits.
    Cross-entropy does not determine a shift common to all logits, and so no single logit, but it
    does determine their contrast.
    """
    if row not in ROWS:
        raise InputError(f"row: expected one of {', '.join(ROWS)}, got {row!r}")
    classes = _target_classes(logits, target)
    logit = logits.gather(1, classes.unsqueeze(1)).squeeze(1)
    if row == "logit":
        return logit, classes
    if logits.shape[1] < 2:
        raise InputError("row: 'contrast' needs at least two classes, got 1; use 'logit'")
    return logit - (logits.sum(dim=1) - logit) / (logits.shape[1] - 1), classes


def _target_classes(logits: Tensor, target: Target) -> Tensor:
    if target is None:
        return logits.argmax(dim=1)
    try:
        classes = torch.as_tensor(target, device=logits.device)
        if classes.is_floating_point() or classes.dtype == torch.bool or classes.ndim > 1:
            raise ValueError
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"target: expected a class, or one per graph, got {target!r}") from None
    if classes.ndim and len(classes) != len(logits):
        raise InputError(
            f"target: expected {len(logits)} classes, one per graph, got {len(classes)}"
        )
    if bool(((classes < 0) | (classes >= logits.shape[1])).any()):
        raise InputError(f"target: expected a class from 0 to {logits.shape[1] - 1}, got {target}")
    return classes.expand(len(logits)).to(torch.int64)


def disclosed_bias(model: nn.Module, row: Row) -> float:
    """Return the constant that the model adds to every logit; a contrast does not contain it."""
    return float(getattr(model, "logit_bias", 0.0)) if row == "logit" else 0.0


def check_ready(model: nn.Module) -> None:
    """Raise an `InputError` unless the model is a torch module in evaluation mode."""
    if not isinstance(model, nn.Module):
        raise InputError(f"model: expected a torch module, got {type(model).__name__}")
    if any(module.training for module in model.modules()):
        raise InputError("model: in training mode, where dropout is random; call `eval` on it")
