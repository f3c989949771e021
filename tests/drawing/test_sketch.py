import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphxai_data.drawing.sketch import SIDE, sketch, stress_layout


def both_ways(edges: list[tuple[int, int]]) -> np.ndarray:
    ends = np.array(sorted({*edges, *((b, a) for a, b in edges)}), np.int64)
    return ends.reshape(-1, 2).T


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 14).flatmap(
        lambda n: st.tuples(
            st.just(n),
            st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=30),
        )
    )
)
def test_any_graph_fits_the_square_and_looks_the_same_twice(
    drawn: tuple[int, list[tuple[int, int]]],
) -> None:
    nodes, pairs = drawn
    edge_index = both_ways([(a, b) for a, b in pairs if a != b])
    layout = sketch(edge_index, nodes)
    assert layout.places.shape == (nodes, 2)
    assert np.isfinite(layout.places).all()
    assert (layout.places >= 0).all()
    assert (layout.places <= SIDE).all()
    assert {tuple(e) for e in layout.edges.tolist()} == {(a, b) for a, b in edge_index.T if a < b}
    assert np.array_equal(sketch(edge_index, nodes).places, layout.places)


def test_a_path_is_drawn_nearly_straight_and_a_ring_nearly_round() -> None:
    path = np.array([(i, i + 1) for i in range(9)])
    places = stress_layout(path, 10)
    apart = np.linalg.norm(places[0] - places[9])
    assert apart == pytest.approx(9, rel=0.02)
    ring = np.array([(i, (i + 1) % 12) for i in range(12)])
    radii = np.linalg.norm(stress_layout(ring, 12) - stress_layout(ring, 12).mean(axis=0), axis=1)
    assert radii.std() < 0.02 * radii.mean()


def stress(places: np.ndarray, graph: nx.Graph) -> float:
    """Kamada and Kawai's energy, at the best scale."""
    expected = np.array(nx.floyd_warshall_numpy(graph))
    distance = np.linalg.norm(places[:, None] - places[None], axis=2)
    above = np.triu_indices(len(places), 1)
    ratio = distance[above] / expected[above]
    scale = ratio.sum() / (ratio**2).sum()
    return float(((scale * ratio - 1) ** 2).sum())


@pytest.mark.parametrize(
    "graph",
    [nx.balanced_tree(2, 4), nx.barabasi_albert_graph(25, 1, seed=3), nx.grid_graph([5, 6]),
     nx.barabasi_albert_graph(40, 2, seed=5)],
)  # fmt: skip
def test_a_layout_is_as_good_as_that_of_networkx(graph: nx.Graph) -> None:
    graph = nx.convert_node_labels_to_integers(graph)
    theirs = nx.kamada_kawai_layout(graph)
    ours = stress_layout(np.array(graph.edges), len(graph))
    assert stress(ours, graph) <= 1.05 * stress(np.array([theirs[v] for v in graph]), graph)


def test_a_molecule_has_its_elements_bonds_and_drawing() -> None:
    # Acetic acid, hydrogens left out, atoms as the SMILES has them.
    edges = both_ways([(0, 1), (1, 2), (1, 3)])
    layout = sketch(edges, 4, "CC(=O)O", None, with_svg=True)
    assert layout.labels == ["", "", "O", "O"]
    order = {
        tuple(e): o for e, o in zip(layout.edges.tolist(), layout.orders.tolist(), strict=True)
    }
    assert order == {(0, 1): 1, (1, 2): 2, (1, 3): 1}
    assert "bond-1" in layout.svg
    assert "#000000" not in layout.svg
    assert "<rect" not in layout.svg  # no background


def test_hydrogens_are_placed_where_they_are_nodes() -> None:
    # Water: the second and third atom are the hydrogens that RDKit adds.
    layout = sketch(both_ways([(0, 1), (0, 2)]), 3, "O", np.array([0, 1, 2]))
    assert layout.labels == ["O", "H", "H"]
    assert len({tuple(place) for place in layout.places.tolist()}) == 3


def test_text_that_is_no_molecule_is_drawn_as_a_graph() -> None:
    layout = sketch(both_ways([(0, 1)]), 2, "no molecule")
    assert layout.labels == ["", ""]
    assert np.isfinite(layout.places).all()


def test_one_direction_of_an_edge_is_enough() -> None:
    down = np.array([[3, 2, 1], [2, 1, 0]])
    assert sketch(down, 4).edges.tolist() == [[0, 1], [1, 2], [2, 3]]
