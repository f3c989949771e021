"""The superpixels of many images: sizes, centres, and which of them are near each other."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

import numpy as np
import numpy.typing as npt

from graphxai_data.files.toml import Between, Checked
from graphxai_data.generators.mnist_images import SIDE
from graphxai_data.graphs.columns import Columns, Ints, pointers

Floats = npt.NDArray[np.float64]
Bytes = npt.NDArray[np.uint8]

# Distances of so many pairs of superpixels are in memory at once: those of 200 images.
_PAIRS_AT_ONCE = 200 * 75**2


@dataclass(frozen=True)
class Slic(Checked):
    """Arguments of SLIC, named as in scikit-image; sizes of segments as in scikit-image <= 0.15.

    Since 0.16 `min_size_factor` and `max_size_factor` count in pixels per cluster; before, and in
    the published MNIST-75sp, in pixels per requested segment.
    """

    most_segments: Annotated[int, Between(2, 256)]  # fewer are requested until no more result
    n_segments: Annotated[int, Between(1, 784)]  # how many are requested first
    compactness: Annotated[float, Between(0, 1e6, excluded=(0,))]
    max_num_iter: Annotated[int, Between(1, 1000)]
    min_size_factor: Annotated[float, Between(0, 1)]
    max_size_factor: Annotated[float, Between(1, 1000)]


class Regions:
    """The N superpixels of g pictures, one picture after the other, `counts` [g] per picture.

    A picture [28, w] is one image, or several side by side. `segments` [g, 28, w] has the
    superpixel of every pixel; `size` [N] is the number of pixels of each superpixel, `first` [N]
    its first pixel, row by row.
    """

    def __init__(self, segments: Bytes, counts: Ints) -> None:
        self.counts = counts
        self._ptr = pointers(counts)
        self._owner = self._ptr[:-1, None] + segments.reshape(len(segments), -1)
        self._width = width = segments.shape[2]
        place = np.arange(SIDE * width)
        self.size = self._sum(np.ones(len(place)))
        self._sums = np.stack([self._sum(place % width), self._sum(place // width)])
        self.first = np.full(len(self.size), len(place))
        pixel = np.broadcast_to(place[::-1], self._owner.shape).ravel()
        self.first[self._owner[:, ::-1].ravel()] = pixel  # the last one written stays

    @property
    def centre(self) -> Floats:
        """Mean column and row [N, 2] of each superpixel; an image has side 1."""
        return (self._sums / (SIDE * self.size)).T

    @property
    def columns_between(self) -> tuple[Ints, Ints]:
        """First and last column [N] of the pixels of each superpixel."""
        column = np.broadcast_to(np.arange(self._width), (SIDE, self._width)).ravel()
        first, last = np.full(len(self.size), self._width), np.full(len(self.size), -1)
        pixels = np.broadcast_to(column, self._owner.shape).ravel()
        np.minimum.at(first, self._owner.ravel(), pixels)
        np.maximum.at(last, self._owner.ravel(), pixels)
        return first, last

    def intensity(self, images: Bytes) -> Floats:
        """Return the mean [N] of the pixels of each superpixel, from 0 to 1."""
        return self._sum(images.reshape(len(images), -1)) / (255 * self.size)

    def _sum(self, values: npt.NDArray[np.generic]) -> Floats:
        """Return the sum [N] of whole numbers over each superpixel; exact in float64."""
        weights = np.broadcast_to(values, self._owner.shape).ravel()
        sums = np.bincount(self._owner.ravel(), weights, minlength=self._ptr[-1])
        return sums.astype(np.float64, copy=False)

    def edges(self, radius: float, neighbours: int) -> Columns:
        """Return `edge_index` and `edge_ptr`: near centres joined in both directions, sorted."""
        ends, counts = [np.empty((2, 0), np.int64)], []
        at_once = max(1, _PAIRS_AT_ONCE // int(self.counts.max(initial=1)) ** 2)
        for first in range(0, len(self.counts), at_once):
            joined = self._joined(slice(first, first + at_once), radius, neighbours)
            graph, source, target = np.nonzero(joined)
            ends.append(np.stack([source, target]))
            counts.append(np.bincount(graph, minlength=len(joined)))
        return {
            "edge_index": np.concatenate(ends, axis=1),
            "edge_ptr": pointers(np.concatenate([[], *counts]).astype(np.int64)),
        }

    def _joined(self, graphs: slice, radius: float, neighbours: int) -> npt.NDArray[np.bool_]:
        """Return which pairs of superpixels are joined [g, n, n], n that of the largest graph."""
        counts = self.counts[graphs]
        exists = np.arange(counts.max(initial=0)) < counts[:, None]
        rows = slice(int(self._ptr[graphs][0]), int(self._ptr[graphs][0] + counts.sum()))
        size, x, y, first = (np.zeros(exists.shape) for _ in range(4))
        size[exists], first[exists] = self.size[rows], self.first[rows]
        x[exists], y[exists] = self._sums[:, rows]
        size[~exists] = 1
        pair = exists[:, :, None] & exists[:, None, :] & ~np.eye(exists.shape[1], dtype=bool)

        # The squared distance is one fraction of whole numbers and rounded once, so equal distances
        # stay equal, and a distance of exactly the radius is recognised.
        ours, theirs = size[:, :, None], size[:, None, :]
        dx = x[:, :, None] * theirs - x[:, None, :] * ours
        dy = y[:, :, None] * theirs - y[:, None, :] * ours
        distance = np.where(pair, (dx * dx + dy * dy) / np.square(ours * theirs), np.inf)
        if radius:
            return distance <= float((Fraction(repr(radius)) * SIDE) ** 2)
        # Ties go to the superpixel with the first pixel.
        ranked = np.lexsort([np.broadcast_to(first[:, None, :], distance.shape), distance])
        nearest = np.zeros_like(pair)
        np.put_along_axis(nearest, ranked[:, :, :neighbours], values=True, axis=2)
        nearest &= pair
        return nearest | nearest.transpose(0, 2, 1)
