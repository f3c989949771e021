"""Checks that graphs of every dataset pass, for many graphs at once."""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphxai_data.graphs.columns import Columns, Ints, global_edges, graph_of_rows, pointers
from graphxai_data.graphs.rationale import are_numbered, edges_inside
from graphxai_data.graphs.record import RECORD_FIELDS, GraphRecord
from graphxai_data.graphs.schema import Feature, Schema


class Findings:
    """Collects the problems of graphs; `problems` is empty if there are none.

    Most requirements compare, graph by graph, how many `nodes` or `edges` have a property.
    """

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self.problems: list[str] = []

    def nodes(self, holds: npt.NDArray[np.bool_]) -> Ints:
        """Return [g] for how many nodes of each graph `holds` [N] is true."""
        return np.diff(pointers(holds)[self._columns["node_ptr"]])

    def edges(self, holds: npt.NDArray[np.bool_]) -> Ints:
        """Return [g] for how many directed edges of each graph `holds` [M] is true."""
        return np.diff(pointers(holds)[self._columns["edge_ptr"]])

    def require(self, holds: npt.NDArray[np.bool_], sentence: str) -> None:
        """Add a problem, which names the first such graph, unless `holds` [g] is always true."""
        if not holds.all():
            broken = int((~holds).sum())
            first = int(self._columns["graph_id"][int(np.argmin(holds))])
            others = f" (and {broken - 1} more)" if broken > 1 else ""
            self.problems.append(f"graph {first}{others}: {sentence}")


def wrong_shape(record: GraphRecord, schema: Schema) -> str | None:
    """Return which array of a record has not the type or shape that its schema demands."""
    declared = {column.name: column.expanded for column in schema.columns()}
    rows = {"node": len(record.x), "edge": np.shape(record.edge_index)[-1]}
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
    """Return what is wrong with graphs of any dataset: all are simple and undirected."""
    findings = Findings(columns)
    sizes = np.diff(columns["node_ptr"])
    findings.require(sizes > 0, "has no nodes")
    size = sizes[graph_of_rows(columns["edge_ptr"])]
    ends = columns["edge_index"].astype(np.int64)
    outside = (ends < 0) | (ends >= size)
    findings.require(findings.edges(outside[0] | outside[1]) == 0, "an edge ends outside the graph")
    if findings.problems:
        return findings.problems  # the rest uses these as indices

    source, target = global_edges(columns)
    _check_edges(findings, columns, source, target)
    if schema.has_rationale:
        _check_rationale(findings, columns, schema, source, target)
    if schema.task == "node":
        unknown = columns["node_y"] >= schema.num_classes
        findings.require(findings.nodes(unknown) == 0, "the class of a node does not exist")
        findings.require(columns["y"] == 0, "has a class, though only nodes have")
    label = columns["y"]
    if schema.label == "number":
        findings.require(np.isfinite(label), "its label is not finite")
    else:
        findings.require((label >= 0) & (label < schema.num_classes), "its class does not exist")
    findings.require(columns["split"] <= 2, "its split does not exist")
    for column in schema.columns():
        if column.feature is not None:
            valid = _valid_rows(columns[column.name], column.feature)
            count = findings.nodes if column.level == "node" else findings.edges
            dense = column.feature.encoding == "dense"
            reason = "has a value that is not finite" if dense else "has a class id out of range"
            findings.require(count(~valid) == 0, f"{column.name} {reason}")
    return findings.problems


def _check_rationale(
    findings: Findings, columns: Columns, schema: Schema, source: Ints, target: Ints
) -> None:
    mask, sizes = columns["node_mask"].astype(bool), np.diff(columns["node_ptr"])
    inside = findings.nodes(mask)
    # Weights may all be positive, or none.
    if not schema.has_weights or schema.has_alternatives:
        if not schema.has_null:
            findings.require(inside > 0, "the rationale is empty, but its schema has no has_null")
        findings.require(inside < sizes, "the rationale is the whole graph")
    marks = mask
    if schema.has_alternatives:
        marks = columns["alternative_bits"].astype(np.int64)
        differs = mask != (marks != 0)
        sentence = "node_mask is not the union of the alternatives"
        findings.require(findings.nodes(differs) == 0, sentence)
        numbered = are_numbered(marks, columns["node_ptr"])
        findings.require(numbered, "the bits of its alternatives are not 0, 1, … without a gap")
    differs = columns["edge_mask"] != edges_inside(marks, source, target)
    sentence = "edge_mask is not the set of edges inside the rationale"
    findings.require(findings.edges(differs) == 0, sentence)
    if schema.has_weights:
        weight = columns["node_weight"]
        findings.require(findings.nodes(~np.isfinite(weight)) == 0, "a node_weight is not finite")
        if not schema.has_alternatives:
            differs = mask != (weight > 0)
            sentence = "node_mask is not the nodes with a positive weight"
            findings.require(findings.nodes(differs) == 0, sentence)


def _check_edges(findings: Findings, columns: Columns, source: Ints, target: Ints) -> None:
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
        findings.require(findings.edges(~alike) == 0, "an edge and its reverse differ in features")


def _as_matrix(stored: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return stored if stored.ndim == 2 else stored[:, None]


def _valid_rows(stored: npt.NDArray[Any], feature: Feature) -> npt.NDArray[np.bool_]:
    rows = _as_matrix(stored)
    limits = np.array(feature.widths or (feature.width,))
    valid = np.isfinite(rows) if feature.encoding == "dense" else rows < limits
    return np.asarray(valid.all(axis=1))
