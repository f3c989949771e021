"""Proof of pairs of digits by scikit-image and SciPy, as for one digit."""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphxai_data.generators.base import Prover, Sources
from graphxai_data.generators.mnist75sp_proof import (
    channel_values,
    measured,
    pairs_within,
    same_regions,
    slic_superpixels,
    superpixels_with_ink,
)
from graphxai_data.generators.mnist_images import SIDE, read_digits
from graphxai_data.graphs.record import SPLIT_NAMES, GraphRecord

_SIDES = ("left", "right")


class MNIST75spPairProver(Prover):
    """Makes each graph again from its two images, by other libraries."""

    def __init__(self, params: Any, sources: Sources) -> None:
        self._params = params
        self._images: dict[int, tuple[npt.NDArray[np.uint8], int]] = {}
        train, test = read_digits(sources["mnist"])
        for digits in (train, test):
            labelled = zip(digits.pixels, digits.label.tolist(), strict=True)
            self._images |= dict(zip(digits.image_id.tolist(), labelled, strict=True))
        self._test_images = set(test.image_id.tolist())
        self._seen: tuple[set[int], set[int]] = (set(), set())
        self._split_of_image: dict[int, int] = {}

    def problems(self, record: GraphRecord) -> list[str]:
        """Return what contradicts the claims about a graph; empty when all is proven."""
        ids = [int(image_id) for image_id in record.meta["image_id"]]
        if problems := self._misused(ids, int(record.meta["split"])):
            return problems
        images, digits = zip(*(self._images[image_id] for image_id in ids), strict=True)
        problems = self._wrong_classes(record, digits)
        segments = record.meta["segments"].astype(np.int64)
        halves = segments[:, :SIDE], segments[:, SIDE:]
        for half, image in zip(halves, images, strict=True):
            if not same_regions(half, slic_superpixels(image, self._params.slic)):
                return [*problems, "its superpixels are not those that scikit-image finds"]
        if np.intersect1d(*halves).size:
            return [*problems, "a superpixel is in both digits"]
        return problems + self._wrong_graph(record, segments, np.hstack(images))

    def _misused(self, ids: list[int], split: int) -> list[str]:
        """Return images that are unknown, used again on the same side, or of another split."""
        for side, image_id, seen in zip(_SIDES, ids, self._seen, strict=True):
            if image_id not in self._images:
                return [f"image {image_id} is not in the source"]
            if image_id in seen:
                return [f"image {image_id} is on the {side} of two graphs"]
            if (image_id in self._test_images) != (SPLIT_NAMES[split] == "test"):
                return [f"image {image_id} cannot be in the split {SPLIT_NAMES[split]}"]
            if self._split_of_image.setdefault(image_id, split) != split:
                return [f"image {image_id} is in two splits"]
        for image_id, seen in zip(ids, self._seen, strict=True):
            seen.add(image_id)
        return []

    def _wrong_classes(self, record: GraphRecord, digits: tuple[int, ...]) -> list[str]:
        problems = []
        if record.meta["cause_y"].tolist() != list(digits):
            problems.append(f"cause_y is {record.meta['cause_y']}, but the images are {digits}")
        expected = {"a": digits[0], "b": digits[1], "both": digits[0]}[self._params.cause]
        if record.y != expected:
            problems.append(f"labelled {record.y}, but its cause is a {expected}")
        if self._params.cause == "both" and digits[0] != digits[1]:
            problems.append(f"A and B are different digits, {digits[0]} and {digits[1]}")
        return problems

    def _wrong_graph(
        self, record: GraphRecord, segments: npt.NDArray[np.int64], picture: Any
    ) -> list[str]:
        """Return where features, positions, causes, rationale or edges are not the picture's."""
        params, problems = self._params, []
        s, x, y = measured(picture, segments, record.num_nodes)
        # The picture is two sides wide.
        features = channel_values(params.channels, s, x / 2, y)
        if not np.allclose(record.x, features, rtol=0, atol=1e-6):
            problems.append("a feature does not follow from the images")
        if not np.allclose(record.meta["pos"], np.stack([x, y], axis=1), rtol=0, atol=1e-6):
            problems.append("a position does not follow from the images")
        ink = superpixels_with_ink(picture, segments, s, params.rationale_above)
        cause = np.where(ink, np.where(np.isin(np.arange(len(s)), segments[:, :SIDE]), 1, 2), 0)
        if not np.array_equal(record.meta["cause"], cause):
            problems.append("the causes are not the superpixels with ink of each digit")
        numbers = {"a": (1,), "b": (2,), "both": (1, 2)}[params.cause]
        if not np.array_equal(record.rationale, np.isin(cause, numbers)):
            problems.append("the rationale is not the superpixels with ink of its cause")
        edges = set(map(tuple, record.edge_index.T.tolist()))
        if edges != pairs_within(params.radius, segments, x, y):
            problems.append("the edges are not those between near superpixels")
        return problems
