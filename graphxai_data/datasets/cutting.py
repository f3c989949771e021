"""Single graphs of a shard, each as `GraphXAIDataset` gives it, without the rest of the dataset.

A graph is cut out of its shard as it is stored, in narrow types and one byte a one-hot row: small
enough to wait in a buffer. What PyG gets is made of it when it is its turn.
"""

import math
import os
import weakref
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from graphxai_data.datasets.in_memory import GraphXAIData
from graphxai_data.errors import DamagedError
from graphxai_data.graphs.columns import Columns, expand
from graphxai_data.graphs.record import Feature, Schema
from graphxai_data.graphs.shards import ShardReader
from graphxai_data.manifest import ShardEntry

# Bytes: columns with one row a graph that is no larger are held in memory while a shard is open.
_SMALL_ROW = 8


class StoredGraph(NamedTuple):
    """One graph with its rows of every field, as they are stored; they are copies."""

    fields: Columns
    schema: Schema

    def as_data(self) -> GraphXAIData:
        """The graph as `GraphXAIDataset` gives it: the same fields, in the same order.

        Raises:
            DamagedError: it has a class id that does not exist, in a shard that was not checked.
        """
        features = {"x": self.schema.node_features, "edge_attr": self.schema.edge_features}
        texts = [extra.name for extra in self.schema.extras if extra.level == "text"]
        values: dict[str, torch.Tensor | str] = {}
        for key, rows in self.fields.items():
            if key in texts:
                values[key] = rows.tobytes().decode()
                continue
            if (feature := features.get(key)) is not None:
                rows = self._expanded(rows, key, feature)
            elif key in ("edge_index", "split", "y"):
                rows = rows.astype(np.int64, copy=False)
            values[key] = torch.from_numpy(rows)
        data = GraphXAIData()
        data._store._mapping.update(values)  # field by field, PyG takes longer than all the rest
        return data

    def _expanded(self, rows: npt.NDArray[Any], key: str, feature: Feature) -> npt.NDArray[Any]:
        try:
            return expand(rows, feature)
        except IndexError:  # which would end a loop over a dataset without a word
            raise DamagedError(
                f"graph {self.fields['graph_id'][0]}: '{key}' has a class id beyond its width of "
                f"{feature.width}; `graphxai-data verify` tells what is damaged"
            ) from None


class ShardGraphs(ABC):
    """The graphs of one shard, to be cut out one at a time."""

    def __init__(self, reader: ShardReader) -> None:
        self.schema = reader.schema
        self._pointers = {k: v.copy() for k, v in reader.columns.items() if k.endswith("_ptr")}
        self._fields = _fields(reader.columns, reader.schema)

    def __len__(self) -> int:
        return len(self._pointers["node_ptr"]) - 1

    def cut(self, i: int) -> StoredGraph:
        """The i-th graph of the shard."""
        spans = {k: (int(ptr[i]), int(ptr[i + 1])) for k, ptr in self._pointers.items()}
        spans[""] = i, i + 1
        rows = {key: self._rows(column, *spans[ptr]) for key, column, ptr in self._fields}
        return StoredGraph(rows, self.schema)

    @abstractmethod
    def _rows(self, name: str, first: int, last: int) -> npt.NDArray[Any]:
        """A copy of these rows of a column; of `edge_index`, of these columns of it."""


class LoadedShard(ShardGraphs):
    """A shard whose file is in memory."""

    def __init__(self, reader: ShardReader) -> None:
        super().__init__(reader)
        self._columns = reader.columns

    def _rows(self, name: str, first: int, last: int) -> npt.NDArray[Any]:
        array = self._columns[name]
        return array[:, first:last].copy() if name == "edge_index" else array[first:last].copy()


class OpenShard(ShardGraphs):
    """A shard whose file is open: only the bytes of the graph that is asked for are read.

    They are read at their offsets, not mapped: a file that is cut off meanwhile gives an error
    instead of a dead process, and threads and forked processes can share it.

    Args:
        path: the file.
        file_crc32: refuse the file unless its bytes have this CRC-32; None not to read them all.
    """

    def __init__(self, path: Path, file_crc32: int | None = None) -> None:
        reader = ShardReader(path, file_crc32=file_crc32, mapped=True)
        super().__init__(reader)
        self.path = path
        self._file = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._file)
        of_graph = {column for _, column, ptr in self._fields if not ptr} | {"split"}
        self._held: Columns = {}
        self._places: dict[str, tuple[int, np.dtype[Any], tuple[int, ...]]] = {}
        for name, array in reader.columns.items():
            if name in of_graph and array.nbytes <= _SMALL_ROW * len(self):
                self._held[name] = array.copy()
            else:
                self._places[name] = reader.offsets.get(name, 0), array.dtype, array.shape

    @property
    def split(self) -> npt.NDArray[np.uint8]:
        """[g] the split of every graph."""
        return self._held["split"]

    def _rows(self, name: str, first: int, last: int) -> npt.NDArray[Any]:
        if name in self._held:
            return self._held[name][first:last].copy()
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
    """The shards of a build by number; those asked for last stay open.

    Args:
        folder: of the build.
        entries: its shards.
        check: compare each file with the manifest when it is opened first.
        keep: how many stay open.
    """

    def __init__(self, folder: Path, entries: Sequence[ShardEntry], check: bool, keep: int) -> None:
        self._folder, self._entries, self._keep = folder, entries, keep
        # When the file was written that was found to be good: another one is compared anew.
        self._checked: dict[str, object] | None = {} if check else None
        self._forget()

    def _forget(self) -> None:
        opened = partial(_opened, self._folder, checked=self._checked)
        self._open = lru_cache(self._keep)(opened)

    def __getitem__(self, number: int) -> OpenShard:
        return self._open(self._entries[number])

    @cached_property
    def split(self) -> npt.NDArray[np.uint8]:
        """[graphs] the split of every graph of the build; every shard is opened for it."""
        return np.concatenate([self[i].split for i in range(len(self._entries))])

    def __getstate__(self) -> dict[str, Any]:
        # A process of its own opens files of its own.
        return {key: value for key, value in vars(self).items() if key != "_open"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._forget()


def read_shard(folder: Path, entry: ShardEntry, check: bool) -> ShardReader:
    """A shard of a build, read whole, and compared with the manifest if `check`."""
    reader = ShardReader(folder / entry.name, file_crc32=entry.file_crc32 if check else None)
    _must_count(len(reader), folder, entry)
    return reader


def _opened(folder: Path, entry: ShardEntry, checked: dict[str, object] | None) -> OpenShard:
    path = folder / entry.name
    written = path.stat().st_mtime_ns if path.is_file() else None
    known = checked is None or (entry.name in checked and checked[entry.name] == written)
    shard = OpenShard(path, None if known else entry.file_crc32)
    _must_count(len(shard), folder, entry)
    if checked is not None:
        checked[entry.name] = written
    return shard


def _must_count(graphs: int, folder: Path, entry: ShardEntry) -> None:
    if graphs != entry.graphs:
        raise DamagedError(
            f"{folder / entry.name}: holds {graphs} graphs, manifest.json lists {entry.graphs}; "
            "delete the build and build again"
        )


def _fields(columns: Columns, schema: Schema) -> list[tuple[str, str, str]]:
    """Of every field its key, its column and the pointers that divide it ("": a row a graph)."""
    pointers = dict.fromkeys(("x", "node_mask", "node_y"), "node_ptr")
    pointers |= dict.fromkeys(("edge_index", "edge_attr", "edge_mask"), "edge_ptr")
    pointers |= {extra.name: "node_ptr" for extra in schema.extras if extra.level == "node"}
    texts = [extra.name for extra in schema.extras if extra.level == "text"]
    columns_of = {
        name: name
        for name in columns
        if name not in texts and name != "node_y" and not name.endswith("_ptr")
    }
    if "node_y" in columns:  # as users of PyG know classes of nodes
        columns_of["y"] = "node_y"
    found = [(key, column, pointers.get(column, "")) for key, column in columns_of.items()]
    return found + [(name, name, f"{name}_ptr") for name in texts]
