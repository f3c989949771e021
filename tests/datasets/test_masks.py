"""Masks fit the graph after any transform, or the graph says that they do not."""

import copy
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch_geometric.transforms as T  # noqa: N812 - its usual name
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data, InMemoryDataset
from torch_geometric.loader import DataLoader

from graphxai_data import BatchLoader, GraphXAIDataset, ShardedDataset, StreamedDataset
from graphxai_data.building.build import build
from graphxai_data.datasets.data import GraphXAIData
from graphxai_data.errors import InputError

NAMES = ("ba2motif", "dihalo", "mnist75sp-r23")
SAME_NODES = {
    "AddSelfLoops": T.AddSelfLoops(),
    "AddRemainingSelfLoops": T.AddRemainingSelfLoops(),
    "GCNNorm": T.GCNNorm(),
    "RemoveSelfLoops": T.Compose([T.AddSelfLoops(), T.RemoveSelfLoops()]),
    "ToUndirected": T.ToUndirected(),
    "RemoveDuplicatedEdges": T.RemoveDuplicatedEdges(),
    "TwoHop": T.TwoHop(),
    "RandomNodeSplit": T.RandomNodeSplit(num_val=0.1, num_test=0.1),
    "Constant": T.Constant(),
    "LargestConnectedComponents": T.LargestConnectedComponents(),
    "RemoveIsolatedNodes": T.RemoveIsolatedNodes(),
    "VirtualNode": T.VirtualNode(),
    "RandomLinkSplit": lambda data: T.RandomLinkSplit()(data)[0],
}
OTHER_NODES = {"LineGraph": T.LineGraph(), "HalfHop": T.HalfHop(), "ToDense": T.ToDense(400)}
GDC = T.GDC(sparsification_kwargs={"method": "topk", "k": 4, "dim": 0})

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("masks")
    for name in NAMES:
        build(name, root=folder, graphs=36, shard_size=10, rings=False, engine="serial")
    return folder


@pytest.fixture(autouse=True)
def own_random_numbers() -> Any:
    """Some of PyG's transforms draw from the global generators."""
    state = random.getstate()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield
    random.setstate(state)


def inside(data: Any) -> torch.Tensor:
    """The definition of `edge_mask`, edge by edge."""
    marked = set(data.node_mask.nonzero().flatten().tolist())
    return torch.tensor([{u, v} <= marked for u, v in data.edge_index.T.tolist()], dtype=torch.bool)


def assert_fits(data: Any) -> None:
    assert data.node_mask.shape == (len(data.x),)
    assert data.edge_mask.dtype == torch.bool
    assert torch.equal(data.edge_mask, inside(data))
    assert torch.equal(data["edge_mask"], data.edge_mask)
    assert torch.equal(data.to_dict()["edge_mask"], data.edge_mask)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", SAME_NODES)
def test_masks_fit_after_a_transform_that_keeps_or_selects_nodes(
    root: Path, name: str, kind: str
) -> None:
    transform = SAME_NODES[kind]
    plain = GraphXAIDataset(root, name)
    for i in range(0, 36, 7):
        by_hand = transform(plain[i])
        assert_fits(by_hand)
        torch.manual_seed(i)
        ours = GraphXAIDataset(root, name, transform=transform)[i]
        assert_fits(ours)
        if kind in ("AddSelfLoops", "GCNNorm", "TwoHop"):
            assert ours.edge_index.shape[1] > plain[i].edge_index.shape[1]
            assert torch.equal(ours.node_mask, plain[i].node_mask)


@pytest.mark.parametrize("kind", OTHER_NODES)
@pytest.mark.parametrize("name", ["ba2motif", "mnist75sp-r23"])
def test_a_graph_with_other_nodes_says_that_its_masks_do_not_fit(
    root: Path, name: str, kind: str
) -> None:
    transform = OTHER_NODES[kind]
    plain = GraphXAIDataset(root, name)
    for i in range(0, 36, 7):
        by_hand = transform(plain[i])
        for ask in (lambda g: g.node_mask, lambda g: g["node_mask"], lambda g: g.to_explanation()):
            with pytest.raises(InputError, match="node_mask: does not fit this graph: "):
                ask(by_hand)
        ours = GraphXAIDataset(root, name, transform=transform)[i]
        assert not {"node_mask", "edge_mask"} & set(ours.keys())
        why = f"_mask: this graph has none any more: {kind}\\("
        for ask in (lambda g: g.node_mask, lambda g: g.edge_mask, lambda g: g.to_explanation()):
            with pytest.raises(InputError, match=why):
                ask(ours)


def test_other_edges_of_the_same_number_get_a_new_mask(root: Path) -> None:
    """GDC can return as many edges as it was given, so that lengths say nothing."""
    plain = GraphXAIDataset(root, "ba2motif")
    stale = 0
    for graph in plain:
        diffused = GDC(graph)
        assert_fits(diffused)
        few = min(diffused.edge_index.shape[1], graph.edge_index.shape[1])
        other = copy.copy(graph)
        other.edge_index = other.edge_index.flip(1)[:, :few]
        stale += not torch.equal(other.to_dict()["edge_mask"][:few], inside(other))
        assert torch.equal(other.edge_mask, inside(other))
    assert stale > 0


def test_a_line_graph_with_as_many_nodes_is_refused_too() -> None:
    """The graph has one cycle, so it has as many edges as nodes."""
    ends = torch.tensor([[0, 1, 2, 0, 3], [1, 2, 0, 3, 4]])
    marked = torch.tensor([True, True, True, False, False])
    ends = torch.cat([ends, ends.flip(0)], dim=1)
    graph = GraphXAIData()
    fields = {"x": torch.ones(5, 1), "edge_index": ends, "edge_attr": torch.ones(10, 1)}
    graph._store._mapping.update(fields, node_mask=marked, edge_mask=marked[ends].all(0))
    line = T.LineGraph()(graph)
    assert line.num_nodes == graph.num_nodes == 5
    with pytest.raises(InputError, match="its num_nodes is set, so its nodes may be others"):
        _ = line.node_mask


@settings(deadline=None, max_examples=60)
@given(data=st.data(), nodes=st.integers(1, 8), size=st.integers(0, 20))
def test_any_new_edges_get_the_mask_of_the_definition(
    data: st.DataObject, nodes: int, size: int
) -> None:
    node = st.integers(0, nodes - 1)
    edges = st.lists(st.tuples(node, node), min_size=size, max_size=size)
    old, new = (torch.tensor(data.draw(edges), dtype=torch.int64).view(-1, 2).T for _ in "ab")
    marked = torch.tensor(data.draw(st.lists(st.booleans(), min_size=nodes, max_size=nodes)))
    graph = GraphXAIData()
    fields = {"x": torch.ones(nodes, 1), "edge_index": old, "node_mask": marked}
    graph._store._mapping.update(fields, edge_mask=marked[old].all(dim=0))
    assert_fits(graph)
    graph.edge_index = new
    assert_fits(copy.copy(graph))
    batch = Batch.from_data_list([graph, graph, graph])
    assert_fits(batch)
    for part in batch.to_data_list():
        assert_fits(part)
    graph.x = torch.ones(nodes + 1, 1)
    with pytest.raises(InputError, match=f"has {nodes} rows, but the graph has {nodes + 1} nodes"):
        _ = graph.node_mask


@pytest.mark.parametrize("name", NAMES)
def test_batches_of_transformed_graphs_fit_and_can_be_taken_apart(root: Path, name: str) -> None:
    dataset = GraphXAIDataset(root, name, transform=T.AddSelfLoops())
    plain = GraphXAIDataset(root, name)
    by_hand = Batch.from_data_list([T.AddSelfLoops()(graph) for graph in plain])
    for batch in (*BatchLoader(dataset, 9), *DataLoader(dataset, 9), by_hand):
        assert_fits(batch)
        for part in batch.to_data_list():
            assert_fits(part)
    assert_fits(T.AddSelfLoops()(next(iter(BatchLoader(plain, 9)))))


@pytest.mark.parametrize("cls", [StreamedDataset, ShardedDataset])
def test_graphs_from_disk_follow_transforms_too(root: Path, cls: Callable[..., Any]) -> None:
    memory = GraphXAIDataset(root, "dihalo", transform=T.AddSelfLoops())
    for ours, theirs in zip(cls(root, "dihalo", transform=T.AddSelfLoops()), memory, strict=True):
        assert_fits(ours)
        assert torch.equal(ours.to_dict()["edge_mask"], theirs.to_dict()["edge_mask"])
    graph = next(iter(cls(root, "dihalo", transform=T.LineGraph())))
    with pytest.raises(InputError, match="LineGraph\\(\\) changed the graph"):
        _ = graph.edge_mask


def test_a_pre_transform_that_changes_nodes_removes_the_masks_of_all_graphs(root: Path) -> None:
    for _ in range(2):  # the second time from the kept file
        dataset = GraphXAIDataset(root, "ba2motif", pre_transform=T.HalfHop())
        batch = next(iter(BatchLoader(dataset, 8)))
        for graph in (dataset[3], batch, Batch.from_data_list(list(dataset[:4]))):
            assert "node_mask" not in graph
            with pytest.raises(InputError, match="HalfHop\\(alpha=0.5, p=1.0\\) changed the graph"):
                _ = graph.node_mask


def test_a_pre_transform_that_changes_edges_gives_masks_that_fit(root: Path) -> None:
    dataset = GraphXAIDataset(root, "dihalo", pre_transform=T.AddSelfLoops())
    for graph in dataset:
        assert_fits(graph)
    assert_fits(next(iter(BatchLoader(dataset, 8))))


def test_the_storage_of_a_dataset_is_left_as_it_is(root: Path) -> None:
    """Its node ids begin at 0 in every graph, so its edges do not fit its node mask."""

    class Collected(InMemoryDataset):
        def __init__(self, graphs: list[Data]) -> None:
            super().__init__()
            self.data, self.slices = self.collate(graphs)

    dataset = GraphXAIDataset(root, "ba2motif")
    expected = torch.cat([graph.edge_mask for graph in dataset])
    copied = dataset.copy(torch.arange(36))
    for each in (dataset, copied, Collected(list(dataset)), pickle.loads(pickle.dumps(dataset))):  # noqa: S301
        assert torch.equal(each._data.edge_mask, expected)
        assert torch.equal(each.edge_mask, expected)
        assert torch.equal(torch.cat([graph.edge_mask for graph in each]), expected)
        assert_fits(each[5])
        assert_fits(T.AddSelfLoops()(each[5]))


def test_a_mask_that_someone_assigns_is_theirs_as_long_as_the_edges_are_the_same(
    root: Path,
) -> None:
    graph = GraphXAIDataset(root, "ba2motif")[0]
    chosen = torch.arange(graph.num_edges) % 3 == 0
    graph.edge_mask = chosen
    batch = Batch.from_data_list([graph, graph])
    for each in (graph, copy.copy(graph), graph.clone(), graph.to("cpu", non_blocking=True)):
        assert torch.equal(each.edge_mask, chosen)
    assert torch.equal(batch.edge_mask, chosen.repeat(2))
    assert torch.equal(pickle.loads(pickle.dumps(graph)).edge_mask, chosen)  # noqa: S301
    scores = torch.rand(graph.num_edges)
    graph["edge_mask"] = scores
    assert torch.equal(graph.edge_mask, scores)
    with pytest.raises(InputError, match="edge_mask has .* rows, but the graph has"):
        _ = T.AddSelfLoops()(graph).edge_mask
    graph.edge_mask = chosen
    assert_fits(T.AddSelfLoops()(graph))


def test_a_graph_that_never_had_masks_has_none(root: Path, tmp_path: Path) -> None:
    build("pattern", root=tmp_path, graphs=12, rings=False, engine="serial")
    graph = T.AddSelfLoops()(GraphXAIDataset(tmp_path, "pattern")[0])
    assert not hasattr(graph, "node_mask")
    assert "edge_mask" not in graph
    with pytest.raises(KeyError):
        graph["edge_mask"]
    with pytest.raises(InputError, match="no rationale is known"):
        graph.to_explanation()


def test_a_sparse_matrix_keeps_the_order_of_the_mask(root: Path) -> None:
    graph = GraphXAIDataset(root, "ba2motif")[0]
    sparse = T.ToSparseTensor(layout=torch.sparse_csr)(graph)
    assert "edge_index" not in sparse
    assert int(sparse.edge_mask.sum()) == int(graph.edge_mask.sum())


def permuted(data: Any, also: tuple[str, ...] = (), scale: float = 1.0) -> Any:
    """Put the nodes in another order, and these fields with them."""
    order = torch.randperm(len(data.x), generator=torch.Generator().manual_seed(0))
    data.edge_index = order.argsort()[data.edge_index]
    data.x = scale * data.x[order]
    for key in also:
        data[key] = data[key][order]
    return data


def permuted_in_place(data: Any) -> Any:
    new = permuted(data.clone())
    data.x[:], data.edge_index[:] = new.x, new.edge_index
    return data


def permuted_and_sorted(data: Any) -> Any:
    data = permuted(data, scale=2.0)
    data.edge_index = data.edge_index[:, data.edge_index[0].argsort(stable=True)]
    return data


def other_features_and_edges(data: Any) -> Any:
    data.x, data.edge_index = 2 * data.x, data.edge_index.flip(1)
    return data


def more_features_and_other_edges(data: Any) -> Any:
    data.x = torch.cat([data.x, data.x], dim=1)
    data.edge_index = data.edge_index.flip(1)
    return data


def other_features_and_more_edges(data: Any) -> Any:
    data.x = 2 * data.x
    return T.AddSelfLoops()(data)


# ba2motif has the same features at all nodes.
FORGETFUL = [
    ("ba2motif", permuted), ("dihalo", permuted), ("mnist75sp-r23", permuted),
    ("dihalo", permuted_and_sorted), ("mnist75sp-r23", permuted_and_sorted),
    ("ba2motif", T.Compose([T.AddSelfLoops(), permuted])),
]  # fmt: skip


@pytest.mark.parametrize(("name", "transform"), FORGETFUL)
def test_a_transform_that_permutes_nodes_without_their_mask_loses_the_masks(
    root: Path, name: str, transform: Callable[[Any], Any]
) -> None:
    classes: list[Callable[..., Any]] = [GraphXAIDataset, ShardedDataset, StreamedDataset]
    graphs = [graph for cls in classes for graph in cls(root, name, transform=transform)]
    graphs += GraphXAIDataset(root, name, pre_transform=transform)
    plain = GraphXAIDataset(root, name)
    for graph, old in zip(graphs, [*plain] * 4, strict=True):
        if bool(old.node_mask.all()) == bool(old.node_mask.any()):
            continue
        with pytest.raises(InputError, match=r"changed the graph \((its nodes have|one step)"):
            _ = graph.node_mask
        assert "edge_mask" not in graph


def test_a_pre_transform_that_permutes_in_place_is_seen(root: Path) -> None:
    dataset = GraphXAIDataset(root, "dihalo", pre_transform=permuted_in_place)
    with pytest.raises(InputError, match="other numbers, but node_mask does not follow"):
        _ = dataset[0].node_mask


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "transform",
    [
        lambda data: permuted(data, also=("node_mask",)),
        lambda data: permuted(data, also=("node_mask",), scale=3.0),
        T.NormalizeFeatures(),
        T.Compose([T.NormalizeFeatures(), T.ToUndirected(), T.AddSelfLoops()]),
        T.Compose([T.LocalDegreeProfile(), T.TwoHop()]),
        more_features_and_other_edges,
        other_features_and_more_edges,
    ],
)
def test_masks_stay_where_nodes_do_or_where_their_mask_follows(
    root: Path, name: str, transform: Callable[[Any], Any]
) -> None:
    plain = GraphXAIDataset(root, name)
    taken = GraphXAIDataset(root, name, transform=transform)
    for dataset in (taken, GraphXAIDataset(root, name, pre_transform=transform)):
        for new, old in zip(dataset, plain, strict=True):
            assert_fits(new)
            assert int(new.node_mask.sum()) == int(old.node_mask.sum())


def test_a_step_that_changes_features_and_edges_says_how_to_keep_the_masks(root: Path) -> None:
    graph = GraphXAIDataset(root, "dihalo", transform=other_features_and_edges)[0]
    with pytest.raises(InputError, match="two transforms, one for edges and one for features"):
        _ = graph.node_mask


def own_edges(data: Any) -> Any:
    data.edge_mask = torch.arange(data.num_edges) == 0
    return data


def own_edges_in_place(data: Any) -> Any:
    data.edge_mask[:] = torch.arange(data.num_edges) == 0
    return data


def own_edges_by_update(data: Any) -> Any:
    return data.update({"edge_mask": torch.arange(data.num_edges) == 0})


def own_edges_and_loops(data: Any) -> Any:
    return own_edges(T.AddSelfLoops()(data))


@pytest.mark.parametrize(
    "choose", [own_edges, own_edges_in_place, own_edges_by_update, own_edges_and_loops]
)
def test_a_pre_transform_that_chooses_an_edge_mask_is_refused(
    root: Path, choose: Callable[[Any], Any]
) -> None:
    with pytest.raises(InputError, match=f"pre_transform: {choose.__name__} chooses an edge_mask"):
        GraphXAIDataset(root, "ba2motif", pre_transform=choose)


def test_a_pre_transform_may_assign_what_edge_mask_is_anyway_or_scores(root: Path) -> None:
    def anyway(data: Any) -> Any:
        data.node_mask = ~data.node_mask
        data.edge_mask = inside(data)
        return data

    def other_nodes(data: Any) -> Any:
        data.node_mask = ~data.node_mask
        return data

    def scores(data: Any) -> Any:
        data.edge_mask = torch.arange(data.num_edges) / 7
        return data

    for choose in (anyway, other_nodes):
        for graph in GraphXAIDataset(root, "ba2motif", pre_transform=choose):
            assert_fits(graph)
    graph = GraphXAIDataset(root, "ba2motif", pre_transform=scores)[3]
    assert torch.equal(graph.edge_mask, torch.arange(graph.num_edges) / 7)


def test_an_edge_mask_that_a_transform_assigns_holds_for_its_graph(root: Path) -> None:
    graph = GraphXAIDataset(root, "ba2motif", transform=own_edges)[0]
    assert int(graph.edge_mask.sum()) == 1
