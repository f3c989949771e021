"""Masks that follow transforms: they fit the graph, or the graph says that they do not.

A transform may add, drop or reorder nodes and edges without a thought for `node_mask` and
`edge_mask`. `edge_mask` is by definition the edges with both ends in `node_mask`, so it is
recomputed as long as the nodes are the same. A `node_mask` of other nodes cannot be repaired.
Nodes in another order are noticed where the graph before the transform is known.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.data.storage import BaseStorage
from torch_geometric.transforms import Compose

from graphxai_data.errors import InputError, shown

MASKS = ("node_mask", "edge_mask")

# Private attributes of a PyG storage, which are copied and pickled with it:
# - concatenated graphs, whose node ids start at 0 in every graph and do not fit `node_mask`;
# - why the masks were removed;
# - the edges for which a user has given an `edge_mask`, or None for those of a whole batch.
_COLLATED, _LOST, _GIVEN = "_collated_graphs", "_why_no_masks", "_edges_of_given_mask"


def mark_collated(data: Data) -> None:
    """Note that these are the concatenated graphs of an `InMemoryDataset`."""
    data._store.__dict__[_COLLATED] = True


def inherit(new: Data, source: Data) -> None:
    """Note in a new object of PyG what it is, and why it will have no masks, if so.

    PyG makes an object from `source` in three ways: many graphs into a batch, many graphs into the
    storage of a dataset, or one graph out of either.
    """
    notes = source._store.__dict__
    if not isinstance(new, Batch) and not isinstance(source, Batch) and _COLLATED not in notes:
        mark_collated(new)
    if _LOST in notes:
        new._store.__dict__[_LOST] = notes[_LOST]
    if _GIVEN in notes and isinstance(new, Batch):
        new._store.__dict__[_GIVEN] = None


def note_given(data: Data) -> None:
    """Note that someone assigns an `edge_mask`: it holds as long as the edges are these."""
    data._store.__dict__[_GIVEN] = data._store.get("edge_index")


def why_lost(data: Data) -> str | None:
    """Return why a graph has no masks any more; None if none were removed."""
    reason: str | None = data._store.__dict__.get(_LOST)
    return reason


def note_lost(data: Data, reason: str) -> None:
    """Let the question for a missing mask raise an error with this reason."""
    data._store.__dict__[_LOST] = reason


def lose_masks(data: Data, reason: str) -> None:
    """Remove the masks of a graph, and note the reason."""
    for key in MASKS:
        del data[key]
    note_lost(data, reason)


def fitting_mask(data: Data, key: str) -> Tensor:
    """Return `node_mask` or `edge_mask` of a graph or batch after a check that it fits.

    Raises:
        InputError: it does not fit and cannot be repaired, or it was removed for this reason.
        AttributeError: there never was one.
    """
    store = data._store
    if key not in store:
        if reason := why_lost(data):
            raise InputError(
                f"{key}: this graph has none any more: {reason}; the ground truth is that of the "
                "graph before the transform, which dataset.get(i) returns"
            )
        raise AttributeError(f"'{type(data).__name__}' object has no attribute '{key}'")
    problem = _repair(data, edges=key == "edge_mask")
    if problem is not None:
        raise InputError(
            f"{key}: does not fit this graph: {problem}; a transform has changed the graph, so "
            "take the mask from the graph before the transform"
        )
    mask: Tensor = store[key]
    return mask


def transformed(data: Data, transform: Callable[[Any], Any], once: bool = False) -> Any:
    """Return what a transform makes of a graph, its masks repaired, or removed if they cannot be.

    Args:
        data: the graph, with masks that fit.
        transform: returns a graph, several in a tuple or list, or anything else, which is returned
            as it is.
        once: whether this is a `pre_transform`. Then changes in place are seen too, and an
            `edge_mask` that it chooses is refused, because a dataset would recompute it.

    Raises:
        InputError: `once`, and its `edge_mask` is not the edges inside its `node_mask`.
    """
    before = data.clone() if once else data
    result, problem = _watched(data, transform, once)
    if once:
        _refuse_own_edges(result, before, transform)
    for part in result if isinstance(result, tuple | list) else (result,):
        if isinstance(part, Data) and (why := problem or _repair(part, edges=True)):
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
    given = new.__dict__.get(_GIVEN)
    if not (
        (given is not None and _same(given, ends))
        or (_same(old["edge_index"], ends) and not _same(old["edge_mask"], mask))
    ):
        return
    inside = _edges_inside(nodes, ends)
    if inside is not None and mask.shape == inside.shape and not torch.equal(mask, inside):
        raise InputError(
            f"pre_transform: {_name(transform)} chooses an edge_mask that is not the edges with "
            "both ends in node_mask, and datasets keep no other; give it another name, such as "
            "my_edge_mask, or assign it in transform"
        )


class _Nodes(NamedTuple):
    """What tells the nodes of a graph apart; None where it has no such field."""

    x: Tensor | None
    ends: Tensor | None
    mask: Tensor | None

    @classmethod
    def of(cls, data: Any, copied: bool = False) -> "_Nodes":
        store = data._store if isinstance(data, Data) else {}
        values = (store.get(key) for key in ("x", "edge_index", "node_mask"))
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
    """Return why nodes seem to be in another order than `node_mask`; None if they do not."""
    if old.ends is None or new.ends is None or old.ends is new.ends:
        return None
    if old.mask is None or new.mask is None or old.mask.shape != new.mask.shape:
        return None
    ends = new.ends.to(old.ends.device)
    if torch.equal(ends[:, : old.ends.shape[1]], old.ends):
        return None  # there are only more edges
    if (renamed := _renaming(old.ends, ends, len(old.mask))) is not None:
        known = renamed >= 0
        kept = new.mask.to(old.mask)[renamed[known]]
        same = torch.equal(kept, old.mask[known])
        return None if same else "its nodes have other numbers, but node_mask does not follow"
    if old.x is None or new.x is None or not _same(old.mask, new.mask):
        return None
    if old.mask.all() or not old.mask.any() or old.x.dim() != 2 or new.x.dim() != 2:
        return None
    width = min(old.x.shape[1], new.x.shape[1])
    if len(old.x) != len(new.x) or _same(old.x[:, :width], new.x[:, :width]):
        return None
    return (
        "one step changed edges and features, but not node_mask, so its nodes may be in another "
        "order; two transforms, one for edges and one for features, keep the masks"
    )


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


def _repair(data: Data, edges: bool) -> str | None:
    """Recompute `edge_mask` if `edges` and it does not fit; return why masks cannot fit, or None.

    Only a change of the number of nodes shows that nodes are others. `LineGraph` can keep even
    that, but it stores `num_nodes`, which no graph of a build does.
    """
    store = data._store
    nodes = store.get("node_mask")
    if nodes is not None:
        # PyG counts nodes by the first field that it finds, which a transform may have forgotten.
        number = data.num_nodes
        if number == len(nodes) and "x" in store:
            number = len(store["x"])
        if number != len(nodes):
            return f"node_mask has {len(nodes)} rows, but the graph has {number} nodes"
    doubtful = "num_nodes" in store
    if "edge_mask" not in store or not (edges or doubtful):
        return None
    if _only_length_counts(store):
        rows = len(store["edge_mask"])
        number = store["edge_index"].shape[1] if "edge_index" in store else data.num_edges
        same = rows == number
        return None if same else f"edge_mask has {rows} rows, but the graph has {number} edges"
    inside = _edges_inside(nodes, store["edge_index"])
    if inside is None:
        last = int(store["edge_index"].max())
        return f"an edge ends at node {last}, but node_mask has {len(nodes)} rows"
    if torch.equal(inside, store["edge_mask"]):
        return None
    if doubtful:
        return "its edges are others and its num_nodes is set, so its nodes may be others"
    store["edge_mask"] = inside
    _mend_slices(store)
    return None


def _edges_inside(nodes: Tensor, ends: Tensor) -> Tensor | None:
    """Return [m] whether both ends of an edge are marked; None if an end is no node."""
    if ends.numel():
        least, most = torch.aminmax(ends)
        if least < 0 or most >= len(nodes):
            return None
    # One long selection takes a tenth of the time of indexing with a matrix.
    marked = nodes.index_select(0, ends.reshape(-1)).view(2, -1)
    return marked[0] & marked[1]


def _only_length_counts(store: BaseStorage) -> bool:
    """Return whether `edge_mask` need not be the edges inside `node_mask`."""
    masks = [store.get(key) for key in MASKS]
    if _COLLATED in store.__dict__ or "edge_index" not in store:
        return True
    if any(mask is None or mask.dtype != torch.bool for mask in masks):
        return True  # scores of someone's own
    if _GIVEN not in store.__dict__:
        return False
    given, ends = store.__dict__[_GIVEN], store["edge_index"]
    return given is None or given is ends or torch.equal(given.to(ends.device), ends)


def _mend_slices(store: BaseStorage) -> None:
    """In a batch, let `edge_mask` begin and end with the edges of each graph."""
    slices = store.__dict__.get("_slice_dict", {})
    if {"edge_mask", "edge_index"} <= slices.keys():
        slices["edge_mask"] = slices["edge_index"]


def _name(transform: Callable[[Any], Any]) -> str:
    return getattr(transform, "__qualname__", None) or shown(transform)
