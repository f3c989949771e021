"""MNIST-75sp: handwritten digits as graphs of superpixels.

Paper, section "Datasets" and appendix "MNIST-75sp Feature Encoding": at most 75 SLIC superpixels
per image; their mean intensity s, 1 - s, and the position (x, y) of their centre; edges between
near centres; the rationale is the superpixels with any ink in them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from graphxai_data.files.toml import Between, Names
from graphxai_data.generators.base import (
    BaseParams,
    Generator,
    Planned,
    Prover,
    Rejected,
    Rule,
    Sources,
)
from graphxai_data.generators.mnist_images import (
    CLASSES,
    IDX_FILES,
    SIDE,
    divide_images,
    images_of,
    rejected_images,
)
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
from graphxai_data.graphs.columns import Columns, Ints, global_edges, pointers
from graphxai_data.graphs.invariants import Findings
from graphxai_data.graphs.record import GraphRecord, Plan
from graphxai_data.graphs.schema import Column, Feature, Schema
from graphxai_data.seeds import Draws, rng_for


class MNIST75spGenerator(Generator):
    """Digits as graphs of superpixels."""

    sources: ClassVar = {"mnist": IDX_FILES}
    proof_sample = 2_000

    @dataclass(frozen=True)
    class Params(BaseParams):
        """The recipe's numbers.

        `radius` or `neighbours` decides which centres are joined, `rationale_above` or
        `rationale_from` which superpixels are the rationale.
        """

        slic: Slic
        channels: Annotated[tuple[str, ...], Names(tuple(CHANNELS))]
        # A superpixel of the rationale has a mean intensity above, or of at least, so much.
        rationale_above: Annotated[float, Between(0, 1, excluded=(1,))] | None = None
        rationale_from: Annotated[float, Between(0, 1, excluded=(0,))] | None = None
        radius: Annotated[float, Between(0, 2)] = 0.0  # joins all so near; the image has side 1
        neighbours: Annotated[int, Between(0)] = 0  # joins each to so many nearest ones

        def __post_init__(self) -> None:
            super().__post_init__()
            if (self.rationale_above is None) == (self.rationale_from is None):
                raise ValueError(
                    "give one of rationale_above and rationale_from; "
                    f"got {self.rationale_above} and {self.rationale_from}"
                )
            if (self.radius > 0) == (self.neighbours > 0):
                raise ValueError(
                    "one of radius and neighbours must be above 0, the other left out; "
                    f"got {self.radius} and {self.neighbours}"
                )

        @property
        def bound(self) -> tuple[str, float]:
            """Key and value of the bound on the intensity of the rationale."""
            if self.rationale_above is not None:
                return "rationale_above", self.rationale_above
            return "rationale_from", self.rationale_from  # type: ignore[return-value]

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

        ids = np.array([record.meta["image_id"] for record in records])
        return digit_gallery(records, images_of(sources["mnist"], ids)[0])

    def plan_from_sources(
        self, fractions: Sequence[float], graphs: int, sources: Sources, draws: Draws
    ) -> Planned:
        """Return class, image and split of every graph; test graphs are test images."""
        return divide_images(fractions, graphs, sources["mnist"], draws)

    def read(self, sources: Sources, group: Ints, seed: int) -> tuple[Bytes, Rejected]:
        """Return the pixels of each graph's image, and how many images were rejected and why."""
        pixels, _ = images_of(sources["mnist"], group, seed)
        return pixels, {"mnist": rejected_images(sources["mnist"], seed)}

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
        key, bound = params.bound
        mask = intensity >= bound if key == "rationale_from" else intensity > bound
        columns["node_ptr"] = pointers(counts)
        marked = np.add.reduceat(mask, columns["node_ptr"][:-1], dtype=np.int64)
        require_rationale(marked, counts, plan.group, key, bound)
        source, target = global_edges(columns)
        columns |= plan.columns()
        return columns | {
            "x": features(params.channels, intensity, x, y),
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
        regions = stored_regions(columns, findings, params.slic.most_segments)
        if regions is None:
            return findings.problems
        findings.require(columns["image_id"] == columns["group"], "its group is not its image")
        key, bound = params.bound
        mask, included = columns["node_mask"], key == "rationale_from"
        wrong = differs_from_ink(columns, params.channels, mask, bound, included=included)
        sentence = "the rationale is not the superpixels with ink"
        findings.require(findings.nodes(wrong) == 0, sentence)
        check_graphs(columns, findings, regions, params.radius, params.neighbours)
        return findings.problems

    def rules(self) -> tuple[Rule, ...]:
        """Return the intensity, where it is a channel."""
        return intensity_rules(self.params.channels, "it")

    def prover(self, sources: Sources) -> Prover:
        """Return the proof by independent code."""
        from graphxai_data.generators.mnist75sp_proof import MNIST75spProver

        return MNIST75spProver(self.params, sources)
