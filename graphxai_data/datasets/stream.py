"""A build as a stream of graphs: one shard in memory at a time, shared by workers and ranks."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from torch.utils.data import IterableDataset, get_worker_info

from graphxai_data.datasets.base import OpenedBuild, checked_split
from graphxai_data.datasets.cutting import LoadedShard, StoredGraph, read_shard
from graphxai_data.datasets.in_memory import open_build
from graphxai_data.errors import InputError, whole_number
from graphxai_data.graphs.record import SPLIT_NAMES
from graphxai_data.manifest import Manifest
from graphxai_data.recipe import Recipe
from graphxai_data.remote import opened
from graphxai_data.seeds import MAX_GRAPHS, MAX_SEED, Draws, below, rng_for

T = TypeVar("T")


class StreamedDataset(OpenedBuild, IterableDataset[Any]):
    """A built dataset read from one end to the other; what is not built yet is built first.

    Every graph is the very one that `GraphXAIDataset` gives. They come in the order of the build,
    or, with `shuffle`, in an order that is a function of `shuffle_seed` and the epoch: shards in
    random order, the graphs of each in random order, and those of neighbouring shards mixed by a
    buffer. The global random generators are neither read nor changed.

    Over all workers of a `DataLoader` and all ranks every graph comes once. Each of them takes a
    piece of the order, without gaps, and reads the shards that its piece lies in; so the pieces
    are equal to one graph, but of a `split` they hold more or less. The order depends on the
    number of workers and ranks, too.

    Args:
        root: folder of all builds, as for `graphxai_data.build`.
        name: a shipped dataset or the path of a recipe file.
        seed: which build.
        split: "train", "valid" or "test" for those graphs only.
        transform: applied to a graph when it is its turn.
        shuffle: take the graphs in another order every epoch; call `set_epoch` before each.
        shuffle_seed: of the orders.
        buffer: graphs that wait, in each worker, to be drawn from; as they are stored, which takes
            less memory than tensors do. 1 mixes the graphs within shards alone.
        rank: which of `world_size` processes this is; by default what `torch.distributed` says, if
            it is initialised, or the only one.
        world_size: number of processes that share the graphs.
        force_reload: delete the build and make it again.
        check: whether to compare every shard that is read with its checksum in the manifest.
    """

    def __init__(
        self,
        root: str | Path,
        name: str | Path,
        seed: int = 0,
        split: str | None = None,
        transform: Callable[[Any], Any] | None = None,
        *,
        shuffle: bool = False,
        shuffle_seed: int = 0,
        buffer: int = 1000,
        rank: int | None = None,
        world_size: int | None = None,
        force_reload: bool = False,
        check: bool = True,
    ) -> None:
        self._set_up(split, transform, shuffle, shuffle_seed, buffer, rank, world_size, check)
        self._describe(*open_build(root, Recipe.load(name), seed, force_reload), split)

    @classmethod
    def from_folder(
        cls,
        folder: str | Path,
        split: str | None = None,
        transform: Callable[[Any], Any] | None = None,
        *,
        shuffle: bool = False,
        shuffle_seed: int = 0,
        buffer: int = 1000,
        rank: int | None = None,
        world_size: int | None = None,
        check: bool = True,
    ) -> "StreamedDataset":
        """The dataset of a build folder, wherever it lies and whatever it is called."""
        dataset = cls.__new__(cls)
        dataset._set_up(split, transform, shuffle, shuffle_seed, buffer, rank, world_size, check)
        with opened(folder, extras=False) as (path, _):
            dataset._describe(path, Manifest.load(path), split)
        return dataset

    def _set_up(
        self,
        split: str | None,
        transform: Callable[[Any], Any] | None,
        shuffle: bool,
        shuffle_seed: int,
        buffer: int,
        rank: int | None,
        world_size: int | None,
        check: bool,
    ) -> None:
        checked_split(split)
        self.transform, self.shuffle, self.check = transform, shuffle, check
        self.shuffle_seed = whole_number("shuffle_seed", shuffle_seed, 0, MAX_SEED)
        self.buffer = whole_number("buffer", buffer, 1, MAX_GRAPHS)
        if (rank is None) != (world_size is None):
            raise InputError(f"give rank and world_size, or neither; got {rank} and {world_size}")
        if world_size is not None:
            whole_number("world_size", world_size, 1, 2**16)
            whole_number("rank", rank, 0, world_size - 1)
        self._given_place = None if rank is None or world_size is None else (rank, world_size)
        # In shared memory, so that it reaches workers that outlive an epoch.
        self._epoch = torch.zeros(1, dtype=torch.int64, device="cpu")
        self._epoch.share_memory_()  # type: ignore[no-untyped-call]

    @property
    def epoch(self) -> int:
        """Number of the epoch whose order is taken when the dataset is gone through next."""
        return int(self._epoch[0])

    def set_epoch(self, number: int) -> None:
        """Choose the order of the next epoch; workers that are kept from epoch to epoch see it."""
        self._epoch[0] = whole_number("epoch", number, 0, 2**32 - 1)

    @property
    def num_node_features(self) -> int:
        """Number of features of a node, before any transform."""
        return self._schema.node_features.width

    @property
    def num_features(self) -> int:
        """The same, as PyG calls it."""
        return self.num_node_features

    @property
    def num_edge_features(self) -> int:
        """Number of features of an edge, before any transform."""
        return 0 if self._schema.edge_features is None else self._schema.edge_features.width

    def __len__(self) -> int:
        """Number of graphs that come here, over all workers."""
        rank, world_size = self._place()
        if self.split is None:
            first, last = _piece(0, self.manifest.graphs, rank, world_size)
            return last - first
        if world_size > 1:  # a TypeError is what Python and torch take for "not known"
            raise TypeError(
                f"how many graphs of split '{self.split}' come to a rank is not known before they "
                "are read; len() is known without split, or with one rank"
            )
        return int(self.manifest.statistics["splits"][self.split])

    def __iter__(self) -> Iterator[Any]:
        rank, world_size = self._place()
        info = get_worker_info()
        worker, workers = (0, 1) if info is None else (info.id, info.num_workers)
        piece = _piece(*_piece(0, self.manifest.graphs, rank, world_size), worker, workers)
        epoch = self.epoch
        graphs = self._stored(epoch, *piece)
        if self.shuffle:
            reader = rank * workers + worker
            draws = rng_for(self.shuffle_seed, "streaming/buffer", epoch, reader)
            graphs = _mixed(graphs, self.buffer, draws)
        datas = (graph.as_data() for graph in graphs)
        return datas if self.transform is None else map(self.transform, datas)

    def _stored(self, epoch: int, first: int, last: int) -> Iterator[StoredGraph]:
        """The graphs from place `first` to `last` of the epoch's order, before the buffer."""
        shards = self.manifest.shards
        order = np.arange(len(shards))
        if self.shuffle:
            order = rng_for(self.shuffle_seed, "streaming/shards", epoch).permutation(len(shards))
        begin = 0
        for number in order.tolist():
            low, high = max(first - begin, 0), min(last - begin, shards[number].graphs)
            if low < high:  # in a function of its own, so that one shard goes before the next comes
                yield from self._of_shard(number, epoch, low, high)
            begin += shards[number].graphs

    def _of_shard(self, number: int, epoch: int, low: int, high: int) -> Iterator[StoredGraph]:
        entry = self.manifest.shards[number]
        reader = read_shard(self.folder, entry, self.check)
        chosen = np.arange(entry.graphs)
        if self.shuffle:
            draws = rng_for(self.shuffle_seed, "streaming/graphs", epoch, number)
            chosen = draws.permutation(entry.graphs)
        chosen = chosen[low:high]
        if self.split is not None:
            chosen = chosen[reader.columns["split"][chosen] == SPLIT_NAMES.index(self.split)]
        shard = LoadedShard(reader)
        for i in chosen.tolist():
            yield shard.cut(i)

    def _place(self) -> tuple[int, int]:
        """Rank and number of ranks."""
        return self._given_place or _process_group() or (0, 1)

    def __getstate__(self) -> dict[str, Any]:
        # Workers that are started afresh are not part of the process group: they are told.
        return vars(self) | {"_given_place": self._given_place or _process_group()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._epoch.share_memory_()  # type: ignore[no-untyped-call]

    def __repr__(self) -> str:
        split = f", split={self.split!r}" if self.split else ""
        graphs = self.manifest.graphs
        return f"{type(self).__name__}({self.name!r}, of {graphs} graphs, seed={self.seed}{split})"


def _process_group() -> tuple[int, int] | None:
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return None


def _piece(first: int, last: int, i: int, count: int) -> tuple[int, int]:
    """The i-th of `count` equal pieces of the places from `first` to `last`."""
    length = last - first
    return first + length * i // count, first + length * (i + 1) // count


def _mixed(items: Iterable[T], size: int, draws: Draws) -> Iterator[T]:
    """All items, each held back until it is drawn from `size` waiting ones."""
    waiting: list[T] = []
    for item in items:
        if len(waiting) < size:
            waiting.append(item)
            continue
        at = int(below(draws.words(1), size)[0])
        drawn, waiting[at] = waiting[at], item
        yield drawn
    for at in draws.permutation(len(waiting)).tolist():
        yield waiting[at]
