"""Whether a model has the outputs that the labels of graphs ask for, before it is explained."""

import torch
from torch import nn

from graphxai_data.datasets.loader import BatchLoader
from graphxai_data.errors import InputError
from graphxai_data.evaluation.other_datasets import OtherGraphs
from graphxai_data.evaluation.parts import Part, recipe_of
from graphxai_data.explain.base import Inputs
from graphxai_data.explain.models import device_of_model


def check_outputs(model: nn.Module | None, part: Part) -> None:
    """Raise an `InputError` unless a model returns [graphs, classes] for the first two graphs.

    Where the label is a number, that is [graphs, 1].
    Graphs of others may not show all classes, so a model may have more than these.
    """
    if model is None:
        return
    batch = next(iter(BatchLoader(part, 2)))
    inputs = Inputs.of(batch.to(device_of_model(model)))
    inputs.check_fits(model)
    with torch.no_grad():
        classes = inputs.logits(model).shape[1]
    is_other = isinstance(part, OtherGraphs)
    expected = _fewest_classes(part) if is_other else part.num_classes
    if classes < expected or (classes > expected and not is_other):
        at_least = "at least " if is_other else ""
        outputs = f"logits [graphs, {at_least}{expected}], one for each class of these graphs"
        recipe = recipe_of(part)
        if recipe is not None and recipe.schema.label == "number":
            outputs = "outputs [graphs, 1], since the labels of these graphs are numbers"
        raise InputError(
            f"model: expected {outputs}, got {classes} classes; use a model trained on such graphs"
        )


def _fewest_classes(part: OtherGraphs) -> int:
    """Return the number of classes that the labels of graphs show, if they have any."""
    return int(part._data.y.max()) + 1 if "y" in part._data else 1
