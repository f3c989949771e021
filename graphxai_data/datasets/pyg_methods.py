"""What PyG's datasets have besides their graphs: names of files, a summary, settled transforms."""

from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor
from torch_geometric.data import Dataset

from graphxai_data.datasets.base import OpenedBuild
from graphxai_data.datasets.summary import Summary
from graphxai_data.datasets.watched import transformed
from graphxai_data.manifest import MANIFEST_NAME


class PyGMethods(OpenedBuild, Dataset):  # type: ignore[misc]
    """A build as a PyG `Dataset`: what is the same in memory and on disk."""

    _kept_file: Path | None = None  # where the results of pre_transform and pre_filter are

    @property
    def raw_dir(self) -> str:
        """The folder of the build."""
        return str(self.folder)

    @property
    def processed_dir(self) -> str:
        """The folder of the build."""
        return str(self.folder)

    @property
    def raw_file_names(self) -> list[str]:
        """The files of the build: its manifest and its shards."""
        return [MANIFEST_NAME, *(entry.name for entry in self.manifest.shards)]

    @property
    def processed_file_names(self) -> list[str]:
        """The files that hold these graphs: those of the build, or what `pre_transform` gave."""
        if self._kept_file is None:
            return self.raw_file_names
        return [str(self._kept_file.relative_to(self.folder))]

    def __getitem__(self, idx: Any) -> Any:
        one = isinstance(idx, int | np.integer) or (isinstance(idx, Tensor) and idx.dim() == 0)
        if self.transform is None or not one:
            return super().__getitem__(idx)
        return transformed(self.get(self.indices()[idx]), self.transform)

    def get_summary(self) -> Summary:
        """Return how many nodes and edges the graphs have; print it for a table."""
        summary: Summary = Summary.from_dataset(self, progress_bar=False)
        return summary
