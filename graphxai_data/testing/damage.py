"""Wrong labels and rationales, planted in graphs to see whether a prover finds them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from graphxai_data.graphs.rationale import bits_of, edges_inside
from graphxai_data.graphs.record import GraphRecord
from graphxai_data.graphs.schema import Schema

# Returns a damaged graph, or None for a graph that cannot have this damage.
Damage = Callable[[GraphRecord, Any], GraphRecord | None]


def damages(schema: Schema) -> dict[str, Damage]:
    """Return what a prover has to find, by name: functions of a record and random draws."""
    planted: dict[str, Damage] = {}
    if schema.label == "number":
        planted["a wrong number"] = _another_number
    elif schema.num_classes > 1:
        change = _another_class if schema.task == "graph" else _another_node_class
        planted["a wrong class"] = lambda record, rng: change(record, rng, schema.num_classes)
    if not schema.has_rationale:
        return planted
    if schema.has_weights:
        planted["a wrong weight"] = _another_weight
    if schema.has_alternatives:
        planted["a wrong alternative"] = _another_alternative
        planted["a missing alternative"] = _missing_alternative
    elif not schema.has_weights:
        planted["a wrong mask"] = _another_mask
    if schema.has_null and (schema.has_alternatives or not schema.has_weights):
        planted["a rationale of a null graph"] = _invented_rationale
    return planted


def _another_class(record: GraphRecord, rng: Any, classes: int) -> GraphRecord:
    return replace(record, y=(record.y + rng.integers(1, classes)) % classes)


def _another_node_class(record: GraphRecord, rng: Any, classes: int) -> GraphRecord:
    node_y = np.array(record.node_y)
    node = rng.integers(len(node_y))
    node_y[node] = (int(node_y[node]) + rng.integers(1, classes)) % classes
    return replace(record, node_y=node_y)


def _another_number(record: GraphRecord, rng: Any) -> GraphRecord:
    """Change a label by more than its size, so that no tolerance of rounding covers it."""
    return replace(record, y=record.y + (1 + abs(record.y)) * (1 if rng.integers(2) else -1))


def _another_weight(record: GraphRecord, rng: Any) -> GraphRecord:
    """Turn the sign of one weight, or give a node without weight one."""
    weight = np.array(record.node_weight)
    node = rng.integers(len(weight))
    weight[node] = -weight[node] if weight[node] else 1.0
    if record.alternative_bits is not None:
        return replace(record, node_weight=weight)
    return replace(_with_marks(record, weight > 0), node_weight=weight)


def _another_mask(record: GraphRecord, rng: Any) -> GraphRecord | None:
    mask = _with_another_node(record.rationale, rng)
    return None if mask is None else _with_marks(record, mask)


def _another_alternative(record: GraphRecord, rng: Any) -> GraphRecord | None:
    """Exchange one node of one alternative."""
    masks = record.alternatives
    if not len(masks):
        return None
    changed = rng.integers(len(masks))
    mask = _with_another_node(masks[changed], rng)
    if mask is None or (masks == mask).all(axis=1).any():
        return None
    masks[changed] = mask
    return _with_marks(record, bits_of(masks, record.num_nodes))


def _missing_alternative(record: GraphRecord, rng: Any) -> GraphRecord | None:
    masks = record.alternatives
    if len(masks) < 2:
        return None
    rest = np.delete(masks, rng.integers(len(masks)), axis=0)
    return _with_marks(record, bits_of(rest, record.num_nodes))


def _invented_rationale(record: GraphRecord, rng: Any) -> GraphRecord | None:
    if record.rationale.any():
        return None
    mask = np.arange(record.num_nodes) == rng.integers(record.num_nodes)
    is_alternative = record.alternative_bits is not None
    return _with_marks(record, mask.astype(np.int64) if is_alternative else mask)


def _with_another_node(mask: npt.NDArray[np.bool_], rng: Any) -> npt.NDArray[np.bool_] | None:
    """Return a mask with one node exchanged; None if it has no nodes, or all."""
    if mask.all() or not mask.any():
        return None
    changed = mask.copy()
    removed, added = rng.choice(np.flatnonzero(mask)), rng.choice(np.flatnonzero(~mask))
    changed[[removed, added]] = False, True
    return changed


def _with_marks(record: GraphRecord, marks: npt.NDArray[Any]) -> GraphRecord:
    """Return a record with another mask [n] bool, or other bits of alternatives [n] int64."""
    edges = edges_inside(marks, *record.edge_index)
    bits = None if marks.dtype == bool else marks
    return replace(record, node_mask=marks != 0, edge_mask=edges, alternative_bits=bits)
