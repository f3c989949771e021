"""The rest of the interface of PyG's datasets, and that of OGB's for MolHIV."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch_geometric.transforms as T  # noqa: N812 - its usual name
from ogb.graphproppred import Evaluator
from torch_geometric.data import Dataset, InMemoryDataset
from torch_geometric.data.summary import Summary
from torch_geometric.loader import DataLoader

from graphxai_data import (
    BA2Motif,
    BatchLoader,
    DiHaloBenzene,
    GraphXAIDataset,
    MolHIV,
    ShardedDataset,
    StreamedDataset,
)
from graphxai_data.building.build import build
from graphxai_data.errors import InputError
from tests.generators.test_molhiv import files, written

PYG: list[Callable[..., Any]] = [GraphXAIDataset, ShardedDataset]
ALL: list[Callable[..., Any]] = [*PYG, StreamedDataset]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("methods")
    build("ba2motif", root=folder, graphs=40, shard_size=15, rings=False, engine="serial")
    return folder


@pytest.mark.parametrize("make", PYG)
def test_the_files_are_those_of_the_build(root: Path, make: Callable[..., Any]) -> None:
    dataset = make(root, "ba2motif")
    names = ["manifest.json", *(f"shard-0000{i}.h5" for i in range(3))]
    assert dataset.raw_file_names == dataset.processed_file_names == names
    folder = root / "ba2motif" / "seed-0"
    assert dataset.raw_dir == dataset.processed_dir == str(folder)
    assert dataset.raw_paths == dataset.processed_paths == [str(folder / name) for name in names]
    assert all(Path(path).is_file() for path in dataset.raw_paths)
    assert not dataset.has_download
    assert not dataset.has_process


def test_no_property_of_pygs_datasets_is_left_out(root: Path) -> None:
    for dataset in (GraphXAIDataset(root, "ba2motif"), ShardedDataset(root, "ba2motif")):
        for cls in (Dataset, InMemoryDataset):
            for name, member in vars(cls).items():
                if isinstance(member, property) and name != "data" and isinstance(dataset, cls):
                    getattr(dataset, name)


@pytest.mark.parametrize("make", PYG)
def test_the_summary_is_pygs_and_needs_no_other_package(
    root: Path, make: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = make(root, "ba2motif")
    summary = dataset.get_summary()
    theirs = Summary.from_dataset(dataset, progress_bar=False)
    assert vars(summary) == vars(theirs)
    sizes = np.array([graph.num_nodes for graph in dataset])
    lines = str(summary).splitlines()
    assert lines[0] == f"{make.__name__} (#graphs=40):"
    assert lines[1] == lines[-1] == "+------------+--------+--------+"
    assert lines[2] == "|            | #nodes | #edges |"
    assert lines[3] == "|------------+--------+--------|"
    assert lines[4].split() == [
        "|",
        "mean",
        "|",
        f"{sizes.mean():.1f}",
        "|",
        lines[4].split()[5],
        "|",
    ]
    assert [line.split()[1] for line in lines[4:-1]] == [
        "mean", "std", "min", "quantile25", "median", "quantile75", "max",
    ]  # fmt: skip
    assert len(set(map(len, lines[1:]))) == 1
    dataset.print_summary()
    assert capsys.readouterr().out == f"{summary}\n"
    assert dataset[:5].get_summary().num_graphs == 5


def test_the_summary_is_that_of_transformed_graphs(root: Path) -> None:
    plain = GraphXAIDataset(root, "ba2motif").get_summary()
    loops = GraphXAIDataset(root, "ba2motif", transform=T.AddSelfLoops()).get_summary()
    assert loops.num_edges.mean == pytest.approx(plain.num_edges.mean + plain.num_nodes.mean)


@pytest.mark.parametrize("make", ALL)
def test_a_smaller_build_is_made_with_progress(
    tmp_path: Path, make: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[tuple[int, int, str]] = []
    dataset = make(tmp_path, "dihalo", graphs=18, progress=lambda *call: calls.append(call))
    assert dataset.manifest.graphs == 18
    assert calls[0] == (0, 18, "building dihalo")
    assert calls[-1][:2] == (18, 18)
    assert "its recipe" not in caplog.text
    calls.clear()
    make(tmp_path, "dihalo", graphs=18, progress=lambda *call: calls.append(call))
    assert calls == []
    with pytest.raises(
        InputError, match="another build of 'dihalo' .graphs 18, expected 27.; pass"
    ):
        make(tmp_path, "dihalo", graphs=27)
    make(tmp_path, "dihalo", graphs=27, force_reload=True)
    make(tmp_path, "dihalo")
    assert "has 27 graphs, its recipe 9000" in caplog.text


def test_named_datasets_are_smaller_too_and_nothing_is_printed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert len(DiHaloBenzene(tmp_path, graphs=9)) == 9
    assert len(BA2Motif(tmp_path, variant="balanced", graphs=20)) == 20
    assert capfd.readouterr().out == ""
    with pytest.raises(InputError, match="graphs"):
        BA2Motif(tmp_path, graphs=0)
    for key in ("graphs", "progress"):
        with pytest.raises(TypeError, match="the folder is the build"):
            GraphXAIDataset.from_folder(tmp_path / "dihalo" / "seed-0", **{key: None})


def test_the_published_order_of_arguments_has_not_changed() -> None:
    published = [
        "self", "root", "name", "seed", "split", "transform", "pre_transform", "pre_filter",
        "force_reload",
    ]  # fmt: skip
    for cls, expected in ((GraphXAIDataset, published), (MolHIV, [*published[:2], *published[3:]])):
        parameters = inspect.signature(cls.__init__).parameters.values()
        positional = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        assert positional == expected


@pytest.fixture(scope="module")
def molhiv_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("molhiv")
    source = written(folder, files())
    build("molhiv", root=folder, graphs=60, sources={"molhiv": source}, rings=False)
    return folder


class Net(torch.nn.Module):
    """A network of OGB's shape: one number per task and graph."""

    def __init__(self, num_tasks: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(174, num_tasks)

    def forward(self, batch: Any) -> torch.Tensor:
        sums = torch.zeros(batch.num_graphs, 174).index_add(0, batch.batch, batch.x)
        return self.linear(sums)


def test_ogbs_training_loop_and_evaluator_run(molhiv_root: Path) -> None:
    """The steps of `examples/graphproppred/mol/main_pyg.py` of OGB."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        dataset = MolHIV(molhiv_root, graphs=60, ogb_labels=True)
        split_idx = dataset.get_idx_split()
        evaluator = Evaluator("ogbg-molhiv")
        assert dataset.eval_metric == evaluator.eval_metric
        assert dataset.num_tasks == evaluator.num_tasks
        model = Net(dataset.num_tasks)
        optimizer = torch.optim.Adam(model.parameters())
        criterion = torch.nn.BCEWithLogitsLoss()
        assert "classification" in dataset.task_type
        for batch in DataLoader(dataset[split_idx["train"]], batch_size=16, shuffle=True):
            pred = model(batch)
            is_labeled = batch.y == batch.y
            loss = criterion(
                pred.to(torch.float32)[is_labeled], batch.y.to(torch.float32)[is_labeled]
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        y_true, y_pred = [], []
        for batch in BatchLoader(dataset[split_idx["valid"]], 16):
            pred = model(batch).detach()
            y_true.append(batch.y.view(pred.shape))
            y_pred.append(pred)
    input_dict = {"y_true": torch.cat(y_true).numpy(), "y_pred": torch.cat(y_pred).numpy()}
    assert 0 <= evaluator.eval(input_dict)["rocauc"] <= 1


def test_labels_have_ogbs_shape_only_if_asked(molhiv_root: Path) -> None:
    ours = MolHIV(molhiv_root, graphs=60)
    ogbs = MolHIV(molhiv_root, graphs=60, ogb_labels=True)
    assert ours[3].y.shape == (1,)
    assert ogbs[3].y.shape == (1, 1)
    assert ogbs[3].y.dtype == torch.int64
    assert ours.num_classes == ogbs.num_classes == 2
    assert next(iter(BatchLoader(ogbs, 8))).y.shape == (8, 1)
    assert ogbs[:10].y.flatten().tolist() == ours[:10].y.tolist()
    kept = [MolHIV(molhiv_root, graphs=60, pre_transform=T.Constant(), ogb_labels=each)[0].y.shape
            for each in (False, True, False, True)]  # fmt: skip
    assert kept == [(1,), (1, 1)] * 2
