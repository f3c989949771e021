"""GNNExplainer (Ying et al., 2019) with PyG's objective, for a whole batch of graphs at once.

Masks of edges and of node features are learned so that the masked graph keeps its class, with few
and clear-cut entries. Graphs do not interact in the model, in the loss (a sum of one term a graph)
or in Adam (every entry by itself), so all graphs of a batch are explained by one optimisation with
the result of one each. PyG's own class finds its place for edge masks in `MessagePassing` layers;
the models here take them as `edge_weight`.
"""

import math
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from graphxai_data.errors import InputError, finite_number, whole_number
from graphxai_data.explain.base import (
    Explanation,
    Inputs,
    Row,
    Rule,
    explained_outputs,
    nodes_from_edges,
    takes,
)
from graphxai_data.seeds import MAX_SEED, rng_for, uniform

# PyG's coefficients.
_EDGE_SIZE, _EDGE_ENTROPY = 0.005, 1.0
_FEATURE_SIZE, _FEATURE_ENTROPY = 1.0, 0.1
_EPSILON = 1e-15
_FEATURE_STD = 0.1


class Masks(NamedTuple):
    """Logits of masks: of edges [m], and of node features [n, p], or None for no such mask."""

    edges: Tensor
    features: Tensor | None


def gnn_explainer(
    model: nn.Module,
    inputs: Inputs,
    target: int | Tensor | None = None,
    row: Row = "logit",
    *,
    epochs: int = 200,
    rate: float = 0.01,
    node_mask: bool = False,
    node_scores: Literal["edges", "features"] = "edges",
    edge_to_node: Rule = "mean",
    seed: int = 0,
    initial: Masks | None = None,
) -> Explanation:
    """Edge scores σ(edge mask), maybe feature scores σ(feature mask), and nodes from either.

    Args:
        model: any that takes `edge_weight`.
        inputs: the graphs.
        target: class to keep, one for all or one a graph; the predicted one if None.
        row: which value is named as explained; the objective is always the class.
        epochs: steps of Adam.
        rate: its learning rate.
        node_mask: learn a mask of node features, too; the paper has one of edges alone.
        node_scores: from "edges", or from "features" by their sum.
        edge_to_node: how edges make the scores of nodes.
        seed: of the initial masks, drawn for each graph by itself: with a `graph_id`, as in all
            our datasets, batches do not matter; without, a graph's place in its batch does.
        initial: the initial masks themselves, instead of draws.
    """
    whole_number("epochs", epochs, 1, 10**6)
    finite_number("rate", rate, 0)
    whole_number("seed", seed, 0, MAX_SEED)
    if not takes(model.forward, "edge_weight"):
        raise InputError(
            f"'gnn-explainer' needs a model whose forward takes edge_weight [edges]; "
            f"{type(model).__name__} does not"
        )
    if node_scores not in ("edges", "features") or (node_scores == "features" and not node_mask):
        raise InputError("node_scores: expected 'edges', or with node_mask=True 'features'")
    value, chosen = explained_outputs(model, inputs, target, row)
    masks = initial or initial_masks(inputs, seed, node_mask)
    masks = _learned(model, inputs, chosen, masks, epochs, rate)
    if masks.features is not None and node_scores == "features":
        nodes = masks.features.sum(dim=1)
    else:
        nodes = nodes_from_edges(masks.edges, inputs.edge_index, len(inputs.x), edge_to_node)
    return inputs.explained(nodes, value, chosen, features=masks.features, edges=masks.edges)


def initial_masks(inputs: Inputs, seed: int, node_mask: bool) -> Masks:
    """Normal draws with PyG's standard deviations."""
    sizes = torch.bincount(inputs.batch, minlength=inputs.graphs).tolist()
    edge_counts = torch.bincount(inputs.edge_graph, minlength=inputs.graphs).tolist()
    edges, features = [], []
    for graph, nodes, count in zip(inputs.ids.tolist(), sizes, edge_counts, strict=True):
        draws = _normal(seed, graph, count + nodes * inputs.x.shape[1])
        edges.append(draws[:count] * math.sqrt(2) * math.sqrt(2 / (2 * max(nodes, 1))))
        features.append(draws[count:].reshape(nodes, -1) * _FEATURE_STD)
    order = torch.argsort(inputs.edge_graph, stable=True)
    of_edges = torch.empty(len(order), dtype=inputs.x.dtype, device=inputs.x.device)
    of_edges[order] = torch.from_numpy(np.concatenate(edges)).to(of_edges)
    of_features = torch.from_numpy(np.concatenate(features)).to(inputs.x)
    return Masks(of_edges, of_features if node_mask else None)


def _normal(seed: int, graph: int, count: int) -> np.ndarray:
    """[count] standard normal draws, by Box and Muller, from raw words."""
    draws = uniform(rng_for(seed, "explain/gnn-explainer", graph).words(2 * count))
    normal: np.ndarray = np.sqrt(-2 * np.log(1 - draws[:count])) * np.cos(2 * np.pi * draws[count:])
    return normal


def _learned(
    model: nn.Module, inputs: Inputs, target: Tensor, initial: Masks, epochs: int, rate: float
) -> Masks:
    parts = [
        _Part(initial.edges, inputs.edge_graph, inputs.graphs, _EDGE_SIZE, "sum", _EDGE_ENTROPY)
    ]
    if initial.features is not None:
        batch = inputs.batch.unsqueeze(1).expand_as(initial.features)
        parts.append(
            _Part(initial.features, batch, inputs.graphs, _FEATURE_SIZE, "mean", _FEATURE_ENTROPY)
        )
    optimiser = torch.optim.Adam([part.mask for part in parts], lr=rate, fused=True)
    with torch.enable_grad():
        for _ in range(epochs):
            weight = parts[0].mask.sigmoid()
            x = inputs.x * parts[1].mask.sigmoid() if len(parts) > 1 else inputs.x
            logits = inputs.logits(model, x=x, edge_weight=weight)
            if logits.shape[1] < 2:
                raise InputError("'gnn-explainer' keeps a class among several; got one logit")
            loss = nn.functional.cross_entropy(logits, target, reduction="sum")
            loss = loss + sum(part.penalty() for part in parts)
            masks = [part.mask for part in parts]
            gradients = torch.autograd.grad(loss, masks, allow_unused=True)
            if gradients[0] is None:
                raise InputError(f"{type(model).__name__} uses no edges: there is none to mask")
            for part, gradient in zip(parts, gradients, strict=True):
                part.mask.grad = gradient
                part.see(gradient)
            optimiser.step()
    return Masks(parts[0].result(), parts[1].result() if len(parts) > 1 else None)


class _Part:
    """A mask that is learned, and what keeps it small and clear-cut, graph by graph.

    As in PyG, entries without a gradient in the first step belong to nothing that the model looks
    at: they are not penalised, and 0 in the end.
    """

    def __init__(
        self, initial: Tensor, graph: Tensor, graphs: int, size: float, by: str, entropy: float
    ) -> None:
        self.mask = initial.detach().clone().requires_grad_()
        self.used: Tensor | None = None  # not known before the first step
        self._share = self.mask.new_zeros(())
        self._graph = graph
        self._graphs = graphs
        self._size, self._by, self._entropy = size, by, entropy

    def see(self, gradient: Tensor) -> None:
        """Learn from the gradient of the first step what is used."""
        if self.used is None:
            self.used = gradient != 0
            counts = torch.bincount(self._graph[self.used], minlength=self._graphs).clamp_min(1)
            self._share = 1 / counts.to(gradient)[self._graph]

    def penalty(self) -> Tensor:
        """The sum of the penalties of all graphs; none in the first step."""
        if self.used is None:
            return self.mask.new_zeros(())
        m = self.mask.sigmoid()
        size = m if self._by == "sum" else m * self._share
        entropy = -m * (m + _EPSILON).log() - (1 - m) * (1 - m + _EPSILON).log()
        penalty = self._size * size + self._entropy * entropy * self._share
        return torch.where(self.used, penalty, 0).sum()

    def result(self) -> Tensor:
        """σ(mask), 0 where it is not used."""
        learned = self.mask.sigmoid().detach()
        return learned if self.used is None else torch.where(self.used, learned, 0)
