"""The graphs of a build, packed for a page in compressed pieces that are opened on demand.

A piece holds up to 256 graphs: a length, a JSON header with the offset of each array, and the
arrays, deflated together and encoded in base64. `graphs.js` reads them.
"""

import base64
import json
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from graphxai_data.datasets.records import Graphs, Overview
from graphxai_data.drawing.sketch import SIDE, Sketch, sketch
from graphxai_data.graphs.columns import Ints, pointers
from graphxai_data.graphs.record import SPLIT_NAMES, GraphRecord
from graphxai_data.graphs.schema import Schema

# Positions and scores are stored as integers up to these, finer than the eye can see.
PLACES, SCORES = 1023, 32767
_SAMPLE, _FIFTHS = 60, 5

Scores = Mapping[int, npt.NDArray[np.float64]]


def sample_graphs(overview: Overview) -> list[int]:
    """Return the first graphs of each class in each split: one of each before a second.

    Where labels are numbers, fifths of the build by their labels take the place of classes.
    """
    part = overview.label
    if overview.schema.label == "number":
        order = np.argsort(overview.label, kind="stable")
        part = np.empty(len(order), np.int64)
        part[order] = np.arange(len(order)) * _FIFTHS // len(order)
    cell = part.astype(np.int64) * len(SPLIT_NAMES) + overview.split
    by_cell = np.argsort(cell, kind="stable")
    _, count = np.unique(cell, return_counts=True)
    turn = np.arange(len(cell)) - np.repeat(pointers(count)[:-1], count)
    in_turn: list[int] = by_cell[np.argsort(turn, kind="stable")].tolist()
    return in_turn[: max(_SAMPLE, len(count))]


def page_order(overview: Overview, sample: Sequence[int]) -> Ints:
    """Return all graphs in the order of the page: the sample, then test graphs, then others."""
    rest = np.setdiff1d(np.arange(len(overview.label)), sample)
    is_test = overview.split[rest] == SPLIT_NAMES.index("test")
    return np.concatenate([sample, rest[is_test], rest[~is_test]]).astype(np.int64)


@dataclass
class Packer:
    """Packs graphs, with the scores of explainers, until the page is full."""

    graphs: Graphs
    overview: Overview
    explanations: Sequence[Scores]
    limit: int  # characters of all pieces; the first is always packed
    per_piece: int = 256
    labels: list[str] = field(default_factory=list)  # texts on nodes, collected while packing
    packed: list[int] = field(default_factory=list)  # ids of the graphs that are packed

    def pieces(self, order: Ints, drawn: Sequence[int]) -> Iterator[str]:
        """Yield pieces with the graphs in this order; those `drawn` also have RDKit's drawing."""
        with_svg, length = set(drawn), 0
        for first in range(0, len(order), self.per_piece):
            ids = order[first : first + self.per_piece].tolist()
            piece = self._piece(ids, with_svg)
            length += len(piece)
            if length > self.limit and self.packed:
                return
            self.packed += ids
            yield piece

    def _piece(self, ids: list[int], with_svg: set[int]) -> str:
        records = [self.graphs[i] for i in ids]
        arrays: dict[str, npt.NDArray[Any]] = {
            "node_ptr": pointers([r.num_nodes for r in records]).astype(np.uint32),
            "values": np.concatenate([self._values(r) for r in records]),
        }
        arrays |= _truth(self.overview.schema, records)
        if self.overview.schema.task == "node":
            arrays["node_y"] = np.concatenate([r.node_y for r in records if r.node_y is not None])
        drawings: dict[str, str] = {}
        if "segments" in records[0].meta:
            arrays["segments"] = np.stack([r.meta["segments"] for r in records]).astype(np.uint8)
        else:
            sketches = []
            for i, r in zip(ids, records, strict=True):
                smiles, atoms = r.meta.get("smiles"), r.meta.get("smiles_atom")
                sketches.append(sketch(r.edge_index, r.num_nodes, smiles, atoms, i in with_svg))
            drawings = {str(i): s.svg for i, s in zip(ids, sketches, strict=True) if s.svg}
            arrays |= self._layout(sketches)
        for k, scores in enumerate(self.explanations):
            if any(i in scores for i in ids):
                arrays |= _relative_scores(k, ids, records, scores)
        return pack({"drawings": drawings}, arrays)

    def _values(self, record: GraphRecord) -> npt.NDArray[Any]:
        """Return class ids of nodes [n, k], or dense features scaled to their range [n, p]."""
        feature = self.overview.schema.node_features
        if feature.encoding == "dense":
            low, high = self.overview.lowest, self.overview.highest
            share = (record.x - low) / np.where(high > low, high - low, 1.0)
            return np.rint(share * 65535).astype(np.uint16)
        widths = feature.widths or (feature.width,)
        blocks = np.split(record.x, np.cumsum(widths)[:-1], axis=1)
        return np.stack([block.argmax(axis=1) for block in blocks], axis=1).astype(np.uint8)

    def _layout(self, sketches: list[Sketch]) -> dict[str, npt.NDArray[Any]]:
        """Return the positions of nodes, and the edges between them."""
        places = np.concatenate([s.places for s in sketches]) * (PLACES / SIDE)
        ends = np.concatenate([s.edges for s in sketches])
        ends = ends.astype(np.uint16 if ends.max(initial=0) > 255 else np.uint8)
        return {
            # High and low bytes apart: this compresses better.
            "places_x": _bytes(places[:, 0]),
            "places_y": _bytes(places[:, 1]),
            "labels": np.array([self._label(t) for s in sketches for t in s.labels], np.uint8),
            "edge_ptr": pointers([len(s.edges) for s in sketches]).astype(np.uint32),
            "sources": ends[:, 0],
            "targets": ends[:, 1],
            "orders": np.concatenate([s.orders for s in sketches]),
        }

    def _label(self, text: str) -> int:
        if text not in self.labels:
            self.labels.append(text)
        return self.labels.index(text)


def _truth(schema: Schema, records: Sequence[GraphRecord]) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of the rationales, with a row per node."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    if schema.has_rationale:
        arrays["mask"] = np.concatenate([r.rationale for r in records]).astype(np.uint8)
    if schema.has_alternatives:
        bits = np.concatenate([np.asarray(r.alternative_bits) for r in records])
        # Two halves: browsers have no array of 64 bits that one can compute with.
        arrays["bits_low"] = (bits & 0xFFFFFFFF).astype(np.uint32)
        arrays["bits_high"] = (bits >> 32).astype(np.uint32)
    if schema.has_weights:
        arrays["weight"] = np.concatenate([np.asarray(r.node_weight) for r in records])
    return arrays


def _bytes(numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.uint8]:
    """Return the high and the low byte of each number [2, n]."""
    whole = np.clip(np.rint(numbers), 0, PLACES).astype(np.uint16)
    return np.stack([whole >> 8, whole & 255]).astype(np.uint8)


def _relative_scores(
    k: int, ids: list[int], records: list[GraphRecord], scores: Scores
) -> dict[str, npt.NDArray[Any]]:
    """Return the scores of one explainer, relative to the largest of their graph.

    The scale is zero for a graph whose scores are all zero, and nan for one without scores.
    """
    largest = [float(np.abs(scores[i]).max()) if i in scores else np.nan for i in ids]
    relative = [
        scores[i] / scale if i in scores and scale > 0 else np.zeros(record.num_nodes)
        for i, record, scale in zip(ids, records, largest, strict=True)
    ]
    return {
        f"scale_{k}": np.array(largest, np.float64),
        f"scores_{k}": np.rint(np.concatenate(relative) * SCORES).astype(np.int16),
    }


def pack(header: dict[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> str:
    """Return a piece: `header` with the type, offset and length of every array, and the arrays."""
    content, offset = [], 0
    layout: dict[str, list[Any]] = {}
    for name, array in arrays.items():
        little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        layout[name] = [f"{little.dtype.kind}{little.itemsize}", offset, little.size]
        content.append(little.tobytes())
        offset += little.nbytes
    text = json.dumps(header | {"arrays": layout}, separators=(",", ":")).encode()
    whole = struct.pack("<I", len(text)) + text + b"".join(content)
    return base64.b64encode(zlib.compress(whole, 9)).decode()
