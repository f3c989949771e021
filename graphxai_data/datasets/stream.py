"""A build as a stream of graphs: one shard in memory at a time, shared by workers and ranks."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from torch.utils.data import IterableDataset, get_worker_info

from graphxai_data.datasets.base import Build, OpenedBuild
from graphxai_data.datasets.cutting import LoadedShard, StoredGraph
from graphxai_data.datasets.records import read_shard
from graphxai_data.datasets.watched import transformed
from graphxai_data.errors import InputError, whole_number
from graphxai_data.graphs.record import SPLIT_NAMES
from graphxai_data.progress import Progress
from graphxai_data.seeds import MAX_GRAPHS, MAX_SEED, Draws, below, rng_for

T = TypeVar("T")


class StreamedDataset(OpenedBuild, IterableDataset[Any]):
    """A build read from beginning to end; a missing build is built first.

    Every graph equals that of `GraphXAIDataset`. Graphs come in the order of the build or, with
    `shuffle`, in an order that is a function of `shuffle_seed` and the epoch: shards in random
    order, the graphs of each in random order, and those of neighbouring shards mixed by a buffer.
    The global random generators are neither read nor changed.

    Over all workers of a `DataLoader` and all ranks, every graph comes once. Each reader takes a
    contiguous piece of the order and reads the shards of that piece. The pieces differ by at most
    one graph, but may hold more or fewer graphs of a `split`. The order also depends on the number
    of workers and ranks.

    Arguments that are not listed are those of `GraphXAIDataset`.

    Args:
        shuffle: take the graphs in another order every epoch; call `set_epoch` before each.
        shuffle_seed: of the orders.
        buffer: how many graphs each worker holds to draw from, as they are stored, which takes less
            memory than tensors. 1 mixes graphs within shards only.
        rank: of this process among `world_size`; by default that of `torch.distributed` if it is
            initialised, else 0 of 1.
        world_size: number of processes that share the graphs.
        check: whether to compare every shard that is read with its checksum in the manifest.
    """

    def __init__(
        self,
        root: str | Path | Build,
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
        graphs: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.transform, self.shuffle, self.check = transform, shuffle, check
        self.shuffle_seed = whole_number("shuffle_seed", shuffle_seed, 0, MAX_SEED)
        self.buffer = whole_number("buffer", buffer, 1, MAX_GRAPHS)
        if (rank is None) != (world_size is None):
            raise InputError(f"give rank and world_size, or neither; got {rank} and {world_size}")
        if world_size is not None:
            whole_number("world_size", world_size, 1, 2**16)
            whole_number("rank", rank, 0, world_size - 1)
        self._given_rank = None if rank is None or world_size is None else (rank, world_size)
        # In shared memory, so that persistent workers see a new epoch.
        self._epoch = torch.zeros(1, dtype=torch.int64, device="cpu")
        self._epoch.share_memory_()  # type: ignore[no-untyped-call]
        with self._opened(root, name, seed, split, force_reload, graphs, progress):
            pass

    @property
    def epoch(self) -> int:
        """Number of the epoch whose order the next iteration takes."""
        return int(self._epoch[0])

    def set_epoch(self, number: int) -> None:
        """Choose the order of the next epoch, also for persistent workers."""
        self._epoch[0] = whole_number("epoch", number, 0, 2**32 - 1)

    @property
    def num_node_features(self) -> int:
        """Number of features of a node, before any transform."""
        return self._schema.node_features.width

    num_features = num_node_features  # PyG has both names

    @property
    def num_edge_features(self) -> int:
        """Number of features of an edge, before any transform."""
        return 0 if self._schema.edge_features is None else self._schema.edge_features.width

    def __len__(self) -> int:
        """Number of graphs of this rank, over all workers."""
        rank, world_size = self._rank()
        if self.split is None:
            first, last = _piece(0, self.manifest.graphs, rank, world_size)
            return last - first
        if world_size > 1:  # Python and torch take a TypeError for "not known"
            raise TypeError(
                f"the number of graphs of split '{self.split}' per rank is not known before they "
                "are read; len() is known without split, or with one rank"
            )
        return int(self.manifest.statistics["splits"][self.split])

    def __iter__(self) -> Iterator[Any]:
        rank, world_size = self._rank()
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
        if (transform := self.transform) is None:
            return datas
        return (transformed(data, transform) for data in datas)

    def _stored(self, epoch: int, first: int, last: int) -> Iterator[StoredGraph]:
        """Yield the graphs from `first` to `last` of the epoch's order, before the buffer."""
        shards = self.manifest.shards
        order = np.arange(len(shards))
        if self.shuffle:
            order = rng_for(self.shuffle_seed, "streaming/shards", epoch).permutation(len(shards))
        begin = 0
        for number in order.tolist():
            low, high = max(first - begin, 0), min(last - begin, shards[number].graphs)
            if low < high:  # a separate generator, to free one shard before loading the next
                yield from self._stored_in(number, epoch, low, high)
            begin += shards[number].graphs

    def _stored_in(self, number: int, epoch: int, low: int, high: int) -> Iterator[StoredGraph]:
        entry = self.manifest.shards[number]
        reader = read_shard(self.folder, entry, self.check)
        positions = np.arange(entry.graphs)
        if self.shuffle:
            draws = rng_for(self.shuffle_seed, "streaming/graphs", epoch, number)
            positions = draws.permutation(entry.graphs)
        positions = positions[low:high]
        if self.split is not None:
            split_ids = reader.columns["split"][positions]
            positions = positions[split_ids == SPLIT_NAMES.index(self.split)]
        shard = LoadedShard(reader)
        for i in positions.tolist():
            yield shard.cut(i)

    def _rank(self) -> tuple[int, int]:
        """Rank and number of ranks."""
        return self._given_rank or _process_group() or (0, 1)

    def __getstate__(self) -> dict[str, Any]:
        # Spawned workers are not part of the process group, so they get the rank from here.
        return vars(self) | {"_given_rank": self._given_rank or _process_group()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._epoch.share_memory_()  # type: ignore[no-untyped-call]

    def __repr__(self) -> str:
        return self._shown(f"of {self.manifest.graphs}")


def _process_group() -> tuple[int, int] | None:
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return None


def _piece(first: int, last: int, i: int, count: int) -> tuple[int, int]:
    """Return the i-th of `count` equal pieces of the range from `first` to `last`."""
    length = last - first
    return first + length * i // count, first + length * (i + 1) // count


def _mixed(items: Iterable[T], size: int, draws: Draws) -> Iterator[T]:
    """Yield all items, each drawn at random from `size` waiting ones."""
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
