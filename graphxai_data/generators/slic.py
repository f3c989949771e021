"""Arguments of SLIC, and the grid that its clusters start from."""

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
import numpy.typing as npt

from graphxai_data.files.toml import Between, Checked


@dataclass(frozen=True)
class Slic(Checked):
    """Arguments of SLIC, named as in scikit-image; sizes of segments as in scikit-image <= 0.15.

    Since 0.16 `min_size_factor` and `max_size_factor` count in pixels per cluster; before, and in
    the published MNIST-75sp, in pixels per segment asked for.

    Attributes:
        most_segments: ask for fewer until at most so many come out.
        n_segments: how many to ask for first.
    """

    most_segments: Annotated[int, Between(2, 256)]
    n_segments: Annotated[int, Between(1, 784)]
    compactness: Annotated[float, Between(0, 1e6, excluded=(0,))]
    max_num_iter: Annotated[int, Between(1, 1000)]
    min_size_factor: Annotated[float, Between(0, 1)]
    max_size_factor: Annotated[float, Between(1, 1000)]

    def sizes(self, asked: int, pixels: int) -> tuple[int, int]:
        """Segments below the first size are merged, those that reach the second are cut."""
        return (
            int(self.min_size_factor * pixels / asked),
            int(self.max_size_factor * pixels / asked),
        )


class Grid(NamedTuple):
    """Where clusters start: what `skimage.util.regular_grid` gives for a 2-D image.

    Attributes:
        start: row and column of the first.
        step: between neighbours.
        reach: how far a cluster looks; scikit-image takes it from the number of clusters.
    """

    start: int
    step: int
    reach: int

    @classmethod
    def for_segments(cls, asked: int, shape: tuple[int, ...]) -> "Grid":
        """The grid for so many segments."""
        pixels = shape[0] * shape[1]
        spacing = math.sqrt(pixels / asked)
        start, step = int(spacing // 2), round(spacing)
        clusters = math.prod(len(range(start, size, step)) for size in shape)
        return cls(start, step, 2 * round(math.sqrt(pixels / clusters)))

    def centres(self, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
        """[k, 2] row and column of each."""
        rows, columns = (np.arange(self.start, size, self.step, dtype=float) for size in shape)
        return np.stack(np.meshgrid(rows, columns, indexing="ij"), -1).reshape(-1, 2)
