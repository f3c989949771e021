"""Datasets that stay on disk: their graphs equal those of the dataset in memory."""

import hashlib
import itertools
import json
import pickle
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
import torch.distributed
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import IterableDataset
from torch_geometric.data import Dataset
from torch_geometric.loader import DataLoader

from graphxai_data import GraphXAIDataset, ShardedDataset, StreamedDataset
from graphxai_data.building.build import build
from graphxai_data.building.survey import shard_entry
from graphxai_data.datasets import cutting
from graphxai_data.datasets.base import Build
from graphxai_data.datasets.cutting import LoadedShard, OpenShard
from graphxai_data.datasets.data import GraphXAIData
from graphxai_data.datasets.stream import _mixed
from graphxai_data.errors import DamagedError, InputError
from graphxai_data.graphs.record import GraphRecord
from graphxai_data.graphs.schema import Schema
from graphxai_data.graphs.shards import ShardReader, ShardWriter
from graphxai_data.manifest import Manifest, ShardEntry
from graphxai_data.seeds import rng_for
from tests.conftest import copy_build, run_python
from tests.strategies import datasets

# At least two graphs per split: PyG stores a dataset of one graph differently.
KINDS = {"ba2motif": 40, "dihalo": 36, "mnist75sp-r23": 70, "pattern": 18}
SHARD_SIZES = (1, 7, 16, 40)

Make = Callable[..., Any]
OPEN: list[Make] = [StreamedDataset, ShardedDataset]

# Python 3.12 warns whenever a process with threads is forked, which is what is tested here.
FORKS = pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Root of one small build of each kind, in several shards; tests must not change it."""
    folder = tmp_path_factory.mktemp("streaming")
    for name, graphs in KINDS.items():
        build(name, root=folder, graphs=graphs, shard_size=7, rings=False, engine="serial")
    for size in SHARD_SIZES:
        cut = folder / f"by-{size}"
        build("ba2motif", root=cut, graphs=40, shard_size=size, rings=False, engine="serial")
    return folder


@cache
def in_memory(root: Path, split: str | None) -> list[GraphXAIData]:
    return list(GraphXAIDataset(root / "by-40", "ba2motif", split=split))


def assert_same(ours: GraphXAIData, theirs: GraphXAIData) -> None:
    assert type(ours) is type(theirs)
    assert list(ours.to_dict()) == list(theirs.to_dict())
    for key, value in theirs.to_dict().items():
        if isinstance(value, str):
            assert ours[key] == value, key
        else:
            assert ours[key].dtype == value.dtype, key
            assert ours[key].shape == value.shape, key
            assert torch.equal(ours[key], value), key


def assert_all_same(ours: Iterable[GraphXAIData], theirs: Iterable[GraphXAIData]) -> None:
    for a, b in zip(ours, theirs, strict=True):
        assert_same(a, b)


def ids(graphs: Iterable[Any]) -> list[int]:
    return [i for graph in graphs for i in graph.graph_id.tolist()]


@contextmanager
def as_worker(number: int, workers: int) -> Iterator[None]:
    """Pretend to be a worker of a `DataLoader`, or the main process if there are no workers."""
    info = SimpleNamespace(id=number, num_workers=workers) if workers else None
    with mock.patch("graphxai_data.datasets.stream.get_worker_info", return_value=info):
        yield


def over_workers(dataset: StreamedDataset, workers: int) -> list[GraphXAIData]:
    graphs = []
    for number in range(max(workers, 1)):
        with as_worker(number, workers):
            graphs += list(dataset)
    return graphs


def loaded_ids(dataset: Any, **options: Any) -> list[int]:
    with torch.random.fork_rng():  # PyTorch's loader draws a seed from the global generator
        return ids(DataLoader(dataset, batch_size=4, **options))


@pytest.mark.parametrize("split", [None, "train", "valid", "test"])
@pytest.mark.parametrize("name", KINDS)
def test_graphs_equal_those_of_the_dataset_in_memory(
    root: Path, name: str, split: str | None
) -> None:
    memory = GraphXAIDataset(root, name, split=split)
    streamed = StreamedDataset(root, name, split=split)
    sharded = ShardedDataset(root, name, split=split)
    assert isinstance(streamed, IterableDataset)
    assert isinstance(sharded, Dataset)
    assert len(streamed) == len(sharded) == len(memory)
    assert_all_same(streamed, memory)
    assert_all_same(sharded, memory)
    for key in ("num_classes", "has_rationale", "task", "num_features", "num_edge_features"):
        assert getattr(streamed, key) == getattr(sharded, key) == getattr(memory, key), key
    for dataset in (streamed, sharded):
        assert (dataset.name, dataset.seed, dataset.split) == (name, 0, split)


def test_a_dataset_of_one_graph_has_the_same_fields(root: Path, tmp_path: Path) -> None:
    build("dihalo", root=tmp_path, graphs=1, rings=False, engine="serial")
    usual = list(GraphXAIDataset(root, "dihalo")[0].to_dict())
    for make in OPEN:
        (graph,) = make(tmp_path, "dihalo")
        assert list(graph.to_dict()) == usual
        assert isinstance(graph.smiles, str)


def shard_of(folder: Path, schema: Schema, records: list[GraphRecord], first: int) -> Path:
    path = folder / f"shard-{first:05d}.h5"
    with ShardWriter(path, schema, dataset="any", recipe_sha256="", seed=0) as writer:
        for i, record in enumerate(records, start=first):
            writer.add(record, graph_id=i, split=i % 3)
    return path


@settings(deadline=None, max_examples=40)
@given(datasets().filter(lambda data: len(data[1]) > 1))
def test_graphs_of_any_schema_equal_those_of_the_dataset_in_memory(
    data: tuple[Schema, list[GraphRecord]],
) -> None:
    schema, records = data
    with tempfile.TemporaryDirectory() as temporary:
        half = len(records) // 2
        parts = (records[:half], 0), (records[half:], half)
        paths = [shard_of(Path(temporary), schema, *part) for part in parts]
        entries = tuple(shard_entry(ShardReader(path)) for path in paths)
        manifest = Manifest(1, "any", 0, len(records), half, "", "", {}, {}, entries, {}, {})
        memory = GraphXAIDataset(Build(Path(temporary), manifest), "any")
        for kind in (LoadedShard, OpenShard):
            shards = [kind(ShardReader(path)) for path in paths]
            graphs = [shard.cut(i).as_data() for shard in shards for i in range(len(shard))]
            assert_all_same(graphs, memory)


@settings(deadline=None, max_examples=40)
@given(
    shard_size=st.sampled_from(SHARD_SIZES),
    split=st.sampled_from([None, "train", "valid", "test"]),
    shuffle=st.booleans(),
    seed=st.integers(0, 2**63 - 1),
    epoch=st.integers(0, 2**32 - 1),
    buffer=st.integers(1, 60),
    workers=st.integers(0, 3),
    ranks=st.integers(1, 3),
)
def test_every_graph_comes_once_over_all_workers_and_ranks(
    shard_size: int, split: str | None, shuffle: bool, seed: int, epoch: int, buffer: int,
    workers: int, ranks: int, root: Path,
) -> None:  # fmt: skip
    over_ranks = []
    for rank in range(ranks):
        dataset = StreamedDataset(
            root / f"by-{shard_size}", "ba2motif", split=split, shuffle=shuffle,
            shuffle_seed=seed, buffer=buffer, rank=rank, world_size=ranks,
        )  # fmt: skip
        dataset.set_epoch(epoch)
        graphs = over_workers(dataset, workers)
        assert ids(graphs) == ids(over_workers(dataset, workers))
        if split is None or ranks == 1:
            assert len(graphs) == len(dataset)
        over_ranks += graphs
    if shuffle:
        over_ranks.sort(key=lambda graph: graph.graph_id.item())
    assert_all_same(over_ranks, in_memory(root, split))


@settings(deadline=None, max_examples=20)
@given(workers=st.integers(0, 3), ranks=st.integers(1, 5))
def test_pieces_differ_by_at_most_one_graph(workers: int, ranks: int, root: Path) -> None:
    counts = []
    for rank, number in itertools.product(range(ranks), range(max(workers, 1))):
        dataset = StreamedDataset(root, "ba2motif", shuffle=True, rank=rank, world_size=ranks)
        with as_worker(number, workers):
            counts.append(len(list(dataset)))
    assert max(counts) - min(counts) <= 1


def shuffled_ids(folder: Path, epoch: int = 0, **options: Any) -> list[int]:
    dataset = StreamedDataset.from_folder(folder, shuffle=True, **options)
    dataset.set_epoch(epoch)
    return ids(dataset)


def test_the_order_is_a_function_of_seed_and_epoch(root: Path) -> None:
    folder = root / "by-7" / "ba2motif" / "seed-0"
    orders = {
        (seed, epoch): tuple(shuffled_ids(folder, epoch, shuffle_seed=seed, buffer=10))
        for seed in range(3)
        for epoch in range(3)
    }
    assert len(set(orders.values())) == 9
    torch.rand(1, generator=torch.Generator().manual_seed(1))
    assert shuffled_ids(folder, 2, shuffle_seed=1, buffer=10) == list(orders[1, 2])


def words(seed: int, stream: str, index: int, attempt: int, count: int) -> list[int]:
    """Return raw words of a random stream, computed without `graphxai_data.seeds`."""
    digest = hashlib.sha256(stream.encode()).digest()
    tag = [int.from_bytes(digest[i : i + 4], "little") for i in (0, 4, 8, 12)]
    sequence = np.random.SeedSequence(seed, spawn_key=(*tag, index, attempt))
    return np.random.PCG64(sequence).random_raw(count).tolist()


def by_words(*stream: Any, count: int) -> list[int]:
    drawn = words(*stream, count)
    return sorted(range(count), key=lambda i: drawn[i])


@pytest.mark.parametrize(
    ("place", "piece", "reader"),
    [((0, 1, 0, 0), slice(0, 40), 0), ((1, 2, 1, 3), slice(26, 33), 4)],
)
def test_the_order_never_changes(
    root: Path, place: tuple[int, int, int, int], piece: slice, reader: int
) -> None:
    seed, epoch, size, shard_sizes = 5, 3, 4, [7, 7, 7, 7, 7, 5]
    coming = []
    for shard in by_words(seed, "streaming/shards", epoch, 0, count=6):
        graphs = by_words(seed, "streaming/graphs", epoch, shard, count=shard_sizes[shard])
        coming += [7 * shard + i for i in graphs]
    coming = coming[piece]
    drawn = words(seed, "streaming/buffer", epoch, reader, len(coming))
    waiting, expected = coming[:size], []
    for item, word in zip(coming[size:], drawn, strict=False):
        expected.append(waiting[word % size])
        waiting[word % size] = item
    last = drawn[-size:]
    expected += [waiting[i] for i in sorted(range(size), key=lambda i: last[i])]
    folder = root / "by-7" / "ba2motif" / "seed-0"
    rank, ranks, worker, workers = place
    with as_worker(worker, workers):
        order = shuffled_ids(
            folder, epoch, shuffle_seed=seed, buffer=size, rank=rank, world_size=ranks
        )
    assert order == expected


def test_a_buffer_mixes_shards_and_without_it_shards_stay_together(root: Path) -> None:
    folder = root / "by-7" / "ba2motif" / "seed-0"
    alone = [i // 7 for i in shuffled_ids(folder, buffer=1)]
    assert len(list(itertools.groupby(alone))) == 6
    assert sorted(alone) != alone
    mixed = [i // 7 for i in shuffled_ids(folder, buffer=40)]
    assert len(list(itertools.groupby(mixed))) > 20


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 60), st.integers(1, 60), st.integers(0, 1000))
def test_nothing_leaves_the_buffer_before_it_enters(length: int, size: int, seed: int) -> None:
    mixed = list(_mixed(range(length), size, rng_for(seed, "test")))
    assert sorted(mixed) == list(range(length))
    assert all(item - place <= size for place, item in enumerate(mixed))
    if size == 1:
        assert mixed == list(range(length))


@pytest.mark.parametrize("size", [40, 100])
def test_a_full_buffer_can_put_every_graph_anywhere(size: int) -> None:
    places = np.zeros((300, 40))
    for i in range(300):
        places[i, list(_mixed(range(40), size, rng_for(i, "test")))] = np.arange(40)
    # The mean of 300 uniform places from 0 to 39 has a deviation of 0.67 around 19.5.
    assert abs(places.mean(axis=0) - 19.5).max() < 4 * 0.67


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("workers", [0, 1, 2])
@FORKS
def test_pygs_loader_returns_every_graph_once(root: Path, workers: int, shuffle: bool) -> None:
    dataset = StreamedDataset(root, "dihalo", shuffle=shuffle, buffer=10)
    order = loaded_ids(dataset, num_workers=workers)
    assert sorted(order) == list(range(36))
    assert (order == list(range(36))) == (not shuffle and workers < 2)
    assert order == loaded_ids(dataset, num_workers=workers)


def compared_with(sharded: ShardedDataset, graph: GraphXAIData) -> GraphXAIData:
    assert_same(sharded[graph.graph_id.item()], graph)
    return graph


@FORKS
@pytest.mark.parametrize(("method", "workers"), [("fork", 2), ("spawn", 1)])
def test_workers_open_their_own_files(root: Path, method: str, workers: int) -> None:
    sharded = ShardedDataset(root, "ba2motif")
    sharded[0]  # opens a file that workers cannot use
    streamed = StreamedDataset(
        root,
        "ba2motif",
        transform=partial(compared_with, sharded),
        shuffle=True,
        shuffle_seed=3,
        buffer=5,
    )
    streamed.set_epoch(4)
    order = loaded_ids(streamed, num_workers=workers, multiprocessing_context=method)
    for number in range(workers):
        with as_worker(number, workers):
            expected = ids(streamed)
        assert [i for i in order if i in expected] == expected


@FORKS
def test_persistent_workers_see_the_new_epoch(root: Path) -> None:
    dataset = StreamedDataset(root, "ba2motif", shuffle=True)
    with torch.random.fork_rng():
        loader = DataLoader(dataset, batch_size=4, num_workers=1, persistent_workers=True)
        orders = []
        for epoch in (0, 1, 0):
            dataset.set_epoch(epoch)
            orders.append(ids(loader))
    assert orders[0] == orders[2] != orders[1]
    dataset.set_epoch(1)
    assert ids(dataset) == orders[1]


def test_ranks_are_those_of_torch_distributed(root: Path, tmp_path: Path) -> None:
    dataset = StreamedDataset(root, "ba2motif")
    with mock.patch("graphxai_data.datasets.stream.dist") as dist:
        dist.get_rank.return_value, dist.get_world_size.return_value = 1, 4
        assert ids(dataset) == list(range(10, 20))
        stored = pickle.dumps(dataset)
    assert len(dataset) == 40
    # A spawned worker is not part of the process group.
    assert ids(pickle.loads(stored)) == list(range(10, 20))  # noqa: S301 - pickled here
    assert ids(pickle.loads(pickle.dumps(dataset))) == list(range(40))  # noqa: S301
    store = f"file://{tmp_path / 'store'}"
    torch.distributed.init_process_group("gloo", init_method=store, rank=0, world_size=1)
    try:
        assert ids(dataset) == list(range(40))
    finally:
        torch.distributed.destroy_process_group()


def test_the_length_of_a_rank_is_known_except_for_a_split(root: Path) -> None:
    lengths = [len(StreamedDataset(root, "ba2motif", rank=i, world_size=3)) for i in range(3)]
    assert lengths == [13, 13, 14]
    assert len(StreamedDataset(root, "ba2motif", split="test")) == 4
    part = StreamedDataset(root, "ba2motif", split="test", rank=0, world_size=3)
    with pytest.raises(TypeError, match="per rank is not known before they are read"):
        len(part)
    assert isinstance(list(part), list)


def test_a_transform_is_applied_whenever_a_graph_is_taken(root: Path) -> None:
    def marked(graph: Any) -> Any:
        graph.mark = graph.graph_id + 1
        return graph

    for dataset in (
        StreamedDataset(root, "ba2motif", transform=marked),
        ShardedDataset(root, "ba2motif", transform=marked),
    ):
        assert [graph.mark.item() for graph in dataset] == list(range(1, 41))


def test_graphs_are_copies_that_may_be_changed(root: Path) -> None:
    for dataset in (StreamedDataset(root, "dihalo"), ShardedDataset(root, "dihalo")):
        for graph in dataset:
            for value in graph.to_dict().values():
                if not isinstance(value, str):
                    value.zero_()
        assert next(iter(dataset)).x.sum() > 0


def test_parts_are_selected_as_in_any_pyg_dataset(root: Path) -> None:
    dataset, memory = ShardedDataset(root, "ba2motif"), GraphXAIDataset(root, "ba2motif")
    mask = memory._data.y == 1
    for choice in (slice(5, 30, 3), [3, 1, 39], torch.tensor([8, 2]), mask, np.array([4]),
                   slice(0.5, None), slice(-3, None)):  # fmt: skip
        assert_all_same(dataset[choice], memory[choice])
        assert_all_same(dataset[choice][::-1], memory[choice][::-1])
    assert_same(dataset[-1], memory[39])
    assert_same(dataset[np.int64(7)], memory[7])
    for wrong in (40, -41):
        with pytest.raises(IndexError):
            dataset[wrong]
    assert repr(dataset[:5]) == "ShardedDataset('ba2motif', 5 graphs, seed=0)"


def test_split_indices_equal_those_of_the_dataset_in_memory(root: Path) -> None:
    dataset, memory = ShardedDataset(root, "ba2motif"), GraphXAIDataset(root, "ba2motif")
    for ours, theirs in ((dataset, memory), (dataset[30:10:-1], memory[30:10:-1])):
        positions, expected = ours.get_idx_split(), theirs.get_idx_split()
        assert list(positions) == list(expected)
        for name, index in expected.items():
            assert positions[name].dtype == index.dtype
            assert torch.equal(positions[name], index)
    with pytest.raises(InputError, match="only split 'test' is loaded"):
        ShardedDataset(root, "ba2motif", split="test").get_idx_split()


def test_only_the_bytes_of_the_requested_graph_are_read(root: Path) -> None:
    dataset = ShardedDataset(root, "pattern", check=False)
    dataset[3]
    read = []
    original = cutting.os.pread

    def counting(file: int, count: int, offset: int) -> bytes:
        read.append(count)
        return original(file, count, offset)

    with mock.patch.object(cutting.os, "pread", counting):
        graph = dataset[3]
    # One byte per node for x and one for y; one byte for each end of an edge.
    assert sum(read) == 2 * graph.num_nodes + 2 * graph.num_edges


def test_few_shards_stay_open(root: Path) -> None:
    opened = []
    original = cutting.read_shard

    def counting(folder: Path, entry: ShardEntry, check: bool, mapped: bool) -> ShardReader:
        opened.append((entry.name, check))
        return original(folder, entry, check, mapped)

    with mock.patch.object(cutting, "read_shard", counting):
        dataset = ShardedDataset(root, "ba2motif", open_shards=2)
        for i in (0, 1, 8, 2, 9, 15, 0, 3):
            dataset[:30][i]
    # Each is verified once, even if it is opened again.
    assert opened == [("shard-00000.h5", True), ("shard-00001.h5", True),
                      ("shard-00002.h5", True), ("shard-00000.h5", False)]  # fmt: skip
    files = set(Path("/proc/self/fd").iterdir()) if Path("/proc/self/fd").exists() else set()
    del dataset
    if files:
        assert len(set(Path("/proc/self/fd").iterdir())) < len(files)


def test_datasets_survive_pickling(root: Path) -> None:
    sharded = ShardedDataset(root, "ba2motif", split="train")
    streamed = StreamedDataset(root, "ba2motif", shuffle=True, shuffle_seed=9)
    streamed.set_epoch(6)
    sharded[0]
    for dataset in (sharded, sharded[3:9], streamed):
        copy = pickle.loads(pickle.dumps(dataset))  # noqa: S301 - pickled here
        assert repr(copy) == repr(dataset)
        assert_all_same(copy, dataset)


def through(dataset: Any) -> None:
    for _ in dataset:
        pass


@pytest.mark.parametrize("make", OPEN)
def test_a_damaged_shard_is_noticed_when_it_is_reached(
    root: Path, tmp_path: Path, make: Make
) -> None:
    folder = copy_build(root / "ba2motif" / "seed-0", tmp_path)
    path = folder / "shard-00002.h5"
    content = bytearray(path.read_bytes())
    content[ShardReader(path).offsets["x"]] ^= 1
    path.write_bytes(content)
    dataset = make.from_folder(folder)
    assert ids(itertools.islice(dataset, 14)) == list(range(14))
    with pytest.raises(DamagedError, match="shard-00002.h5: not the file that manifest.json lists"):
        through(dataset)
    # Unchecked, one class id of one node has changed.
    graphs = zip(make.from_folder(folder, check=False), in_memory(root, None), strict=True)
    different = [i for i, (a, b) in enumerate(graphs) if not torch.equal(a.x, b.x)]
    assert different == [14]
    content[ShardReader(path).offsets["x"]] = 255
    path.write_bytes(content)
    with pytest.raises(DamagedError, match="graph 14: 'x' has a class id beyond its width of 29"):
        through(make.from_folder(folder, check=False))


@pytest.mark.parametrize("make", OPEN)
@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("size", [0, 100, 3000])
def test_a_truncated_shard_is_refused(
    root: Path, tmp_path: Path, make: Make, check: bool, size: int
) -> None:
    folder = copy_build(root / "ba2motif" / "seed-0", tmp_path)
    path = folder / "shard-00001.h5"
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(DamagedError, match="shard-00001.h5: not"):
        through(make.from_folder(folder, check=check))


@pytest.mark.parametrize("make", OPEN)
def test_a_missing_shard_is_refused(root: Path, tmp_path: Path, make: Make) -> None:
    folder = copy_build(root / "ba2motif" / "seed-0", tmp_path)
    (folder / "shard-00005.h5").unlink()
    with pytest.raises(DamagedError, match="shard-00005.h5: no such shard; build the dataset"):
        through(make.from_folder(folder))


@pytest.mark.parametrize("make", OPEN)
def test_another_shard_in_its_place_is_refused_even_unchecked(
    root: Path, tmp_path: Path, make: Make
) -> None:
    folder = copy_build(root / "ba2motif" / "seed-0", tmp_path)
    shutil.copy(folder / "shard-00005.h5", folder / "shard-00001.h5")
    with pytest.raises(DamagedError, match="shard-00001.h5: holds 5 graphs, manifest.json lists 7"):
        through(make.from_folder(folder, check=False))


def test_a_shard_that_is_truncated_while_open_gives_an_error(root: Path, tmp_path: Path) -> None:
    folder = copy_build(root / "ba2motif" / "seed-0", tmp_path)
    dataset = ShardedDataset.from_folder(folder)
    dataset[0]
    with (folder / "shard-00000.h5").open("r+b") as file:
        file.truncate(1000)
    with pytest.raises(DamagedError, match="ends early .* has changed since it was opened"):
        through(dataset)


def test_a_shard_that_has_changed_is_verified_again(root: Path, tmp_path: Path) -> None:
    folder = copy_build(root / "ba2motif" / "seed-0", tmp_path)
    dataset = ShardedDataset.from_folder(folder, open_shards=1)
    through(dataset)
    shutil.copyfile(folder / "shard-00001.h5", folder / "shard-00000.h5")
    with pytest.raises(DamagedError, match="shard-00000.h5: not the file that manifest.json lists"):
        dataset[0]


@FORKS
def test_an_error_in_a_worker_has_the_same_message(root: Path, tmp_path: Path) -> None:
    folder = copy_build(root / "ba2motif" / "seed-0", tmp_path)
    (folder / "shard-00003.h5").write_bytes(b"damaged")
    for make in OPEN:
        with pytest.raises(DamagedError, match="shard-00003.h5: not the file that"):
            loaded_ids(make.from_folder(folder), num_workers=2)


@pytest.mark.parametrize("make", OPEN)
def test_invalid_arguments_are_refused(root: Path, tmp_path: Path, make: Make) -> None:
    with pytest.raises(InputError, match="split: expected one of train, valid, test, got 'val'"):
        make(root, "ba2motif", split="val")
    with pytest.raises(InputError, match="unknown dataset 'ba2motiv'"):
        make(root, "ba2motiv")
    with pytest.raises(InputError, match="not a graphxai-data build"):
        make.from_folder(tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"buffer": 0}, "buffer: expected a whole number from 1"),
        ({"shuffle_seed": -1}, "shuffle_seed: expected a whole number from 0"),
        ({"rank": 1}, "give rank and world_size, or neither; got 1 and None"),
        ({"world_size": 2}, "give rank and world_size, or neither; got None and 2"),
        ({"rank": 2, "world_size": 2}, "rank: expected a whole number from 0 to 1, got 2"),
        ({"rank": 0, "world_size": 0}, "world_size: expected a whole number from 1"),
    ],
)
def test_invalid_arguments_of_a_stream_are_refused(
    root: Path, options: dict[str, int], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        StreamedDataset(root, "ba2motif", **options)


def test_invalid_numbers_are_refused(root: Path) -> None:
    with pytest.raises(InputError, match="open_shards: expected a whole number from 1"):
        ShardedDataset(root, "ba2motif", open_shards=0)
    dataset = StreamedDataset(root, "ba2motif")
    for wrong in (-1, 1.5, 2**32):
        with pytest.raises(InputError, match="epoch: expected a whole number from 0"):
            dataset.set_epoch(wrong)


@pytest.mark.parametrize("make", OPEN)
def test_missing_builds_are_built(tmp_path: Path, recipe_file: Any, make: Make) -> None:
    path = recipe_file(("graphs = 1000", "graphs = 10"), ('"ba2motif"\nversion', '"x"\nversion'))
    dataset = make(tmp_path / "root", path, seed=5)
    assert ids(dataset) == list(range(10))
    assert dataset.folder == tmp_path / "root" / "x" / "seed-5"
    assert len(make(tmp_path / "root", path, seed=5, force_reload=True)) == 10


# Growth of a process's resident memory, in MB, while it iterates over all graphs; first over a
# small build, so that libraries and the allocator have what they need.
GROWTH = """
import gc, json, sys
import psutil
from graphxai_data import GraphXAIDataset, ShardedDataset, StreamedDataset

def rss():
    return psutil.Process().memory_info().rss / 1e6

def growth(make, root):
    gc.collect()
    before = most = rss()
    for i, graph in enumerate(make(root)):
        if i % 25 == 0:
            most = max(most, rss())
    return most - before, i + 1

grown = {}
for name, make in {
    "sharded": lambda root: ShardedDataset(root, "pattern"),
    "streamed": lambda root: StreamedDataset(root, "pattern", shuffle=True, buffer=50),
    "memory": lambda root: GraphXAIDataset(root, "pattern"),
}.items():
    growth(make, sys.argv[1])
    grown[name], graphs = growth(make, sys.argv[2])
    assert graphs == 600
print(json.dumps(grown))
"""


def test_memory_does_not_grow_with_the_dataset(root: Path, tmp_path: Path) -> None:
    build("pattern", root=tmp_path, graphs=600, shard_size=50, rings=False, engine="serial")
    result = run_python(GROWTH, root, tmp_path)
    assert result.returncode == 0, result.stderr
    growth = json.loads(result.stdout)
    # 600 graphs of some 5,700 edges are 55 MB of `edge_index` in memory, 7 MB on disk.
    assert growth["memory"] > 50
    assert growth["sharded"] < growth["memory"] / 8, growth
    assert growth["streamed"] < growth["memory"] / 8, growth


def test_a_build_at_a_url_is_read_from_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("fsspec", reason="needs the extra [remote]")
    monkeypatch.setenv("GRAPHXAI_DATA_CACHE", str(tmp_path))
    root = "memory://streaming"
    build("ba2motif", root=root, graphs=12, shard_size=5, rings=False)
    whole = GraphXAIDataset(root, "ba2motif")
    streams = [
        StreamedDataset(root, "ba2motif"),
        ShardedDataset(root, "ba2motif"),
        StreamedDataset.from_folder(f"{root}/ba2motif/seed-0"),
        ShardedDataset.from_folder(f"{root}/ba2motif/seed-0"),
    ]
    for stream in streams:
        graphs = [stream[i] for i in range(12)] if isinstance(stream, ShardedDataset) else stream
        for graph, expected in zip(graphs, whole, strict=True):
            assert torch.equal(graph.edge_index, expected.edge_index)
            assert torch.equal(graph.node_mask, expected.node_mask)
