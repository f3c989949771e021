"""Single graphs of a shard, each as `GraphXAIDataset` gives it, without the rest of the dataset.

A graph is cut out of its shard as it is stored, in narrow types and with one byte per one-hot row:
small enough to wait in a buffer. It becomes a PyG graph when it is its turn.
"""

import math
import os
import weakref
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from graphxai_data.datasets.data import GraphXAIData, as_tensor, pyg_fields
from graphxai_data.datasets.records import read_shard
from graphxai_data.errors import DamagedError
from graphxai_data.graphs.columns import Columns
from graphxai_data.graphs.schema import Column
from graphxai_data.graphs.shards import ShardReader
from graphxai_data.manifest import ShardEntry

# Bytes: columns with one row per graph of at most this size stay in memory while a shard is open.
_SMALL_ROW = 8


class StoredGraph(NamedTuple):
    """Copies of one graph's stored rows, by field, and the column of each field."""

    rows: Columns
    fields: Mapping[str, Column]

    def as_data(self) -> GraphXAIData:
        """Return the graph as `GraphXAIDataset` gives it: the same fields, in the same order."""
        values: dict[str, torch.Tensor | str] = {}
        for key, column in self.fields.items():
            rows = self.rows[key]
            try:
                text = column.level == "text"
                values[key] = rows.tobytes().decode() if text else as_tensor(rows, column)
            except IndexError:  # in an unchecked shard; would silently end a loop over the dataset
                raise DamagedError(
                    f"graph {self.rows['graph_id'][0]}: '{key}' has a class id beyond its width of "
                    f"{column.expanded.shape[0]}; `graphxai-data verify` tells what is damaged"
                ) from None
        data = GraphXAIData()
        # Setting fields one by one through PyG takes longer than all the rest.
        data._store._mapping.update(values)
        return data


class LoadedShard:
    """The graphs of one shard in memory, to be cut out one at a time."""

    def __init__(self, reader: ShardReader) -> None:
        self._columns = reader.columns
        self._pointers = {k: v.copy() for k, v in reader.columns.items() if k.endswith("_ptr")}
        self._fields = pyg_fields(reader.schema)
        self._sources = [(key, c.name, c.pointer) for key, c in self._fields.items()]

    def __len__(self) -> int:
        return len(self._pointers["node_ptr"]) - 1

    def cut(self, i: int) -> StoredGraph:
        """Return the i-th graph of the shard."""
        spans: dict[str | None, tuple[int, int]] = {None: (i, i + 1)}
        for name, ptr in self._pointers.items():
            spans[name] = int(ptr[i]), int(ptr[i + 1])
        rows = {key: self._rows(name, *spans[ptr]) for key, name, ptr in self._sources}
        return StoredGraph(rows, self._fields)

    def _rows(self, name: str, first: int, last: int) -> npt.NDArray[Any]:
        """Return a copy of these rows of a column; for `edge_index`, of these columns of it."""
        array = self._columns[name]
        return array[:, first:last].copy() if name == "edge_index" else array[first:last].copy()


class OpenShard(LoadedShard):
    """A shard whose file is open: only the bytes of the requested graph are read.

    They are read at their offsets, not memory-mapped: a file that is truncated meanwhile gives an
    error instead of killing the process, and threads and forked processes can share it.
    """

    def __init__(self, reader: ShardReader) -> None:
        super().__init__(reader)
        self.path = reader.path
        self._file = os.open(self.path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._file)
        per_graph = {name for _, name, ptr in self._sources if ptr is None}
        self._columns = {}
        self._places: dict[str, tuple[int, np.dtype[Any], tuple[int, ...]]] = {}
        for name, array in reader.columns.items():
            if name in per_graph and array.nbytes <= _SMALL_ROW * len(self):
                self._columns[name] = array.copy()
            else:
                self._places[name] = reader.offsets.get(name, 0), array.dtype, array.shape

    @property
    def split(self) -> npt.NDArray[np.uint8]:
        """[g] split of every graph."""
        return self._columns["split"]

    def _rows(self, name: str, first: int, last: int) -> npt.NDArray[Any]:
        if name in self._columns:
            return super()._rows(name, first, last)
        offset, dtype, shape = self._places[name]
        count = last - first
        if name == "edge_index":
            begins = [(row * shape[1] + first) * dtype.itemsize for row in range(2)]
            rows = [self._bytes(offset + begin, count * dtype.itemsize) for begin in begins]
            return np.frombuffer(bytearray().join(rows), dtype).reshape(2, count)
        size = dtype.itemsize * math.prod(shape[1:])
        content = self._bytes(offset + first * size, count * size)
        return np.frombuffer(bytearray(content), dtype).reshape(count, *shape[1:])

    def _bytes(self, offset: int, count: int) -> bytes:
        try:
            content = os.pread(self._file, count, offset)
        except OSError as error:
            raise DamagedError(f"{self.path}: cannot be read: {error.strerror}") from None
        if len(content) != count:
            raise DamagedError(
                f"{self.path}: ends early ({len(content)} bytes from byte {offset}, expected "
                f"{count}): the file has changed since it was opened; build the dataset again"
            )
        return content


class OpenShards:
    """The shards of a build by number; the `keep` most recently used stay open.

    With `check`, each file is compared with the manifest when it is first opened.
    """

    def __init__(self, folder: Path, entries: Sequence[ShardEntry], check: bool, keep: int) -> None:
        self._folder, self._entries, self._keep = folder, entries, keep
        # The mtime of each verified file: a file that has changed is verified again.
        self._verified: dict[str, int] | None = {} if check else None
        self._start_cache()

    def _start_cache(self) -> None:
        open_shard = partial(_open_shard, self._folder, verified=self._verified)
        self._open = lru_cache(self._keep)(open_shard)

    def __getitem__(self, number: int) -> OpenShard:
        return self._open(self._entries[number])

    @cached_property
    def split(self) -> npt.NDArray[np.uint8]:
        """[graphs] split of every graph of the build; opens every shard."""
        return np.concatenate([self[i].split for i in range(len(self._entries))])

    def __getstate__(self) -> dict[str, Any]:
        # Another process opens its own files.
        return {key: value for key, value in vars(self).items() if key != "_open"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._start_cache()


def _open_shard(folder: Path, entry: ShardEntry, verified: dict[str, int] | None) -> OpenShard:
    path = folder / entry.name
    modified = path.stat().st_mtime_ns if path.is_file() else 0
    check = verified is not None and verified.get(entry.name) != modified
    shard = OpenShard(read_shard(folder, entry, check, mapped=True))
    if verified is not None:
        verified[entry.name] = modified
    return shard
