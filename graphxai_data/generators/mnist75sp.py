"""MNIST-75sp: handwritten digits as graphs of superpixels.

Paper, section "Datasets" and appendix "MNIST-75sp Feature Encoding": at most 75 SLIC superpixels
per image; their mean intensity s, 1 - s, and the position (x, y) of their centre; edges between
near centres; the rationale is the superpixels with any ink in them.

Every stored number is a quotient of sums of whole numbers, at most multiplied once, so no order of
summation, library or machine can change a bit of it. The same holds for the distances that decide
on edges.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from graphxai_data.errors import CheckFailedError, InputError
from graphxai_data.files.raw import Source
from graphxai_data.files.toml import Between, Names
from graphxai_data.generators.base import BaseParams, Generator, Planned, Prover, Rejected, Sources
from graphxai_data.generators.mnist_images import CLASSES, IDX_FILES, SIDE, read_digits
from graphxai_data.generators.regions import Bytes, Regions, Slic
from graphxai_data.graphs.columns import Columns, Ints, global_edges, pointers
from graphxai_data.graphs.invariants import Findings
from graphxai_data.graphs.record import GraphRecord, Plan
from graphxai_data.graphs.schema import Column, Feature, Schema
from graphxai_data.graphs.splits import split_sizes, stratified_order
from graphxai_data.seeds import Draws, rng_for

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


class MNIST75spGenerator(Generator):
    """Digits as graphs of superpixels."""

    sources: ClassVar = {"mnist": IDX_FILES}
    proof_sample = 2_000

    @dataclass(frozen=True)
    class Params(BaseParams):
        """The recipe's numbers; `radius` or `neighbours` decides which centres are joined."""

        slic: Slic
        channels: Annotated[tuple[str, ...], Names(tuple(CHANNELS))]
        # A superpixel of the rationale has a higher mean intensity.
        rationale_above: Annotated[float, Between(0, 1, excluded=(1,))]
        radius: Annotated[float, Between(0, 2)] = 0.0  # joins all so near; the image has side 1
        neighbours: Annotated[int, Between(0)] = 0  # joins each to so many nearest ones

        def __post_init__(self) -> None:
            super().__post_init__()
            if (self.radius > 0) == (self.neighbours > 0):
                raise ValueError(
                    "one of radius and neighbours must be above 0, the other left out; "
                    f"got {self.radius} and {self.neighbours}"
                )

    params: Params

    def schema(self) -> Schema:
        """The channels, the centre of each node, the node of each pixel, and the image's number."""
        return Schema(
            node_features=Feature(len(self.params.channels), "dense"),
            edge_features=None,
            num_classes=CLASSES,
            extras=(
                Column("image_id", "graph", "<i8"),
                Column("pos", "node", "<f4", (2,)),
                Column("segments", "graph", "|u1", (SIDE, SIDE)),
            ),
        )

    def class_names(self) -> list[str]:
        """Return the names of the ten digits."""
        return [f"digit {digit}" for digit in range(CLASSES)]

    def node_values(self) -> dict[str, list[str] | None]:
        """Return the channels, which are all numbers."""
        return dict.fromkeys(self.params.channels)

    def field_descriptions(self) -> dict[str, str]:
        """Return what a reader has to know about places and images."""
        return super().field_descriptions() | {
            "image_id": "number of the image in MNIST; training images from 0, test from 60000",
            "pos": "centre (x, y) of the superpixel: mean column (x) and row (y) of its pixels, "
            f"counted from 0 at the top left, divided by {SIDE}; half a pixel is not added",
            "x": "s is the mean intensity of the superpixel, from 0 (no ink) to 1; x and y as pos",
        }

    def picture(self, records: Sequence[GraphRecord], sources: Sources) -> str:
        """Return an SVG of graphs: image, superpixels, graph and rationale."""
        from graphxai_data.drawing.digits import digit_gallery

        return digit_gallery(records, _pixels_by_id(sources["mnist"]))

    def plan_from_sources(
        self, fractions: Sequence[float], graphs: int, sources: Sources, draws: Draws
    ) -> Planned:
        """Return class, image and split of every graph; test graphs are test images.

        The images do not depend on the seed, which only divides them into training and validation.
        """
        train, test = read_digits(sources["mnist"])
        sizes = split_sizes(graphs, fractions)
        train_and_valid = sizes[0] + sizes[1]
        for needed, usable, kind in (
            (train_and_valid, len(train.label), "training"),
            (sizes[2], len(test.label), "test"),
        ):
            if needed > usable:
                most = int(
                    min(len(train.label) / (1 - fractions[2]), len(test.label) / fractions[2])
                )
                raise InputError(
                    f"{sources['mnist'].path}: {usable} usable {kind} images, {needed} needed for "
                    f"{graphs} graphs; ask for {most} at most, or give a larger source (--source "
                    "mnist=mnist downloads all of MNIST, --source mnist=DIR takes its four files)"
                )
        label = np.concatenate([train.label[:train_and_valid], test.label[: sizes[2]]])
        image_id = np.concatenate([train.image_id[:train_and_valid], test.image_id[: sizes[2]]])
        split = np.full(graphs, 2, np.uint8)
        split[stratified_order(label[:train_and_valid], draws)] = np.repeat([0, 1], sizes[:2])
        return label, image_id, split

    def read(self, sources: Sources, group: Ints, seed: int) -> tuple[Bytes, Rejected]:
        """Return the pixels of each graph's image, and how many images were rejected and why."""
        train, test = read_digits(sources["mnist"])
        rejected = Counter(train.rejected) + Counter(test.rejected)
        pixels = _pixels_by_id(sources["mnist"])
        return np.stack([pixels[i] for i in group.tolist()]), {
            "mnist": dict(sorted(rejected.items()))
        }

    def generate(self, plan: Plan, seed: int) -> Columns:
        """Return the planned graphs, made from the images in `plan.raw`."""
        params = self.params
        # numba takes a while to load and is needed only here.
        from graphxai_data.generators.superpixels import superpixels

        images = np.asarray(plan.raw, np.uint8)
        labels, counts = superpixels(images, params.slic)
        segments = np.empty_like(labels)
        for i, (index, count) in enumerate(zip(plan.index.tolist(), counts.tolist(), strict=True)):
            # SLIC numbers superpixels from the top left; a node's number must not tell its place.
            node_of_label = rng_for(seed, "mnist75sp/nodes", index).permutation(count)
            segments[i] = node_of_label[labels[i]]
        regions = Regions(segments, counts)
        intensity = regions.intensity(images)
        x, y = regions.centre.T
        columns = regions.edges(params.radius, params.neighbours)
        mask = intensity > params.rationale_above
        columns["node_ptr"] = pointers(counts)
        marked = np.add.reduceat(mask, columns["node_ptr"][:-1], dtype=np.int64)
        for graph in np.flatnonzero((marked == 0) | (marked == counts))[:1]:
            what = "no superpixel" if marked[graph] == 0 else "every superpixel"
            raise CheckFailedError(
                f"image {plan.group[graph]}: {what} is brighter than {params.rationale_above}: no "
                "rationale; remove the image from the source, or change rationale_above"
            )
        source, target = global_edges(columns)
        columns |= plan.columns()
        return columns | {
            "x": np.stack([CHANNELS[c](intensity, x, y) for c in params.channels], 1).astype("<f4"),
            "pos": np.stack([x, y], 1).astype("<f4"),
            "node_mask": mask,
            "edge_mask": mask[source] & mask[target],
            "segments": segments,
            "image_id": plan.group,
        }

    def check(self, columns: Columns) -> list[str]:
        """Return in what nodes, centres, edges or mask differ from the stored superpixels."""
        params = self.params
        findings = Findings(columns)
        counts: Ints = np.diff(columns["node_ptr"]).astype(np.int64)
        segments = columns["segments"]
        highest = segments.reshape(len(segments), -1).max(axis=1).astype(np.int64)
        findings.require(highest < counts, "a pixel belongs to no node")
        findings.require(counts <= params.slic.most_segments, "too many superpixels")
        if findings.problems:
            return findings.problems
        regions = Regions(segments, counts)
        findings.require(findings.nodes(regions.size == 0) == 0, "a node has no pixels")
        if findings.problems:
            return findings.problems
        misplaced = (regions.centre.astype(np.float32) != columns["pos"]).any(axis=1)
        findings.require(findings.nodes(misplaced) == 0, "pos is not the centre of the superpixel")
        findings.require(columns["image_id"] == columns["group"], "its group is not its image")
        if "s" in params.channels:
            intensity = columns["x"][:, params.channels.index("s")]
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
        same = np.diff(edges["edge_ptr"]) == np.diff(columns["edge_ptr"].astype(np.int64))
        if same.all():
            different = (edges["edge_index"] != columns["edge_index"]).any(axis=0)
            same = findings.edges(different) == 0
        findings.require(same, "its edges are not those between near superpixels")
        return findings.problems

    def prover(self, sources: Sources) -> Prover:
        """Return the proof by independent code."""
        from graphxai_data.generators.mnist75sp_proof import MNIST75spProver

        return MNIST75spProver(self.params, sources)


def _pixels_by_id(source: Source) -> dict[int, Bytes]:
    return {
        image_id: pixels
        for digits in read_digits(source)
        for image_id, pixels in zip(digits.image_id.tolist(), digits.pixels, strict=True)
    }
