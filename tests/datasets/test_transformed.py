"""What pre_filter and pre_transform give is kept beside the build, and any change is noticed."""

import logging
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch_geometric.transforms as T  # noqa: N812 - its usual name
from torch_geometric.data import Data

from graphxai_data import BatchLoader, GraphXAIDataset, Manifest, verify
from graphxai_data.building.build import build
from graphxai_data.datasets import transformed
from graphxai_data.datasets.base import Build
from graphxai_data.datasets.loader import obstacle
from tests.conftest import copy_build, importing_environment


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("transformed")
    for name, graphs in (("dihalo", 36), ("ba2motif", 40)):
        build(name, root=root, graphs=graphs, rings=False, engine="serial")
    return root


@pytest.fixture
def folder(built: Path, tmp_path: Path) -> Path:
    return copy_build(built / "dihalo" / "seed-0", tmp_path)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The calls of `GraphXAIDataset._processed`: how often the callables ran over the graphs."""
    calls: list[int] = []
    original = GraphXAIDataset._processed

    def counted(self: GraphXAIDataset) -> Any:
        calls.append(1)
        return original(self)

    monkeypatch.setattr(GraphXAIDataset, "_processed", counted)
    return calls


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob(".processed/*.safetensors"))


def assert_equal(a: GraphXAIDataset, b: GraphXAIDataset) -> None:
    assert len(a) == len(b)
    for ours, theirs in zip(a, b, strict=True):
        assert type(ours) is type(theirs)
        assert list(ours.to_dict()) == list(theirs.to_dict())
        for key, value in theirs.to_dict().items():
            if isinstance(value, torch.Tensor):
                assert ours[key].dtype == value.dtype, key
                assert torch.equal(ours[key], value), key
            else:
                assert ours[key] == value, key


def plain_data(data: Data) -> Data:
    return Data(
        x=data.x, edge_index=data.edge_index, y=data.y, name=data.smiles, size=data.num_nodes
    )


TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "AddSelfLoops": T.AddSelfLoops(),
    "AddRandomWalkPE": T.AddRandomWalkPE(3),
    "LineGraph, which stores num_nodes": T.LineGraph(),
    "graphs of PyG's class, with texts and numbers": plain_data,
    "RandomNodeSplit": T.RandomNodeSplit(num_val=0.1, num_test=0.1),
}


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("kind", TRANSFORMS)
def test_the_second_load_gives_the_same_graphs_without_running_it(
    folder: Path, runs: list[int], kind: str
) -> None:
    with torch.random.fork_rng():
        first = GraphXAIDataset.from_folder(folder, pre_transform=TRANSFORMS[kind])
    second = GraphXAIDataset.from_folder(folder, pre_transform=TRANSFORMS[kind])
    assert len(runs) == 1
    assert_equal(second, first)
    assert first.num_classes == second.num_classes == 9
    assert first.processed_paths == second.processed_paths == [str(*files(folder))]
    assert obstacle(second) == obstacle(first)
    for a, b in zip(BatchLoader(first, 7), BatchLoader(second, 7), strict=True):
        assert a.to_dict().keys() == b.to_dict().keys()
        assert torch.equal(a.edge_index, b.edge_index)
    assert verify(folder) == []


def few(data: Any) -> bool:
    return data.graph_id.item() % 3 > 0


def test_what_decides_the_graphs_decides_the_file(folder: Path, runs: list[int]) -> None:
    options: list[dict[str, Any]] = [
        {"pre_filter": few},
        {"pre_filter": few, "split": "train"},
        {"pre_transform": T.Constant()},
        {"pre_transform": T.Constant(2.0)},
        {"pre_transform": T.Constant(), "pre_filter": few},
    ]
    sizes = [len(GraphXAIDataset.from_folder(folder, **each)) for each in options]
    assert len(runs) == len(files(folder)) == len(options)
    assert [len(GraphXAIDataset.from_folder(folder, **each)) for each in options] == sizes
    assert len(runs) == len(options)
    assert sizes[0] == 24
    values = [
        GraphXAIDataset.from_folder(folder, pre_transform=T.Constant(v))[0].x[0, -1].item()
        for v in (1.0, 2.0)
    ]
    assert values == [1, 2]


def test_changed_code_is_noticed(folder: Path, runs: list[int]) -> None:
    def load(source: str) -> float:
        space: dict[str, Any] = {"__name__": "__main__"}
        exec(source, space)  # noqa: S102 - the test's own code
        dataset = GraphXAIDataset.from_folder(folder, pre_transform=space["pre"])
        return float(dataset[0].x[0, 0])

    source = "def pre(data):\n    data.x = data.x * 0 + {}\n    return data\n"
    assert [load(source.format(n)) for n in (1, 2, 1, 2)] == [1, 2, 1, 2]
    assert len(runs) == 2


def test_another_build_in_the_same_folder_is_noticed(folder: Path, built: Path) -> None:
    first = GraphXAIDataset.from_folder(folder, pre_transform=T.Constant())
    kept = files(folder)[0]
    shutil.rmtree(folder)
    shutil.copytree(built / "ba2motif" / "seed-0", folder)
    kept.parent.mkdir()
    kept.write_bytes(b"of the old build")
    second = GraphXAIDataset.from_folder(folder, pre_transform=T.Constant())
    assert (len(first), len(second)) == (36, 40)


def test_force_reload_runs_the_callables_again(folder: Path, runs: list[int]) -> None:
    root = folder.parent.parent
    options: dict[str, Any] = {"pre_transform": T.Constant(), "graphs": 36}
    for force_reload in (False, False, True):
        GraphXAIDataset(root, "dihalo", force_reload=force_reload, **options)
    assert len(runs) == 2


@pytest.mark.parametrize("damage", ["empty", "short", "flipped", "no header"])
def test_a_damaged_file_is_named_and_made_again(
    folder: Path, runs: list[int], damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    first = GraphXAIDataset.from_folder(folder, pre_transform=T.Constant())
    (path,) = files(folder)
    whole = path.read_bytes()
    middle = len(whole) // 2
    path.write_bytes(
        {
            "empty": b"",
            "short": whole[:-3],
            "flipped": whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :],
            "no header": b"\xff" * 8 + whole[8:],
        }[damage]
    )
    again = GraphXAIDataset.from_folder(folder, pre_transform=T.Constant())
    assert f"{path} is damaged and is made again" in caplog.text
    assert len(runs) == 2
    assert_equal(again, first)
    GraphXAIDataset.from_folder(folder, pre_transform=T.Constant())
    assert len(runs) == 2


GENERATOR = torch.Generator()


def noisy(data: Any) -> Any:
    data.x = data.x + torch.rand(1, generator=GENERATOR)
    return data


def nested(data: Any) -> Any:
    data.more = {"a": data.x}
    return data


class OtherData(Data):
    pass


def other_class(data: Any) -> Any:
    return OtherData(**data.to_dict())


@pytest.mark.parametrize(
    ("pre_transform", "reason"),
    [
        (noisy, "pre_transform: it holds an object of type Generator, which has no digest"),
        (nested, "'more' is a dict, not a tensor or text"),
        (other_class, "the graphs are of type OtherData"),
    ],
)
def test_what_cannot_be_kept_is_computed_again_and_the_log_says_why(
    folder: Path, runs: list[int], caplog: pytest.LogCaptureFixture,
    pre_transform: Callable[[Any], Any], reason: str,
) -> None:  # fmt: skip
    for _ in range(2):
        caplog.clear()
        dataset = GraphXAIDataset.from_folder(folder, pre_transform=pre_transform)
        assert len(dataset) == 36
        assert f"is not kept, so the next load runs them again: {reason}" in caplog.text
        assert dataset.processed_file_names == dataset.raw_file_names
    assert len(runs) == 2
    assert files(folder) == []


def test_a_folder_that_cannot_be_written_is_used_as_it_is(
    folder: Path, runs: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    (folder / ".processed").write_text("in the way, as on a read-only disk")
    assert len(GraphXAIDataset.from_folder(folder, pre_transform=T.Constant())) == 36
    assert ".processed: File exists" in caplog.text
    (folder / ".processed").unlink()
    GraphXAIDataset.from_folder(folder, pre_transform=T.Constant())
    lock = files(folder)[0].with_suffix(".lock")
    lock.unlink(missing_ok=True)
    lock.mkdir()  # an existing file needs no lock
    GraphXAIDataset.from_folder(folder, pre_transform=T.Constant())
    assert len(runs) == 2


def test_a_full_disk_costs_the_file_but_not_the_graphs(
    folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(transformed, "write_atomically", full)
    assert len(GraphXAIDataset.from_folder(folder, pre_transform=T.Constant())) == 36
    assert "No space left on device" in caplog.text


def test_a_build_at_a_url_is_not_kept(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    place = Build(folder, Manifest.load(folder), "s3://bucket/root/dihalo/seed-0")
    assert len(GraphXAIDataset(place, "dihalo", pre_transform=T.Constant())) == 36
    assert "s3://bucket/root/dihalo/seed-0: what pre_filter and pre_transform gave" in caplog.text
    assert "the build is at a URL" in caplog.text
    assert files(folder) == []


LOAD = """
import sys
import torch_geometric.transforms as T
from graphxai_data import GraphXAIDataset
calls = 0
original = GraphXAIDataset._processed
def counted(self):
    global calls
    calls += 1
    return original(self)
GraphXAIDataset._processed = counted
dataset = GraphXAIDataset.from_folder(sys.argv[1], pre_transform=T.AddLaplacianEigenvectorPE(2))
print(calls, len(dataset), float(dataset._data.laplacian_eigenvector_pe.abs().sum()))
"""


def test_processes_that_load_at_once_wait_for_the_first(folder: Path) -> None:
    command = [sys.executable, "-c", LOAD, str(folder)]
    processes = [
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=importing_environment(),
        )
        for _ in range(3)
    ]  # fmt: skip
    results = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], results
    rows = [stdout.split() for stdout, _ in results]
    assert sorted(row[0] for row in rows) == ["0", "0", "1"]
    assert len({tuple(row[1:]) for row in rows}) == 1
    assert len(files(folder)) == 1
    assert not list(folder.glob(".processed/*.tmp"))


def test_only_the_last_files_stay(
    folder: Path, runs: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transformed, "KEPT", 2)
    for value in (0.0, 1.0, 0.0, 2.0):
        GraphXAIDataset.from_folder(folder, pre_transform=T.Constant(value))
    assert len(files(folder)) == 2
    assert len(runs) == 3
    GraphXAIDataset.from_folder(folder, pre_transform=T.Constant(0.0))  # used after 1.0
    assert len(runs) == 3


def test_a_single_graph_is_kept_as_well(tmp_path: Path) -> None:
    build("dihalo", root=tmp_path, graphs=1, rings=False, engine="serial")
    loads = [GraphXAIDataset(tmp_path, "dihalo", pre_transform=T.AddSelfLoops()) for _ in range(2)]
    assert_equal(loads[0], loads[1])
    assert isinstance(loads[1][0].smiles, str)
    assert files(tmp_path / "dihalo" / "seed-0")


def test_loading_without_callables_keeps_nothing_and_says_nothing(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        GraphXAIDataset.from_folder(folder, transform=T.AddSelfLoops())
    assert caplog.text == ""
    assert not (folder / ".processed").exists()
