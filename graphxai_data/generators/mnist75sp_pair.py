"""Two digits side by side as one graph of superpixels: cause A is the left one, B the right one.

Superpixels are those of MNIST-75sp, computed for each digit alone; edges join near centres of the
whole picture, so also across the seam. The rationale of a cause is the superpixels of its digit
with ink in them. Every image of a split is once on the left and once on the right.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt

from graphxai_data.errors import InputError
from graphxai_data.files.toml import Between, Names
from graphxai_data.generators.base import Planned, Prover, Rejected, Rule, Sources
from graphxai_data.generators.digit_partners import donors, partners
from graphxai_data.generators.mnist_images import (
    CLASSES,
    IDX_FILES,
    SIDE,
    divide_images,
    images_of,
    rejected_images,
)
from graphxai_data.generators.pairs import PAIR_COLUMNS, Cause, PairGenerator, PairParams
from graphxai_data.generators.regions import Bytes, Regions, Slic
from graphxai_data.generators.superpixel_graphs import (
    CHANNELS,
    check_graphs,
    differs_from_ink,
    features,
    intensity_rules,
    require_rationale,
    stored_regions,
)
from graphxai_data.graphs.columns import Columns, Ints, pointers
from graphxai_data.graphs.invariants import Findings
from graphxai_data.graphs.record import GraphRecord, Plan
from graphxai_data.graphs.schema import Column, Feature, Schema
from graphxai_data.seeds import Draws, rng_for

# What a graph is made from: pixels and digits of the left and of the right image.
_TWO_IMAGES = np.dtype([("pixels", "u1", (2, SIDE, SIDE)), ("label", "u1", (2,))])
# A group is (id of the left image) * _IDS + (id of the right image).
_IDS = 2**30


class MNIST75spPairGenerator(PairGenerator):
    """Two digits side by side."""

    sources: ClassVar = {"mnist": IDX_FILES}
    proof_sample = 1_000

    @dataclass(frozen=True)
    class Params(PairParams):
        """The recipe's numbers, which mean the same as for one digit."""

        slic: Slic
        channels: Annotated[tuple[str, ...], Names(tuple(CHANNELS))]
        rationale_above: Annotated[float, Between(0, 1, excluded=(1,))]
        radius: Annotated[float, Between(0, 2, excluded=(0,))]

        def __post_init__(self) -> None:
            super().__post_init__()
            if self.slic.most_segments > 128:
                raise ValueError(
                    "slic.most_segments must be at most 128, since two digits have at most 256 "
                    f"nodes; got {self.slic.most_segments}"
                )

    params: Params

    def schema(self) -> Schema:
        """As for one digit, with both images, and the cause of each node."""
        return Schema(
            node_features=Feature(len(self.params.channels), "dense"),
            edge_features=None,
            num_classes=CLASSES,
            extras=(
                *PAIR_COLUMNS,
                Column("image_id", "graph", "<i8", (2,)),
                Column("pos", "node", "<f4", (2,)),
                Column("segments", "graph", "|u1", (SIDE, 2 * SIDE)),
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
            "image_id": "numbers of the left and the right image in MNIST; training images from 0, "
            "test from 60000",
            "pos": "centre (x, y) of the superpixel: mean column (x) and row (y) of its pixels in "
            f"its own image, counted from 0 at the top left, divided by {SIDE}; half a pixel is "
            "not added; x of the right digit is 1 more",
            "x": "s is the mean intensity of the superpixel, from 0 (no ink) to 1; x is half of "
            "that of pos, y as pos",
        }

    def picture(self, records: Sequence[GraphRecord], sources: Sources) -> str:
        """Return an SVG of graphs: both images, superpixels, graph and rationale."""
        from graphxai_data.drawing.digits import digit_gallery

        ids = np.stack([record.meta["image_id"] for record in records])
        return digit_gallery(records, _side_by_side(images_of(sources["mnist"], ids)[0]))

    def plan_from_sources(
        self, fractions: Sequence[float], graphs: int, sources: Sources, draws: Draws
    ) -> Planned:
        """Return class, both images and split of every graph; test graphs have test images.

        The left images and their splits are those of MNIST-75sp. The right ones are the same
        images of each split in another order; in `-both`, of each split and digit.
        """
        label, image_id, split = divide_images(fractions, graphs, sources["mnist"], draws)
        kind = split.astype(np.int64)
        if self.params.cause == "both":
            kind = kind * CLASSES + label
        right = partners(kind, draws)
        group = image_id * _IDS + image_id[right]
        return self._label(np.stack([label, label[right]])), group, split

    def read(self, sources: Sources, group: Ints, seed: int) -> tuple[Any, Rejected]:
        """Return pixels and digits of both images, and how many images were rejected and why."""
        raw = np.empty(len(group), _TWO_IMAGES)
        raw["pixels"], raw["label"] = images_of(sources["mnist"], _image_ids(group), seed)
        return raw, {"mnist": rejected_images(sources["mnist"], seed)}

    def cause_classes(self, index: Ints) -> Ints:
        """Raise an error: classes come with the images, in `plan.raw`, not with the index."""
        raise InputError("cause_classes: the digits of a pair come with its images, in plan.raw")

    def generate(self, plan: Plan, seed: int) -> Columns:
        """Return the planned graphs, made from the images in `plan.raw`."""
        classes = _raw(plan)["label"].T.astype(np.int64)
        return self.with_truth(self.draw(plan, seed, classes), classes)

    def intervene(self, plan: Plan, seed: int, changed: Cause) -> Columns:
        """Return the planned graphs again, with another digit on one side and nothing else.

        Its image is that of another graph of the plan, on the same side, of the same split and of
        another class. The superpixels of the other digit keep features, positions and order.
        """
        side = "ab".index(changed)
        raw, ids = _raw(plan).copy(), _image_ids(plan.group)
        stream = f"{self.name}/intervene/{changed}"
        words = np.array([rng_for(seed, stream, i).words(1)[0] for i in plan.index.tolist()])
        donor = donors(plan.split, raw["label"][:, side].astype(np.int64), words, side)
        for values in (raw["pixels"], raw["label"], ids):
            values[:, side] = values[donor, side]
        return self.generate(replace(plan, raw=raw, group=ids[:, 0] * _IDS + ids[:, 1]), seed)

    def draw(self, plan: Plan, seed: int, classes: Ints) -> Columns:
        """Return the graphs of the images in `plan.raw`, which have these classes [2, g]."""
        # numba takes a while to load and is needed only here.
        from graphxai_data.generators.superpixels import superpixels

        params, images = self.params, _raw(plan)["pixels"]
        labels, counts = superpixels(images.reshape(-1, SIDE, SIDE), params.slic)
        counts = counts.reshape(-1, 2)
        # Superpixels of a graph are numbered from the left digit to the right one.
        labels = _side_by_side(labels.reshape(images.shape))
        labels[:, :, SIDE:] += counts[:, :1, None].astype(np.uint8)
        segments, on_right = _shuffled(labels, counts, plan.index, seed, params.slic.most_segments)
        regions = Regions(segments, counts.sum(axis=1))
        intensity = regions.intensity(_side_by_side(images))
        x, y = regions.centre.T
        cause = np.where(intensity > params.rationale_above, 1 + on_right, 0).astype(np.uint8)
        node_ptr, ids = pointers(counts.sum(axis=1)), _image_ids(plan.group)
        for side in range(2):
            marked = np.add.reduceat(cause == 1 + side, node_ptr[:-1], dtype=np.int64)
            bound = params.rationale_above
            require_rationale(marked, counts[:, side], ids[:, side], "rationale_above", bound)
        return {
            **plan.columns(),
            **regions.edges(params.radius, 0),
            "node_ptr": node_ptr,
            "x": features(params.channels, intensity, x / 2, y),
            "pos": np.stack([x, y], 1).astype("<f4"),
            "cause": cause,
            "segments": segments,
            "image_id": ids,
        }

    def check(self, columns: Columns) -> list[str]:
        """Return in what nodes, centres, edges or causes differ from the stored superpixels."""
        params, findings = self.params, Findings(columns)
        regions = stored_regions(columns, findings, 2 * params.slic.most_segments)
        if regions is None:
            return findings.problems
        first, last = regions.columns_between
        on_left, on_right = last < SIDE, first >= SIDE
        findings.require(findings.nodes(~on_left & ~on_right) == 0, "a node is in both digits")
        for name, there in (("left", on_left), ("right", on_right)):
            most = findings.nodes(there) <= params.slic.most_segments
            findings.require(most, f"too many superpixels of the {name} digit")
        ids = columns["image_id"]
        same = ids[:, 0] * _IDS + ids[:, 1] == columns["group"]
        findings.require(same, "its group is not its two images")
        cause = columns["cause"]
        outside = (cause > 2) | ((cause == 1) & ~on_left) | ((cause == 2) & ~on_right)
        findings.require(findings.nodes(outside) == 0, "a cause is not in its digit")
        wrong = differs_from_ink(columns, params.channels, cause > 0, params.rationale_above)
        findings.require(findings.nodes(wrong) == 0, "the causes are not the superpixels with ink")
        check_graphs(columns, findings, regions, params.radius)
        return findings.problems + super().check(columns)

    def rules(self) -> tuple[Rule, ...]:
        """Return the intensity, where it is a channel."""
        what = "it" if self.params.cause == "both" else "it and of the side"
        return intensity_rules(self.params.channels, what)

    def prover(self, sources: Sources) -> Prover:
        """Return the proof by independent code."""
        from graphxai_data.generators.mnist75sp_pair_proof import MNIST75spPairProver

        return MNIST75spPairProver(self.params, sources)


def _raw(plan: Plan) -> Any:
    """Return the images of the planned graphs as a structured array [g]."""
    return np.asarray(plan.raw, _TWO_IMAGES)


def _image_ids(group: Ints) -> Ints:
    """Return the ids [g, 2] of the left and the right image."""
    return np.stack([group // _IDS, group % _IDS], axis=1)


def _side_by_side(images: Bytes) -> Bytes:
    """Return pairs of images [g, 2, 28, 28] as pictures [g, 28, 56]."""
    return np.concatenate([images[:, 0], images[:, 1]], axis=2)


def _shuffled(
    labels: Bytes, counts: Ints, index: Ints, seed: int, most: int
) -> tuple[Bytes, npt.NDArray[np.bool_]]:
    """Return labels [g, 28, 56] as nodes in random order, and [N] which nodes are on the right.

    `counts` [g, 2] are superpixels per digit, at most `most`. Each superpixel has a random place
    that does not depend on how many there are: a digit keeps its order when the other one changes.
    """
    segments, on_right = np.empty_like(labels), []
    for i, (graph, (left, right)) in enumerate(zip(index.tolist(), counts.tolist(), strict=True)):
        places = rng_for(seed, "mnist75sp_pair/nodes", graph).words(2 * most)
        order = np.argsort(np.concatenate([places[:left], places[most : most + right]]))
        node_of_label = np.empty(len(order), np.uint8)
        node_of_label[order] = np.arange(len(order))
        segments[i] = node_of_label[labels[i]]
        on_right.append(order >= left)
    return segments, np.concatenate([np.empty(0, bool), *on_right])
