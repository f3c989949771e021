"""Scores of nodes from those of their edges."""

from typing import Literal

from torch import Tensor

from graphxai_data.errors import InputError

Rule = Literal["mean", "max", "sum"]
RULES: tuple[Rule, ...] = ("mean", "max", "sum")


def nodes_from_edges(edge_scores: Tensor, edge_index: Tensor, nodes: int, rule: Rule) -> Tensor:
    """Return [n] scores of nodes by a rule over those [m] of their incoming and outgoing edges.

    A node without edges has score 0.
    """
    if rule not in RULES:
        raise InputError(f"rule: expected one of {', '.join(RULES)}, got {rule!r}")
    ends = edge_index.flatten()
    reduce = {"mean": "mean", "max": "amax", "sum": "sum"}[rule]
    zeros = edge_scores.new_zeros(nodes)
    return zeros.scatter_reduce(0, ends, edge_scores.repeat(2), reduce, include_self=False)
