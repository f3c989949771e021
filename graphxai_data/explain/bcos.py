"""B-cos contribution maps: one forward and one backward pass for a whole batch.

M* = W*(X, A) ⊙ x (paper, equations 7 and 9): inside `explanation_mode` the gradient of an output is
its row of W*, the product of the dynamic weights of all layers. The contributions of node features
and, where the model adds edge features to messages, of edges add up to the logit.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.explain import ExplainerAlgorithm
from torch_geometric.explain import Explanation as PyGExplanation
from torch_geometric.explain.config import MaskType, ModelMode

from graphxai_data.errors import InputError
from graphxai_data.explain.base import (
    Explanation,
    Inputs,
    Row,
    check_ready,
    disclosed_bias,
    explained_value,
    target_classes,
)
from graphxai_data.nn.bcos import DynamicLinear, explanation_mode


def contribution_map(
    model: nn.Module,
    inputs: Inputs,
    target: int | Tensor | None = None,
    row: Row = "logit",
    fold_edges: bool = False,
) -> Explanation:
    """Return the contribution map of one output per graph.

    Args:
        model: of B-cos layers, such as `BcosGIN`.
        inputs: the graphs.
        target: class to explain, one for all or one per graph; the predicted one if None.
        row: the target's logit, or its contrast to the mean of the others.
        fold_edges: give the contribution of each edge to its two nodes, half to each.
    """
    with explanation_mode(_checked(model)), torch.enable_grad():
        leaves, logits = _forward(model, inputs)
        classes = target_classes(logits, target)
        value = explained_value(logits, classes, row)
        explanation = _map(value, leaves, inputs, classes, disclosed_bias(model, row))
    return explanation.folded(inputs.edge_index) if fold_edges else explanation


def all_contribution_maps(
    model: nn.Module, data: Any, row: Row = "logit", node: int | None = None
) -> list[Explanation]:
    """Return the contribution map of every class, from one forward and one backward pass per class.

    Arguments as for `explain`.
    """
    inputs = Inputs.of(data, node)
    check_ready(model)
    inputs.check_fits(model)
    with explanation_mode(_checked(model)), torch.enable_grad():
        leaves, logits = _forward(model, inputs)
        bias = disclosed_bias(model, row)
        maps = []
        for number in range(logits.shape[1]):
            classes = target_classes(logits, number)
            value = explained_value(logits, classes, row)
            maps.append(_map(value, leaves, inputs, classes, bias, keep_graph=True))
        return maps


class BcosExplainer(ExplainerAlgorithm):  # type: ignore[misc]
    """Contribution maps for PyG's `Explainer`.

    `Explainer(model, BcosExplainer(), explanation_type="model", node_mask_type="attributes",
    edge_mask_type=None, model_config=…)` gives `node_mask` [n, p], the contributions of all node
    features; with node_mask_type="object" [n, 1]; with edge_mask_type="object" edges as well.

    Args:
        row: the target's logit, or its contrast to the mean of the others.
    """

    def __init__(self, row: Row = "logit") -> None:
        super().__init__()
        self.row: Row = row

    def forward(
        self,
        model: nn.Module,
        x: Tensor,
        edge_index: Tensor,
        *,
        target: Tensor,
        index: int | Tensor | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        **kwargs: Any,
    ) -> PyGExplanation:
        """Return the masks of PyG, filled with contributions."""
        if kwargs:
            raise InputError(f"unknown arguments {sorted(kwargs)}; known: edge_attr, batch, index")
        data = Data(x=x.detach(), edge_index=edge_index, edge_attr=edge_attr, batch=batch)
        inputs = Inputs.of(data, _single_node(index))
        inputs.check_fits(model)
        if inputs.node is not None:
            target = target[[inputs.node]]
        explanation = contribution_map(model, inputs, target, self.row)
        nodes = {
            None: None,
            MaskType.object: explanation.node_scores.unsqueeze(1),
            MaskType.attributes: explanation.feature_scores,
        }[self.explainer_config.node_mask_type]
        edges = explanation.edge_scores
        if edges is None:  # nodes carry the whole logit
            edges = x.new_zeros(edge_index.shape[1])
        has_edge_mask = self.explainer_config.edge_mask_type is not None
        return PyGExplanation(node_mask=nodes, edge_mask=edges if has_edge_mask else None)

    def supports(self) -> bool:
        """Return whether this is classification with one logit per class and masks per node."""
        kind, mode = self.explainer_config.node_mask_type, self.model_config.mode
        multiclass = mode == ModelMode.multiclass_classification
        return bool(multiclass and kind != MaskType.common_attributes)


def _single_node(index: int | Tensor | None) -> int | None:
    if isinstance(index, Tensor) and index.numel() != 1:
        raise InputError(f"index: expected one node, got {index.tolist()}; explain one at a time")
    return None if index is None else int(index)


def _checked(model: nn.Module) -> nn.Module:
    if not any(isinstance(module, DynamicLinear) for module in model.modules()):
        raise InputError(
            f"'bcos' explains models of B-cos layers; {type(model).__name__} has none: use "
            "bcos-gin or bcos-gine, or another method such as 'integrated-gradients'"
        )
    return model


def _forward(model: nn.Module, inputs: Inputs) -> tuple[list[Tensor], Tensor]:
    leaves = [inputs.x.detach().clone().requires_grad_()]
    edge_attr = inputs.edge_attr
    if edge_attr is not None and edge_attr.is_floating_point():
        edge_attr = edge_attr.detach().clone().requires_grad_()
        leaves.append(edge_attr)
    return leaves, inputs.logits(model, x=leaves[0], edge_attr=edge_attr)


def _map(
    value: Tensor,
    leaves: list[Tensor],
    inputs: Inputs,
    target: Tensor,
    bias: float,
    keep_graph: bool = False,
) -> Explanation:
    # Models without edge features, or with multiplicative ones, have no path from edges to logits.
    gradients = torch.autograd.grad(value.sum(), leaves, retain_graph=keep_graph, allow_unused=True)
    features = (leaves[0] * gradients[0]).detach()
    edges = None
    if len(leaves) > 1 and gradients[1] is not None:
        edges = (leaves[1] * gradients[1]).detach().sum(dim=1)
    nodes = features.sum(dim=1)
    return inputs.explanation(
        nodes, value.detach(), target, features=features, edges=edges, bias=bias
    )
