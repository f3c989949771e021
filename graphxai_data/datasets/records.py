"""The graphs of a build as NumPy records, one shard in memory at a time; without torch."""

from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import zip_longest
from pathlib import Path

import numpy as np
import numpy.typing as npt

from graphxai_data.errors import DamagedError
from graphxai_data.graphs.columns import Ints, global_edges, pointers
from graphxai_data.graphs.record import GraphRecord
from graphxai_data.graphs.schema import Schema
from graphxai_data.graphs.shards import ShardReader
from graphxai_data.manifest import Manifest, ShardEntry


@dataclass(frozen=True)
class Overview:
    """What is known about all graphs of a build after one look at each shard."""

    schema: Schema
    label: npt.NDArray[np.int64 | np.float64]  # [g] class, or number, of each graph
    split: Ints  # [g]
    nodes: Ints  # [g] how many nodes each graph has
    degrees: Ints  # [d] how many nodes have degree 0, 1, …
    lowest: npt.NDArray[np.float64]  # [p] smallest value of every dense feature; empty for others
    highest: npt.NDArray[np.float64]  # [p] the largest


class Graphs:
    """The graphs of a build by position; the shard asked for last stays in memory."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self._entries = manifest.shards
        self._ptr = pointers([entry.graphs for entry in self._entries])
        self._open = lru_cache(maxsize=1)(partial(read_shard, folder))

    def __len__(self) -> int:
        return int(self._ptr[-1])

    def __getitem__(self, i: int) -> GraphRecord:
        number = int(np.searchsorted(self._ptr, i, "right")) - 1
        return self._open(self._entries[number])[i - int(self._ptr[number])]

    def overview(self) -> Overview:
        """Read every shard once and return what all graphs have in common."""
        label, split, nodes, lowest, highest = [], [], [], [], []
        histograms: list[Ints] = []
        for entry in self._entries:
            shard = self._open(entry)
            columns = shard.columns
            # Copies: a view would keep the whole file in memory.
            is_number = shard.schema.label == "number"
            label.append(columns["y"].astype(np.float64 if is_number else np.int64))
            split.append(columns["split"].astype(np.int64))
            nodes.append(np.diff(columns["node_ptr"]))
            degree = np.bincount(global_edges(columns)[0], minlength=len(columns["x"]))
            histograms.append(np.bincount(degree))
            if shard.schema.node_features.encoding == "dense":
                lowest.append(columns["x"].min(axis=0, initial=np.inf))
                highest.append(columns["x"].max(axis=0, initial=-np.inf))
        degrees = [sum(counts) for counts in zip_longest(*histograms, fillvalue=0)]
        none = np.zeros(0)
        return Overview(
            shard.schema,
            np.concatenate(label),
            np.concatenate(split),
            np.concatenate(nodes),
            np.array(degrees, np.int64),
            np.min(lowest, axis=0).astype(np.float64) if lowest else none,
            np.max(highest, axis=0).astype(np.float64) if highest else none,
        )


def read_shard(
    folder: Path, entry: ShardEntry, check: bool = True, mapped: bool = False
) -> ShardReader:
    """Return a shard after comparing its number of graphs and, with `check`, its checksum."""
    crc32 = entry.file_crc32 if check else None
    reader = ShardReader(folder / entry.name, file_crc32=crc32, mapped=mapped)
    if len(reader) != entry.graphs:
        raise DamagedError(
            f"{reader.path}: holds {len(reader)} graphs, manifest.json lists {entry.graphs}; "
            "delete the build and build again"
        )
    return reader
