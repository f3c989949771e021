"""The superpixels of many images: sizes, centres, and which of them lie near each other."""

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from graphxai_data.generators.mnist_images import SIDE
from graphxai_data.graphs.columns import Columns, Ints, pointers

Floats = npt.NDArray[np.float64]
Bytes = npt.NDArray[np.uint8]

# Distances of all pairs of superpixels are held for so many graphs at once.
_GRAPHS_AT_ONCE = 200


class Regions:
    """The superpixels of many images, numbered through: all rows of `size` [N] and the like.

    Attributes:
        number: [g] superpixels of each image.
        size: pixels of each.
        first: its first pixel, counted along the rows.
    """

    def __init__(self, segments: Bytes, number: Ints) -> None:
        self.number = number
        self._ptr = pointers(number)
        self._owner = self._ptr[:-1, None] + segments.reshape(len(segments), -1)
        self.size = self._sum(np.ones(SIDE * SIDE))
        place = np.arange(SIDE * SIDE)
        self._sums = np.stack([self._sum(place % SIDE), self._sum(place // SIDE)])
        self.first = np.full(len(self.size), SIDE * SIDE)
        pixel = np.broadcast_to(place[::-1], self._owner.shape).ravel()
        self.first[self._owner[:, ::-1].ravel()] = pixel  # the last one written stays

    @property
    def centre(self) -> Floats:
        """[N, 2] mean column and row of each superpixel, from 0 to 1."""
        return (self._sums / (SIDE * self.size)).T

    def intensity(self, images: Bytes) -> Floats:
        """[N] mean of the pixels of each superpixel, from 0 to 1."""
        return self._sum(images.reshape(len(images), -1)) / (255 * self.size)

    def _sum(self, values: npt.NDArray[np.generic]) -> Floats:
        """[N] sum of whole numbers over the pixels of each; exact in float64."""
        weights = np.broadcast_to(values, self._owner.shape).ravel()
        count = int(self._ptr[-1])
        sums: Floats = np.bincount(self._owner.ravel(), weights, minlength=count).astype(float)
        return sums

    def edges(self, radius: float, neighbours: int) -> Columns:
        """`edge_index` and `edge_ptr`: near centres joined in both directions, sorted."""
        ends, counts = [np.empty((2, 0), np.int64)], []
        for first in range(0, len(self.number), _GRAPHS_AT_ONCE):
            joined = self._joined(slice(first, first + _GRAPHS_AT_ONCE), radius, neighbours)
            graph, source, target = np.nonzero(joined)
            ends.append(np.stack([source, target]))
            counts.append(np.bincount(graph, minlength=len(joined)))
        return {
            "edge_index": np.concatenate(ends, axis=1),
            "edge_ptr": pointers(np.concatenate([[], *counts]).astype(np.int64)),
        }

    def _joined(self, graphs: slice, radius: float, neighbours: int) -> npt.NDArray[np.bool_]:
        """[g, n, n] which pairs of superpixels are joined, n that of the largest graph."""
        number = self.number[graphs]
        there = np.arange(number.max(initial=0)) < number[:, None]
        rows = slice(int(self._ptr[graphs][0]), int(self._ptr[graphs][0] + number.sum()))
        size, x, y, first = (np.zeros(there.shape) for _ in range(4))
        size[there], first[there] = self.size[rows], self.first[rows]
        x[there], y[there] = self._sums[:, rows]
        size[~there] = 1
        pair = there[:, :, None] & there[:, None, :] & ~np.eye(there.shape[1], dtype=bool)

        # Squared distance as one fraction of whole numbers: rounded once, so that distances that
        # are equal are equal here, and one that is exactly the radius counts.
        ours, theirs = size[:, :, None], size[:, None, :]
        dx = x[:, :, None] * theirs - x[:, None, :] * ours
        dy = y[:, :, None] * theirs - y[:, None, :] * ours
        distance = np.where(pair, (dx * dx + dy * dy) / np.square(ours * theirs), np.inf)
        if radius:
            return distance <= float((Fraction(repr(radius)) * SIDE) ** 2)
        # Of superpixels at the same distance, the one that begins first.
        ranked = np.lexsort([np.broadcast_to(first[:, None, :], distance.shape), distance])
        chosen = np.zeros_like(pair)
        np.put_along_axis(chosen, ranked[:, :, :neighbours], values=True, axis=2)
        chosen &= pair
        return chosen | chosen.transpose(0, 2, 1)
