"""GSAT's attention as an explanation: scores of edges, and of nodes by a rule."""

import torch
from torch import nn

from graphxai_data.errors import InputError
from graphxai_data.explain.base import Inputs
from graphxai_data.explain.edges import Rule, nodes_from_edges
from graphxai_data.explain.explanation import Explanation
from graphxai_data.explain.targets import Row, Target, explained
from graphxai_data.nn.ensemble import Ensemble
from graphxai_data.nn.gsat import GSAT
from graphxai_data.nn.sums import Edges


def attention(
    model: nn.Module,
    inputs: Inputs,
    target: Target = None,
    row: Row = "logit",
    edge_to_node: Rule = "mean",
) -> Explanation:
    """Return the attention [m] behind a prediction, which is the same for all classes and rows.

    The rule `edge_to_node` computes the score of a node from those of its edges. Logits and
    attention of an ensemble are means over its members.
    """
    members = [model] if isinstance(model, GSAT) else _members(model)
    if not members:
        raise InputError(
            f"'gsat' shows the attention of a GSAT; {type(model).__name__} has none: train one, or "
            "use another method"
        )
    with torch.no_grad():
        edges = Edges(inputs.edge_index, len(inputs.x), inputs.edge_attr)
        attended = [member.attend(inputs.x, edges, inputs.batch) for member in members]
        logits = torch.stack([a.logits for a in attended]).mean(dim=0)
        scores = torch.stack([a.attention for a in attended]).mean(dim=0)
    if inputs.node is not None:
        logits = logits[[inputs.node]]
    value, classes = explained(logits, target, row)
    nodes = nodes_from_edges(scores, inputs.edge_index, len(inputs.x), edge_to_node)
    return inputs.explanation(nodes, value, classes, edges=scores)


def _members(model: nn.Module) -> list[GSAT]:
    """Return the members of an ensemble of GSATs; none for another model."""
    members = model.members if isinstance(model, Ensemble) else ()
    return [member for member in members if isinstance(member, GSAT)]
