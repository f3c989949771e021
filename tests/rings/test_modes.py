import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data
from torch_geometric.utils import is_undirected

from graphxai_data.errors import InputError
from graphxai_data.graphs.union import Graphs
from graphxai_data.rings import Perturbation, perturb
from graphxai_data.rings.modes import (
    FEATURE_FREE,
    MODES,
    STRUCTURE_FREE,
    in_mode,
    tidy_edges,
)  # fmt: skip
from graphxai_data.seeds import rng_for


def _random_graphs(kinds: list[tuple[int, float, int]]) -> Graphs:
    ptr, edges = [0], []
    for nodes, density, seed in kinds:
        graph = nx.gnp_random_graph(nodes, density, seed=seed)
        edges += [(ptr[-1] + a, ptr[-1] + b) for e in graph.edges for a, b in (e, e[::-1])]
        ptr.append(ptr[-1] + nodes)
    ends = np.array(sorted(edges), np.int64).reshape(-1, 2).T
    low, high = np.sort(ends, axis=0)
    weights = (low * 31 + high * 7) % 5  # the same in both directions
    x = np.random.default_rng(0).random((ptr[-1], 3)).astype(np.float32)
    return Graphs(x, ends, weights[:, None].astype(np.float32), np.array(ptr))


GRAPHS = st.lists(
    st.tuples(st.integers(1, 12), st.floats(0, 1), st.integers(0, 10**6)), min_size=1, max_size=6
).map(_random_graphs)


def _edges_per_graph(graphs: Graphs) -> list[int]:
    return np.bincount(graphs.owner[graphs.edges[0]], minlength=len(graphs.sizes)).tolist()


@settings(max_examples=80, deadline=None)
@given(GRAPHS, st.sampled_from(MODES))
def test_every_mode_keeps_what_it_promises(graphs: Graphs, mode: str) -> None:
    changed = in_mode(graphs, mode, rng_for(0, mode))
    source, target = changed.edges
    assert (changed.owner[source] == changed.owner[target]).all()
    assert (source != target).all()
    code = source * len(changed.x) + target
    assert (np.diff(code) > 0).all()
    assert set(code) == set(target * len(changed.x) + source)
    assert len(changed.edge_attr) == len(source)
    weight_of = {(a, b): float(w) for a, b, w in zip(source, target, changed.edge_attr[:, 0])}  # noqa: B905
    assert all(weight_of[b, a] == w for (a, b), w in weight_of.items())
    if mode in FEATURE_FREE:
        assert changed.edges is graphs.edges
        assert changed.edge_attr is graphs.edge_attr
    if mode in STRUCTURE_FREE:
        assert changed.x is graphs.x
    counts = _edges_per_graph(graphs)
    pairs = (graphs.sizes * (graphs.sizes - 1)).tolist()
    expected = {
        "empty_graph": [0] * len(counts),
        "complete_graph": pairs,
        "random_connected_graph": [
            max(c, 2 * (n - 1)) for c, n in zip(counts, graphs.sizes.tolist(), strict=True)
        ],
    }.get(mode, counts)
    assert _edges_per_graph(changed) == expected


@settings(max_examples=40, deadline=None)
@given(GRAPHS)
def test_random_connected_graphs_are_connected(graphs: Graphs) -> None:
    changed = in_mode(graphs, "random_connected_graph", rng_for(1, "x"))
    for i in range(len(graphs.sizes)):
        one = changed.take(np.array([i]))
        graph = nx.Graph(one.edges.T.tolist())
        graph.add_nodes_from(range(len(one.x)))
        assert nx.is_connected(graph)


def test_edge_features_are_shuffled_within_each_graph() -> None:
    graphs = _random_graphs([(9, 0.5, 1), (7, 0.6, 2)])
    changed = in_mode(graphs, "random_graph", rng_for(0, "y"))
    for i in range(2):
        before, after = (g.take(np.array([i])).edge_attr.ravel() for g in (graphs, changed))
        assert sorted(before) == sorted(after)
    assert not in_mode(graphs, "complete_graph", rng_for(0, "y")).edge_attr.any()


def test_every_pair_is_equally_likely() -> None:
    """With 6 nodes and 4 edges, each pair is joined in 4 of 15 graphs."""
    nodes = 6
    ring = np.array([(0, 1), (1, 2), (2, 3), (3, 4)])
    ends = np.array(sorted([*ring.tolist(), *ring[:, ::-1].tolist()])).T
    copies = 3000
    shift = np.repeat(np.arange(copies) * nodes, ends.shape[1])
    graphs = Graphs(
        np.zeros(nodes * copies, np.uint8),
        np.tile(ends, copies) + shift,
        None,
        np.arange(copies + 1) * nodes,
    )
    changed = in_mode(graphs, "random_graph", rng_for(0, "uniform"))
    source, target = changed.edges % nodes
    counts = np.bincount(source * nodes + target, minlength=36).reshape(6, 6)
    share = counts[~np.eye(6, dtype=bool)] / copies
    assert abs(share - 4 / 15).max() < 0.03


def test_features_of_every_mode() -> None:
    graphs = _random_graphs([(5, 0.5, 1), (8, 0.5, 2)])
    assert not in_mode(graphs, "empty_features", rng_for(0, "f")).x.any()
    complete = in_mode(graphs, "complete_features", rng_for(0, "f")).x
    np.testing.assert_array_equal(complete[:5], np.eye(8)[:5])
    np.testing.assert_array_equal(complete[5:], np.eye(8))
    shuffled = in_mode(graphs, "shuffled_features", rng_for(0, "f")).x
    for part in (slice(0, 5), slice(5, 13)):
        assert sorted(map(tuple, shuffled[part])) == sorted(map(tuple, graphs.x[part]))
    assert not np.array_equal(shuffled, graphs.x)
    many = Graphs(np.zeros((20_000, 2), np.float32), graphs.edges, None, np.array([0, 20_000]))
    noise = in_mode(many, "noise_features", rng_for(0, "f")).x
    assert abs(noise.mean()) < 0.03
    assert abs(noise.std() - 1) < 0.03
    with pytest.raises(InputError, match="max_nodes is 6, but a graph has 8 nodes"):
        in_mode(graphs, "complete_features", rng_for(0, "f"), max_nodes=6)
    wide = in_mode(graphs, "complete_features", rng_for(0, "f"), max_nodes=11).x
    assert wide.shape == (13, 11)


def test_class_ids_stay_class_ids() -> None:
    kinds = np.array([0, 1, 2, 1, 3], np.uint8)
    graphs = Graphs(kinds, np.empty((2, 0), np.int64), None, np.array([0, 3, 5]))
    assert in_mode(graphs, "complete_features", rng_for(0, "i")).x.tolist() == [0, 1, 2, 0, 1]
    assert set(in_mode(graphs, "noise_features", rng_for(0, "i")).x.tolist()) <= {0, 1, 2, 3}


def _data(seed: int, nodes: int = 7) -> Data:
    graph = nx.gnp_random_graph(nodes, 0.5, seed=seed)
    edges = torch.tensor([list(e) for e in graph.edges] + [list(e)[::-1] for e in graph.edges]).T
    generator = torch.Generator().manual_seed(seed)
    return Data(
        x=torch.rand(nodes, 2, generator=generator),
        edge_index=edges,
        edge_attr=torch.ones(edges.shape[1], 1),
        y=torch.tensor([seed % 2]),
        node_mask=torch.ones(nodes, dtype=torch.bool),
        edge_mask=torch.ones(edges.shape[1], dtype=torch.bool),
    )


@pytest.mark.parametrize("mode", MODES)
def test_transforms_take_graphs_and_batches_and_leave_them_as_they_were(mode: str) -> None:
    for data in (_data(1), Batch.from_data_list([_data(1), _data(2, 9)])):
        before = data.clone()
        changed = Perturbation(mode, seed=4, max_nodes=9)(data)
        assert torch.equal(data.x, before.x)
        assert torch.equal(data.edge_index, before.edge_index)
        assert torch.equal(changed.y, data.y)
        assert changed.num_nodes == data.num_nodes
        assert is_undirected(changed.edge_index, num_nodes=changed.num_nodes)
        assert changed.validate()
        again = perturb(data, mode, seed=4, max_nodes=9)
        assert torch.equal(changed.x, again.x)
        assert torch.equal(changed.edge_index, again.edge_index)
        assert ("edge_mask" in changed) == (mode not in STRUCTURE_FREE)
        if isinstance(data, Batch):
            parts = changed.to_data_list()
            assert [p.num_nodes for p in parts] == [7, 9]
            assert all(p.validate() for p in parts)
            again = Batch.from_data_list(parts)
            assert torch.equal(again.edge_index, changed.edge_index)
            assert torch.equal(again.x, changed.x)


def test_edge_weights_go_with_their_edges_and_whole_numbers_become_noise() -> None:
    data = _data(1)
    data.edge_weight = torch.ones(data.edge_index.shape[1])
    data.x = torch.arange(14).reshape(7, 2)
    assert "edge_weight" not in perturb(data, "complete_graph")
    assert "edge_weight" in perturb(data, "noise_features")
    noise = perturb(data, "noise_features").x
    assert noise.dtype == torch.float32
    assert len(noise.unique()) == 14


def test_one_way_edges_and_loops_are_read_as_undirected_graphs() -> None:
    edges, weights = tidy_edges(
        np.array([[2, 0, 1, 1], [0, 1, 1, 0]]), np.array([[5.0], [6.0], [7.0], [8.0]]), 3
    )
    assert edges.T.tolist() == [[0, 1], [0, 2], [1, 0], [2, 0]]
    assert weights.ravel().tolist() == [6.0, 5.0, 8.0, 5.0]


def test_random_modes_depend_on_seed_and_graph() -> None:
    one, other = perturb(_data(1), "noise_features"), perturb(_data(1), "noise_features", seed=1)
    assert not torch.equal(one.x, other.x)
    assert not torch.equal(
        perturb(_data(1), "noise_features").x, perturb(_data(3), "noise_features").x
    )


def test_unknown_modes_and_graphs_without_features_are_refused() -> None:
    with pytest.raises(InputError, match="unknown mode 'empty_grap'; did you mean 'empty_graph'"):
        Perturbation("empty_grap")
    with pytest.raises(InputError, match="expected a graph with x and edge_index"):
        perturb(Data(edge_index=torch.zeros(2, 0, dtype=torch.long)), "empty_graph")
