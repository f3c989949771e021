"""What PyG's own tests promise of an `InMemoryDataset` holds for ours."""

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch

from graphxai_data import GraphXAIDataset
from graphxai_data.nn.random import seeded
from tests.conftest import SharedBuilds


@pytest.fixture(scope="module")
def dataset(builds: SharedBuilds) -> GraphXAIDataset:
    return GraphXAIDataset.from_folder(builds.folder("dihalo", 90))


def ids(dataset: GraphXAIDataset) -> list[int]:
    return [int(data.graph_id) for data in dataset]


def test_sizes_and_classes_are_those_of_the_graphs(dataset: GraphXAIDataset) -> None:
    first = dataset[0]
    assert len(dataset) == 90
    assert dataset.num_classes == len({int(data.y) for data in dataset}) == 9
    assert dataset.num_features == dataset.num_node_features == first.x.shape[1]
    assert dataset.num_edge_features == first.edge_attr.shape[1]
    assert first.validate()
    assert not first.is_directed()


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (slice(2, 5), [2, 3, 4]),
        (slice(-2, None), [88, 89]),
        (slice(None, 0.1), list(range(9))),
        ([5, 3, 3], [5, 3, 3]),
        (torch.tensor([7, 1]), [7, 1]),
        (np.array([4, 0]), [4, 0]),
        (torch.arange(90) < 2, [0, 1]),
        (np.arange(90) > 87, [88, 89]),
        (range(0, 6, 2), [0, 2, 4]),
    ],
)
def test_graphs_are_selected_by_whatever_pyg_takes(
    dataset: GraphXAIDataset, index: object, expected: list[int]
) -> None:
    selected = dataset[index]
    assert ids(selected) == expected
    assert len(selected) == len(expected)
    assert selected.num_classes == 9


def test_a_copy_has_the_selected_graphs_alone(dataset: GraphXAIDataset) -> None:
    copied = dataset[[3, 1]].copy()
    assert ids(copied) == [3, 1]
    assert ids(dataset.copy([2, 4])) == [2, 4]
    copied[0].x.zero_()
    assert dataset[3].x.any()


def test_a_shuffle_is_a_permutation_that_can_be_asked_for(dataset: GraphXAIDataset) -> None:
    with seeded(0):
        shuffled, order = dataset.shuffle(return_perm=True)
    assert ids(shuffled) == order.tolist()
    assert sorted(ids(shuffled)) == list(range(90))


def test_a_field_of_the_dataset_is_that_of_all_graphs(dataset: GraphXAIDataset) -> None:
    assert dataset.y.tolist() == [int(data.y) for data in dataset]
    assert len(dataset.node_mask) == sum(data.num_nodes for data in dataset)


def test_batches_come_apart_into_their_graphs(dataset: GraphXAIDataset) -> None:
    graphs = [dataset[i] for i in (8, 2, 5)]
    batch = Batch.from_data_list(graphs)
    assert batch.num_graphs == 3
    for expected, data in zip(graphs, batch.to_data_list(), strict=True):
        assert data.keys() == expected.keys()
        for key, value in expected:
            same = torch.equal(value, data[key]) if torch.is_tensor(value) else value == data[key]
            assert same, key


def test_graphs_and_datasets_can_be_copied_and_pickled(dataset: GraphXAIDataset) -> None:
    again = pickle.loads(pickle.dumps(dataset))  # noqa: S301 - our own
    assert ids(again[:3]) == [0, 1, 2]
    assert torch.equal(copy.deepcopy(dataset)[4].x, dataset[4].x)
    assert torch.equal(pickle.loads(pickle.dumps(dataset[4])).node_mask, dataset[4].node_mask)  # noqa: S301


def test_a_dataset_goes_on_disk_in_pygs_way(dataset: GraphXAIDataset, tmp_path: Path) -> None:
    on_disk = dataset[:5].to_on_disk_dataset(str(tmp_path), backend="sqlite", log=False)
    try:
        assert len(on_disk) == 5
        assert torch.equal(on_disk[3].edge_index, dataset[3].edge_index)
    finally:
        on_disk.close()
