"""MNIST-75sp: handwritten digits as graphs of superpixels.

Paper, section "Datasets" and appendix "MNIST-75sp Feature Encoding": at most 75 SLIC superpixels an
image; their mean intensity s, 1 - s, and the position (x, y) of their centre; edges between centres
that are near each other; the rationale is the superpixels with any ink in them.

Every stored number comes from sums of whole numbers, a division, and at most a product, so no order
of summation, library or machine can change a bit of it. So do the distances that decide on edges.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt

from graphxai_data.errors import CheckFailedError, InputError
from graphxai_data.files.raw import Source
from graphxai_data.files.toml import Between, Names
from graphxai_data.generators.mnist75sp_proof import Prover as Prover
from graphxai_data.generators.mnist_images import (
    CLASSES,
    IDX_FILES,
    SIDE,
    read_digits,
)
from graphxai_data.generators.params import BaseParams
from graphxai_data.generators.regions import Bytes, Regions
from graphxai_data.generators.slic import Slic
from graphxai_data.graphs.columns import Columns, Ints, global_edges, pointers
from graphxai_data.graphs.invariants import Findings
from graphxai_data.graphs.record import Extra, Feature, GraphRecord, Plan, Schema
from graphxai_data.graphs.splits import split_sizes, stratified_order
from graphxai_data.seeds import Draws, rng_for

SOURCES: dict[str, tuple[str, ...]] = {"mnist": IDX_FILES}

# Features of a superpixel with mean intensity s and centre (x, y), all from 0 to 1.
CHANNELS = {
    "s": lambda s, x, y: s,
    "1-s": lambda s, x, y: 1 - s,
    "x": lambda s, x, y: x,
    "y": lambda s, x, y: y,
    "s*x": lambda s, x, y: s * x,
    "s*y": lambda s, x, y: s * y,
    "s*(1-x)": lambda s, x, y: s * (1 - x),
    "s*(1-y)": lambda s, x, y: s * (1 - y),
}


@dataclass(frozen=True)
class Params(BaseParams):
    """The recipe's numbers.

    Attributes:
        slic: arguments of the superpixels.
        channels: node features, of `CHANNELS`.
        rationale_above: mean intensity above which a superpixel belongs to the rationale.
        radius: superpixels whose centres are at most so far apart are joined, or
        neighbours: each superpixel is joined to so many nearest ones.
    """

    slic: Slic
    channels: Annotated[tuple[str, ...], Names(tuple(CHANNELS))]
    rationale_above: Annotated[float, Between(0, 1, excluded=(1,))]
    # The image has side 1.
    radius: Annotated[float, Between(0, 2)] = 0.0
    neighbours: Annotated[int, Between(0)] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.radius > 0) == (self.neighbours > 0):
            raise ValueError(
                "one of radius and neighbours must be above 0, the other left out; "
                f"got {self.radius} and {self.neighbours}"
            )


def schema(params: Params) -> Schema:
    """The channels; centres, the superpixel of each pixel (as a node), and the image's place."""
    return Schema(
        node_features=Feature(len(params.channels), "dense"),
        edge_features=None,
        num_classes=CLASSES,
        # in the order of their names, as shards have them
        extras=(
            Extra("image_id", "graph", "<i8"),
            Extra("pos", "node", "<f4", (2,)),
            Extra("segments", "graph", "|u1", (SIDE, SIDE)),
        ),
    )


def class_names(params: Params) -> list[str]:
    """The digits."""
    return [f"digit {digit}" for digit in range(CLASSES)]


def node_values(params: Params) -> dict[str, list[str] | None]:
    """The channels."""
    return dict.fromkeys(params.channels)


def picture(params: Params, records: Iterable[GraphRecord], sources: dict[str, Source]) -> str:
    """SVG with one digit of each class: image, superpixels, graph and rationale."""
    from graphxai_data.drawing.digits import digit_gallery

    return digit_gallery(records, _pixels_by_id(sources["mnist"]), CLASSES)


def plan_from_sources(
    params: Params,
    fractions: Sequence[float],
    graphs: int,
    sources: dict[str, Source],
    draws: Draws,
) -> tuple[Ints, Ints, npt.NDArray[np.uint8]]:
    """Training and validation graphs from the training images, test graphs from the test images.

    Which images are taken never changes; the seed tells training from validation.
    """
    train, test = read_digits(sources["mnist"])
    sizes = split_sizes(graphs, fractions)
    learnt = sizes[0] + sizes[1]
    for needed, there, kind in (
        (learnt, len(train.label), "training"),
        (sizes[2], len(test.label), "test"),
    ):
        if needed > there:
            most = int(min(len(train.label) / (1 - fractions[2]), len(test.label) / fractions[2]))
            raise InputError(
                f"{sources['mnist'].path}: {there} usable {kind} images, {needed} needed for "
                f"{graphs} graphs; ask for {most} at most, or give a larger source (--source "
                "mnist=mnist downloads all of MNIST, --source mnist=DIR takes its four files)"
            )
    label = np.concatenate([train.label[:learnt], test.label[: sizes[2]]])
    image_id = np.concatenate([train.image_id[:learnt], test.image_id[: sizes[2]]])
    split = np.full(graphs, 2, np.uint8)
    order = stratified_order(label[:learnt], draws)
    split[order[: sizes[0]]] = 0
    split[order[sizes[0] :]] = 1
    return label, image_id, split


def read(
    params: Params, sources: dict[str, Source], group: Ints, seed: int
) -> tuple[Bytes, dict[str, dict[str, int]]]:
    """The pixels of each graph's image, and how many images were passed over for which reason."""
    train, test = read_digits(sources["mnist"])
    rejected = {
        reason: train.rejected.get(reason, 0) + test.rejected.get(reason, 0)
        for reason in sorted({*train.rejected, *test.rejected})
    }
    pixels = _pixels_by_id(sources["mnist"])
    return np.stack([pixels[i] for i in group.tolist()]), {"mnist": rejected}


def _pixels_by_id(source: Source) -> dict[int, Bytes]:
    train, test = read_digits(source)
    return {
        **dict(zip(train.image_id.tolist(), train.pixels, strict=True)),
        **dict(zip(test.image_id.tolist(), test.pixels, strict=True)),
    }


def generate(params: Params, plan: Plan, seed: int) -> Columns:
    """The planned graphs; `plan.raw` holds the images."""
    # numba takes a while to load, and only here is it needed.
    from graphxai_data.generators.superpixels import superpixels

    images = np.asarray(plan.raw, np.uint8)
    labels, found = superpixels(images, params.slic)
    segments = np.empty_like(labels)
    for i, (index, number) in enumerate(zip(plan.index.tolist(), found.tolist(), strict=True)):
        # Superpixels are numbered from the top left; nodes must not be.
        node_of_label = rng_for(seed, "mnist75sp/nodes", index).permutation(number)
        segments[i] = node_of_label[labels[i]]
    regions = Regions(segments, found)
    intensity = regions.intensity(images)
    x, y = regions.centre.T
    columns = regions.edges(params.radius, params.neighbours)
    mask = intensity > params.rationale_above
    columns["node_ptr"] = pointers(found)
    marked = np.add.reduceat(mask, columns["node_ptr"][:-1], dtype=np.int64)
    for graph in np.flatnonzero((marked == 0) | (marked == found))[:1]:
        what = "no superpixel" if marked[graph] == 0 else "every superpixel"
        raise CheckFailedError(
            f"image {plan.group[graph]}: {what} is brighter than {params.rationale_above}: no "
            "rationale; take it out of the source, or change rationale_above"
        )
    source, target = global_edges(columns)
    return columns | {
        "x": np.stack([CHANNELS[c](intensity, x, y) for c in params.channels], 1).astype("<f4"),
        "pos": np.stack([x, y], 1).astype("<f4"),
        "node_mask": mask,
        "edge_mask": mask[source] & mask[target],
        "segments": segments,
        "image_id": plan.group,
        "y": plan.label,
        "split": plan.split,
        "graph_id": plan.index,
        "group": plan.group,
    }


def check(params: Params, columns: Columns) -> list[str]:
    """Do nodes, centres, edges and mask follow from the stored superpixels?"""
    findings = Findings(columns)
    number: Ints = np.diff(columns["node_ptr"]).astype(np.int64)
    segments = columns["segments"]
    highest = segments.reshape(len(segments), -1).max(axis=1).astype(np.int64)
    findings.require(highest < number, "a pixel belongs to no node")
    findings.require(number <= params.slic.most_segments, "too many superpixels")
    if findings.problems:
        return findings.problems
    regions = Regions(segments, number)
    findings.require(findings.nodes(regions.size == 0) == 0, "a node has no pixels")
    if findings.problems:
        return findings.problems
    misplaced = (regions.centre.astype(np.float32) != columns["pos"]).any(axis=1)
    findings.require(findings.nodes(misplaced) == 0, "pos is not the centre of the superpixel")
    findings.require(columns["image_id"] == columns["group"], "its group is not its image")
    intensity = _intensity(params, columns)
    if intensity is not None:
        # Stored intensities are rounded: one stored as the threshold may lie on either side.
        threshold = np.float32(params.rationale_above)
        wrong = (intensity > threshold) != columns["node_mask"]
        wrong &= (intensity != threshold) | (threshold == 0)
        findings.require(
            findings.nodes(wrong) == 0, "the rationale is not the superpixels with ink"
        )
    outside = np.any((columns["x"] < 0) | (columns["x"] > 1), axis=1)
    findings.require(findings.nodes(outside) == 0, "a feature is not from 0 to 1")
    edges = regions.edges(params.radius, params.neighbours)
    same_number = np.diff(edges["edge_ptr"]) == np.diff(columns["edge_ptr"].astype(np.int64))
    findings.require(same_number, "its edges are not those between near superpixels")
    if not findings.problems:
        other = (edges["edge_index"] != columns["edge_index"]).any(axis=0)
        findings.require(
            findings.edges(other) == 0, "its edges are not those between near superpixels"
        )
    return findings.problems


def _intensity(params: Params, columns: Columns) -> npt.NDArray[np.float32] | None:
    return columns["x"][:, params.channels.index("s")] if "s" in params.channels else None
