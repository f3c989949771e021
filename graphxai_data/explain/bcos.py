"""B-cos contribution maps: one forward and one backward pass for a whole batch.

M* = W*(X, A) ⊙ x (paper, equations 7 and 9): inside `explanation_mode` the gradient of an output is
its row of W*, the product of the dynamic weights of all layers. The contributions of node features
and, where the model adds edge features to messages, of edges add up to the logit.
"""

import logging
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.explain import ExplainerAlgorithm
from torch_geometric.explain import Explanation as PyGExplanation
from torch_geometric.explain.config import MaskType, ModelMode, ModelReturnType, ModelTaskLevel

from graphxai_data.errors import InputError
from graphxai_data.explain.base import Inputs
from graphxai_data.explain.explanation import Explanation
from graphxai_data.explain.models import check_logits, further_arguments
from graphxai_data.explain.targets import Row, Target, disclosed_bias, explained
from graphxai_data.nn.bcos import DynamicLinear, explanation_mode

log = logging.getLogger(__name__)


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
    arguments = further_arguments(model)
    return [replace(e, data=data, arguments=arguments) for e in _maps(model, inputs, row)]


class BcosExplainer(ExplainerAlgorithm):  # type: ignore[misc]
    """Contribution maps for PyG's `Explainer`.

    `Explainer(model, BcosExplainer(), explanation_type="model", node_mask_type="attributes",
    model_config=…)` gives `node_mask` [n, p], the contributions of all node features; with
    node_mask_type="object" [n, 1]. With edge_mask_type="object" it also gives `edge_mask` [m], for
    models that add edge features to messages; in others nodes carry the whole logit, and this is an
    `InputError`. Contributions have signs and are no factors; `Explanation.to_pyg` scales them.

    The mode of the `model_config` is "multiclass_classification", or "regression" for a model with
    one output. `index` selects the outputs that are explained: graphs of a batch, or nodes for
    node-level models. The contributions are those to the sum of the selected logits, all of them if
    None.

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
        given = {key for key, value in kwargs.items() if value is not None}
        unknown = sorted(given - {"batch_size"})
        if unknown:
            raise InputError(f"unknown arguments {unknown}; known: edge_attr, batch, index")
        data = Data(x=x.detach(), edge_index=edge_index, edge_attr=edge_attr, batch=batch)
        inputs = Inputs.of(data)
        inputs.check_takes(model)
        _check_dynamic(model)
        leaves: dict[str, Any] = _leaves(inputs)
        with explanation_mode(model), torch.enable_grad():
            logits = inputs._replace(**leaves).outputs(model)
            rows = len(x) if self.model_config.task_level == ModelTaskLevel.node else inputs.graphs
            logits = check_logits(logits, rows, len(x))
            values, _ = explained(logits, self._classes(logits, target), self.row)
            features, edges = _contributions(_selected(values, index).sum(), leaves)
        config, masks = self.explainer_config, {}
        if index is None:  # contributions and bias add up to the explained values
            masks["logit"] = values.detach()
            masks["bias"] = torch.full_like(values, disclosed_bias(model, self.row)).detach()
        if config.node_mask_type is not None:
            is_object = config.node_mask_type == MaskType.object
            masks["node_mask"] = features.sum(dim=1, keepdim=True) if is_object else features
        if config.edge_mask_type is not None:
            if edges is None:
                raise InputError(
                    f"edge_mask_type: expected None, got '{config.edge_mask_type.value}'; in "
                    f"{type(model).__name__} nodes carry the whole logit, and edges none of it"
                )
            masks["edge_mask"] = edges
        return PyGExplanation(**masks)

    def _classes(self, logits: Tensor, target: Tensor) -> Tensor | None:
        """Return the explained classes; None for a number, since PyG's target is its value then."""
        if self.model_config.mode != ModelMode.regression:
            return target
        if logits.shape[1] != 1:
            raise InputError(
                f"mode 'regression': expected a model with one output, got {logits.shape[1]}; "
                "explain one of them, or use 'multiclass_classification'"
            )
        return None

    def supports(self) -> bool:
        """Return whether logits or numbers of graphs or nodes are explained, by masks per node.

        The log says what is not supported, as PyG's own algorithms do.
        """
        mask, model = self.explainer_config.node_mask_type, self.model_config
        reasons = {
            f"mode '{model.mode.value}'": model.mode == ModelMode.binary_classification,
            "task_level 'edge'": model.task_level == ModelTaskLevel.edge,
            f"return_type '{model.return_type.value}'": model.return_type != ModelReturnType.raw,
            "node_mask_type 'common_attributes'": mask == MaskType.common_attributes,
        }
        for reason, holds in reasons.items():
            if holds:
                log.error(
                    "BcosExplainer explains logits of classes, or numbers; not for %s", reason
                )
        return not any(reasons.values())


def _selected(values: Tensor, index: int | Tensor | None) -> Tensor:
    """Return the explained values of the outputs that `index` selects."""
    if index is None:
        return values
    index = torch.as_tensor(index, device=values.device)
    is_mask = index.dtype == torch.bool
    if index.is_floating_point() or (is_mask and index.shape != values.shape):
        raise InputError(f"index: expected outputs from 0 to {len(values) - 1}, got {index}")
    if not is_mask and bool(((index < 0) | (index >= len(values))).any()):
        raise InputError(
            f"index: expected outputs from 0 to {len(values) - 1}, got {index.tolist()}"
        )
    return values[index]


def _maps(model: nn.Module, inputs: Inputs, row: Row, *targets: Target) -> list[Explanation]:
    """Return the contribution map of every target, or of every class if there are no targets."""
    _check_dynamic(model)
    leaves = _leaves(inputs)
    bias, maps = disclosed_bias(model, row), []
    with explanation_mode(model), torch.enable_grad():
        logits = inputs.logits(model, **leaves)
        for target in targets or range(logits.shape[1]):
            value, classes = explained(logits, target, row)
            features, edges = _contributions(value.sum(), leaves, keep_graph=not targets)
            nodes, value = features.sum(dim=1), value.detach()
            maps.append(
                inputs.explanation(nodes, value, classes, features=features, edges=edges, bias=bias)
            )
    return maps


def _check_dynamic(model: nn.Module) -> None:
    if not any(isinstance(module, DynamicLinear) for module in model.modules()):
        raise InputError(
            f"'bcos' explains models of B-cos layers; {type(model).__name__} has none: use "
            "bcos-gin or bcos-gine, or another method such as 'integrated-gradients'"
        )


def _leaves(inputs: Inputs) -> dict[str, Tensor]:
    """Return copies of the features that contributions are computed for."""
    leaves = {"x": inputs.x.detach().clone().requires_grad_()}
    if inputs.edge_attr is not None and inputs.edge_attr.is_floating_point():
        leaves["edge_attr"] = inputs.edge_attr.detach().clone().requires_grad_()
    return leaves


def _contributions(
    value: Tensor, leaves: dict[str, Tensor], keep_graph: bool = False
) -> tuple[Tensor, Tensor | None]:
    """Return the contributions [n, p] of node features, and [m] of edges, to a sum of outputs.

    None for edges that are not used, or that are multiplied: no path leads to the outputs.
    """
    x_row, *edge_row = torch.autograd.grad(
        value, list(leaves.values()), retain_graph=keep_graph, allow_unused=True
    )
    features, edges = (leaves["x"] * x_row).detach(), None
    if edge_row and edge_row[0] is not None:
        edges = (leaves["edge_attr"] * edge_row[0]).detach().sum(dim=1)
    return features, edges
