"""Rationales that follow transforms: they fit the graph, or the graph says that they do not.

A transform may add, drop or reorder nodes and edges without a thought for the rationale.
`edge_mask` is by definition the edges with both ends in `node_mask`, or in one alternative, so it
is recomputed as long as the nodes are the same. A `node_mask` of other nodes cannot be repaired,
nor can alternatives and weights. Nodes in another order, and rationales without any node left, are
noticed where the graph before the transform is known (`datasets/watched.py`).
"""

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.data.storage import BaseStorage

from graphxai_data.errors import InputError

MASKS = ("node_mask", "edge_mask")
# All fields of a rationale; those after the masks only some datasets have, with a row per node.
TRUTH = (*MASKS, "alternative_bits", "node_weight")
NODE_TRUTH = ("node_mask", "alternative_bits", "node_weight")

# Private attributes of a PyG storage, which are copied and pickled with it:
# - concatenated graphs, whose node ids start at 0 in every graph and do not fit `node_mask`;
# - why the masks were removed;
# - the edges for which a user has given an `edge_mask`, or None for those of a whole batch;
# - that there were alternatives in what it was made from: a loader may leave fields out.
_COLLATED, _LOST, _GIVEN = "_collated_graphs", "_why_no_masks", "_edges_of_given_mask"
_ALTERNATIVES = "_had_alternatives"


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
    if "alternative_bits" in source._store or _ALTERNATIVES in notes:
        new._store.__dict__[_ALTERNATIVES] = True


def is_collated(data: Data) -> bool:
    """Return whether these are the concatenated graphs of an `InMemoryDataset`."""
    return _COLLATED in data._store.__dict__


def lacks_alternatives(store: BaseStorage) -> bool:
    """Return whether there were alternatives, but `alternative_bits` was left out."""
    return _ALTERNATIVES in store.__dict__ and "alternative_bits" not in store


def edges_of_given_mask(store: BaseStorage) -> Tensor | None:
    """Return the edges for which someone has assigned an `edge_mask`; None if nobody has."""
    edges: Tensor | None = store.__dict__.get(_GIVEN)
    return edges


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
    """Remove the rationale of a graph, and note the reason."""
    for key in TRUTH:
        del data[key]
    note_lost(data, reason)


def fitting_mask(data: Data, key: str) -> Tensor:
    """Return a field of the rationale of a graph or batch after a check that it fits.

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
    problem = repair(data, edges=key == "edge_mask")
    if problem is not None:
        raise InputError(
            f"{key}: does not fit this graph: {problem}; a transform has changed the graph, so "
            "take the mask from the graph before the transform"
        )
    mask: Tensor = store[key]
    return mask


def repair(data: Data, edges: bool) -> str | None:
    """Recompute `edge_mask` if `edges` and it does not fit; return why masks cannot fit, or None.

    Only a change of the number of nodes shows that nodes are others. `LineGraph` can keep even
    that, but it stores `num_nodes`, which no graph of a build does.
    """
    store = data._store
    if problem := _misfit(data):
        return problem
    doubtful = "num_nodes" in store
    if "edge_mask" not in store or not (edges or doubtful):
        return None
    if _only_length_counts(store):
        rows = len(store["edge_mask"])
        number = store["edge_index"].shape[1] if "edge_index" in store else data.num_edges
        same = rows == number
        return None if same else f"edge_mask has {rows} rows, but the graph has {number} edges"
    inside = edges_inside(marks_of(store), store["edge_index"])
    if inside is None:
        last, rows = int(store["edge_index"].max()), len(store["node_mask"])
        return f"an edge ends at node {last}, but node_mask has {rows} rows"
    if torch.equal(inside, store["edge_mask"]):
        return None
    if doubtful:
        return "its edges are others and its num_nodes is set, so its nodes may be others"
    store["edge_mask"] = inside
    _mend_slices(store)
    return None


def _misfit(data: Data) -> str | None:
    """Return why the rows of a rationale are not those of the nodes, or disagree; None if not."""
    store = data._store
    given = {key: store[key] for key in NODE_TRUTH if store.get(key) is not None}
    for key, rows in given.items():
        # PyG counts nodes by the first field that it finds, which a transform may have forgotten.
        number = data.num_nodes
        if number == len(rows) and "x" in store:
            number = len(store["x"])
        if number != len(rows):
            return f"{key} has {len(rows)} rows, but the graph has {number} nodes"
    nodes, bits, weight = (given.get(key) for key in NODE_TRUTH)
    if nodes is None or nodes.dtype != torch.bool:
        return None  # scores of someone's own
    if isinstance(bits, Tensor):
        same, what = torch.equal(nodes, bits != 0), "the union of the alternatives"
    elif isinstance(weight, Tensor) and not lacks_alternatives(store):
        same, what = torch.equal(nodes, weight > 0), "the nodes with a positive node_weight"
    else:
        return None
    return None if same else f"node_mask is not {what}"


def marks_of(store: BaseStorage) -> Tensor:
    """Return [n] the bits of alternatives, or else `node_mask`."""
    marks: Tensor = store["alternative_bits" if "alternative_bits" in store else "node_mask"]
    return marks


def has_causes(store: BaseStorage) -> bool:
    """Return whether nodes of a graph count for its label: it has a rationale that is not null.

    Where weights are the only rationale, a negative one counts too.
    """
    for key in ("alternative_bits", "node_weight", "node_mask"):
        if isinstance(store.get(key), Tensor):
            return bool((store[key] != 0).any())
    return False


def edges_inside(marks: Tensor, ends: Tensor) -> Tensor | None:
    """Return [m] whether both ends of an edge are in one rationale; None if an end is no node."""
    if ends.numel():
        least, most = torch.aminmax(ends)
        if least < 0 or most >= len(marks):
            return None
    # One long selection takes a tenth of the time of indexing with a matrix.
    marked = marks.index_select(0, ends.reshape(-1)).view(2, -1)
    return (marked[0] & marked[1]).bool()


def _only_length_counts(store: BaseStorage) -> bool:
    """Return whether `edge_mask` need not be the edges inside `node_mask`."""
    masks = [store.get(key) for key in MASKS]
    if _COLLATED in store.__dict__ or "edge_index" not in store:
        return True
    if any(mask is None or mask.dtype != torch.bool for mask in masks):
        return True  # scores of someone's own
    if lacks_alternatives(store) or marks_of(store).dtype not in (torch.bool, torch.int64):
        return True
    if _GIVEN not in store.__dict__:
        return False
    given, ends = store.__dict__[_GIVEN], store["edge_index"]
    return given is None or given is ends or torch.equal(given.to(ends.device), ends)


def _mend_slices(store: BaseStorage) -> None:
    """In a batch, let `edge_mask` begin and end with the edges of each graph."""
    slices = store.__dict__.get("_slice_dict", {})
    if {"edge_mask", "edge_index"} <= slices.keys():
        slices["edge_mask"] = slices["edge_index"]
