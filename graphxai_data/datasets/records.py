"""The graphs of a build as NumPy records, one shard in memory at a time; without torch."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from graphxai_data.errors import DamagedError
from graphxai_data.graphs.columns import Ints, global_edges, pointers
from graphxai_data.graphs.record import GraphRecord, Schema
from graphxai_data.graphs.shards import ShardReader
from graphxai_data.manifest import Manifest, ShardEntry


@dataclass(frozen=True)
class Overview:
    """What is known about all graphs of a build after one look at each shard.

    Attributes:
        schema: of the graphs.
        label: [g] class of each graph.
        split: [g] its split.
        nodes: [g] how many nodes it has.
        degrees: [d] how many nodes have degree 0, 1, …
        lowest: [p] smallest value of every dense feature; empty for others.
        highest: [p] the largest.
    """

    schema: Schema
    label: Ints
    split: Ints
    nodes: Ints
    degrees: Ints
    lowest: npt.NDArray[np.float64]
    highest: npt.NDArray[np.float64]


class Graphs:
    """The graphs of a build by position; the shard asked for last stays in memory."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self._folder, self._entries = folder, manifest.shards
        self._ptr = pointers([entry.graphs for entry in manifest.shards])
        self._number = -1
        self._shard: ShardReader | None = None

    def __len__(self) -> int:
        return int(self._ptr[-1])

    def __getitem__(self, i: int) -> GraphRecord:
        number = int(np.searchsorted(self._ptr, i, "right")) - 1
        return self._open(number)[i - int(self._ptr[number])]

    def overview(self) -> Overview:
        """Read every shard once and return what all graphs have in common."""
        label, split, nodes, lowest, highest = [], [], [], [], []
        histograms: list[Ints] = []
        for number in range(len(self._entries)):
            shard = self._open(number)
            columns = shard.columns
            label.append(columns["y"])
            split.append(columns["split"])
            nodes.append(np.diff(columns["node_ptr"]))
            degree = np.bincount(global_edges(columns)[0], minlength=len(columns["x"]))
            histograms.append(np.bincount(degree))
            if shard.schema.node_features.encoding == "dense":
                lowest.append(columns["x"].min(axis=0, initial=np.inf))
                highest.append(columns["x"].max(axis=0, initial=-np.inf))
        degrees = np.zeros(max(len(histogram) for histogram in histograms), np.int64)
        for histogram in histograms:
            degrees[: len(histogram)] += histogram
        none = np.zeros(0)
        return Overview(
            shard.schema,
            np.concatenate(label).astype(np.int64),
            np.concatenate(split).astype(np.int64),
            np.concatenate(nodes).astype(np.int64),
            degrees,
            np.min(lowest, axis=0).astype(np.float64) if lowest else none,
            np.max(highest, axis=0).astype(np.float64) if highest else none,
        )

    def _open(self, number: int) -> ShardReader:
        if self._shard is None or number != self._number:
            self._shard = read_shard(self._folder, self._entries[number])
            self._number = number
        return self._shard


def read_shard(
    folder: Path, entry: ShardEntry, check: bool = True, mapped: bool = False
) -> ShardReader:
    """Read a shard of a build.

    Args:
        folder: of the build.
        entry: of the shard in the manifest; the number of graphs must agree.
        check: compare the checksum as well.
        mapped: memory-map the file instead of reading it.
    """
    crc32 = entry.file_crc32 if check else None
    reader = ShardReader(folder / entry.name, file_crc32=crc32, mapped=mapped)
    if len(reader) != entry.graphs:
        raise DamagedError(
            f"{reader.path}: holds {len(reader)} graphs, manifest.json lists {entry.graphs}; "
            "delete the build and build again"
        )
    return reader
