"""Random access to a build on disk: memory does not grow with the dataset."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from graphxai_data.datasets.base import Build
from graphxai_data.datasets.cutting import OpenShards
from graphxai_data.datasets.data import GraphXAIData
from graphxai_data.datasets.pyg_methods import PyGMethods
from graphxai_data.errors import whole_number
from graphxai_data.graphs.record import SPLIT_NAMES
from graphxai_data.progress import Progress


class ShardedDataset(PyGMethods):
    """A build that stays on disk, as a PyG `Dataset`; a missing build is built first.

    `dataset[i]` equals the graph of `GraphXAIDataset`, and slices, lists and masks select parts as
    in any PyG dataset, but only the bytes of that graph are read. In memory are 4 bytes per graph
    of the `split`, if one is given, and some 50 bytes per graph of the open shards. The dataset can
    be pickled and passed to a `DataLoader` with workers.

    A shard is read whole when it is first opened, to compare it with its checksum in the manifest.
    `split` and `get_idx_split` open all shards.

    Args:
        check: whether to compare shards with their checksums.
        open_shards: how many shards stay open, the most recently used.

    Other arguments as for `GraphXAIDataset`.
    """

    def __init__(
        self,
        root: str | Path | Build,
        name: str | Path,
        seed: int = 0,
        split: str | None = None,
        transform: Callable[[Any], Any] | None = None,
        *,
        force_reload: bool = False,
        check: bool = True,
        open_shards: int = 64,
        graphs: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        whole_number("open_shards", open_shards, 1, 2**16)
        with self._opened(root, name, seed, split, force_reload, graphs, progress):
            super().__init__(str(self.folder.parent.parent), transform)
            self._shards = OpenShards(self.folder, self.manifest.shards, check, open_shards)
            self._ends = np.cumsum([entry.graphs for entry in self.manifest.shards])
            # Where the graphs of the split are in the build: below 10**8 (`seeds.MAX_GRAPHS`).
            self._positions = None
            if split is not None:
                selected = self._shards.split == SPLIT_NAMES.index(split)
                self._positions = np.flatnonzero(selected).astype(np.uint32)

    def len(self) -> int:
        """Number of graphs in the dataset or its split."""
        return self.manifest.graphs if self._positions is None else len(self._positions)

    def get(self, idx: int) -> GraphXAIData:
        """Read graph `idx` of the dataset or its split; no transform is applied."""
        idx = range(self.len())[idx]
        position = idx if self._positions is None else int(self._positions[idx])
        number = int(np.searchsorted(self._ends, position, side="right"))
        first = int(self._ends[number]) - self.manifest.shards[number].graphs
        return self._shards[number].cut(position - first).as_data()

    def get_idx_split(self) -> dict[str, Tensor]:
        """Return the positions of the graphs of each split, as OGB datasets do."""
        return self._positions_by_split(self._shards.split, self.indices())

    def __repr__(self) -> str:
        return self._shown(len(self))
