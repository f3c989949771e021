from dataclasses import replace

import numpy as np
import pytest

from graphxai_data.graphs.columns import USUAL, expand, layout_problem, pack
from graphxai_data.graphs.schema import Column, Feature, Schema

SCHEMA = Schema(Feature(3, "onehot"), Feature.multihot([2, 4]), 2, (Column("name", "text"),))


def test_the_schema_declares_every_array() -> None:
    columns = {column.name: column for column in SCHEMA.columns()}
    assert {name: column.level for name, column in columns.items()} == {
        "graph_id": "graph", "group": "graph", "split": "graph", "y": "graph",
        "x": "node", "node_mask": "node",
        "edge_index": "edge", "edge_attr": "edge", "edge_mask": "edge",
        "name": "text",
    }  # fmt: skip
    assert {columns[name].pointer for name in columns} == {None, "node_ptr", "edge_ptr", "name_ptr"}
    assert columns["x"].array_shape(5) == (5,)
    assert columns["x"].expanded.array_shape(5) == (5, 3)
    assert columns["edge_attr"].array_shape(5) == (5, 2)
    assert columns["edge_index"].array_shape(5) == (2, 5)
    assert "node_y" in {column.name for column in replace(SCHEMA, task="node").columns()}
    without = {column.name for column in replace(SCHEMA, has_rationale=False).columns()}
    assert without == set(columns) - {"node_mask", "edge_mask"}
    assert set(columns) - {"name"} < USUAL


def test_no_graphs_give_empty_arrays_of_the_declared_layout() -> None:
    none = np.zeros(0, np.int64)
    columns = pack([], SCHEMA, none, none.astype(np.uint8))
    columns["edge_index"] = columns["edge_index"].astype(np.uint8)
    assert layout_problem(columns, SCHEMA) is None


def test_each_wrong_array_is_named() -> None:
    none = np.zeros(0, np.int64)
    columns = pack([], SCHEMA, none, none.astype(np.uint8))
    assert "array 'edge_index' is int64 [2, 0], expected unsigned" in str(
        layout_problem(columns, SCHEMA)
    )
    columns["edge_index"] = columns["edge_index"].astype(np.uint8)
    for column in SCHEMA.columns():
        wrong = columns | {column.name: np.zeros((0, 7), np.float64)}
        assert f"'{column.name}'" in str(layout_problem(wrong, SCHEMA))


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(ValueError, match="array 'a' is of an unknown level 'face'"):
        Column("a", "face")
    with pytest.raises(ValueError, match="array 'a' is text, but not stored as single bytes"):
        Column("a", "text", "<f4")


@pytest.mark.parametrize("ids", [[0, 4], [2, 0]])
def test_class_ids_beyond_their_width_are_refused(ids: list[int]) -> None:
    feature = Feature.multihot([2, 4])
    assert expand(np.array([[1, 3]], np.uint8), feature).tolist() == [[0, 1, 0, 0, 0, 1]]
    with pytest.raises(IndexError):
        expand(np.array([ids], np.uint8), feature)
    with pytest.raises(IndexError):
        expand(np.array([3], np.uint8), Feature(3, "onehot"))
