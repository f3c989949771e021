"""Explainers of PyG as functions of one graph; they are checked to fit the model and the task."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.explain import CaptumExplainer, Explainer, ExplainerAlgorithm
from torch_geometric.explain import Explanation as PyGExplanation
from torch_geometric.explain.algorithm.utils import clear_masks
from torch_geometric.explain.config import (
    ExplanationType,
    MaskType,
    ModelMode,
    ModelReturnType,
    ModelTaskLevel,
)

from graphxai_data.errors import InputError
from graphxai_data.explain.bcos import BcosExplainer
from graphxai_data.explain.models import (
    arguments_in_order,
    check_ready,
    device_of_model,
    free_masks,
    further_arguments,
    mask_layers,
)
from graphxai_data.graphs.schema import Label

# By the label of the dataset.
_MODES = {"class": ModelMode.multiclass_classification, "number": ModelMode.regression}
# Masks of nodes and of edges, the most detailed first.
_MASKS = (
    ("attributes", "object"), ("attributes", None), ("object", "object"), ("object", None),
    (None, "object"),
)  # fmt: skip
# With a mask of edges, Captum's integrals and coalitions would run over edges as well, and this
# changes the scores of nodes. In most B-cos models edges contribute nothing.
_OF_FEATURES = (BcosExplainer, CaptumExplainer)
# Captum says that it sets up what it needs, for every graph.
_NO_NEWS = ("Input Tensor .* did not already require gradients", "Setting .* hooks on ReLU")


@dataclass(frozen=True)
class PyGFunction:
    """An explainer of PyG as a function of one graph: it explains the predicted class, or number.

    An explainer of type "phenomenon" explains the label `y` of the graph instead.
    """

    name: str
    explainer: Explainer

    @property
    def model(self) -> nn.Module:
        """Return the model that is explained."""
        model: nn.Module = self.explainer.model
        return model

    def __call__(self, data: Any) -> PyGExplanation:
        """Return the explanation of a graph with x [n, p]."""
        explainer, model = self.explainer, self.model
        data = data.to(device_of_model(model))
        batch = torch.zeros(len(data.x), dtype=torch.int64, device=data.x.device)
        known = {"edge_attr": data.edge_attr, "batch": batch, "batch_size": 1, "edge_weight": None}
        taken = further_arguments(model)
        values = {key: value if key in taken else None for key, value in known.items()}
        arguments = arguments_in_order(
            model, {"x": data.x, "edge_index": data.edge_index, **values}
        )
        target = None
        if explainer.explanation_type == ExplanationType.phenomenon:
            target = self._label(data)
        with _left_as_it_was(model), warnings.catch_warnings():
            for message in _NO_NEWS:
                warnings.filterwarnings("ignore", message, UserWarning)
            try:
                result = explainer(data.x, data.edge_index, target=target, **arguments)
            except ValueError as error:
                raise InputError(f"explainer '{self.name}': {error}") from error
        if not isinstance(result, PyGExplanation):
            kind = type(result).__name__
            raise InputError(f"explainer '{self.name}': expected a PyG Explanation, got {kind}")
        self._check_return_type(result.get("prediction"))
        return result

    def _check_return_type(self, prediction: Tensor | None) -> None:
        """Raise an `InputError` if outputs are not the probabilities that they are said to be."""
        kind = self.explainer.model_config.return_type
        if prediction is None or kind == ModelReturnType.raw:
            return
        shares = prediction.exp() if kind == ModelReturnType.log_probs else prediction
        if not torch.allclose(shares.sum(dim=-1), torch.ones(()).to(shares), atol=1e-3):
            raise InputError(
                f"explainer '{self.name}': made for return_type '{kind.value}', but the outputs of "
                f"{type(self.model).__name__} are none; use return_type='raw'"
            )

    def _label(self, data: Any) -> Tensor:
        if data.get("y") is None:
            raise InputError(
                f"explainer '{self.name}': of type 'phenomenon', which explains the label y of a "
                "graph, and these graphs have none; use explanation_type='model'"
            )
        is_number = self.explainer.model_config.mode == ModelMode.regression
        label: Tensor = data.y.view(-1, 1) if is_number else data.y.view(-1)  # as the outputs are
        return label


def pyg_function(
    name: str,
    explainer: Explainer | ExplainerAlgorithm,
    model: nn.Module | None,
    label: Label = "class",
) -> PyGFunction:
    """Return an explainer, or an algorithm that gets one, as a function of one graph.

    Args:
        name: of its row, for messages.
        explainer: for the model, if one is given.
        model: in evaluation mode; None is the explainer's own.
        label: what the model predicts: a "class", or a "number".
    """
    what = f"explainer '{name}'"
    if isinstance(explainer, ExplainerAlgorithm):
        if model is None:
            raise InputError(f"{what}: {type(explainer).__name__} explains a model; give one")
        explainer = _connected(what, explainer, model, label)
    elif model is not None and explainer.model is not model:
        raise InputError(
            f"{what}: made for another model, a {type(explainer.model).__name__}; make it for the "
            "model that is given, or give its own"
        )
    _check(what, explainer, label)
    return PyGFunction(name, explainer)


def _connected(
    what: str, algorithm: ExplainerAlgorithm, model: nn.Module, label: Label
) -> Explainer:
    """Return an explainer of a model, with the most detailed masks that the algorithm supports."""
    config = {"mode": _MODES[label].value, "task_level": "graph", "return_type": "raw"}
    has_edges = bool(mask_layers(model)) and not isinstance(algorithm, _OF_FEATURES)
    with _silent_root_logger():
        for nodes, edges in _MASKS:
            if edges and not has_edges:
                continue
            try:
                return Explainer(
                    model, algorithm, "model", config, node_mask_type=nodes, edge_mask_type=edges
                )
            except ValueError:  # not supported
                continue
    advice = "give a trained torch_geometric.explain.Explainer with settings of its own"
    if not has_edges:
        advice = f"it may need edges, and {type(model).__name__} has no layers that see any"
    raise InputError(
        f"{what}: {type(algorithm).__name__} supports no explanation of the predicted {label} of a "
        f"graph; {advice}"
    )


def _check(what: str, explainer: Explainer, label: Label) -> None:
    """Raise an `InputError` unless an explainer can explain the classes, or numbers, of graphs."""
    check_ready(explainer.model)
    config = explainer.model_config
    for key, value, expected in (
        ("task_level", config.task_level, ModelTaskLevel.graph),
        ("mode", config.mode, _MODES[label]),
    ):
        if value != expected:
            outputs = "a logit for each class" if label == "class" else "one output, the number,"
            raise InputError(
                f"{what}: made for {key} '{value.value}', expected '{expected.value}': models have "
                f"{outputs} of a graph; change its model_config"
            )
    if explainer.node_mask_type == MaskType.common_attributes:
        raise InputError(
            f"{what}: node_mask_type 'common_attributes' ranks features, not nodes; use 'object' "
            "or 'attributes'"
        )
    if explainer.edge_mask_type is not None and not mask_layers(explainer.model):
        raise InputError(
            f"{what}: edge_mask_type: expected None; {type(explainer.model).__name__} has no "
            "MessagePassing layers that see edges, so masks of them would change nothing"
        )


@contextmanager
def _left_as_it_was(model: nn.Module) -> Iterator[None]:
    """Undo what explainers of PyG may leave in a model: masks, gradients, and frozen weights."""
    weights = list(model.parameters())
    gradients = [None if weight.grad is None else weight.grad.clone() for weight in weights]
    trainable = [weight.requires_grad for weight in weights]
    free_masks(model)
    try:
        yield
    finally:
        clear_masks(model)
        free_masks(model)
        for weight, gradient, is_trainable in zip(weights, gradients, trainable, strict=True):
            weight.requires_grad_(is_trainable).grad = gradient


@contextmanager
def _silent_root_logger() -> Iterator[None]:
    """Drop what is logged without a logger: PyG reports each setting that is not supported."""
    root, handler = logging.getLogger(), logging.NullHandler()

    def drop(_: logging.LogRecord) -> bool:
        return False

    root.addHandler(handler)  # without any, logging would set up one that stays
    root.addFilter(drop)
    try:
        yield
    finally:
        root.removeFilter(drop)
        root.removeHandler(handler)
