"""What holds for graphs of every dataset, checked for many at once."""

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from graphxai_data.graphs.columns import (
    Columns,
    Ints,
    global_edges,
    graph_of_edge,
    graph_of_node,
    pack,
)
from graphxai_data.graphs.record import RECORD_FIELDS, Feature, GraphRecord, Schema


class Findings:
    """Collects problems of the graphs in `columns`; `problems` is empty when there are none.

    `nodes` and `edges` count, for every graph, the rows for which something is true: what most
    requirements are made of.
    """

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._graph_id = columns["graph_id"]
        self.problems: list[str] = []

    @cached_property
    def _owner_of_node(self) -> Ints:
        return graph_of_node(self._columns)

    @cached_property
    def _owner_of_edge(self) -> Ints:
        return graph_of_edge(self._columns)

    def nodes(self, holds: npt.NDArray[np.bool_]) -> Ints:
        """[g] how many nodes of each graph `holds` [N] is true for."""
        return np.bincount(self._owner_of_node[holds], minlength=len(self._graph_id))

    def edges(self, holds: npt.NDArray[np.bool_]) -> Ints:
        """[g] how many directed edges of each graph `holds` [M] is true for."""
        return np.bincount(self._owner_of_edge[holds], minlength=len(self._graph_id))

    def require(self, holds: npt.NDArray[np.bool_], sentence: str) -> None:
        """Note a problem unless `holds` [g] is true for every graph."""
        if not holds.all():
            broken = int((~holds).sum())
            first = int(self._graph_id[int(np.argmin(holds))])
            others = f" (and {broken - 1} more)" if broken > 1 else ""
            self.problems.append(f"graph {first}{others}: {sentence}")


def check_record(record: GraphRecord, schema: Schema) -> list[str]:
    """Problems of a single record."""
    columns = pack([record], schema, np.zeros(1, np.int64), np.zeros(1, np.uint8))
    return check_columns(columns, schema)


def wrong_shape(record: GraphRecord, schema: Schema) -> str | None:
    """Return which array of a record has not the type or shape that its schema demands."""
    declared = {column.name: column.expanded for column in schema.columns()}
    rows = {"node": len(record.x), "edge": record.edge_index.shape[-1]}
    for name in RECORD_FIELDS:
        array, column = getattr(record, name), declared.get(name)
        if column is None and array is not None:
            return f"has {name}, but its schema says that no graph has"
        if column is None or column.level == "graph":
            continue
        dtype, shape = np.dtype(column.dtype), column.array_shape(rows[column.level])
        if not isinstance(array, np.ndarray) or array.dtype != dtype or array.shape != shape:
            got = f"{getattr(array, 'dtype', type(array))} {getattr(array, 'shape', '')}"
            return f"{name} is {got}, expected {dtype} {shape}"
    return None


def check_columns(columns: Columns, schema: Schema) -> list[str]:
    """Problems of graphs that hold for no dataset: every graph here is simple and undirected."""
    findings = Findings(columns)
    sizes = np.diff(columns["node_ptr"].astype(np.int64))
    findings.require(sizes > 0, "has no nodes")

    owner = graph_of_edge(columns)
    ends = columns["edge_index"].astype(np.int64)
    in_range = (ends[0] < sizes[owner]) & (ends[1] < sizes[owner]) & (ends >= 0).all(axis=0)
    findings.require(findings.edges(~in_range) == 0, "an edge ends outside the graph")
    if findings.problems:
        return findings.problems  # the rest would index with these

    source, target = global_edges(columns)
    total = max(len(columns["x"]), 1)
    code, reverse = source * total + target, target * total + source
    rising = np.diff(code, prepend=-1) > 0
    findings.require(findings.edges(~rising) == 0, "edges are not sorted and distinct")
    findings.require(findings.edges(source == target) == 0, "has a self-loop")
    back = np.searchsorted(code, reverse).clip(max=max(len(code) - 1, 0))
    mutual = code[back] == reverse
    findings.require(findings.edges(~mutual) == 0, "an edge lacks its reverse")
    if "edge_attr" in columns:
        attributes = _as_matrix(columns["edge_attr"])
        alike = (attributes == attributes[back]).all(axis=1)
        findings.require(findings.edges(~alike) == 0, "an edge and its reverse have other features")

    if schema.has_rationale:
        mask = columns["node_mask"].astype(bool)
        inside = findings.nodes(mask)
        findings.require(
            (inside > 0) & (inside < sizes), "the rationale is empty or the whole graph"
        )
        findings.require(
            findings.edges(columns["edge_mask"] != (mask[source] & mask[target])) == 0,
            "edge_mask is not the set of edges inside the rationale",
        )
    if schema.task == "node":
        unknown = columns["node_y"] >= schema.num_classes
        findings.require(findings.nodes(unknown) == 0, "the class of a node does not exist")
        findings.require(columns["y"] == 0, "has a class, though only nodes have")
    label = columns["y"].astype(np.int64)
    findings.require((label >= 0) & (label < schema.num_classes), "its class does not exist")
    findings.require(columns["split"].astype(np.int64) <= 2, "its split does not exist")
    invalid = ~_valid_rows(columns["x"], schema.node_features)
    findings.require(findings.nodes(invalid) == 0, "x is not valid")
    if schema.edge_features is not None:
        invalid = ~_valid_rows(columns["edge_attr"], schema.edge_features)
        findings.require(findings.edges(invalid) == 0, "edge_attr is not valid")
    return findings.problems


def _as_matrix(stored: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return stored if stored.ndim == 2 else stored[:, None]


def _valid_rows(stored: npt.NDArray[Any], feature: Feature) -> npt.NDArray[np.bool_]:
    rows = _as_matrix(stored)
    limits = np.array(feature.widths or (feature.width,))
    valid = np.isfinite(rows) if feature.encoding == "dense" else rows < limits
    return np.asarray(valid.all(axis=1))
