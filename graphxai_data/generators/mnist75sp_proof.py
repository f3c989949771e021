"""Proof of MNIST-75sp graphs by scikit-image and SciPy.

It uses no code of the generator except the reader of the image files.
"""

import operator
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import ndimage
from scipy.spatial.distance import cdist

from graphxai_data.generators.base import Prover, Sources
from graphxai_data.generators.mnist_images import SIDE, read_digits
from graphxai_data.generators.regions import Slic
from graphxai_data.graphs.record import GraphRecord

# Distances that are nearer than this to a bound are compared as exact fractions.
_DOUBT = 1e-9


def slic_superpixels(image: npt.NDArray[np.uint8], slic: Slic) -> npt.NDArray[np.intp]:
    """Return scikit-image's labels of an image [h, w], for ever fewer segments until few enough."""
    requested = slic.n_segments
    while (labels := _skimage_slic(image, slic, requested)).max() >= slic.most_segments:
        requested -= 1  # ends at the latest with one
    return labels


def _skimage_slic(image: npt.NDArray[np.uint8], slic: Slic, requested: int) -> npt.NDArray[np.intp]:
    """Return the labels for a requested number of segments.

    The recipe gives sizes of segments as scikit-image <= 0.15 did, in pixels per requested segment.
    Later versions count in pixels per cluster, so the factors are converted; the added half pixel
    keeps rounding from losing one.
    """
    # scikit-image takes a while to load and is needed only here.
    from skimage.segmentation import slic as skimage_slic
    from skimage.util import regular_grid

    clusters = np.zeros((1, *image.shape))[regular_grid((1, *image.shape), requested)].size
    smallest = int(slic.min_size_factor * image.size / requested)
    largest = int(slic.max_size_factor * image.size / requested)
    labels: npt.NDArray[np.intp] = skimage_slic(
        image,
        n_segments=requested,
        compactness=slic.compactness,
        max_num_iter=slic.max_num_iter,
        min_size_factor=(smallest + 0.5) * clusters / image.size,
        max_size_factor=(largest + 0.5) * clusters / image.size,
        start_label=0,
        channel_axis=None,
    )
    return labels


class MNIST75spProver(Prover):
    """Makes each graph again from its image, by other libraries."""

    def __init__(self, params: Any, sources: Sources) -> None:
        self._params = params
        self._images: dict[int, tuple[npt.NDArray[np.uint8], int]] = {}
        for digits in read_digits(sources["mnist"]):
            labelled = zip(digits.pixels, digits.label.tolist(), strict=True)
            self._images |= dict(zip(digits.image_id.tolist(), labelled, strict=True))
        self._seen: set[int] = set()

    def problems(self, record: GraphRecord) -> list[str]:
        """Return what contradicts the claims about a graph; empty when all is proven."""
        image_id = int(record.meta["image_id"])
        if image_id not in self._images:
            return [f"image {image_id} is not in the source"]
        if image_id in self._seen:
            return [f"image {image_id} is in two graphs"]
        self._seen.add(image_id)
        image, label = self._images[image_id]
        problems = []
        if record.y != label:
            problems.append(f"labelled {record.y}, but image {image_id} is a {label}")
        segments = record.meta["segments"].astype(np.int64)
        if not same_regions(segments, slic_superpixels(image, self._params.slic)):
            return [*problems, "its superpixels are not those that scikit-image finds"]
        s, x, y = measured(image, segments, record.num_nodes)
        features = channel_values(self._params.channels, s, x, y)
        if not np.allclose(record.x, features, rtol=0, atol=1e-6):
            problems.append("a feature does not follow from the image")
        if not np.allclose(record.meta["pos"], np.stack([x, y], axis=1), rtol=0, atol=1e-6):
            problems.append("a position does not follow from the image")
        key, bound = self._params.bound
        included = key == "rationale_from"
        ink = superpixels_with_ink(image, segments, s, bound, included=included)
        if not np.array_equal(record.rationale, ink):
            problems.append("the rationale is not the superpixels with ink")
        if set(map(tuple, record.edge_index.T.tolist())) != self._edges(segments, x, y):
            problems.append("the edges are not those between near superpixels")
        return problems

    def _edges(self, segments: npt.NDArray[np.int64], x: Any, y: Any) -> set[tuple[int, int]]:
        if self._params.radius:
            return pairs_within(self._params.radius, segments, x, y)
        distance, edges = _distances(x, y), set()
        first = [int(np.argmax(segments.ravel() == node)) for node in range(len(distance))]
        for i, row in enumerate(distance):
            farthest = np.sort(row)[: self._params.neighbours].max()
            sure = np.flatnonzero(row < farthest - _DOUBT).tolist()
            last = np.flatnonzero(np.abs(row - farthest) <= _DOUBT).tolist()
            last.sort(key=lambda j: (_squared_distance(segments, i, j), first[j]))
            for j in [*sure, *last][: self._params.neighbours]:
                edges |= {(i, j), (j, i)}
        return edges


def measured(image: npt.NDArray[np.uint8], segments: npt.NDArray[np.int64], nodes: int) -> Any:
    """Return mean intensity and centre (s, x, y) [n] of each superpixel; an image has side 1."""
    labels = np.arange(nodes)
    rows, columns = np.array(ndimage.center_of_mass(np.ones_like(segments), segments, labels)).T
    return ndimage.mean(image / 255, segments, labels), columns / SIDE, rows / SIDE


def channel_values(channels: Sequence[str], s: Any, x: Any, y: Any) -> npt.NDArray[np.float64]:
    """Return the features [n, p] of superpixels."""
    formulas = {
        "s": s, "1-s": 1 - s, "x": x, "y": y,
        "s*x": s * x, "s*y": s * y, "s*(1-x)": s - s * x, "s*(1-y)": s - s * y,
    }  # fmt: skip
    return np.stack([formulas[channel] for channel in channels], axis=1)


def superpixels_with_ink(
    image: Any, segments: Any, s: Any, bound: float, *, included: bool = False
) -> npt.NDArray[np.bool_]:
    """Return [n] which superpixels are brighter than the bound, or at least as bright."""
    compare = operator.ge if included else operator.gt
    bright = np.asarray(compare(s, bound))
    for node in np.flatnonzero(np.abs(s - bound) < _DOUBT):
        pixels = image[segments == node].tolist()
        mean = Fraction(sum(pixels), 255 * len(pixels))
        # The same float as a division of whole numbers, rounded once.
        bright[node] = compare(float(mean), bound)
    return bright


def pairs_within(
    radius: float, segments: npt.NDArray[np.int64], x: Any, y: Any
) -> set[tuple[int, int]]:
    """Return the pairs of superpixels whose centres are at most `radius` apart."""
    distance, bound = _distances(x, y), Fraction(repr(radius)) ** 2
    pairs = set()
    for i, j in np.argwhere(distance <= radius + _DOUBT).tolist():
        doubtful = abs(distance[i, j] - radius) < _DOUBT
        if not doubtful or _squared_distance(segments, i, j) <= bound:
            pairs.add((i, j))
    return pairs


def _distances(x: Any, y: Any) -> npt.NDArray[np.float64]:
    """Return the distances [n, n] of centres; a superpixel is infinitely far from itself."""
    positions = np.stack([x, y], axis=1)
    distance: npt.NDArray[np.float64] = cdist(positions, positions)
    np.fill_diagonal(distance, np.inf)
    return distance


def _squared_distance(segments: npt.NDArray[np.int64], i: int, j: int) -> Fraction:
    """Return the exact squared distance of two centres in an image of side 1."""
    (yi, xi), (yj, xj) = (
        [Fraction(int(places.sum()), len(places) * SIDE) for places in np.nonzero(segments == node)]
        for node in (i, j)
    )
    return (yi - yj) ** 2 + (xi - xj) ** 2


def same_regions(ours: npt.NDArray[np.int64], theirs: npt.NDArray[np.intp]) -> bool:
    """Return whether two labellings of pixels differ at most in the names of regions."""
    pairs = np.unique(np.stack([ours.ravel(), theirs.ravel()]), axis=1)
    names = [len(np.unique(row)) for row in pairs]
    return names == [pairs.shape[1]] * 2
