"""Transforms of a graph, watched: what they do to its rationale is repaired, or removed."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import Compose

from graphxai_data.datasets.masks import (
    MASKS,
    NODE_TRUTH,
    edges_inside,
    edges_of_given_mask,
    has_causes,
    lose_masks,
    marks_of,
    repair,
)
from graphxai_data.errors import InputError, shown


def transformed(data: Data, transform: Callable[[Any], Any], once: bool = False) -> Any:
    """Return what a transform makes of a graph, its masks repaired, or removed if they cannot be.

    Args:
        data: the graph, with masks that fit.
        transform: returns a graph, several in a tuple or list, or anything else, which is returned
            as it is.
        once: whether this is a `pre_transform`. Then changes in place are seen too, and an
            `edge_mask` that it chooses is refused, because a dataset would recompute it.

    Raises:
        InputError: `once`, and its `edge_mask` is not the edges inside its rationale.
    """
    before = data.clone() if once else data
    has_alternatives, had_causes = "alternative_bits" in data._store, has_causes(data._store)
    result, problem = _watched(data, transform, once)
    if once:
        _refuse_own_edges(result, before, transform)
    for part in result if isinstance(result, tuple | list) else (result,):
        if not isinstance(part, Data):
            continue
        why = problem or repair(part, edges=True)
        if has_alternatives and "node_mask" in part and "alternative_bits" not in part:
            why = "node_mask is there, but alternative_bits is not, so alternatives are unknown"
        elif not why and had_causes and "node_mask" in part and not has_causes(part._store):
            why = "no node of its rationale is left, but its label is still the same"
        if why:
            lose_masks(part, f"{_name(transform)} changed the graph ({why})")
    return result


def _refuse_own_edges(result: Any, before: Data, transform: Callable[[Any], Any]) -> None:
    """Raise an InputError if someone chose an `edge_mask` and it is not the edges inside."""
    if not isinstance(result, Data) or any(key not in result._store for key in MASKS):
        return
    old, new = before._store, result._store
    mask, nodes, ends = (new.get(key) for key in ("edge_mask", "node_mask", "edge_index"))
    if ends is None or mask.dtype != torch.bool or nodes.dtype != torch.bool:
        return
    given = edges_of_given_mask(new)
    if not (
        (given is not None and _same(given, ends))
        or (_same(old["edge_index"], ends) and not _same(old["edge_mask"], mask))
    ):
        return
    inside = edges_inside(marks_of(new), ends)
    if inside is not None and mask.shape == inside.shape and not torch.equal(mask, inside):
        raise InputError(
            f"pre_transform: {_name(transform)} chooses an edge_mask that is not the edges with "
            "both ends in node_mask, or in one alternative, and datasets keep no other; give it "
            "another name, such as my_edge_mask, or assign it in transform"
        )


class _Nodes(NamedTuple):
    """What tells the nodes of a graph apart; None where it has no such field."""

    x: Tensor | None
    ends: Tensor | None
    mask: Tensor | None
    bits: Tensor | None
    weight: Tensor | None

    @classmethod
    def of(cls, data: Any, copied: bool = False) -> "_Nodes":
        store = data._store if isinstance(data, Data) else {}
        keys = ("x", "edge_index", "node_mask", "alternative_bits", "node_weight")
        values = (store.get(key) for key in keys)
        tensors = (value if isinstance(value, Tensor) else None for value in values)
        return cls(*(v.clone() if copied and v is not None else v for v in tensors))


def _watched(data: Any, transform: Callable[[Any], Any], in_place: bool) -> tuple[Any, str | None]:
    """Apply a transform; return its result, and why its nodes seem to be in another order, if so.

    The parts of a `Compose` are watched one by one: one may change features, another one edges.
    """
    if type(transform) is not Compose:  # a subclass may do something else
        before = _Nodes.of(data, copied=in_place)
        result = transform(data)
        parts = result if isinstance(result, tuple | list) else (result,)
        return result, next(filter(None, (_reordered(before, _Nodes.of(p)) for p in parts)), None)
    problems = []
    for part in vars(transform)["transforms"]:
        if isinstance(data, tuple | list):
            pairs = [_watched(one, part, in_place) for one in data]
            data = [result for result, _ in pairs]
            problems += [problem for _, problem in pairs]
        else:
            data, problem = _watched(data, part, in_place)
            problems.append(problem)
    return data, next(filter(None, problems), None)


def _reordered(old: _Nodes, new: _Nodes) -> str | None:
    """Return why nodes seem to be in another order than the rationale; None if they do not."""
    if old.ends is None or new.ends is None or old.ends is new.ends:
        return None
    rationale = {
        name: (before, after)
        for name, before, after in zip(NODE_TRUTH, old[2:], new[2:], strict=True)
        if before is not None and after is not None and before.shape == after.shape
    }
    if "node_mask" not in rationale:
        return None
    ends = new.ends.to(old.ends.device)
    if torch.equal(ends[:, : old.ends.shape[1]], old.ends):
        return None  # there are only more edges
    if (renamed := _renaming(old.ends, ends, len(rationale["node_mask"][0]))) is not None:
        known = renamed >= 0
        for name, (before, after) in rationale.items():
            if not torch.equal(after.to(before)[renamed[known]], before[known]):
                return f"its nodes have other numbers, but {name} does not follow"
        return None
    if old.x is None or new.x is None or old.x.dim() != 2 or new.x.dim() != 2:
        return None
    width = min(old.x.shape[1], new.x.shape[1])
    if len(old.x) != len(new.x) or _same(old.x[:, :width], new.x[:, :width]):
        return None
    if len(rationale) > 1:  # alternatives and weights tell more nodes apart
        del rationale["node_mask"]
    for name, (before, after) in rationale.items():
        if _same(before, after) and bool((before != before[:1]).any()):
            return (
                f"one step changed edges and features, but not {name}, so its nodes may be in "
                "another order; two transforms, one for edges and one for features, keep the masks"
            )
    return None


def _renaming(old: Tensor, new: Tensor, nodes: int) -> Tensor | None:
    """Return [n] the new number of every node, -1 if it has no edge; None if they are no renaming.

    Args:
        old: [2, m] edges before.
        new: edges after, in any number.
        nodes: number of nodes.
    """
    if old.shape != new.shape or not new.numel() or int(new.min()) < 0 or int(new.max()) >= nodes:
        return None
    renamed = torch.full((nodes,), -1, dtype=new.dtype, device=new.device)
    renamed[old.reshape(-1)] = new.reshape(-1)
    if not torch.equal(renamed[old.reshape(-1)], new.reshape(-1)):
        return None
    known = renamed[renamed >= 0]
    return renamed if len(torch.unique(known)) == len(known) else None


def _same(first: Tensor, second: Tensor) -> bool:
    """Return whether two tensors have equal values, on any device and of any type."""
    if first is second:
        return True
    return first.shape == second.shape and torch.equal(first, second.to(first))


def _name(transform: Callable[[Any], Any]) -> str:
    return getattr(transform, "__qualname__", None) or shown(transform)
