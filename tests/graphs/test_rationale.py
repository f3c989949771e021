"""Null rationales, alternatives and weights: bits, records, invariants and statistics."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphxai_data.errors import InputError
from graphxai_data.graphs.columns import pack
from graphxai_data.graphs.invariants import check_columns
from graphxai_data.graphs.rationale import (
    MAX_ALTERNATIVES,
    alternatives_of,
    are_numbered,
    bits_of,
    counts_of,
)
from graphxai_data.graphs.record import GraphRecord
from graphxai_data.graphs.schema import Feature, Schema
from graphxai_data.graphs.summary import Statistics
from tests.strategies import datasets

Data = tuple[Schema, list[GraphRecord]]
FORMS = st.integers(1, 6).flatmap(
    lambda nodes: st.lists(
        st.lists(st.booleans(), min_size=nodes, max_size=nodes).filter(any), max_size=63
    ).map(lambda masks: np.array(masks, bool).reshape(-1, nodes))
)


def columns_of(schema: Schema, records: list[GraphRecord]) -> dict[str, np.ndarray]:
    return pack(records, schema, np.arange(len(records)), np.zeros(len(records), np.uint8))


@given(FORMS)
def test_bits_hold_up_to_63_alternatives(masks: np.ndarray) -> None:
    bits = bits_of(masks, masks.shape[1])
    assert (alternatives_of(bits) == masks).all()
    assert alternatives_of(bits).shape == masks.shape


@given(st.lists(FORMS, min_size=1, max_size=4))
def test_alternatives_are_counted_graph_by_graph(graphs: list[np.ndarray]) -> None:
    bits = np.concatenate([bits_of(masks, masks.shape[1]) for masks in graphs])
    ptr = np.cumsum([0, *(masks.shape[1] for masks in graphs)])
    assert counts_of(bits, ptr).tolist() == [len(masks) for masks in graphs]
    assert are_numbered(bits, ptr).all()


def test_impossible_alternatives_are_refused() -> None:
    with pytest.raises(InputError, match="64 of them, expected at most 63"):
        bits_of(np.ones((MAX_ALTERNATIVES + 1, 2)), 2)
    with pytest.raises(InputError, match="one has no nodes"):
        bits_of([[1, 0], [0, 0]], 2)
    with pytest.raises(InputError, match=r"each of 3 nodes, per alternative, got int64 \[1, 2\]"):
        bits_of([[1, 0]], 3)
    for truth, message in (
        ({"node_mask": [1, 0], "alternatives": [[1, 1]]}, "not the union of the alternatives"),
        ({"node_weight": [1.0]}, r"node_weight: expected \[2\] numbers, got \[1\]"),
    ):
        with pytest.raises(InputError, match=message):
            GraphRecord.from_edges(np.ones((2, 1)), [(0, 1)], 0, **truth)  # type: ignore[arg-type]


def test_schemas_that_contradict_themselves_are_refused() -> None:
    for options in ({"has_null": True}, {"has_alternatives": True}, {"has_weights": True}):
        with pytest.raises(ValueError, match="has_rationale is false"):
            Schema(Feature(1, "dense"), None, 1, has_rationale=False, **options)
    with pytest.raises(ValueError, match="with num_classes = 1"):
        Schema(Feature(1, "dense"), None, 2, label="number")


SCHEMA = Schema(Feature(1, "dense"), None, 2, has_null=True, has_alternatives=True)
WEIGHTED = Schema(Feature(1, "dense"), None, 1, has_weights=True, label="number")


def path(**truth: object) -> GraphRecord:
    """Return a path of four nodes."""
    return GraphRecord.from_edges(np.ones((4, 1)), [(0, 1), (1, 2), (2, 3)], 0, **truth)  # type: ignore[arg-type]


TWO = path(alternatives=[[1, 1, 0, 0], [0, 0, 1, 0]])
SIGNED = path(node_weight=[1.0, -1.0, 0.0, 2.0])


@pytest.mark.parametrize(
    ("record", "change", "problem"),
    [
        (TWO, {"node_mask": np.array([1, 1, 0, 0], bool)}, "not the union of the alternatives"),
        (TWO, {"alternative_bits": np.array([1, 1, 4, 0])}, "without a gap"),
        (TWO, {"alternative_bits": np.array([1, 1, -1, 0])}, "without a gap"),
        (TWO, {"edge_mask": np.ones(6, bool)}, "edge_mask is not the set of edges inside"),
        (SIGNED, {"node_weight": np.array([1, 0, np.nan, 2], np.float32)}, "is not finite"),
        (SIGNED, {"node_weight": -SIGNED.node_weight}, "not the nodes with a positive weight"),
        (SIGNED, {"y": np.inf}, "its label is not finite"),
    ],
)
def test_each_broken_invariant_is_reported(
    record: GraphRecord, change: dict[str, object], problem: str
) -> None:
    schema = SCHEMA if record is TWO else WEIGHTED
    assert check_columns(columns_of(schema, [record]), schema) == []
    changed = replace(record, **change)  # type: ignore[arg-type]
    problems = check_columns(columns_of(schema, [record, changed]), schema)
    assert any(problem in found for found in problems)


def test_a_null_rationale_needs_a_schema_that_has_them() -> None:
    null = path(alternatives=[])
    assert check_columns(columns_of(SCHEMA, [null]), SCHEMA) == []
    strict = replace(SCHEMA, has_null=False)
    (problem,) = check_columns(columns_of(strict, [null]), strict)
    assert "the rationale is empty, but its schema has no has_null" in problem


def test_a_mask_alone_becomes_the_only_alternative() -> None:
    one, null = path(node_mask=[1, 1, 0, 0]), path(node_mask=[0, 0, 0, 0])
    assert one.fitted(SCHEMA).alternative_bits.tolist() == [1, 1, 0, 0]  # type: ignore[union-attr]
    assert len(null.fitted(SCHEMA).alternatives) == 0
    assert TWO.fitted(SCHEMA) is TWO


@given(datasets())
def test_statistics_agree_with_a_count_graph_by_graph(data: Data) -> None:
    schema, records = data
    statistics = Statistics()
    half = len(records) // 2
    for part in (records[:half], records[half:]):
        statistics.update(columns_of(schema, part))
    summary = statistics.to_dict()
    if schema.label == "number":
        labels = [record.y for record in records]
        assert summary["y_mean"] == pytest.approx(np.mean(labels))
        assert summary["y_std"] == pytest.approx(np.std(labels), abs=1e-6)
        assert summary["classes"] == {}
    if not schema.has_rationale:
        assert summary["rationale_nodes_mean"] is None
        return
    null = 0
    if not schema.has_weights:
        null = sum(not record.rationale.any() for record in records)
    assert (summary["null_rationales"] or 0) == null
    known = max(len(records) - null, 1)
    nodes = sum(int(record.rationale.sum()) for record in records)
    assert summary["rationale_nodes_mean"] == pytest.approx(nodes / known)
    if schema.has_alternatives:
        several = sum(len(record.alternatives) for record in records)
        assert summary["alternatives_mean"] == pytest.approx(several / known)
