from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from graphxai_data.graphs.columns import pack
from graphxai_data.graphs.invariants import check_columns
from graphxai_data.graphs.record import GraphRecord
from graphxai_data.graphs.schema import Feature, Schema
from tests.strategies import datasets

SCHEMA = Schema(Feature(2, "dense"), Feature(1, "dense"), num_classes=2)


def _triangle_with_tail() -> GraphRecord:
    edges = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1), (2, 3), (3, 2)]
    edge_index = np.array(edges).T
    mask = np.array([True, True, True, False])
    return GraphRecord(
        x=np.ones((4, 2), np.float32),
        edge_index=edge_index,
        edge_attr=(edge_index.sum(axis=0, keepdims=True).T).astype(np.float32),
        y=1,
        node_mask=mask,
        edge_mask=mask[edge_index].all(axis=0),
        group=0,
    )


def check_record(record: GraphRecord, schema: Schema) -> list[str]:
    return check_columns(pack([record], schema, graph_id=[0], split=[0]), schema)


@given(datasets(most=3))
def test_valid_records_have_no_problems(data: tuple[Schema, list[GraphRecord]]) -> None:
    schema, records = data
    for record in records:
        assert check_record(record, schema) == []


def _edges(*pairs: tuple[int, int]) -> dict:
    edge_index = np.array(pairs).T
    mask = _triangle_with_tail().node_mask
    return {
        "edge_index": edge_index,
        "edge_attr": np.zeros((len(pairs), 1), np.float32),
        "edge_mask": mask[edge_index.clip(0, 3)].all(axis=0),
    }


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (_edges((0, 4), (4, 0)), "an edge ends outside the graph"),
        (_edges((-1, 0), (0, -1)), "an edge ends outside the graph"),
        (_edges((1, 0), (0, 1)), "edges are not sorted and distinct"),
        (_edges((0, 1), (0, 1), (1, 0), (1, 0)), "edges are not sorted and distinct"),
        (_edges((1, 1)), "has a self-loop"),
        (_edges((0, 1)), "an edge lacks its reverse"),
        ({"edge_attr": np.arange(8.0, dtype=np.float32)[:, None]}, "differ in features"),
        ({"node_mask": np.zeros(4, bool), "edge_mask": np.zeros(8, bool)}, "rationale is empty"),
        (
            {"node_mask": np.ones(4, bool), "edge_mask": np.ones(8, bool)},
            "rationale is the whole graph",
        ),
        ({"edge_mask": np.ones(8, bool)}, "edge_mask is not the set of edges inside"),
        ({"y": 2}, "its class does not exist"),
        ({"y": -1}, "its class does not exist"),
        ({"x": np.full((4, 2), np.nan, np.float32)}, "x has a value that is not finite"),
        ({"x": np.full((4, 2), np.inf, np.float32)}, "x has a value that is not finite"),
    ],
)
def test_each_broken_invariant_is_reported(change: dict, problem: str) -> None:
    assert check_record(_triangle_with_tail(), SCHEMA) == []
    problems = check_record(replace(_triangle_with_tail(), **change), SCHEMA)
    assert any(problem in reported for reported in problems)


def test_a_graph_without_nodes_is_reported() -> None:
    empty = GraphRecord(
        x=np.empty((0, 2), np.float32), edge_index=np.empty((2, 0), np.int64),
        edge_attr=np.empty((0, 1), np.float32), y=0, node_mask=np.empty(0, bool),
        edge_mask=np.empty(0, bool), group=0,
    )  # fmt: skip
    assert check_record(empty, SCHEMA) == ["graph 0: has no nodes"]
