"""The images of MNIST from its four IDX files, in the order in which builds take them.

The seed of a build draws the order of all images of MNIST, and so which of them are used. A
selection, such as the shipped one, is taken as it is: all seeds have the same images.
"""

import math
import struct
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from graphxai_data.errors import InputError
from graphxai_data.files.raw import Source, has_file, read_member
from graphxai_data.graphs.columns import Ints
from graphxai_data.graphs.splits import split_sizes, stratified_order
from graphxai_data.seeds import Draws, rng_for

SIDE = 28
CLASSES = 10
PARTS = ("train", "t10k")
IDX_FILES = tuple(
    f"{part}-{kind}-ubyte" for part in PARTS for kind in ("images-idx3", "labels-idx1")
)
# The file that lists the ids of images in an archive that holds a selection, already in order. (A
# folder has no such file: its digest covers only the four files that everybody has.)
_IDS = "{part}-ids-idx1-int"
_TEST_IDS_BEGIN = 60_000

# An IDX file begins with 0, 0, the type of its values and the number of its dimensions.
_UBYTE, _INT = 0x08, 0x0C
_MAGIC_NAMES = {0x0803: "images", 0x0801: "labels"}


class Digits(NamedTuple):
    """Images in the order in which builds take them."""

    pixels: npt.NDArray[np.uint8]  # [k, 28, 28], 0 is background
    label: Ints  # [k] which digit
    image_id: Ints  # [k] number in MNIST: training images from 0, test images from 60,000
    rejected: dict[str, int]  # how many images of the source, by reason


def read_digits(source: Source, seed: int = 0) -> tuple[Digits, Digits]:
    """Return the training images and the test images, in the order of a build with this seed."""
    path = source.path
    listed = [p for p in PARTS if path.is_file() and has_file(path, _IDS.format(part=p))]
    if len(listed) == 1:
        raise InputError(f"{path}: has ids of the {listed[0]} images, but not of the others")
    return _read_parts(source, None if listed else seed)


@lru_cache(maxsize=1)
def _read_parts(source: Source, seed: int | None) -> tuple[Digits, Digits]:
    """Return both parts; without a seed, in the order of the files, which list the images' ids."""
    train, test = (_read_part(source.path, part, seed) for part in PARTS)
    return train, test


def images_of(source: Source, ids: Ints, seed: int = 0) -> tuple[npt.NDArray[np.uint8], Ints]:
    """Return the pixels [..., 28, 28] and the digits [...] of the images with these ids [...].

    They do not depend on the seed, but with that of the build the files are not read again.
    """
    parts = read_digits(source, seed)
    pixels, label, image_id = (np.concatenate([part[i] for part in parts]) for i in range(3))
    order = np.argsort(image_id)
    rows = order[np.searchsorted(image_id, ids, sorter=order).clip(max=len(order) - 1)]
    if (missing := image_id[rows] != ids).any():
        raise InputError(f"{source.path}: image {ids[missing][0]} is not in it, or is rejected")
    return pixels[rows], label[rows]


def rejected_images(source: Source, seed: int = 0) -> dict[str, int]:
    """Return how many images of the source were rejected, by reason."""
    train, test = read_digits(source, seed)
    return dict(sorted((Counter(train.rejected) + Counter(test.rejected)).items()))


def divide_images(
    fractions: Sequence[float], graphs: int, source: Source, draws: Draws
) -> tuple[Ints, Ints, npt.NDArray[np.uint8]]:
    """Return digit, id and split [g] of as many images; those for testing are MNIST's test images.

    The draws divide the others into training and validation.
    """
    train, test = read_digits(source, draws.seed)
    sizes = split_sizes(graphs, fractions)
    train_and_valid = sizes[0] + sizes[1]
    for needed, usable, kind in (
        (train_and_valid, len(train.label), "training"),
        (sizes[2], len(test.label), "test"),
    ):
        if needed > usable:
            most = int(min(len(train.label) / (1 - fractions[2]), len(test.label) / fractions[2]))
            raise InputError(
                f"{source.path}: {usable} usable {kind} images, {needed} needed for {graphs} "
                f"graphs; ask for {most} at most, or give a larger source (--source mnist=mnist "
                "downloads all of MNIST, --source mnist=DIR takes its four files)"
            )
    label = np.concatenate([train.label[:train_and_valid], test.label[: sizes[2]]])
    image_id = np.concatenate([train.image_id[:train_and_valid], test.image_id[: sizes[2]]])
    split = np.full(graphs, 2, np.uint8)
    split[stratified_order(label[:train_and_valid], draws)] = np.repeat([0, 1], sizes[:2])
    return label, image_id, split


def _read_part(path: Path, part: str, seed: int | None) -> Digits:
    pixels = _read_idx(path, f"{part}-images-idx3-ubyte", 3, _UBYTE)
    label = _read_idx(path, f"{part}-labels-idx1-ubyte", 1, _UBYTE).astype(np.int64)
    if pixels.shape[1:] != (SIDE, SIDE):
        rows, columns = pixels.shape[1:]
        raise InputError(
            f"{path}: {part}-images: images of {rows} x {columns} pixels, expected {SIDE} x {SIDE}"
        )
    if len(pixels) != len(label):
        raise InputError(f"{path}: {part}: {len(pixels)} images, but {len(label)} labels")
    if len(label) and label.max() >= CLASSES:
        worst = int(np.argmax(label >= CLASSES))
        raise InputError(
            f"{path}: {part}-labels: label {label[worst]} of image {worst}, expected 0 to 9"
        )
    first, end = (0, _TEST_IDS_BEGIN) if part == "train" else (_TEST_IDS_BEGIN, 2**31)
    if len(label) > end - first:
        raise InputError(f"{path}: {part}: {len(label)} images, expected {end - first} at most")
    if seed is None:
        ids_file = _IDS.format(part=part)
        image_id = _read_idx(path, ids_file, 1, _INT).astype(np.int64)
        if len(image_id) != len(label) or len(np.unique(image_id)) != len(label):
            raise InputError(f"{path}: {ids_file}: not one id for each image")
        if len(label) and not first <= image_id.min() <= image_id.max() < end:
            raise InputError(f"{path}: {ids_file}: an id is not from {first} to {end - 1}")
        order = np.arange(len(label))
    else:
        image_id = first + np.arange(len(label))
        order = stratified_order(label, rng_for(seed, f"mnist/{part}"))
    flat = pixels.reshape(len(pixels), SIDE * SIDE)[order]
    # Such an image has no rationale, or is all rationale.
    reasons = {
        "a blank image": flat.max(axis=1, initial=0) == 0,
        "an image without background": flat.min(axis=1, initial=255) > 0,
    }
    kept = order[~np.logical_or.reduce(list(reasons.values()))]
    rejected = {reason: int(holds.sum()) for reason, holds in reasons.items() if holds.any()}
    return Digits(pixels[kept], label[kept], image_id[kept], rejected)


def _read_idx(path: Path, name: str, dimensions: int, kind: int) -> npt.NDArray[np.integer]:
    raw = read_member(path, name)
    where = f"{path}: {name}"
    expected = kind << 8 | dimensions
    magic = struct.unpack(">I", raw[:4])[0] if len(raw) >= 4 else None
    if magic != expected:
        other = _MAGIC_NAMES.get(magic or 0)
        hint = f", that of a file of {other}: are files swapped?" if other else ""
        raise InputError(f"{where}: magic number {magic}, expected {expected}{hint}")
    header = 4 + 4 * dimensions
    if len(raw) < header:
        raise InputError(f"{where}: ends within its header ({len(raw)} bytes)")
    shape = struct.unpack(f">{dimensions}I", raw[4:header])
    dtype = np.dtype(np.uint8 if kind == _UBYTE else ">i4")
    size = header + dtype.itemsize * math.prod(shape)
    if len(raw) != size:
        state = "truncated" if len(raw) < size else "longer than its header says"
        raise InputError(f"{where}: {state}: {len(raw)} bytes, expected {size} for {list(shape)}")
    try:
        return np.frombuffer(raw, dtype, offset=header).reshape(shape)
    except ValueError as error:  # a header that claims no images of billions of pixels
        raise InputError(f"{where}: {list(shape)}: {error}") from None
