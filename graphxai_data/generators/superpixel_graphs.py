"""What all graphs of superpixels have in common: features, checks, and the rule by intensity.

Every stored number is a quotient of sums of whole numbers, at most multiplied once, so no order of
summation, library or machine can change a bit of it. The same holds for the distances that decide
on edges.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from graphxai_data.errors import CheckFailedError
from graphxai_data.generators.base import Rule
from graphxai_data.generators.regions import Floats, Regions
from graphxai_data.graphs.columns import Columns, Ints
from graphxai_data.graphs.invariants import Findings
from graphxai_data.graphs.union import Graphs

Mask = npt.NDArray[np.bool_]

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


def features(
    channels: Sequence[str], intensity: Floats, x: Floats, y: Floats
) -> npt.NDArray[np.float32]:
    """Return the channels [N, p] of superpixels with these intensities and centres [N]."""
    return np.stack([CHANNELS[c](intensity, x, y) for c in channels], 1).astype("<f4")


def require_rationale(marked: Ints, counts: Ints, ids: Ints, key: str, bound: float) -> None:
    """Raise a `CheckFailedError` if none or all of the superpixels of an image are marked.

    `marked`, `counts` and `ids` [k] are per image. `key` is the recipe's key with the bound.
    """
    for image in np.flatnonzero((marked == 0) | (marked == counts))[:1]:
        what = "no superpixel" if marked[image] == 0 else "every superpixel"
        how = "is brighter than" if key == "rationale_above" else "has an intensity of at least"
        raise CheckFailedError(
            f"image {ids[image]}: {what} {how} {bound}: no rationale; remove the image from the "
            f"source, or change {key}"
        )


def stored_regions(columns: Columns, findings: Findings, most_segments: int) -> Regions | None:
    """Return the superpixels of stored graphs; None, with findings, if they are not valid."""
    counts: Ints = np.diff(columns["node_ptr"]).astype(np.int64)
    segments = columns["segments"]
    highest = segments.reshape(len(segments), -1).max(axis=1).astype(np.int64)
    findings.require(highest < counts, "a pixel belongs to no node")
    findings.require(counts <= most_segments, "too many superpixels")
    if findings.problems:
        return None
    regions = Regions(segments, counts)
    findings.require(findings.nodes(regions.size == 0) == 0, "a node has no pixels")
    return None if findings.problems else regions


def check_graphs(
    columns: Columns, findings: Findings, regions: Regions, radius: float, neighbours: int = 0
) -> None:
    """Find where centres, features or edges do not follow from the superpixels."""
    misplaced = (regions.centre.astype(np.float32) != columns["pos"]).any(axis=1)
    findings.require(findings.nodes(misplaced) == 0, "pos is not the centre of the superpixel")
    outside = np.any((columns["x"] < 0) | (columns["x"] > 1), axis=1)
    findings.require(findings.nodes(outside) == 0, "a feature is not from 0 to 1")
    edges = regions.edges(radius, neighbours)
    same = np.diff(edges["edge_ptr"]) == np.diff(columns["edge_ptr"].astype(np.int64))
    if same.all():
        different = (edges["edge_index"] != columns["edge_index"]).any(axis=0)
        same = findings.edges(different) == 0
    findings.require(same, "its edges are not those between near superpixels")


def differs_from_ink(
    columns: Columns, channels: Sequence[str], marked: Mask, bound: float, *, included: bool = False
) -> Mask:
    """Return [N] where the marked superpixels are not those above the bound.

    `included`: superpixels at the bound are marked too. All false if intensities are not stored.
    """
    if "s" not in channels:
        return np.zeros(len(marked), bool)
    intensity = columns["x"][:, channels.index("s")]
    # Stored intensities are rounded: one stored as the bound may lie on either side, except 0.
    stored = np.float32(bound)
    wrong = (intensity >= stored if included else intensity > stored) != marked
    return np.asarray(wrong & ((intensity != stored) | (stored == 0)))


def intensity_rules(channels: Sequence[str], function_of: str) -> tuple[Rule, ...]:
    """Return the rule "intensity", if that is a channel; `function_of` ends its description."""
    if "s" not in channels:
        return ()
    what = (
        f"mean intensity of the superpixel, a feature; the rationale is a function of {function_of}"
    )
    return (Rule("intensity", what, partial(_channel, column=channels.index("s"))),)


def _channel(graphs: Graphs, column: int) -> Floats:
    return graphs.x[:, column].astype(np.float64)
