import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.data import Batch, Data, HeteroData, InMemoryDataset
from torch_geometric.loader import DataLoader

from graphxai_data.building.build import build
from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.datasets.loader import BatchLoader, obstacle
from graphxai_data.errors import InputError

# PyG warns about graphs whose number of nodes it can only guess; some tests use them on purpose.
GUESSES_NODES = pytest.mark.filterwarnings("ignore:Unable to accurately infer 'num_nodes'")


class Collected(InMemoryDataset):
    def __init__(self, graphs: list[Any], transform: Callable[[Any], Any] | None = None) -> None:
        super().__init__(transform=transform)
        self.data, self.slices = self.collate(graphs)


def graph(nodes: int, edges: int, seed: int = 0, **more: Any) -> Data:
    rng = np.random.default_rng(seed)
    return Data(
        x=torch.from_numpy(rng.normal(size=(nodes, 3)).astype(np.float32)),
        edge_index=torch.from_numpy(rng.integers(max(nodes, 1), size=(2, edges))),
        y=torch.tensor([seed]),
        **more,
    )


def assert_equal(ours: Any, theirs: Any, where: str) -> None:
    assert type(ours) is type(theirs), where
    if isinstance(theirs, Tensor):
        assert ours.dtype == theirs.dtype, where
        if theirs.is_sparse:
            ours, theirs = ours.to_dense(), theirs.to_dense()
        assert ours.is_contiguous() == theirs.is_contiguous(), where
        assert torch.equal(ours, theirs), where
    elif isinstance(theirs, dict):
        assert list(ours) == list(theirs), where
        for key, value in theirs.items():
            assert_equal(ours[key], value, f"{where}.{key}")
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs), where
        for i, value in enumerate(theirs):
            assert_equal(ours[i], value, f"{where}[{i}]")
    else:
        assert ours == theirs, where


def assert_same_batch(ours: Batch, theirs: Batch) -> None:
    assert type(ours) is type(theirs)
    assert_equal(ours.to_dict(), theirs.to_dict(), "batch")
    assert ours.num_graphs == theirs.num_graphs
    assert ours.num_nodes == theirs.num_nodes
    for name in ("_slice_dict", "_inc_dict"):
        assert_equal(getattr(ours, name), getattr(theirs, name), name)
    for a, b in zip(ours.to_data_list(), theirs.to_data_list(), strict=True):
        assert type(a) is type(b)
        assert_equal(a.to_dict(), b.to_dict(), "graph")


def assert_same_as_pyg(dataset: InMemoryDataset, batch_size: int, **options: Any) -> None:
    loader = BatchLoader(dataset, batch_size, **options)
    graphs = list(dataset)
    parts = [graphs[i : i + batch_size] for i in range(0, len(graphs), batch_size)]
    keys = options.get("keys")
    for batch, part in zip(loader, parts, strict=True):
        others = set() if keys is None else set(part[0].keys()).difference(keys)
        assert_same_batch(batch, Batch.from_data_list(part, exclude_keys=others))


def labels_in_order(loader: BatchLoader) -> list[int]:
    """Return the `y` of all graphs in the order of one epoch."""
    return [y for batch in loader for y in batch.y.tolist()]


EXTRAS: dict[str, Callable[[np.random.Generator, int, int], Any]] = {
    "node_mask": lambda rng, nodes, edges: torch.from_numpy(rng.random(nodes) < 0.5),
    "pos": lambda rng, nodes, edges: torch.from_numpy(rng.normal(size=(nodes, 2))),
    "z": lambda rng, nodes, edges: torch.from_numpy(rng.integers(9, size=nodes).astype(np.uint8)),
    "edge_attr": lambda rng, nodes, edges: torch.from_numpy(rng.normal(size=(edges, 2, 3))),
    "edge_weight": lambda rng, nodes, edges: torch.ones(edges, dtype=torch.float16),
    "per_graph": lambda rng, nodes, edges: torch.from_numpy(rng.integers(9, size=(1, 2, 2))),
    "some": lambda rng, nodes, edges: torch.arange(int(rng.integers(4))),
    "nothing": lambda rng, nodes, edges: torch.zeros(nodes, 0),
    "face": lambda rng, nodes, edges: torch.from_numpy(rng.integers(5, size=(3, edges // 2))),
    "root_index": lambda rng, nodes, edges: torch.from_numpy(rng.integers(5, size=1)),
    "scalar_index": lambda rng, nodes, edges: torch.tensor(int(rng.integers(5))),
    "number": lambda rng, nodes, edges: int(rng.integers(9)),
    "fraction": lambda rng, nodes, edges: float(rng.random()),
    "name": lambda rng, nodes, edges: "é" * int(rng.integers(3)),
}


@st.composite
def collections(draw: st.DrawFn) -> Collected:
    keys = draw(st.permutations(sorted(EXTRAS)))[: draw(st.integers(0, len(EXTRAS)))]
    sizes = st.tuples(st.integers(0, 5), st.integers(0, 6))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    graphs = [
        graph(n, m, i, **{key: EXTRAS[key](rng, n, m) for key in keys})
        for i, (n, m) in enumerate(draw(st.lists(sizes, min_size=2, max_size=9)))
    ]
    return Collected(graphs)


@settings(deadline=None, max_examples=60)
@given(collections(), st.integers(1, 10), st.data())
def test_batches_equal_those_of_pyg_in_every_field(
    dataset: Collected, batch_size: int, data: st.DataObject
) -> None:
    assert obstacle(dataset) is None
    assert_same_as_pyg(dataset, batch_size)
    indices = data.draw(st.lists(st.integers(0, len(dataset) - 1), min_size=1, max_size=12))
    assert_same_as_pyg(dataset[indices], batch_size)
    keys = data.draw(st.lists(st.sampled_from(sorted(dataset._data.keys())), unique=True))
    assert_same_as_pyg(dataset, batch_size, keys=keys)


@pytest.mark.parametrize("name", ["ba2motif", "dihalo", "mnist75sp-r23"])
def test_batches_of_our_datasets_equal_those_of_pygs_loader(tmp_path: Path, name: str) -> None:
    build(name, root=tmp_path, graphs=90, shard_size=40, engine="serial")
    whole, part = GraphXAIDataset(tmp_path, name), GraphXAIDataset(tmp_path, name, split="train")
    for dataset in (whole, part, whole[7:50], whole[torch.arange(80, 2, -3)]):
        assert obstacle(dataset) is None
        assert_same_as_pyg(dataset, 16)
    ours = BatchLoader(whole, 32, shuffle=True, seed=4)
    order = BatchLoader(whole, 32, shuffle=True, seed=4, keys=["graph_id"])
    order = [i for batch in order for i in batch.graph_id.tolist()]
    with torch.random.fork_rng():  # PyTorch's loader draws a seed from the global generator
        for batch, theirs in zip(ours, DataLoader(whole, 32, sampler=order), strict=True):
            assert_same_batch(batch, theirs)


def test_graphs_may_have_no_nodes_or_no_edges() -> None:
    sizes = [(0, 0), (2, 0), (0, 0), (3, 4), (1, 0), (0, 0), (0, 0)]
    dataset = Collected([graph(n, m, i) for i, (n, m) in enumerate(sizes)])
    for batch_size in range(1, 8):
        assert_same_as_pyg(dataset, batch_size)
    assert_same_as_pyg(dataset[[0, 2, 5, 6]], 4)


@pytest.fixture
def ten() -> Collected:
    return Collected([graph(i % 4, i % 3, i) for i in range(10)])


def test_an_epoch_is_a_pure_function_of_seed_and_number(ten: Collected) -> None:
    loader = BatchLoader(ten, 4, shuffle=True, seed=1)
    epochs = [labels_in_order(loader) for _ in range(5)]
    assert loader.epoch == 5
    assert all(sorted(epoch) == list(range(10)) for epoch in epochs)
    assert len(set(map(tuple, epochs))) == 5
    again = BatchLoader(ten, 3, shuffle=True, seed=1)
    assert [labels_in_order(again) for _ in range(5)] == epochs
    assert labels_in_order(BatchLoader(ten, 4, shuffle=True, seed=2)) != epochs[0]


def test_a_resumed_training_gets_the_orders_it_would_have_had(ten: Collected) -> None:
    loader = BatchLoader(ten, shuffle=True)
    epochs = [labels_in_order(loader) for _ in range(4)]
    resumed = BatchLoader(ten, shuffle=True)
    resumed.epoch = 2
    assert [labels_in_order(resumed), labels_in_order(resumed)] == epochs[2:]


def test_an_epoch_is_counted_when_it_begins(ten: Collected) -> None:
    loader = BatchLoader(ten, 4, shuffle=True)
    first = next(iter(loader))
    assert loader.epoch == 1
    assert next(iter(loader)).y.tolist() != first.y.tolist()
    loader.epoch = 0
    assert next(iter(loader)).y.tolist() == first.y.tolist()


def test_two_iterations_at_once_do_not_disturb_each_other(ten: Collected) -> None:
    loader = BatchLoader(ten, 4, shuffle=True)
    expected = [labels_in_order(loader), labels_in_order(loader)]
    loader.epoch = 0
    both = list(zip(loader, loader, strict=True))
    for i in range(2):
        assert [y for pair in both for y in pair[i].y.tolist()] == expected[i]


def test_without_shuffle_the_graphs_keep_their_order(ten: Collected) -> None:
    loader = BatchLoader(ten, 4)
    assert labels_in_order(loader) == labels_in_order(loader) == list(range(10))
    assert labels_in_order(BatchLoader(ten[[5, 5, 2]], 2)) == [5, 5, 2]


def test_the_last_batch_is_dropped_only_if_it_is_not_full(ten: Collected) -> None:
    for batch_size in (1, 3, 5, 10, 11):
        for drop_last in (False, True):
            with torch.random.fork_rng():
                theirs = DataLoader(ten, batch_size, drop_last=drop_last)
                sizes = [batch.num_graphs for batch in theirs]
            loader = BatchLoader(ten, batch_size, drop_last=drop_last)
            assert [batch.num_graphs for batch in loader] == sizes
            assert len(loader) == len(theirs)
    slow = BatchLoader(Collected([graph(2, 1)] * 10, lambda data: data), 4, drop_last=True)
    assert [batch.num_graphs for batch in slow] == [4, 4]


def test_changing_a_batch_changes_neither_the_dataset_nor_other_batches(ten: Collected) -> None:
    before = ten._data.clone()
    slices = {key: ptr.clone() for key, ptr in ten.slices.items()}
    batches, others = list(BatchLoader(ten, 5)), list(BatchLoader(ten, 5))
    for key, value in batches[0].to_dict().items():
        value.zero_() if key == "y" else value.add_(1)
    assert_equal(ten._data.to_dict(), before.to_dict(), "dataset")
    assert_equal(ten.slices, slices, "slices")
    assert_same_batch(batches[1], others[1])
    x = others[0].x + 1
    assert torch.equal(torch.cat([g.x for g in batches[0].to_data_list()]), x)


def test_a_batch_can_be_pickled_and_is_not_larger_than_pygs(ten: Collected) -> None:
    batch = next(iter(BatchLoader(ten[[1] * 9 + [2] * 900], 3)))
    stored = pickle.dumps(batch)
    assert_same_batch(pickle.loads(stored), batch)  # noqa: S301 - written one line above
    assert len(stored) < 1.1 * len(pickle.dumps(Batch.from_data_list([ten[1]] * 3)))


def test_a_transform_is_applied_again_every_epoch() -> None:
    taken = []

    def count(data: Data) -> Data:
        taken.append(1)
        data.turn = torch.tensor([len(taken)])
        return data

    dataset = Collected([graph(2, 1, i) for i in range(5)], count)
    loader = BatchLoader(dataset, 2, shuffle=True, keys=["turn", "x"])
    assert loader.obstacle == "the dataset has a transform"
    assert [batch.turn.tolist() for batch in loader] == [[1, 2], [3, 4], [5]]
    assert [batch.turn.tolist() for batch in loader] == [[6, 7], [8, 9], [10]]
    assert set(next(iter(loader)).keys()) == {"turn", "x", "batch", "ptr"}


def test_a_transform_sees_the_same_order_as_no_transform(ten: Collected) -> None:
    cut = BatchLoader(ten, 3, shuffle=True, seed=5)
    ten.transform = None
    expected = labels_in_order(cut)
    ten.transform = lambda data: data
    taken = BatchLoader(ten, 3, shuffle=True, seed=5)
    assert taken.obstacle is not None
    assert labels_in_order(taken) == expected


def test_changes_of_the_dataset_take_effect_in_the_next_epoch(ten: Collected) -> None:
    loader = BatchLoader(ten, 10)
    next(iter(loader))
    ten._data.x = ten._data.x * 2
    assert torch.equal(next(iter(loader)).x, ten._data.x)
    ten.transform = lambda data: Data(x=data.x[:0])
    assert len(next(iter(loader)).x) == 0


class Pair(Data):
    def __inc__(self, key: str, value: Any, *args: Any, **kwargs: Any) -> Any:
        return 100 if key == "partner" else super().__inc__(key, value, *args, **kwargs)


class Stacked(Data):
    def __cat_dim__(self, key: str, value: Any, *args: Any, **kwargs: Any) -> Any:
        return None if key == "y" else super().__cat_dim__(key, value, *args, **kwargs)


class WithDefault(Data):
    def __init__(self, **fields: Any) -> None:
        super().__init__(**{"level": torch.zeros(1), **fields})


class Doubled(Data):
    @property
    def num_nodes(self) -> int:
        return 2 * len(self.x)


class Flipped(Collected):
    def get(self, idx: int) -> Any:
        return super().get(self.len() - 1 - idx)


def hetero(i: int) -> HeteroData:
    data = HeteroData()
    data["a"].x = torch.full((i + 1, 2), i)
    data["a", "to", "a"].edge_index = torch.zeros(2, i, dtype=torch.int64)
    return data


def of(cls: type[Data], **more: Any) -> Callable[[int], Data]:
    return lambda i: cls(**graph(i + 1, i, i).to_dict(), **more)


def other_type(i: int, dtype: torch.dtype, key: str) -> Data:
    return graph(2, 1, i, **{key: torch.ones(2).to(dtype)})


UNUSUAL: dict[str, tuple[str, Callable[[int], Any]]] = {
    "own __inc__": ("Pair has its own __inc__", of(Pair, partner=torch.zeros(2))),
    "own __cat_dim__": ("Stacked has its own __cat_dim__", of(Stacked)),
    "own __init__": ("WithDefault has its own __init__", of(WithDefault)),
    "own num_nodes": ("Doubled has its own num_nodes", of(Doubled)),
    "hetero": ("the graphs are of type HeteroData", hetero),
    "batches": (
        "the graphs are of type DataDataBatch", lambda i: Batch.from_data_list([graph(2, 1, i)])
    ),
    "num_nodes": ("the number of nodes is stored", lambda i: graph(i, i, i, num_nodes=i)),
    "batch": ("'x_batch' has a meaning of its own in PyG", of(Data, x_batch=torch.tensor([0, 1]))),
    "sparse": (
        "'matrix' is neither a plain tensor nor a list of strings",
        lambda i: graph(3, 2, i, matrix=torch.eye(3).to_sparse_coo()),
    ),
    "edge index": (
        "'edge_index' is neither a plain tensor nor a list of strings",
        lambda i: Data(x=torch.ones(2, 1), edge_index=EdgeIndex([[0, 1], [1, 0]])),
    ),
    "dict": (
        "'nested' is neither a plain tensor nor a list of strings",
        of(Data, nested={"a": torch.ones(2)}),
    ),
    "list of tensors": (
        "'many' is neither a plain tensor nor a list of strings",
        of(Data, many=[torch.ones(2), torch.ones(1)]),
    ),
    "list of numbers": (
        "'many' is neither a plain tensor nor a list of strings", of(Data, many=[1, 2])
    ),
    "gradients": (
        "'w' is not a plain array in memory", of(Data, w=torch.ones(2, requires_grad=True))
    ),
    "int32 node ids": (
        "'an_index' holds node ids, but not as int64",
        lambda i: other_type(i, torch.int32, "an_index"),
    ),
    "bool with index in its name": (
        "'index_mask' holds node ids, but not as int64",
        lambda i: other_type(i, torch.bool, "index_mask"),
    ),
    "bfloat16": (
        "'w' is of a type that NumPy does not have, torch.bfloat16",
        lambda i: other_type(i, torch.bfloat16, "w"),
    ),
    "no nodes": ("no field tells the number of nodes", lambda i: Data(y=torch.tensor([i]))),
    "edges only": (
        "no field tells the number of nodes",
        lambda i: Data(edge_index=torch.arange(2 * i).view(2, i)),
    ),
    "feat": (
        "no field tells the number of nodes", lambda i: Data(feat=torch.ones(i, 1), y=torch.ones(1))
    ),
}  # fmt: skip


@GUESSES_NODES
@pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled")
@pytest.mark.parametrize("case", UNUSUAL)
def test_an_obstacle_is_named_and_batches_still_equal_those_of_pyg(case: str) -> None:
    reason, make = UNUSUAL[case]
    dataset = Collected([make(i) for i in range(1, 6)])
    assert obstacle(dataset) == reason
    if case == "gradients":  # PyG returns views that carry gradients
        assert next(iter(BatchLoader(dataset, 2))).w.requires_grad
    else:
        assert_same_as_pyg(dataset, 2)


def test_a_dataset_with_its_own_get_is_respected() -> None:
    dataset = Flipped([graph(2, 1, i) for i in range(5)])
    assert obstacle(dataset) == "Flipped has its own get"
    assert labels_in_order(BatchLoader(dataset, 2)) == [4, 3, 2, 1, 0]


@pytest.mark.parametrize("keys", [("pos", "x"), ("x", "pos"), ("a_node_field", "another_node")])
def test_nodes_are_counted_by_the_field_that_pyg_counts_by(keys: tuple[str, str]) -> None:
    graphs = []
    for i in range(4):
        data = Data(edge_index=torch.zeros(2, i, dtype=torch.int64))
        for rows, key in enumerate(keys, start=i):
            data[key] = torch.ones(rows, 2)
        graphs.append(data)
    dataset = Collected(graphs)
    assert obstacle(dataset) is None
    assert_same_as_pyg(dataset, 3)


def test_a_pointer_among_the_fields_is_left_to_pyg(ten: Collected) -> None:
    ten._data.ptr = torch.arange(10)
    assert obstacle(ten) == "'ptr' is not divided into graphs"
    ten.slices["ptr"] = torch.arange(11)
    assert obstacle(ten) == "'ptr' has a meaning of its own in PyG"
    assert_same_as_pyg(ten, 4)


def test_slices_that_do_not_fit_are_left_to_pyg(ten: Collected) -> None:
    ten.slices["x"] = ten.slices["x"] + 1
    assert obstacle(ten) == "'x' has fewer rows than its slices say"
    with pytest.raises(RuntimeError, match="exceeds dimension size"):
        list(BatchLoader(ten, 4))
    ten.slices["x"] = ten.slices["x"].flip(0)
    assert obstacle(ten) == "'x' is not divided into graphs"
    ten._indices = [3, 10]
    assert obstacle(ten) == "the dataset selects graphs that do not exist"


def test_a_field_that_cannot_be_cut_is_no_obstacle_if_keys_leave_it_out() -> None:
    dataset = Collected([graph(3, 2, i, adj=torch.eye(3).to_sparse_coo()) for i in range(5)])
    assert BatchLoader(dataset).obstacle is not None
    assert BatchLoader(dataset, keys=["y"]).obstacle is None
    assert_same_as_pyg(dataset, 2, keys=["x", "edge_index"])


def test_tensors_that_are_not_contiguous_can_be_cut(ten: Collected) -> None:
    ten._data.x = ten._data.x.t().contiguous().t()
    ten._data.edge_index = ten._data.edge_index.t().contiguous().t()
    assert obstacle(ten) is None
    assert_same_as_pyg(ten, 4)


@pytest.mark.parametrize("graphs", [1, 2])
def test_a_dataset_may_have_one_or_two_graphs(graphs: int) -> None:
    dataset = Collected([graph(3, 2, i, name="a") for i in range(graphs)])
    assert (obstacle(dataset) is None) == (graphs > 1)
    assert_same_as_pyg(dataset, 4)
    assert_same_as_pyg(dataset, 4, keys=["x", "name"])


def test_a_dataset_without_graphs_has_no_batches(ten: Collected) -> None:
    for shuffle in (False, True):
        loader = BatchLoader(ten[[]], shuffle=shuffle)
        assert len(loader) == 0
        assert list(loader) == []
        assert loader.epoch == 1


def test_keys_select_fields_and_keep_the_order_of_the_dataset(ten: Collected) -> None:
    batch = next(iter(BatchLoader(ten, keys=("y", "edge_index"))))
    assert list(batch.to_dict()) == ["edge_index", "y", "batch", "ptr"]
    assert list(next(iter(BatchLoader(ten, keys=()))).to_dict()) == ["batch", "ptr"]


def test_unknown_keys_are_refused_with_the_nearest_field(ten: Collected) -> None:
    with pytest.raises(InputError, match="no field 'edge_indx'; did you mean 'edge_index'?"):
        BatchLoader(ten, keys=["x", "edge_indx"])
    with pytest.raises(InputError, match="no field 'smiles'; known: edge_index, x, y"):
        BatchLoader(ten, keys=["smiles"])
    with pytest.raises(InputError, match="keys: expected several names, got 'x'"):
        BatchLoader(ten, keys="x")
    ten.transform = lambda data: data
    with pytest.raises(InputError, match="no field 'edge_attr'; known: edge_index, x, y"):
        list(BatchLoader(ten, keys=["edge_attr"]))


def test_invalid_arguments_are_refused(ten: Collected) -> None:
    for wrong in (0, -1, 2.5, True, "8", None):
        with pytest.raises(InputError, match="batch_size: expected a whole number from 1"):
            BatchLoader(ten, wrong)
    with pytest.raises(InputError, match="seed: expected a whole number from 0"):
        BatchLoader(ten, seed=-1)
    with pytest.raises(InputError, match="epoch: expected a whole number from 0"):
        BatchLoader(ten).epoch = -1
    with pytest.raises(InputError, match="got list; use torch_geometric.loader.DataLoader"):
        BatchLoader(list(ten))
    with pytest.raises(InputError, match="InMemoryDataset holds no graphs; load it first"):
        BatchLoader(InMemoryDataset())


def test_a_batch_size_beyond_the_dataset_costs_nothing(ten: Collected) -> None:
    assert_same_as_pyg(ten, 10**8)


def test_sizes_may_be_numpy_integers(ten: Collected) -> None:
    assert len(BatchLoader(ten, np.int64(3))) == 4
