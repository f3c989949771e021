"""Rationales of graphs that are not of a build, in all forms: masks, alternatives, weights."""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from graphxai_data.errors import InputError
from graphxai_data.graphs.rationale import bits_of, edges_inside
from graphxai_data.metrics import as_array


def rationale_fields(graph: Data, edge_index: Tensor, nodes: int, where: str) -> dict[str, Tensor]:
    """Return the masks of a graph and, if given, `alternative_bits` and `node_weight`.

    A field that is missing follows from the others; fields that contradict each other are an
    `InputError`.
    """
    node_mask = _mask(graph, "node_mask", nodes, where)
    edge_mask = _mask(graph, "edge_mask", edge_index.shape[1], where)
    bits, weight = _bits(graph, nodes, where), _weight(graph, nodes, where)
    if node_mask is None and edge_mask is None and bits is None and weight is None:
        raise InputError(
            f"{where}: no ground truth; expected a node_mask [{nodes}], or an edge_mask "
            f"[{edge_index.shape[1]}], that marks the rationale"
        )
    expected = None
    if bits is not None:
        expected, what = bits != 0, "the nodes of all alternatives"
    elif weight is not None:
        expected, what = weight > 0, "the nodes with a positive node_weight"
    if expected is not None:
        if node_mask is not None and not torch.equal(node_mask, expected):
            raise InputError(
                f"{where}: node_mask: expected {what}, got other nodes; leave node_mask out"
            )
        node_mask = expected
    if node_mask is None:
        node_mask = torch.zeros(nodes, dtype=torch.bool)
        node_mask[edge_index[:, edge_mask].flatten()] = True
    if edge_mask is None:
        marks = (node_mask if bits is None else bits).numpy()
        edge_mask = torch.from_numpy(edges_inside(marks, *edge_index.numpy()))
    fields = {"node_mask": node_mask, "edge_mask": edge_mask}
    fields |= {} if bits is None else {"alternative_bits": bits}
    return fields | ({} if weight is None else {"node_weight": weight})


def complete_forms(fields: list[dict[str, Tensor]]) -> None:
    """Give every graph the same fields: a rationale without alternatives becomes the only one."""
    if any("alternative_bits" in graph for graph in fields):
        for graph in fields:
            graph.setdefault("alternative_bits", graph["node_mask"].long())
    weighted = ["node_weight" in graph for graph in fields]
    if any(weighted) and not all(weighted):
        raise InputError(
            f"graph {weighted.index(False)}: expected a node_weight, as graph "
            f"{weighted.index(True)} has; give weights to all graphs or to none"
        )


def _bits(graph: Data, nodes: int, where: str) -> Tensor | None:
    """Return [n] the bits of `alternatives` [a, n], or the given `alternative_bits`."""
    if "alternative_bits" in graph:
        bits = as_array(graph.alternative_bits)
        if bits.shape != (nodes,) or bits.dtype.kind not in "iu" or (bits < 0).any():
            raise InputError(
                f"{where}: alternative_bits: expected whole numbers from 0 [{nodes}], got "
                f"{bits.dtype} {list(bits.shape)}"
            )
        return torch.from_numpy(bits.astype(np.int64))
    if "alternatives" not in graph:
        return None
    try:
        return torch.from_numpy(bits_of(as_array(graph.alternatives), nodes))
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _weight(graph: Data, nodes: int, where: str) -> Tensor | None:
    value = _column(graph, "node_weight", nodes, where)
    if value is None:
        return None
    if value.dtype.kind not in "iuf" or not np.isfinite(value).all():
        raise InputError(f"{where}: node_weight: expected finite numbers, got others")
    return torch.from_numpy(value.astype(np.float32))


def _mask(graph: Data, key: str, size: int, where: str) -> Tensor | None:
    value = _column(graph, key, size, where)
    if value is None:
        return None
    if value.dtype.kind not in "biuf" or not np.isin(value, (0, 1)).all():
        raise InputError(
            f"{where}: {key}: expected true and false, or 1 and 0, got other values; weights are "
            "given as node_weight"
        )
    return torch.from_numpy(value.astype(bool))


def _column(graph: Data, key: str, size: int, where: str) -> Any:
    """Return the array [size] that a graph has under a key; None if it has none."""
    value = getattr(graph, key, None)
    if value is None:
        return None
    array = as_array(value)
    if array.shape not in ((size,), (size, 1)):
        raise InputError(f"{where}: {key}: expected [{size}], got {list(array.shape)}")
    return array.reshape(size)
