"""GraphRecord: graphs from lists of edges, in another order, and compared."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphxai_data.errors import InputError
from graphxai_data.graphs.columns import pack
from graphxai_data.graphs.invariants import check_columns
from graphxai_data.graphs.record import GraphRecord
from graphxai_data.graphs.schema import Column, Feature, Schema

SCHEMA = Schema(
    Feature(2, "dense"),
    Feature(1, "dense"),
    num_classes=3,
    extras=(Column("bond", "edge", "<i8"), Column("name", "text"), Column("number", "node", "<i8")),
)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]], list[bool]]:
    """Nodes, each undirected edge once and in any direction, and a proper rationale."""
    nodes = draw(st.integers(2, 12))
    node = st.integers(0, nodes - 1)
    pairs = draw(st.lists(st.tuples(node, node).filter(lambda p: p[0] != p[1]), max_size=20))
    edges = list({frozenset(pair): pair for pair in pairs}.values())
    mask = draw(st.lists(st.booleans(), min_size=nodes, max_size=nodes))
    mask[0], mask[-1] = True, False
    return nodes, edges, mask


def record_of(graph: tuple[int, list[tuple[int, int]], list[bool]]) -> GraphRecord:
    nodes, edges, mask = graph
    x = np.arange(2 * nodes).reshape(nodes, 2)
    attributes = np.array([[a + b] for a, b in edges]).reshape(-1, 1)
    record = GraphRecord.from_edges(x, edges, 1, mask, attributes, name="g")
    bond = record.edge_index.sum(axis=0)
    return replace(record, meta={**record.meta, "bond": bond, "number": np.arange(nodes)})


@given(graphs())
def test_edges_become_a_valid_graph(graph: tuple[int, list[tuple[int, int]], list[bool]]) -> None:
    _, edges, mask = graph
    record = record_of(graph)
    assert check_columns(pack([record], SCHEMA, [0], [0]), SCHEMA) == []
    expected = nx.Graph(edges).to_directed().edges
    assert set(map(tuple, record.edge_index.T.tolist())) == set(expected)
    assert record.edge_attr is not None
    assert record.edge_attr[:, 0].tolist() == record.edge_index.sum(axis=0).tolist()
    inside = [mask[a] and mask[b] for a, b in record.edge_index.T.tolist()]
    assert record.edge_mask is not None
    assert record.edge_mask.tolist() == inside


@given(graphs(), st.randoms(use_true_random=False))
def test_another_order_is_the_same_graph(
    graph: tuple[int, list[tuple[int, int]], list[bool]], random: object
) -> None:
    record = record_of(graph)
    order = np.array(random.sample(range(graph[0]), graph[0]))  # type: ignore[attr-defined]
    mixed = record.reordered(order, SCHEMA)
    assert check_columns(pack([mixed], SCHEMA, [0], [0]), SCHEMA) == []
    number = mixed.meta["number"]
    assert number.tolist() == order.tolist()
    assert (record.x[number] == mixed.x).all()
    assert (record.rationale[number] == mixed.rationale).all()
    assert (number[mixed.edge_index].sum(axis=0) == mixed.meta["bond"]).all()
    assert mixed.reordered(np.argsort(order), SCHEMA).equals(record)
    assert mixed.meta["name"] == "g"


def test_records_are_equal_in_every_bit_or_not_at_all() -> None:
    record = record_of((3, [(0, 1), (1, 2)], [True, True, False]))
    assert record.equals(replace(record, x=record.x.copy()))
    assert not record.equals(replace(record, x=record.x.astype(np.float64)))
    assert not record.equals(replace(record, x=record.x + np.float32(1e-3)))
    assert not record.equals(replace(record, y=2))
    assert not record.equals(replace(record, node_mask=None))
    assert not record.equals(replace(record, meta={}))
    assert not record.equals(replace(record, meta={**record.meta, "name": "h"}))
    minus_zero = np.full_like(record.x, -0.0)
    assert not replace(record, x=np.zeros_like(record.x)).equals(replace(record, x=minus_zero))


@pytest.mark.parametrize(
    ("edges", "attributes", "message"),
    [
        ([(0, 3)], None, r"edges: \(0, 3\) is not between nodes 0 to 2"),
        ([(-1, 0)], None, r"edges: \(-1, 0\) is not between nodes 0 to 2"),
        ([(0, 1)], [[1.0], [2.0]], r"edge_attr: expected \[1, features\], got \[2, 1\]"),
        ([(0, 1)], [1.0], r"edge_attr: expected \[1, features\], got \[1\]"),
        ([(0, 1), (1, 0)], [[1.0], [2.0]], "one is given twice, with different edge_attr"),
        ([[0, 1, 0], [1, 2, 2]], None, r"edges: expected pairs \[k, 2\], got \[2, 3\]; PyG's edge"),
        ([(0, 1, 2)], None, r"edges: expected pairs \[k, 2\], got \[1, 3\]"),
        ([(0, 1), (2,)], None, "edges: expected pairs of nodes"),
        ([(0, 1.7)], None, "edges: expected whole numbers, got float64"),
    ],
)
def test_impossible_edges_are_refused(edges: object, attributes: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        GraphRecord.from_edges(np.ones((3, 1)), edges, 0, None, attributes)  # type: ignore[arg-type]


def test_edges_given_in_both_directions_count_once() -> None:
    record = GraphRecord.from_edges(np.ones((3, 1)), [(0, 1), (1, 0), (0, 1)], 0)
    assert record.edge_index.tolist() == [[0, 1], [1, 0]]
    assert record.node_mask is None
    assert record.edge_mask is None
    assert GraphRecord.from_edges(np.ones((3, 1)), [], 0).edge_index.shape == (2, 0)


@pytest.mark.parametrize("mask", [[True], [0, 2, 1], [[1], [0], [1]], [0, 1, 1, 0]])
def test_impossible_masks_are_refused(mask: object) -> None:
    with pytest.raises(InputError, match="node_mask: expected true or false for each of 3 nodes"):
        GraphRecord.from_edges(np.ones((3, 1)), [(0, 1)], 0, mask)  # type: ignore[arg-type]


def test_features_have_two_dimensions() -> None:
    with pytest.raises(InputError, match=r"x: expected \[nodes, features\], got \[3\]"):
        GraphRecord.from_edges(np.ones(3), [(0, 1)], 0)


def test_the_order_of_own_fields_does_not_matter() -> None:
    a, b = Column("a", "node"), Column("b", "graph", "<i8")
    one = Schema(Feature(1, "dense"), None, 2, extras=(a, b))
    assert one == Schema(Feature(1, "dense"), None, 2, extras=(b, a))
    assert one.extras == (a, b)


@pytest.mark.parametrize(
    "name", ["batch", "num_nodes", "x", "y", "node_mask", "a_ptr", "A", "", "2"]
)
def test_names_with_a_meaning_are_refused_as_own_fields(name: str) -> None:
    with pytest.raises(ValueError, match="extras: "):
        Schema(Feature(1, "dense"), None, 2, extras=(Column(name, "graph", "<i8"),))


def test_a_field_is_there_once() -> None:
    with pytest.raises(ValueError, match="'a' is no name, or there twice"):
        Schema(Feature(1, "dense"), None, 2, extras=(Column("a", "node"), Column("a", "text")))
