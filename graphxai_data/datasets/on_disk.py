"""Random access to a build on disk: memory does not grow with the dataset."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Dataset

from graphxai_data.datasets.base import OpenedBuild, checked_split, checked_unsplit
from graphxai_data.datasets.cutting import OpenShards
from graphxai_data.datasets.in_memory import GraphXAIData, open_build, split_positions
from graphxai_data.errors import whole_number
from graphxai_data.graphs.record import SPLIT_NAMES
from graphxai_data.manifest import Manifest
from graphxai_data.recipe import Recipe
from graphxai_data.remote import opened


class ShardedDataset(OpenedBuild, Dataset):  # type: ignore[misc]
    """A built dataset that stays on disk, as a PyG `Dataset`; what is not built is built first.

    `dataset[i]` is the very graph that `GraphXAIDataset` gives, and slices, lists and masks choose
    parts as PyG's datasets do; but of the shards only the bytes of that graph are read. What is
    kept in memory: 4 bytes a graph if a `split` is chosen, and some 50 bytes a graph of the shards
    that are open. It can be pickled and given to a `DataLoader` with workers.

    A shard is compared with its checksum in the manifest when it is opened first, for which it is
    read once as a whole. Choosing a split, and `get_idx_split`, open all shards.

    Args:
        root: folder of all builds, as for `graphxai_data.build`.
        name: a shipped dataset or the path of a recipe file.
        seed: which build.
        split: "train", "valid" or "test" for those graphs only.
        transform: applied to a graph whenever it is taken.
        force_reload: delete the build and make it again.
        check: whether to compare shards with their checksums.
        open_shards: how many shards are kept open, those asked for last.
    """

    def __init__(
        self,
        root: str | Path,
        name: str | Path,
        seed: int = 0,
        split: str | None = None,
        transform: Callable[[Any], Any] | None = None,
        *,
        force_reload: bool = False,
        check: bool = True,
        open_shards: int = 64,
    ) -> None:
        checked_split(split)
        whole_number("open_shards", open_shards, 1, 2**16)
        opened = open_build(root, Recipe.load(name), seed, force_reload)
        self._set_up(*opened, split, transform, check, open_shards)

    @classmethod
    def from_folder(
        cls,
        folder: str | Path,
        split: str | None = None,
        transform: Callable[[Any], Any] | None = None,
        *,
        check: bool = True,
        open_shards: int = 64,
    ) -> "ShardedDataset":
        """The dataset of a build folder, wherever it lies and whatever it is called."""
        dataset = cls.__new__(cls)
        checked_split(split)
        whole_number("open_shards", open_shards, 1, 2**16)
        with opened(folder, extras=False) as (path, _):
            dataset._set_up(path, Manifest.load(path), split, transform, check, open_shards)
        return dataset

    def _set_up(
        self,
        folder: Path,
        manifest: Manifest,
        split: str | None,
        transform: Callable[[Any], Any] | None,
        check: bool,
        open_shards: int,
    ) -> None:
        Dataset.__init__(self, str(folder.parent.parent), transform)
        self._describe(folder, manifest, split)
        self._shards = OpenShards(folder, manifest.shards, check, open_shards)
        counts = [entry.graphs for entry in manifest.shards]
        self._ends = np.cumsum(counts)
        # Where the graphs of the split are in the build: below 10**8 (`seeds.MAX_GRAPHS`).
        self._positions = None
        if split is not None:
            wanted = self._shards.split == SPLIT_NAMES.index(split)
            self._positions = np.flatnonzero(wanted).astype(np.uint32)

    def len(self) -> int:
        """Number of graphs, of the split if one is chosen."""
        return self.manifest.graphs if self._positions is None else len(self._positions)

    def get(self, idx: int) -> GraphXAIData:
        """Graph `idx` of the dataset or its split, read from disk; no transform is applied."""
        idx = range(self.len())[idx]
        position = idx if self._positions is None else int(self._positions[idx])
        number = int(np.searchsorted(self._ends, position, side="right"))
        first = int(self._ends[number]) - self.manifest.shards[number].graphs
        return self._shards[number].cut(position - first).as_data()

    def get_idx_split(self) -> dict[str, Tensor]:
        """Positions of the graphs of each split, as OGB datasets give them."""
        checked_unsplit(self.split)
        return split_positions(torch.from_numpy(self._shards.split), self.indices())

    def __repr__(self) -> str:
        split = f", split={self.split!r}" if self.split else ""
        return f"{type(self).__name__}({self.name!r}, {len(self)} graphs, seed={self.seed}{split})"
