"""Explainers of PyG and Captum by name, as functions of one graph: rows of a comparison.

They run as these packages have them. Where one differs from its paper, `ThirdParty.what` says so.
"""

import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric import explain as pyg
from torch_geometric.explain.algorithm.utils import clear_masks
from torch_geometric.nn import MessagePassing

from graphxai_data.errors import InputError, known_name, whole_number
from graphxai_data.explain.base import Inputs
from graphxai_data.explain.models import (
    call_model,
    check_ready,
    device_of_model,
    further_arguments,
    mask_layers,
)
from graphxai_data.explain.pyg_explainers import PyGFunction
from graphxai_data.graphs.schema import Label
from graphxai_data.nn.random import seeded, torch_seed
from graphxai_data.seeds import MAX_SEED


@dataclass(frozen=True)
class ThirdParty:
    """An explainer: what it does, whether it is trained on graphs first, and its settings."""

    name: str
    what: str
    needs_training: bool = False
    settings: Mapping[str, int] = field(default_factory=dict)
    captum: str = ""  # its class in Captum; those of PyG itself score edges


_ROWS = (
    ThirdParty(
        "pg-explainer",
        "PyG's PGExplainer: a network scores edges by the states of their nodes, trained for 10 "
        "epochs on 100 training graphs to keep the predicted class; it is not told the class",
        needs_training=True, settings={"training_graphs": 100, "epochs": 10},
    ),
    # With PyG's default, 100 epochs, all gates of most graphs close: scores are constant.
    ThirdParty(
        "graph-mask",
        "PyG's GraphMask: gates of edges, 0 or 1, learned for each graph and layer in 5 epochs, as "
        "in PyG's example; it normalises messages and halves features: it explains another model",
        settings={"epochs": 5},
    ),
    ThirdParty(
        "shapley-sampling",
        "Captum's Shapley values of nodes, 25 permutations; nodes left out have zero features",
        settings={"n_samples": 25}, captum="ShapleyValueSampling",
    ),
    ThirdParty(
        "guided-backprop",
        "Captum's guided backpropagation: only positive gradients pass an nn.ReLU; the signed sum "
        "of a node; a ReLU that is a function, as in GINE's messages, keeps its plain gradient",
        captum="GuidedBackprop",
    ),
    ThirdParty(
        "feature-ablation",
        "Captum's feature ablation: what the logit loses if all features of a node are zero",
        captum="FeatureAblation",
    ),
)  # fmt: skip
THIRD_PARTY = {row.name: row for row in _ROWS}
_MODES = {"class": "multiclass_classification", "number": "regression"}
_NODES_PER_PASS = 2048  # in copies of a graph whose nodes are perturbed


@dataclass(frozen=True)
class ThirdPartyFunction(PyGFunction):
    """An explainer by name as a function of one graph; draws depend on seed and `graph_id`.

    PGExplainer demands PyG's type "phenomenon". Its label is here the predicted class, or number.
    """

    seed: int

    def __call__(self, data: Any) -> pyg.Explanation:
        """Return the explanation of a graph with x [n, p]: a mask of nodes, or one of edges."""
        inputs, data = _inputs(self.model, data), data.clone()
        if self.explainer.edge_mask_type and not inputs.edge_index.shape[1]:  # GraphMask fails
            return pyg.Explanation(edge_mask=inputs.x.new_zeros(0))
        data.y = self.explainer.get_target(inputs.logits(self.model).detach())
        seed = torch_seed(self.seed, f"explain/{self.name}", int(inputs.ids[0]))
        with seeded(seed), _restored(self.model):
            result = super().__call__(data)
        if self.name == "graph-mask":
            del result["node_mask"]  # of features, and never trained
        return result


def third_party_function(
    name: str, model: nn.Module, training_graphs: Iterable[Any], seed: int, label: Label = "class"
) -> ThirdPartyFunction:
    """Return an explainer of what a model predicts, trained if it needs training.

    Args:
        name: one of `THIRD_PARTY`.
        model: in evaluation mode; it is left as it was.
        training_graphs: whose predicted classes an explainer learns to keep, if it is trained.
        seed: of training and of explanations.
        label: what the model predicts: a "class", or a "number".
    """
    row = THIRD_PARTY[known_name("explainer", name, THIRD_PARTY)]
    check_ready(model)
    whole_number("seed", seed, 0, MAX_SEED)
    config = {"mode": _MODES[label], "task_level": "graph", "return_type": "raw"}
    masks = {"node_mask_type": "attributes"} if row.captum else {"edge_mask_type": "object"}
    with seeded(torch_seed(seed, f"explain/{name}/training")):  # PGExplainer draws weights
        algorithm = _algorithm(row, model)
        explainer = pyg.Explainer(model, algorithm, "phenomenon", config, **masks)
        if row.needs_training:
            _train(explainer, islice(training_graphs, row.settings["training_graphs"]))
    return ThirdPartyFunction(name, explainer, seed)


def _algorithm(row: ThirdParty, model: nn.Module) -> pyg.ExplainerAlgorithm:
    """Return an algorithm of PyG; an `InputError` if a model or Captum is not what it needs."""
    what, of, layers = f"explainer '{row.name}'", type(model).__name__, mask_layers(model)
    if not row.captum and not layers:
        others = ", ".join(other.name for other in _ROWS if other.captum)
        raise InputError(
            f"{what} scores edges, and {of} has no MessagePassing layers that see any; use {others}"
        )
    if row.name == "pg-explainer":
        return pyg.PGExplainer(row.settings["epochs"]).to(device_of_model(model))
    if row.name == "graph-mask":
        return pyg.GraphMaskExplainer(len(layers), log=False, **row.settings)
    guided = row.name == "guided-backprop"
    if guided and not any(isinstance(module, nn.ReLU) for module in model.modules()):
        raise InputError(f"{what} changes gradients of nn.ReLU, and {of} has none; use 'saliency'")
    try:
        return (pyg.CaptumExplainer if guided else NodePerturbation)(row.captum, **row.settings)
    except ImportError:
        raise InputError(f"{what} needs Captum; run: pip install captum") from None


class NodePerturbation(pyg.CaptumExplainer):  # type: ignore[misc]
    """A method of Captum that sets features to zero: all of a node, in many copies of the graph."""

    SUPPORTED_METHODS = ("ShapleyValueSampling", "FeatureAblation")

    def forward(
        self, model: nn.Module, x: Tensor, edge_index: Tensor, *, target: Tensor, **kwargs: Any
    ) -> pyg.Explanation:
        """Return a node_mask [n, 1] for arguments as PyG gives them."""
        n, attr = len(x), kwargs.get("edge_attr")
        output = 0 if self.model_config.mode.value == "regression" else int(target)

        def outputs(kept: Tensor) -> Tensor:
            """Return [k] outputs for k copies of the graph, with features times `kept` [k, n]."""
            copy = torch.arange(len(kept), device=x.device)
            index = (edge_index.unsqueeze(1) + n * copy.unsqueeze(1)).flatten(1)
            attrs = None if attr is None else attr.repeat(len(kept), 1)
            rows, batch = (kept.unsqueeze(2) * x).flatten(0, 1), copy.repeat_interleave(n)
            logits: Tensor = call_model(model, rows, index, attrs, batch, batch_size=len(kept))
            return logits[:, output]

        scores = self.attribution_method_class(outputs).attribute(
            x.new_ones(1, n), perturbations_per_eval=max(1, _NODES_PER_PASS // n), **self.kwargs
        )
        return pyg.Explanation(node_mask=scores.reshape(n, 1))


def _inputs(model: nn.Module, data: Any) -> Inputs:
    inputs = Inputs.of(data.to(device_of_model(model)))
    inputs.check_fits(model)
    if inputs.graphs > 1:
        raise InputError(f"data: expected one graph, got a batch of {inputs.graphs}")
    return inputs


def _train(explainer: pyg.Explainer, graphs: Iterable[Any]) -> None:
    """Train PGExplainer on those graphs that have edges, one per step."""
    model, steps = explainer.model, []
    taken = ("x", "edge_index", "target", *further_arguments(model))
    for inputs in (_inputs(model, data) for data in graphs):
        known = {**inputs._asdict(), "batch_size": 1, "edge_weight": None}
        known["target"] = explainer.get_target(inputs.logits(model).detach())
        steps += [{key: known[key] for key in taken}] if inputs.edge_index.shape[1] else []
    if not steps:
        raise InputError("explainer 'pg-explainer': expected training graphs with edges, got none")
    with _restored(model), warnings.catch_warnings(action="ignore", category=UserWarning):
        model.requires_grad_(False)
        for epoch in range(explainer.algorithm.epochs):
            for named in steps:
                explainer.algorithm.train(epoch, model, **named)


@contextmanager
def _restored(model: nn.Module) -> Iterator[None]:
    """Undo what explainers leave in a model: masks, frozen weights, and attributes of layers.

    GraphMask leaves its last messages there, with which a model can no longer be copied.
    """
    trainable = [weight for weight in model.parameters() if weight.requires_grad]
    layers = [module for module in model.modules() if isinstance(module, MessagePassing)]
    places = [place for layer in layers for place in (vars(layer), layer._parameters)]
    before = [set(place) for place in places]
    try:
        yield
    finally:
        clear_masks(model)
        for weight in trainable:
            weight.requires_grad_(True)
        for place, names in zip(places, before, strict=True):
            for key in set(place) - names:
                del place[key]
