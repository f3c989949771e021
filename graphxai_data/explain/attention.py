"""GSAT's attention as an explanation: scores of edges, and of nodes by a named rule."""

import torch
from torch import Tensor, nn

from graphxai_data.errors import InputError
from graphxai_data.explain.base import (
    Explanation,
    Inputs,
    Row,
    Rule,
    chosen_target,
    explained_value,
    nodes_from_edges,
)
from graphxai_data.nn.gsat import GSAT


def attention(
    model: nn.Module,
    inputs: Inputs,
    target: int | Tensor | None = None,
    row: Row = "logit",
    edge_to_node: Rule = "mean",
) -> Explanation:
    """The attention [m] behind a prediction; it is the same for all classes.

    Args:
        model: a GSAT.
        inputs: the graphs.
        target: which class is named as explained; the predicted one if None.
        row: which value is named as explained.
        edge_to_node: how edges make the scores of nodes.
    """
    if not isinstance(model, GSAT):
        raise InputError(
            f"'gsat' shows the attention of a GSAT; {type(model).__name__} has none: train one, or "
            "use another method"
        )
    with torch.no_grad():
        found = model.attend(inputs.x, inputs.edge_index, inputs.edge_attr, inputs.batch)
    logits = found.logits if inputs.node is None else found.logits[[inputs.node]]
    chosen = chosen_target(logits, target)
    value = explained_value(logits, chosen, row)
    nodes = nodes_from_edges(found.attention, inputs.edge_index, len(inputs.x), edge_to_node)
    return inputs.explained(nodes, value, chosen, edges=found.attention)
