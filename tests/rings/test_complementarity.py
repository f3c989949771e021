import json
from pathlib import Path
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm
from scipy.spatial.distance import cdist
from torch_geometric.data import Batch, Data

from graphxai_data.errors import InputError
from graphxai_data.rings import mode_complementarities, mode_complementarity
from graphxai_data.rings.complementarity import GRAPH_METRICS

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "rings.json").read_text())


@pytest.mark.parametrize("name", GOLDEN["graphs"])
def test_values_of_the_reference_implementation(name: str) -> None:
    graph = GOLDEN["graphs"][name]
    data = Data(x=torch.tensor(graph["x"]), edge_index=torch.tensor(graph["edge_index"]))
    assert len(GOLDEN["complementarity"][name]) == 8
    for key, expected in GOLDEN["complementarity"][name].items():
        metric, norm = key.split("/")
        assert mode_complementarity(data, metric, norm=norm) == pytest.approx(expected, abs=1e-9)


def _by_networkx(graph: nx.Graph, x: np.ndarray, metric: str, norm: str) -> float:
    """The definition, component by component, with networkx and SciPy."""
    if not graph.number_of_edges():
        return _score(cdist(x, x), np.zeros((len(x), len(x))), norm)
    total = 0.0
    for nodes in nx.connected_components(graph):
        nodes = sorted(nodes)
        if len(nodes) < 2:
            continue
        part = graph.subgraph(nodes)
        if metric == "shortest_path_distance":
            paths = dict(nx.all_pairs_shortest_path_length(part))
            structure = np.array([[paths[a][b] for b in nodes] for a in nodes], float)
        elif metric == "resistance_distance":
            both = nx.resistance_distance(part)
            structure = np.array([[both[a][b] for b in nodes] for a in nodes])
        else:
            laplacian = nx.normalized_laplacian_matrix(part, nodes).toarray()
            rows = laplacian if metric == "diffusion_distance" else expm(-laplacian)
            structure = cdist(rows, rows)
        total += _score(cdist(x[nodes], x[nodes]), structure, norm) * len(nodes)
    return total / len(graph)


def _score(features: np.ndarray, structure: np.ndarray, norm: str) -> float:
    difference = features / (features.max() or 1) - structure / (structure.max() or 1)
    pairs = max(len(features) ** 2 - len(features), 1)
    if norm == "L11":
        return float(np.abs(difference).sum() / pairs)
    return float(np.linalg.norm(difference) / np.sqrt(pairs))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, 9), st.floats(0, 1), st.integers(0, 10**6)), min_size=1, max_size=6
    ),
    st.sampled_from(sorted(GRAPH_METRICS)),
    st.sampled_from(["L11", "frobenius"]),
    st.integers(0, 2),
)
def test_values_of_many_graphs_match_the_definition(
    kinds: list[tuple[int, float, int]], metric: str, norm: str, loops: int
) -> None:
    graphs = [nx.gnp_random_graph(n, p, seed=s) for n, p, s in kinds]
    for graph in graphs:
        graph.add_edges_from((i, i) for i in range(min(loops, len(graph))))
    xs = [np.random.default_rng(s).integers(0, 3, (n, 2)).astype(float) for n, _, s in kinds]
    ptr = np.cumsum([0] + [n for n, _, _ in kinds])
    edges = [
        np.array(list(g.edges)).reshape(-1, 2) + begin
        for g, begin in zip(graphs, ptr, strict=False)
    ]
    values = mode_complementarities(
        np.concatenate(xs), np.concatenate(edges).T, ptr, metric, norm=norm
    )
    expected = [_by_networkx(g, x, metric, norm) for g, x in zip(graphs, xs, strict=True)]
    np.testing.assert_allclose(values, expected, atol=1e-9, equal_nan=True)


def test_a_pyg_batch_fits() -> None:
    datas = [
        Data(x=torch.rand(n, 3, generator=torch.Generator().manual_seed(n)), edge_index=e)
        for n, e in ((3, torch.tensor([[0, 1], [1, 2]])), (2, torch.tensor([[0], [1]])))
    ]
    batch = Batch.from_data_list(datas)
    together = mode_complementarities(batch.x, batch.edge_index, batch.ptr)
    np.testing.assert_allclose(together, [mode_complementarity(d) for d in datas], atol=1e-12)


def _graph(x: list, edges: list) -> SimpleNamespace:
    return SimpleNamespace(x=np.array(x, float), edge_index=np.array(edges, int).reshape(-1, 2).T)


PATH = [[0, 1], [1, 2], [2, 3]]
LINE = [[0.0], [1.0], [2.0], [3.0]]
# Values of the official code (aidos-lab/rings at 68a58a4), by graph metric: diffusion, heat kernel,
# resistance, shortest path. Feature metric euclidean, norm L11.
OFFICIAL = {
    "no edges": (_graph([[0.0], [1.0], [3.0]], []), (2 / 3, 2 / 3, 2 / 3, 2 / 3)),
    "no edges, equal features": (_graph([[1.0]] * 3, []), (0, 0, 0, 0)),
    "one node": (_graph([[1.0]], []), (0, 0, 0, 0)),
    "one node with a self-loop": (_graph([[1.0]], [[0, 0]]), (0, 0, 0, 0)),
    "only a self-loop": (_graph([[1.0], [2.0]], [[0, 0]]), (0, 0, 0, 0)),
    "one self-loop": (_graph(LINE, [*PATH, [0, 0]]), (0.3829, 0.1469, 0, 0)),
    "the same self-loop twice": (_graph(LINE, [*PATH, [0, 0], [0, 0]]), (0.3829, 0.1469, 0, 0)),
    "all self-loops": (_graph(LINE, [*PATH, *([i, i] for i in range(4))]), (0.4017, 0.2159, 0, 0)),
    "an isolated node": (_graph([*LINE, [9.0]], PATH), (0.3051, 0.1566, 0, 0)),
    "an edge twice": (_graph(LINE, [*PATH, [1, 0], [0, 1]]), (0.3814, 0.1957, 0, 0)),
}
METRICS = ("diffusion_distance", "heat_kernel_distance", "resistance_distance",
           "shortest_path_distance")  # fmt: skip


@pytest.mark.parametrize("kind", OFFICIAL)
def test_edge_cases_have_the_values_of_the_official_code(kind: str) -> None:
    graph, values = OFFICIAL[kind]
    for metric, value in zip(METRICS, values, strict=True):
        assert mode_complementarity(graph, metric) == pytest.approx(value, abs=6e-5), metric


@pytest.mark.parametrize(
    "graph",
    [
        SimpleNamespace(x=np.zeros((0, 1)), edge_index=np.zeros((2, 0), int)),
        _graph([[1.0], [float("nan")]], [[0, 1]]),
        _graph([[1.0], [2.0], [float("inf")]], [[0, 1]]),
        _graph([[float("nan")]], []),
        _graph([[1.0], [float("nan")]], []),
    ],
)
@pytest.mark.parametrize("metric", sorted(GRAPH_METRICS))
def test_undefined_values_are_nan(graph: SimpleNamespace, metric: str) -> None:
    assert np.isnan(mode_complementarity(graph, metric))
    assert np.isnan(mode_complementarity(graph, metric, "cityblock"))


def test_constant_features_are_a_space_of_diameter_zero() -> None:
    """As in RINGS: what remains is the mean distance in the graph."""
    path = _graph([[5.0]] * 3, [[0, 1], [1, 2]])
    assert mode_complementarity(path, "shortest_path_distance") == pytest.approx(4 / 6)


def test_metrics_of_scikit_learn_are_accepted_and_unknown_names_refused() -> None:
    path = _graph([[0, 0], [1, 1], [3, 3]], [[0, 1], [1, 2]])
    # Distances 2, 4, 6 over 6 against 1, 1, 2 over 2.
    expected = 2 * (abs(2 / 6 - 1 / 2) + abs(4 / 6 - 1 / 2)) / 6
    assert mode_complementarity(path, "shortest_path_distance", "cityblock") == pytest.approx(
        expected
    )
    with pytest.raises(InputError, match="feature metric 'citiblock'"):
        mode_complementarity(path, feature_metric="citiblock")
    with pytest.raises(InputError, match="unknown graph metric 'resistance'; did you mean"):
        mode_complementarity(path, "resistance")
    with pytest.raises(InputError, match="unknown norm 'L2'"):
        mode_complementarity(path, norm="L2")


def test_a_graph_with_nan_does_not_affect_the_others() -> None:
    x = np.array([[np.nan], [1.0], [2.0], [1.0], [2.0], [4.0], [np.inf], [0.0]])
    edges = np.array([[0, 1, 3, 4, 6], [1, 2, 4, 5, 7]])
    for metric in ("euclidean", "cityblock"):
        values = mode_complementarities(x, edges, [0, 3, 6, 8], feature_metric=metric)
        assert np.isnan(values).tolist() == [True, False, True]
    with pytest.raises(InputError, match="an edge ends at node 7, but there are 3 nodes"):
        mode_complementarities(x[:3], edges[:, [4]], [0, 3])
