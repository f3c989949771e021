"""Arguments of SLIC, and the grid that its clusters start from."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Slic:
    """Arguments of SLIC, named as in scikit-image; sizes of segments as in scikit-image <= 0.15.

    Since 0.16 `min_size_factor` and `max_size_factor` count in pixels per cluster; before, and in
    the published MNIST-75sp, in pixels per segment asked for.

    Attributes:
        most_segments: ask for fewer until at most so many come out.
        n_segments: how many to ask for first.
    """

    most_segments: int
    n_segments: int
    compactness: float
    max_num_iter: int
    min_size_factor: float
    max_size_factor: float

    def __post_init__(self) -> None:
        if not 2 <= self.most_segments <= 256:
            raise ValueError(f"most_segments must be from 2 to 256, got {self.most_segments}")
        if not 1 <= self.n_segments <= 784:
            raise ValueError(f"n_segments must be from 1 to 784, got {self.n_segments}")
        if not 0 < self.compactness <= 1e6:
            raise ValueError(f"compactness must be above 0, got {self.compactness}")
        if not 1 <= self.max_num_iter <= 1000:
            raise ValueError(f"max_num_iter must be from 1 to 1000, got {self.max_num_iter}")
        if not 0 <= self.min_size_factor <= 1 <= self.max_size_factor <= 1000:
            raise ValueError(
                "min_size_factor must be from 0 to 1 and max_size_factor from 1 to 1000, got "
                f"{self.min_size_factor} and {self.max_size_factor}"
            )

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
