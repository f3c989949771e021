"""What explainers take and give, for a whole batch of graphs at once."""

import inspect
from collections.abc import Callable
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
from graphxai_data.metrics import top_rows
from graphxai_data.nn.sums import sum_per_graph

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = Literal["logit", "contrast"]
Rule = Literal["mean", "max", "sum"]
ROWS: tuple[Row, ...] = ("logit", "contrast")
RULES: tuple[Rule, ...] = ("mean", "max", "sum")


class Inputs(NamedTuple):
    """The graphs of a batch, as models take them.

    Attributes:
        x: [n, p] node features.
        edge_index: [2, m] source and target of every edge.
        edge_attr: [m, q] edge features, or None.
        batch: [n] the graph of every node.
        graphs: how many there are.
        ids: [g] what names the random draws of each graph: its `graph_id`, else its place.
        node: of a node-level model, the node whose output is explained; then there is one graph.
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
        """The inputs in a PyG `Data` or `Batch`."""
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
        """An `InputError` unless types are the model's, and a node is given where it needs one."""
        wanted = {p.dtype for p in model.parameters() if p.is_floating_point()}
        if wanted and self.x.dtype not in wanted:
            raise InputError(
                f"data: x is {self.x.dtype}, the model {wanted.pop()}; convert one of them"
            )
        if getattr(model, "level", "graph") == "graph":
            if self.node is not None:
                raise InputError("this model has one output a graph: there is no node to choose")
            return
        if self.node is None or self.graphs > 1:
            raise InputError("this model has an output for each node: give one graph, and a node")
        whole_number("node", self.node, 0, len(self.x) - 1)

    @property
    def edge_graph(self) -> Tensor:
        """[m] the graph of every edge."""
        return self.batch.index_select(0, self.edge_index[0])

    def explained(
        self,
        nodes: Tensor,
        value: Tensor | None,
        target: Tensor | None,
        *,
        features: Tensor | None = None,
        edges: Tensor | None = None,
        bias: float | Tensor = 0.0,
    ) -> "Explanation":
        """An `Explanation` of these graphs; `value` and `target` are None without a model."""
        of_graphs = None if value is None else torch.as_tensor(bias).to(value).expand_as(value)
        return Explanation(
            nodes, features, edges, of_graphs, value, target, self.batch, self.edge_graph
        )

    def logits(self, model: nn.Module, **changed: Any) -> Tensor:
        """[g, c] of a model, with some of the inputs changed, or an `edge_weight` [m].

        Of a node-level model [1, c], those of the node.
        """
        weight = changed.pop("edge_weight", None)
        now = self._replace(**changed)
        options = {} if weight is None else {"edge_weight": weight}
        logits: Tensor = model(now.x, now.edge_index, now.edge_attr, now.batch, **options)
        return logits if self.node is None else logits[[self.node]]


@dataclass(frozen=True)
class Explanation:
    """Scores of all nodes of a batch, and maybe of their features and edges: higher counts more.

    For B-cos, `node_scores` and `edge_scores` of a graph and its `bias` add up to its `logit`.

    Attributes:
        node_scores: [n].
        feature_scores: [n, p], None for explainers that do not tell features apart.
        edge_scores: [m], None where edges carry nothing of their own.
        bias: [g] the part of `logit` that no input accounts for; None without a model.
        logit: [g] the value explained: of the target, or its contrast; None without a model.
        target: [g] the class explained; None without a model.
        batch: [n] the graph of every node.
        edge_graph: [m] the graph of every edge.
        data: the graphs that are explained, for `draw`.
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
        """Number of graphs."""
        if self.target is not None:
            return len(self.target)
        return int(self.batch.max()) + 1

    @cached_property
    def node_sums(self) -> Tensor:
        """[g] sum of the node scores of each graph."""
        return sum_per_graph(self.node_scores.unsqueeze(1), self.batch, self.graphs).squeeze(1)

    @cached_property
    def edge_sums(self) -> Tensor:
        """[g] sum of the edge scores of each graph."""
        if self.edge_scores is None:
            return torch.zeros_like(self.node_sums)
        return sum_per_graph(self.edge_scores.unsqueeze(1), self.edge_graph, self.graphs).squeeze(1)

    def completeness_gap(self) -> Tensor:
        """[g] |Σ node + Σ edge scores + bias − logit|, relative to the evidence |logit − bias|.

        Only what claims to add up has a small one: B-cos maps, and integrated gradients nearly.
        """
        if self.logit is None or self.bias is None:
            raise InputError("completeness is about a logit; this explanation has no model behind")
        evidence = self.logit - self.bias
        gap = (self.node_sums + self.edge_sums - evidence).abs()
        return gap / evidence.abs().clamp_min(torch.finfo(evidence.dtype).tiny)

    def edge_share(self) -> Tensor:
        """[g] the part of the evidence, Σ node + Σ edge scores, that edges carry; 0 without any."""
        evidence = self.node_sums + self.edge_sums
        share = self.edge_sums / evidence
        return torch.where(evidence == 0, torch.zeros_like(share), share)

    def folded(self, edge_index: Tensor) -> "Explanation":
        """Edge scores given to nodes, half to either end; sums stay as they are."""
        if self.edge_scores is None:
            return self
        half = self.edge_scores / 2
        nodes = self.node_scores.index_add(0, edge_index[0], half)
        nodes = nodes.index_add(0, edge_index[1], half)
        return replace(self, node_scores=nodes, edge_scores=None, feature_scores=None)

    def top(self, m: int) -> Tensor:
        """[n] bool, the m nodes of each graph with the highest scores; all, if there are fewer."""
        whole_number("m", m, 1, 2**62)
        ptr = self._ptr()
        chosen = np.minimum(m, np.diff(ptr))
        return self._flags(top_rows(self._sortable(), ptr, chosen))

    def smallest_set(self, fraction: float) -> Tensor:
        """[n] bool, as few nodes of each graph as bring `fraction` of the response together.

        The response is the evidence in nodes, Σ node scores (paper, "Explanatory subgraphs from
        contribution maps"): without the bias, and without what additive edges carry unless it is
        folded. Where it is not positive, no set of nodes speaks for it: all are taken.
        """
        finite_number("fraction", fraction, 0, 1)
        ptr, scores = self._ptr(), self._sortable()
        chosen = np.ones(len(scores), bool)
        for first, last in pairwise(ptr):  # by itself, so that its sums do not depend on others
            of_graph = scores[first:last]
            response = of_graph.sum()
            if response <= 0:
                continue
            order = np.argsort(-of_graph, kind="stable")
            before = np.insert(of_graph[order].cumsum(), 0, 0.0)[:-1]
            needed = (before <= fraction * response) & (of_graph[order] > 0)
            chosen[first:last][order] = needed
        return self._flags(chosen)

    def draw(self, i: int = 0) -> "Figure":
        """A figure of graph i of the batch: its rationale, if known, beside the scores of nodes.

        Red speaks for the class that is explained, blue against it.
        """
        from graphxai_data.drawing.graphs import drawing

        whole_number("i", i, 0, self.graphs - 1)
        if self.data is None:
            raise InputError("this explanation knows no graph to draw; take the one of `explain`")
        graph = self.data[i] if isinstance(self.data, Batch) else self.data
        scores = self.node_scores[self.batch == i].detach()
        title = "scores" if self.target is None else f"for class {int(self.target[i])}"
        return drawing(graph, scores, title)

    def _ptr(self) -> Any:
        if (self.batch.diff() < 0).any():
            raise InputError("batch: expected the nodes of each graph together, in rising order")
        counts = torch.bincount(self.batch, minlength=self.graphs)
        return pointers(counts.cpu().numpy())

    def _sortable(self) -> Any:
        return self.node_scores.detach().cpu().numpy().astype(np.float64)

    def _flags(self, chosen: Any) -> Tensor:
        return torch.from_numpy(chosen).to(self.batch.device)


def nodes_from_edges(edge_scores: Tensor, edge_index: Tensor, nodes: int, rule: Rule) -> Tensor:
    """[n] scores of nodes from those of the edges at them, whichever their direction.

    Args:
        edge_scores: [m].
        edge_index: [2, m].
        nodes: number of nodes; one without edges has score 0.
        rule: "mean", "max" or "sum" over the edges at a node.
    """
    if rule not in RULES:
        raise InputError(f"rule: expected one of {', '.join(RULES)}, got {rule!r}")
    ends = edge_index.flatten()
    reduce = {"mean": "mean", "max": "amax", "sum": "sum"}[rule]
    zeros = edge_scores.new_zeros(nodes)
    return zeros.scatter_reduce(0, ends, edge_scores.repeat(2), reduce, include_self=False)


def chosen_target(logits: Tensor, target: int | Tensor | None) -> Tensor:
    """[g] the class to explain: the one given, for all or for each graph, or the predicted one."""
    if target is None:
        return logits.argmax(dim=1)
    try:
        given = torch.as_tensor(target, device=logits.device)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"target: expected a class, or one a graph, got {target!r}") from None
    if given.is_floating_point() or given.dtype == torch.bool or given.ndim > 1:
        raise InputError(f"target: expected a class, or one a graph, got {target!r}")
    if given.ndim and len(given) != len(logits):
        raise InputError(f"target: expected {len(logits)} classes, one a graph, got {len(given)}")
    if bool(((given < 0) | (given >= logits.shape[1])).any()):
        raise InputError(f"target: expected a class from 0 to {logits.shape[1] - 1}, got {target}")
    return given.expand(len(logits)).to(torch.int64)


def explained_value(logits: Tensor, target: Tensor, row: Row) -> Tensor:
    """[g] the logit of the target, or how far it is above the mean of the others.

    With cross-entropy a shift common to all logits is not determined by training, and so is no
    single one of them; their contrast is. With one logit there is nothing to contrast.
    """
    if row not in ROWS:
        raise InputError(f"row: expected one of {', '.join(ROWS)}, got {row!r}")
    of_target = logits.gather(1, target.unsqueeze(1)).squeeze(1)
    if row == "logit":
        return of_target
    if logits.shape[1] < 2:
        raise InputError("row: 'contrast' needs at least two classes, got 1; use 'logit'")
    return of_target - (logits.sum(dim=1) - of_target) / (logits.shape[1] - 1)


def explained_outputs(
    model: nn.Module, inputs: Inputs, target: int | Tensor | None, row: Row
) -> tuple[Tensor, Tensor]:
    """[g] the values that are explained, and [g] the classes they are of."""
    with torch.no_grad():
        logits = inputs.logits(model)
    chosen = chosen_target(logits, target)
    return explained_value(logits, chosen, row), chosen


def disclosed_bias(model: nn.Module, row: Row) -> float:
    """What the model adds to every logit whatever the input; a contrast is without it."""
    return float(getattr(model, "logit_bias", 0.0)) if row == "logit" else 0.0


def check_ready(model: nn.Module) -> None:
    """An `InputError` unless a model is one, and in evaluation mode."""
    if not isinstance(model, nn.Module):
        raise InputError(f"model: expected a torch module, got {type(model).__name__}")
    if any(module.training for module in model.modules()):
        raise InputError("model: in training mode, where dropout is random; call `eval` on it")


def takes(function: Callable[..., Any], argument: str) -> bool:
    """Whether a function has an argument of this name."""
    return argument in inspect.signature(function).parameters
