"""GNNExplainer (Ying et al., 2019) with PyG's objective, for a whole batch of graphs at once.

Masks of edges and of node features are learned so that the masked graph keeps its class, or its
number, with few entries, near 0 or 1. Graphs do not interact in the model, in the loss (a sum with
one term per graph) or in Adam (which updates each entry separately). So one optimisation explains
all graphs of a batch with the same result as one optimisation per graph. A model gets the edge mask
as `edge_weight`, or, if it takes none, as PyG's class sets it: in its `MessagePassing` layers.
"""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from graphxai_data.errors import InputError, finite_number, whole_number
from graphxai_data.explain.base import Inputs
from graphxai_data.explain.edges import Rule, nodes_from_edges
from graphxai_data.explain.explanation import Explanation
from graphxai_data.explain.models import takes_edge_masks
from graphxai_data.explain.targets import Row, Target
from graphxai_data.seeds import MAX_SEED, rng_for, uniform

# PyG's coefficients.
_EDGE_SIZE, _EDGE_ENTROPY = 0.005, 1.0
_FEATURE_SIZE, _FEATURE_ENTROPY = 1.0, 0.1
_EPSILON = 1e-15
_FEATURE_STD = 0.1


class Masks(NamedTuple):
    """Logits of the edge mask [m], and of the feature mask [n, p] if there is one."""

    edges: Tensor
    features: Tensor | None


def gnn_explainer(
    model: nn.Module,
    inputs: Inputs,
    target: Target = None,
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
    """Return edge scores σ(edge mask), maybe feature scores σ(feature mask), and node scores.

    Adam learns the masks in `epochs` steps with the learning rate `rate`, to keep the target class,
    whatever `row` is recorded as explained. With `node_mask`, it also learns one of node features;
    the paper learns one of edges only. The score of a node is computed from those of its edges, or
    is the sum of those of its features (`node_scores`).

    If the model has one output, a number, the masks keep it: the loss is then the squared change of
    the output, as PyG's is for regression.

    The draws of initial masks depend on the seed and the `graph_id`, which all our datasets have,
    not on the batch; without `graph_id`, on the graph's position in its batch.
    """
    whole_number("epochs", epochs, 1, 10**6)
    finite_number("rate", rate, 0)
    whole_number("seed", seed, 0, MAX_SEED)
    if not takes_edge_masks(model):
        raise InputError(
            f"'gnn-explainer' masks edges: it needs a model whose forward takes edge_weight "
            f"[edges], or whose layers are PyG's MessagePassing; {type(model).__name__} has neither"
        )
    if node_scores not in ("edges", "features") or (node_scores == "features" and not node_mask):
        raise InputError("node_scores: expected 'edges', or with node_mask=True 'features'")
    value, classes = inputs.explained(model, target, row)
    masks = initial or initial_masks(inputs, seed, node_mask)
    masks = _learn(model, inputs, value, classes, masks, epochs, rate)
    if masks.features is not None and node_scores == "features":
        nodes = masks.features.sum(dim=1)
    else:
        nodes = nodes_from_edges(masks.edges, inputs.edge_index, len(inputs.x), edge_to_node)
    return inputs.explanation(nodes, value, classes, features=masks.features, edges=masks.edges)


def initial_masks(inputs: Inputs, seed: int, node_mask: bool) -> Masks:
    """Return normal draws with PyG's standard deviations."""
    sizes = torch.bincount(inputs.batch, minlength=inputs.graphs).tolist()
    edge_counts = torch.bincount(inputs.edge_graph, minlength=inputs.graphs).tolist()
    edges, features = [], []
    for graph, nodes, count in zip(inputs.ids.tolist(), sizes, edge_counts, strict=True):
        draws = _normal(seed, graph, count + nodes * inputs.x.shape[1])
        edges.append(draws[:count] * math.sqrt(2) * math.sqrt(2 / (2 * max(nodes, 1))))
        features.append(draws[count:].reshape(nodes, -1) * _FEATURE_STD)
    order = torch.argsort(inputs.edge_graph, stable=True)
    edge_mask = torch.empty(len(order), dtype=inputs.x.dtype, device=inputs.x.device)
    edge_mask[order] = torch.from_numpy(np.concatenate(edges)).to(edge_mask)
    feature_mask = torch.from_numpy(np.concatenate(features)).to(inputs.x)
    return Masks(edge_mask, feature_mask if node_mask else None)


def _normal(seed: int, graph: int, count: int) -> np.ndarray:
    """Return [count] standard normal draws, by the Box–Muller transform of raw words."""
    draws = uniform(rng_for(seed, "explain/gnn-explainer", graph).words(2 * count))
    normal: np.ndarray = np.sqrt(-2 * np.log(1 - draws[:count])) * np.cos(2 * np.pi * draws[count:])
    return normal


def _learn(
    model: nn.Module,
    inputs: Inputs,
    value: Tensor,
    target: Tensor,
    initial: Masks,
    epochs: int,
    rate: float,
) -> Masks:
    """Return σ(masks) after some epochs of Adam, which keep classes [g] or numbers [g]."""
    graphs, leaf = inputs.graphs, initial.edges.detach().clone().requires_grad_()
    edges = _LearnedMask(leaf, inputs.edge_graph, graphs, _EDGE_SIZE, _EDGE_ENTROPY)
    features, masks = None, [edges]
    if initial.features is not None:
        leaf = initial.features.detach().clone().requires_grad_()
        graph = inputs.batch.unsqueeze(1).expand_as(leaf)
        features = _LearnedMask(
            leaf, graph, graphs, _FEATURE_SIZE, _FEATURE_ENTROPY, mean_size=True
        )
        masks.append(features)
    leaves = [mask.logits for mask in masks]
    optimiser = torch.optim.Adam(leaves, lr=rate, fused=True)
    with torch.enable_grad():
        for _ in range(epochs):
            x = inputs.x if features is None else inputs.x * features.logits.sigmoid()
            logits = inputs.logits(model, x=x, edge_weight=edges.logits.sigmoid())
            if logits.shape[1] == 1:
                loss = nn.functional.mse_loss(logits.squeeze(1), value, reduction="sum")
            else:
                loss = nn.functional.cross_entropy(logits, target, reduction="sum")
            loss = loss + sum(mask.penalty() for mask in masks)
            gradients = torch.autograd.grad(loss, leaves, allow_unused=True)
            if gradients[0] is None:
                raise InputError(f"{type(model).__name__} uses no edges: there is none to mask")
            for mask, gradient in zip(masks, gradients, strict=True):
                mask.set_gradient(gradient)
            optimiser.step()
    return Masks(edges.result(), None if features is None else features.result())


@dataclass
class _LearnedMask:
    """The logits of a mask, with the penalties on its size and on its entropy per graph.

    As in PyG, entries without a gradient in the first step are not used by the model: they have no
    penalty, and their result is 0.
    """

    logits: Tensor
    graph: Tensor
    graphs: int
    size: float
    entropy: float
    mean_size: bool = False
    used: Tensor | None = None  # not known before the first step
    share: Tensor | float = 0.0  # 1 / number of used entries of the same graph

    def set_gradient(self, gradient: Tensor) -> None:
        """Store the gradient for the optimiser; the first one tells which entries are used."""
        self.logits.grad = gradient
        if self.used is None:
            self.used = gradient != 0
            counts = torch.bincount(self.graph[self.used], minlength=self.graphs).clamp_min(1)
            self.share = 1 / counts.to(gradient)[self.graph]

    def penalty(self) -> Tensor:
        """Return the sum of the penalties of all graphs; 0 in the first step."""
        if self.used is None:
            return self.logits.new_zeros(())
        m = self.logits.sigmoid()
        size = m * self.share if self.mean_size else m
        entropy = -m * (m + _EPSILON).log() - (1 - m) * (1 - m + _EPSILON).log()
        penalty = self.size * size + self.entropy * entropy * self.share
        return torch.where(self.used, penalty, 0).sum()

    def result(self) -> Tensor:
        """Return σ(logits), and 0 for entries that are not used."""
        mask = self.logits.sigmoid().detach()
        return mask if self.used is None else torch.where(self.used, mask, 0)
