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
    total = weight = 0.0
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
        features = cdist(x[nodes], x[nodes])
        difference = features / (features.max() or 1) - structure / structure.max()
        pairs = len(nodes) ** 2 - len(nodes)
        score = (
            np.abs(difference).sum() / pairs
            if norm == "L11"
            else np.linalg.norm(difference) / np.sqrt(pairs)
        )
        total += score * len(nodes)
        weight += len(nodes)
    return total / weight if weight else float("nan")


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, 9), st.floats(0, 1), st.integers(0, 10**6)), min_size=1, max_size=6
    ),
    st.sampled_from(sorted(GRAPH_METRICS)),
    st.sampled_from(["L11", "frobenius"]),
)
def test_values_of_many_graphs_match_the_definition(
    kinds: list[tuple[int, float, int]], metric: str, norm: str
) -> None:
    graphs = [nx.gnp_random_graph(n, p, seed=s) for n, p, s in kinds]
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


@pytest.mark.parametrize(
    "graph",
    [
        _graph([[1.0]], []),
        _graph([[1.0], [2.0], [3.0]], []),
        _graph([[1.0], [2.0]], [[0, 0]]),
        _graph([[1.0], [float("nan")]], [[0, 1]]),
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
