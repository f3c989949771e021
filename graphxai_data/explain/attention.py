"""GSAT's attention as an explanation: scores of edges, and of nodes by a rule."""

import torch
from torch import Tensor, nn

from graphxai_data.errors import InputError
from graphxai_data.explain.base import (
    Explanation,
    Inputs,
    Row,
    Rule,
    explained_value,
    nodes_from_edges,
    target_classes,
)
from graphxai_data.nn.gsat import GSAT
from graphxai_data.nn.sums import Edges


def attention(
    model: nn.Module,
    inputs: Inputs,
    target: int | Tensor | None = None,
    row: Row = "logit",
    edge_to_node: Rule = "mean",
) -> Explanation:
    """Return the attention [m] behind a prediction, which is the same for all classes.

    Args:
        model: a GSAT.
        inputs: the graphs.
        target: the class recorded as explained; the predicted one if None.
        row: the value recorded as explained.
        edge_to_node: how the score of a node is computed from those of its edges.
    """
    if not isinstance(model, GSAT):
        raise InputError(
            f"'gsat' shows the attention of a GSAT; {type(model).__name__} has none: train one, or "
            "use another method"
        )
    with torch.no_grad():
        edges = Edges(inputs.edge_index, len(inputs.x), inputs.edge_attr)
        logits, scores, _ = model.attend(inputs.x, edges, inputs.batch)
    if inputs.node is not None:
        logits = logits[[inputs.node]]
    classes = target_classes(logits, target)
    value = explained_value(logits, classes, row)
    nodes = nodes_from_edges(scores, inputs.edge_index, len(inputs.x), edge_to_node)
    return inputs.explanation(nodes, value, classes, edges=scores)
