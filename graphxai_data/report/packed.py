"""The graphs of a build, packed for a page: compressed pieces that are opened when one is needed.

A piece holds up to 256 graphs: a length, a header in JSON that says where each array lies, and the
arrays, deflated together and written in base64. `report.js` reads them.
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

GRAPHS_A_PIECE = 256
# Places on paper and scores are whole numbers in a page: finer than anybody can see.
PLACES, SCORES = 1023, 32767
_SAMPLE = 60

Scores = Mapping[int, npt.NDArray[np.float64]]


def sample_of(overview: Overview) -> list[int]:
    """Some graphs of each class in each split, the first ones: one of each before a second."""
    cells: dict[tuple[int, int], list[int]] = {}
    for i, cell in enumerate(zip(overview.label.tolist(), overview.split.tolist(), strict=True)):
        members = cells.setdefault(cell, [])
        if len(members) < _SAMPLE:
            members.append(i)
    in_turn = [
        members[turn]
        for turn in range(_SAMPLE)
        for _, members in sorted(cells.items())
        if turn < len(members)
    ]
    return in_turn[: max(_SAMPLE, len(cells))]


def page_order(overview: Overview, sample: Sequence[int]) -> Ints:
    """All graphs as a page has them: the sample, then test graphs, then the others."""
    rest = np.setdiff1d(np.arange(len(overview.label)), sample)
    is_test = overview.split[rest] == SPLIT_NAMES.index("test")
    return np.concatenate([sample, rest[is_test], rest[~is_test]]).astype(np.int64)


@dataclass
class Packer:
    """Packs graphs, with the scores of explainers, until a page is as long as it may be.

    Attributes:
        graphs: of the build.
        overview: of the build.
        explanations: the scores of each explainer, by graph.
        limit: characters that all pieces together may have; the first is there all the same.
        per_piece: graphs a piece.
        labels: what is written on nodes; found while packing.
        held: the graphs that are packed.
    """

    graphs: Graphs
    overview: Overview
    explanations: Sequence[Scores]
    limit: int
    per_piece: int = GRAPHS_A_PIECE
    labels: list[str] = field(default_factory=list)
    held: list[int] = field(default_factory=list)

    def pieces(self, order: Ints, drawn: Sequence[int]) -> Iterator[str]:
        """Pieces with the graphs in this order; those `drawn` have a drawing of RDKit's, too."""
        with_svg, length = set(drawn), 0
        for first in range(0, len(order), self.per_piece):
            chosen = order[first : first + self.per_piece].tolist()
            piece = self._piece(chosen, with_svg)
            length += len(piece)
            if length > self.limit and self.held:
                return
            self.held += chosen
            yield piece

    def _piece(self, chosen: list[int], with_svg: set[int]) -> str:
        records = [self.graphs[i] for i in chosen]
        arrays: dict[str, npt.NDArray[Any]] = {
            "node_ptr": pointers([r.num_nodes for r in records]).astype(np.uint32),
            "values": np.concatenate([self._values(r) for r in records]),
        }
        if self.overview.schema.has_rationale:
            arrays["mask"] = np.concatenate([r.rationale for r in records]).astype(np.uint8)
        if self.overview.schema.task == "node":
            arrays["node_y"] = np.concatenate([r.node_y for r in records if r.node_y is not None])
        drawings: dict[str, str] = {}
        if "segments" in records[0].meta:
            arrays["segments"] = np.stack([r.meta["segments"] for r in records]).astype(np.uint8)
        else:
            sketches = [_sketch_of(r, i in with_svg) for i, r in zip(chosen, records, strict=True)]
            drawings = {str(i): s.svg for i, s in zip(chosen, sketches, strict=True) if s.svg}
            arrays |= self._laid_out(sketches)
        for k, scores in enumerate(self.explanations):
            if any(i in scores for i in chosen):
                arrays |= _scores_of(k, chosen, records, scores)
        return packed({"drawings": drawings}, arrays)

    def _values(self, record: GraphRecord) -> npt.NDArray[Any]:
        """[n, k] the values of nodes as bytes, or of dense features as places in their range."""
        feature = self.overview.schema.node_features
        if feature.encoding == "dense":
            low, high = self.overview.lowest, self.overview.highest
            share = (record.x - low) / np.where(high > low, high - low, 1.0)
            return np.rint(share * 65535).astype(np.uint16)
        widths = feature.widths or (feature.width,)
        blocks = np.split(record.x, np.cumsum(widths)[:-1], axis=1)
        return np.stack([block.argmax(axis=1) for block in blocks], axis=1).astype(np.uint8)

    def _laid_out(self, sketches: list[Sketch]) -> dict[str, npt.NDArray[Any]]:
        """Where nodes are drawn, and the edges between them."""
        places = np.concatenate([s.places for s in sketches]) * (PLACES / SIDE)
        ends = np.concatenate([s.edges for s in sketches])
        ends = ends.astype(np.uint16 if ends.max(initial=0) > 255 else np.uint8)
        return {
            # Large and small halves apart: the former are much alike.
            "places_x": _halves(places[:, 0]),
            "places_y": _halves(places[:, 1]),
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


def _sketch_of(record: GraphRecord, with_svg: bool) -> Sketch:
    smiles, atoms = record.meta.get("smiles"), record.meta.get("smiles_atom")
    return sketch(record.edge_index, record.num_nodes, smiles, atoms, with_svg)


def _halves(numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.uint8]:
    """[2, n] the upper and the lower byte of each number."""
    whole = np.clip(np.rint(numbers), 0, PLACES).astype(np.uint16)
    return np.stack([whole >> 8, whole & 255]).astype(np.uint8)


def _scores_of(
    k: int, chosen: list[int], records: list[GraphRecord], scores: Scores
) -> dict[str, npt.NDArray[Any]]:
    """The scores of one explainer, relative to the largest of their graph; nan for graphs without.

    A graph whose scores are all zero has a scale of zero.
    """
    largest = [float(np.abs(scores[i]).max()) if i in scores else np.nan for i in chosen]
    relative = [
        scores[i] / scale if i in scores and scale > 0 else np.zeros(record.num_nodes)
        for i, record, scale in zip(chosen, records, largest, strict=True)
    ]
    return {
        f"scale_{k}": np.array(largest, np.float64),
        f"scores_{k}": np.rint(np.concatenate(relative) * SCORES).astype(np.int16),
    }


def packed(header: dict[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> str:
    """A piece: `header`, with the kind, place and length of every array added, and the arrays."""
    content, at = [], 0
    places: dict[str, list[Any]] = {}
    for name, array in arrays.items():
        little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        places[name] = [f"{little.dtype.kind}{little.itemsize}", at, little.size]
        content.append(little.tobytes())
        at += little.nbytes
    text = json.dumps(header | {"arrays": places}, separators=(",", ":")).encode()
    whole = struct.pack("<I", len(text)) + text + b"".join(content)
    return base64.b64encode(zlib.compress(whole, 9)).decode()
