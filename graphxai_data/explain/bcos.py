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
from graphxai_data.explain.base import Explanation, Inputs, Row, Target, disclosed_bias, explained
from graphxai_data.nn.bcos import DynamicLinear, explanation_mode


def contribution_map(
    model: nn.Module,
    inputs: Inputs,
    target: Target = None,
    row: Row = "logit",
    fold_edges: bool = False,
) -> Explanation:
    """Return the contribution map of one output per graph, of a model of B-cos layers.

    With `fold_edges`, each edge's contribution is given to its two nodes, half to each.
    """
    (explanation,) = _maps(model, inputs, row, target)
    return explanation.folded(inputs.edge_index) if fold_edges else explanation


def all_contribution_maps(
    model: nn.Module, data: Any, row: Row = "logit", node: int | None = None
) -> list[Explanation]:
    """Return the contribution map of every class, from one forward and one backward pass per class.

    Arguments as for `explain`.
    """
    inputs = Inputs.of(data, node)
    inputs.check_fits(model)
    return _maps(model, inputs, row)


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
        if isinstance(index, Tensor) and index.numel() != 1:
            raise InputError(
                f"index: expected one node, got {index.tolist()}; explain one at a time"
            )
        data = Data(x=x.detach(), edge_index=edge_index, edge_attr=edge_attr, batch=batch)
        inputs = Inputs.of(data, None if index is None else int(index))
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


def _maps(model: nn.Module, inputs: Inputs, row: Row, *targets: Target) -> list[Explanation]:
    """Return the contribution map of every target, or of every class if there are no targets."""
    if not any(isinstance(module, DynamicLinear) for module in model.modules()):
        raise InputError(
            f"'bcos' explains models of B-cos layers; {type(model).__name__} has none: use "
            "bcos-gin or bcos-gine, or another method such as 'integrated-gradients'"
        )
    leaves = {"x": inputs.x.detach().clone().requires_grad_()}
    if inputs.edge_attr is not None and inputs.edge_attr.is_floating_point():
        leaves["edge_attr"] = inputs.edge_attr.detach().clone().requires_grad_()
    bias, maps = disclosed_bias(model, row), []
    with explanation_mode(model), torch.enable_grad():
        logits = inputs.logits(model, **leaves)
        for target in targets or range(logits.shape[1]):
            value, classes = explained(logits, target, row)
            # No path leads to the logits from edges that are not used, or that are multiplied.
            x_row, *edge_row = torch.autograd.grad(
                value.sum(), list(leaves.values()), retain_graph=not targets, allow_unused=True
            )
            features, edges = (leaves["x"] * x_row).detach(), None
            if edge_row and edge_row[0] is not None:
                edges = (leaves["edge_attr"] * edge_row[0]).detach().sum(dim=1)
            nodes, value = features.sum(dim=1), value.detach()
            maps.append(
                inputs.explanation(nodes, value, classes, features=features, edges=edges, bias=bias)
            )
    return maps
