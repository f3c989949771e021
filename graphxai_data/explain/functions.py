"""Functions of users as explainers: how they are called, what they see and what they return."""

import inspect
import re
from collections.abc import Callable
from typing import Any

from torch_geometric.explain import Explanation as PyGExplanation

from graphxai_data.errors import InputError
from graphxai_data.explain.explanation import Explanation
from graphxai_data.explain.pyg import mask_scores
from graphxai_data.files.plugins import Group, Origin

# The ground truth, and fields of single datasets that tell it: causes of pairs, and the `base` that
# a motif was attached to, which is all nodes but the rationale.
_ANSWERS = (
    "node_mask", "edge_mask", "alternatives", "alternative_bits", "node_weight", "split", "group",
    "cause", "cause_y", "base",
)  # fmt: skip


def without_answers(data: Any) -> Any:
    """Return a copy of a graph or batch without its rationale, as explainers may see it."""
    data = data.clone()  # a function that changes its argument must not change the dataset
    for key in _ANSWERS:
        if key in data:
            del data[key]
    return data


def takes_model(function: Callable[..., Any], what: str, graphs: str = "data") -> bool:
    """Return whether a function is one of a model and graphs; else it is one of graphs alone.

    Args:
        function: of a user.
        what: its name in messages.
        graphs: name of its last argument in messages.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # some built-in functions have no signature
        return False
    required = [p for p in parameters if p.default is p.empty]
    positional = [p for p in required if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if any(p.kind is p.KEYWORD_ONLY for p in required) or len(positional) > 2:
        raise InputError(f"{what}: expected fn({graphs}) or fn(model, {graphs}), got another")
    return len(positional) == 2


def node_and_edge_scores(result: Any, what: str) -> tuple[Any, Any]:
    """Return scores of nodes and of edges in what a function returned; one of them may be None.

    `what` names the result in messages.
    """
    if isinstance(result, Explanation):
        return result.node_scores, result.edge_scores
    if isinstance(result, PyGExplanation):
        masks = mask_scores(result, what)
        return masks.nodes, masks.edges
    return result, None


def load_function(group: Group, name: str, expected: str) -> tuple[Callable[..., Any], Origin]:
    """Return the function that a plug-in is, and its origin.

    Args:
        group: of the plug-ins.
        name: of the plug-in; tables and files have it.
        expected: what it should be, for the message if it is no function.
    """
    origin = group.origin(name)
    if not re.fullmatch("[A-Za-z0-9][A-Za-z0-9_-]*", name):
        raise InputError(f"{origin}: expected a name of letters, digits, '-' and '_'; rename it")
    function = group.load(name)
    if not callable(function):
        raise InputError(f"{origin}: expected {expected}, got {type(function).__name__}")
    return function, origin


def first_line(function: Callable[..., Any], otherwise: str) -> str:
    """Return the first line of a function's documentation, without its full stop."""
    lines = (inspect.getdoc(function) or "").splitlines()
    return lines[0].rstrip(".") if lines else otherwise
