"""The result of explainers: scores for a whole batch of graphs at once."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch
from torch_geometric.explain import Explanation as PyGExplanation

from graphxai_data.errors import InputError, finite_number, whole_number
from graphxai_data.explain.edges import Rule
from graphxai_data.explain.pyg import (
    EdgeMask,
    NodeMask,
    Scale,
    fields_from_pyg,
    scaled,
    with_graphs,
)
from graphxai_data.graphs.columns import pointers
from graphxai_data.metrics import Floats, Ints, top_rows
from graphxai_data.nn.sums import sum_per_graph

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
        data: the explained graphs, for `draw` and `to_pyg`.
        node: the node whose output is explained; None if each graph has one output.
        arguments: what the model takes besides x and edge_index, for `to_pyg`.
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
    node: int | None = None
    arguments: tuple[str, ...] = field(default=("edge_attr", "batch"), repr=False, compare=False)

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

        Red nodes speak for the explained class, or raise the number, blue ones do the opposite.
        """
        from graphxai_data.drawing.graphs import drawing

        whole_number("i", i, 0, self.graphs - 1)
        if self.data is None:
            raise InputError("this explanation has no graph to draw; use the result of `explain`")
        graph = self.data[i] if isinstance(self.data, Batch) else self.data
        scores = self.node_scores[self.batch == i].detach()
        title = "scores" if self.target is None else f"for class {int(self.target[i])}"
        label = graph.get("y")
        if self.target is not None and label is not None and label.is_floating_point():
            title = "for the label"
        return drawing(graph, scores, title)

    def to_pyg(
        self,
        node_mask_type: NodeMask | None = "object",
        edge_mask_type: EdgeMask | None = None,
        *,
        scale: Scale = "unit",
    ) -> PyGExplanation:
        """Return this explanation for PyG, whose metrics take it with an `Explainer` of the model.

        Args:
            node_mask_type: "object" for a node_mask [n, 1], "attributes" for one [n, p] of the
                features, None for none.
            edge_mask_type: "object" for an edge_mask [m], None for none.
            scale: PyG multiplies features and messages by masks, and takes 1 − mask for the rest.
                So "unit" moves scores linearly to 0…1, for each graph and mask. "none" keeps
                scores: for those that are such factors already, as of GNNExplainer and GSAT.
        """
        if self.data is None:
            raise InputError("this explanation has no graphs; use the result of `explain`")
        masks: dict[str, Tensor] = {}
        if node_mask_type is not None:
            kinds = {"object": self.node_scores.unsqueeze(1), "attributes": self.feature_scores}
            nodes = _scores_of(kinds, "node_mask_type", node_mask_type)
            masks["node_mask"] = scaled(nodes, self.batch, self.graphs, scale)
        if edge_mask_type is not None:
            edges = _scores_of({"object": self.edge_scores}, "edge_mask_type", edge_mask_type)
            masks["edge_mask"] = scaled(edges, self.edge_graph, self.graphs, scale)
        values: dict[str, Tensor | None] = {"target": self.target}
        if scale == "none":  # other scores do not add up to the logit
            values |= {"logit": self.logit, "bias": self.bias}
        return with_graphs(masks, values, self.data, self.batch, self.arguments, self.node)

    @classmethod
    def from_pyg(cls, explanation: PyGExplanation, edge_to_node: Rule = "mean") -> "Explanation":
        """Return an explanation of PyG as one of ours.

        Args:
            explanation: with a node_mask [n], [n, 1] or [n, p], whose sums are the scores of nodes,
                an edge_mask [m], or both.
            edge_to_node: rule for scores of nodes from those of edges, if there is no node_mask.
        """
        return cls(**fields_from_pyg(explanation, edge_to_node))

    def _ptr(self) -> Ints:
        if (self.batch.diff() < 0).any():
            raise InputError("batch: expected the nodes of each graph together, in rising order")
        counts = torch.bincount(self.batch, minlength=self.graphs)
        return pointers(counts.cpu().numpy())

    def _float_scores(self) -> Floats:
        return self.node_scores.detach().cpu().numpy().astype(np.float64)


def _scores_of(kinds: dict[str, Tensor | None], what: str, kind: str) -> Tensor:
    """Return the scores of a kind of mask; an `InputError` if there are none."""
    if kind not in kinds:
        known = ", ".join(map(repr, (*kinds, None)))
        raise InputError(f"{what}: expected one of {known}, got {kind!r}")
    scores = kinds[kind]
    if scores is None:
        of = "edges" if what == "edge_mask_type" else "features"
        raise InputError(f"{what}: this explanation has no scores of {of}; leave {kind!r} out")
    return scores
