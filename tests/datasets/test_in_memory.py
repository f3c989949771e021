import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.explain import Explanation
from torch_geometric.loader import DataLoader
from torch_geometric.transforms import ToUndirected

from graphxai_data import BA2Motif, GraphXAIDataset, ShardedDataset
from graphxai_data.building.build import build
from graphxai_data.building.verify import verify
from graphxai_data.errors import DamagedError, InputError
from graphxai_data.graphs.shards import ShardReader
from tests.conftest import copy_build


@pytest.fixture(scope="module")
def dataset(motif_root: Path) -> BA2Motif:
    return BA2Motif(motif_root)


def test_it_is_a_pyg_in_memory_dataset(dataset: BA2Motif) -> None:
    assert isinstance(dataset, InMemoryDataset)
    assert len(dataset) == 1000
    assert dataset.num_classes == 2
    assert dataset.num_features == dataset.num_node_features == 29
    assert repr(dataset) == "BA2Motif('ba2motif', 1000 graphs, seed=0)"


def test_every_graph_equals_its_record(dataset: BA2Motif, motif_root: Path) -> None:
    shard = ShardReader(motif_root / "ba2motif/seed-0/shard-00000.h5")
    for graph, record in zip(dataset, shard, strict=True):
        assert torch.equal(graph.x, torch.from_numpy(record.x))
        assert torch.equal(graph.edge_index, torch.from_numpy(record.edge_index))
        assert torch.equal(graph.node_mask, torch.from_numpy(record.node_mask))
        assert torch.equal(graph.edge_mask, torch.from_numpy(record.edge_mask))
        assert graph.y.tolist() == [record.y]
        assert graph.edge_attr is None


def test_graphs_have_the_types_that_pyg_models_expect(dataset: BA2Motif) -> None:
    graph = dataset[0]
    assert graph.x.dtype == torch.float32
    assert graph.edge_index.dtype == torch.int64
    assert graph.y.dtype == torch.int64
    assert graph.node_mask.dtype == graph.edge_mask.dtype == torch.bool
    assert graph.is_undirected()
    assert not graph.has_self_loops()
    assert graph.validate(raise_on_error=True)


def test_many_shards_give_the_same_dataset_as_one(dataset: BA2Motif, tmp_path: Path) -> None:
    from graphxai_data.building.build import build

    build("ba2motif", root=tmp_path, shard_size=77, engine="serial")
    other = BA2Motif(tmp_path)
    for key, tensor in dataset._data.to_dict().items():
        assert torch.equal(tensor, other._data[key]), key
    for key, pointers in dataset.slices.items():
        assert torch.equal(pointers, other.slices[key]), key


def test_batches_of_pygs_loader_are_whole(dataset: BA2Motif) -> None:
    with torch.random.fork_rng():  # PyTorch's loader draws a seed from the global generator
        batch = next(iter(DataLoader(dataset, batch_size=32)))
    assert batch.num_graphs == 32
    assert batch.node_mask.sum() == 5 * 32
    assert batch.edge_index.max() < batch.num_nodes


def test_split_indices_are_disjoint_stratified_and_complete(dataset: BA2Motif) -> None:
    split = dataset.get_idx_split()
    assert {name: len(idx) for name, idx in split.items()} == {
        "train": 700, "valid": 200, "test": 100,
    }  # fmt: skip
    assert sorted(torch.cat(list(split.values())).tolist()) == list(range(1000))
    for index in split.values():
        assert dataset[index].y.float().mean() == 0.5


def test_split_indices_are_positions_in_a_selection(dataset: BA2Motif) -> None:
    order = torch.arange(999, -1, -1)
    for view in (dataset[order], dataset[10:300], dataset[dataset._data.y == 1]):
        for i, (name, index) in enumerate(view.get_idx_split().items()):
            assert {graph.split.item() for graph in view[index]} <= {i}, name
        assert sum(map(len, view.get_idx_split().values())) == len(view)


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_a_split_holds_exactly_its_graphs(dataset: BA2Motif, motif_root: Path, split: str) -> None:
    part = BA2Motif(motif_root, split=split)
    index = dataset.get_idx_split()[split]
    assert part.num_classes == 2
    assert len(part) == len(index)
    for i, graph in zip(index.tolist(), part, strict=True):
        assert graph.to_dict().keys() == dataset[i].to_dict().keys()
        for key, value in graph.to_dict().items():
            assert torch.equal(value, dataset[i][key])


def test_twins_are_in_the_same_split(motif_root: Path) -> None:
    groups = [
        set(BA2Motif(motif_root, split=s, variant="balanced")._data.group.tolist())
        for s in ("train", "valid", "test")
    ]
    assert len(set.union(*groups)) == sum(map(len, groups)) == 400


def test_the_ground_truth_is_an_explanation_that_pyg_accepts(dataset: BA2Motif) -> None:
    for explanation in (dataset[0].to_explanation(), dataset.to_explanation(0)):
        assert isinstance(explanation, Explanation)
        assert explanation.validate()
        assert explanation.node_mask.shape == (dataset[0].num_nodes, 1)
        assert explanation.get_explanation_subgraph().num_nodes == 5


def test_a_folder_of_any_name_can_be_opened(dataset: BA2Motif, tmp_path: Path) -> None:
    shutil.copytree(dataset.folder, tmp_path / "copy")
    for cls in (BA2Motif, GraphXAIDataset):
        opened = cls.from_folder(tmp_path / "copy")
        assert repr(opened) == "GraphXAIDataset('ba2motif', 1000 graphs, seed=0)"
        assert torch.equal(opened[7].edge_index, dataset[7].edge_index)
    part = GraphXAIDataset.from_folder(tmp_path / "copy", split="test", pre_filter=has_class_one)
    assert len(part) == 50


def has_class_one(data: Data) -> bool:
    return data.y.item() == 1


def test_missing_builds_are_built(tmp_path: Path, recipe_file: object) -> None:
    path = recipe_file(("graphs = 1000", "graphs = 30"), ('"ba2motif"\nversion', '"x"\nversion'))
    dataset = GraphXAIDataset(tmp_path / "root", path, seed=5)
    assert len(dataset) == 30
    assert verify(tmp_path / "root/x/seed-5") == []


def test_transform_pre_transform_and_pre_filter_work_as_in_pyg(
    motif_root: Path, tmp_path: Path
) -> None:
    copy_build(motif_root / "ba2motif" / "seed-0", tmp_path)

    def constant(data: object) -> object:
        data.x = torch.ones(data.num_nodes, 1)
        return data

    dataset = BA2Motif(
        tmp_path,
        transform=ToUndirected(),
        pre_transform=constant,
        pre_filter=has_class_one,
    )
    assert len(dataset) == 500
    assert dataset.num_features == 1
    assert set(dataset._data.y.tolist()) == {1}
    assert dataset[0].node_mask.sum() == 5
    assert sum(map(len, dataset.get_idx_split().values())) == 500
    with pytest.raises(InputError, match="keeps none of the graphs"):
        BA2Motif(tmp_path, pre_filter=lambda data: False)


def test_graphs_can_be_indexed_like_any_pyg_dataset(dataset: BA2Motif) -> None:
    assert len(dataset[10:20]) == 10
    assert dataset[10:20][0].graph_id.item() == 10
    assert dataset[torch.tensor([3, 1])][1].graph_id.item() == 1


def test_force_reload_builds_again(tmp_path: Path, motif_root: Path) -> None:
    folder = copy_build(motif_root / "ba2motif/seed-0", tmp_path)
    (folder / "shard-00000.h5").write_bytes(b"damaged")
    with pytest.raises(DamagedError, match="not the file that manifest.json lists"):
        BA2Motif(tmp_path)
    assert len(BA2Motif(tmp_path, force_reload=True)) == 1000
    assert verify(folder) == []


def test_a_build_of_another_recipe_under_this_name_is_refused(
    tmp_path: Path, recipe_file: object
) -> None:
    GraphXAIDataset(tmp_path, recipe_file(("graphs = 1000", "graphs = 30")))
    with pytest.raises(InputError, match="another build of 'ba2motif' .recipe_sha256"):
        BA2Motif(tmp_path)


def test_a_root_may_start_with_a_tilde(motif_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(motif_root.parent))
    assert len(BA2Motif(f"~/{motif_root.name}")) == 1000


def test_the_default_dtype_of_torch_changes_nothing(motif_root: Path) -> None:
    torch.set_default_dtype(torch.float64)
    try:
        assert BA2Motif(motif_root)[0].x.dtype == torch.float32
    finally:
        torch.set_default_dtype(torch.float32)


def test_arguments_have_the_order_of_the_general_dataset(motif_root: Path) -> None:
    assert len(BA2Motif(motif_root, 0, "test")) == 100


def test_a_smaller_build_is_loaded_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from graphxai_data.building.build import build

    build("ba2motif", root=tmp_path, graphs=20, engine="serial")
    assert len(BA2Motif(tmp_path)) == 20
    assert "has 20 graphs, its recipe 1000" in caplog.text


def test_invalid_arguments_are_refused(dataset: BA2Motif, motif_root: Path) -> None:
    with pytest.raises(InputError, match="split: expected one of train, valid, test, got 'val'"):
        BA2Motif(motif_root, split="val")
    with pytest.raises(InputError, match="unknown dataset 'ba2motif-balance'"):
        BA2Motif(motif_root, variant="balance")
    part = BA2Motif(motif_root, split="test")
    with pytest.raises(InputError, match="only split 'test' is loaded"):
        part.get_idx_split()


def test_loading_makes_no_object_per_graph(
    motif_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from graphxai_data.datasets import data as module

    created = []
    original = module.GraphXAIData.__init__
    monkeypatch.setattr(
        module.GraphXAIData,
        "__init__",
        lambda self, *a, **k: (created.append(1), original(self, *a, **k))[1],
    )
    BA2Motif(motif_root)
    assert len(created) == 1


def test_nothing_but_the_build_folder_is_written(motif_root: Path, dataset: BA2Motif) -> None:
    assert not list(motif_root.rglob("*.pt"))
    assert not (motif_root / "processed").exists()


def test_a_dataset_of_one_graph_has_the_same_fields(tmp_path: Path) -> None:
    build("dihalo", root=tmp_path, graphs=1, rings=False)
    build("dihalo", root=tmp_path / "two", graphs=2, rings=False)
    alone, among = (GraphXAIDataset(r, "dihalo")[0] for r in (tmp_path, tmp_path / "two"))
    assert isinstance(alone.smiles, str)
    assert set(alone.keys()) == set(among.keys())
    for key in alone.keys():  # noqa: SIM118 - PyG's Data iterates over pairs
        assert type(alone[key]) is type(among[key])


@pytest.mark.parametrize("option", [{"seed": 3}, {"force_reload": True}])
def test_a_folder_is_opened_without_options_that_choose_a_build(
    motif_root: Path, option: dict[str, Any]
) -> None:
    with pytest.raises(TypeError, match="the folder is the build"):
        ShardedDataset.from_folder(motif_root / "ba2motif" / "seed-0", **option)
