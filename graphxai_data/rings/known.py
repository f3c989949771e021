"""Graphs of one split of a build with what is known about them, read for floors of explanations."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from graphxai_data.graphs.columns import Ints, global_edges, pointers
from graphxai_data.graphs.record import SPLIT_NAMES
from graphxai_data.graphs.shards import ShardReader
from graphxai_data.graphs.union import Graphs
from graphxai_data.manifest import Manifest
from graphxai_data.metrics import Floats
from graphxai_data.rings.scoring import Rationales

# Limits of graphs per split, and of their nodes and edges together: enough for three digits, and
# memory stays flat.
MAX_GRAPHS = {"train": 10_000, "valid": 2_000, "test": 2_000}
MAX_PARTS = 1_500_000


@dataclass(frozen=True)
class KnownGraphs:
    """Graphs with what is known about them; one-hot features are class ids [N], dense ones [N, p].

    Attributes:
        graphs: the graphs.
        ids: [g] their numbers.
        label: [g] their classes, or numbers.
        mask: [N] their rationales.
        cause: [N] of pairs, or None.
        alternative_bits: [N] bit j of the nodes of alternative j, or None.
        node_weight: [N] signed contributions, or None.
    """

    graphs: Graphs
    ids: Ints
    label: Ints | Floats
    mask: npt.NDArray[np.bool_]
    cause: npt.NDArray[np.uint8] | None = None
    alternative_bits: Ints | None = None
    node_weight: Floats | None = None

    def __len__(self) -> int:
        return len(self.label)

    @cached_property
    def rationales(self) -> Rationales:
        """The rationales as scores are measured against them."""
        ptr, bits = self.graphs.node_ptr, self.alternative_bits
        return Rationales(ptr, self.mask, bits, self.node_weight)

    @property
    def labels_tell(self) -> bool:
        """Whether labels say which cause of a pair counts: the rationale is not both of them."""
        return self.cause is not None and bool(((self.cause > 0) != self.mask).any())


def read_split(folder: Path, manifest: Manifest, split: str) -> KnownGraphs:
    """Return the graphs of a split, or evenly many of them where they are too large together."""
    statistics, number = manifest.statistics, SPLIT_NAMES.index(split)
    total = statistics["splits"][split]
    parts = statistics["nodes_mean"] + statistics["edges_mean"]
    count = max(1, min(total, MAX_GRAPHS[split], int(MAX_PARTS / parts)))
    pieces, seen = [], 0
    for entry in manifest.shards:
        columns = ShardReader(folder / entry.name, file_crc32=entry.file_crc32).columns
        members = np.flatnonzero(columns["split"] == number)
        rank = seen + np.arange(len(members))
        seen += len(members)
        members = members[(rank + 1) * count // max(total, 1) > rank * count // max(total, 1)]
        ptr = columns["node_ptr"].astype(np.int64)
        graphs = Graphs(columns["x"], global_edges(columns), columns.get("edge_attr"), ptr)
        nodes = graphs.nodes_of(members)
        bits, weight = columns.get("alternative_bits"), columns.get("node_weight")
        label = columns["y"][members]
        pieces.append(
            KnownGraphs(
                graphs.take(members),
                columns["graph_id"][members].astype(np.int64),
                label.astype(np.float64 if label.dtype.kind == "f" else np.int64),
                columns["node_mask"][nodes].astype(bool),
                columns["cause"][nodes] if "cause" in columns else None,
                None if bits is None else bits[nodes].astype(np.int64),
                None if weight is None else weight[nodes].astype(np.float64),
            )
        )
    return _joined(pieces)


def _joined(pieces: list[KnownGraphs]) -> KnownGraphs:
    parts = [piece.graphs for piece in pieces]
    offsets = pointers([len(part.x) for part in parts])[:-1]
    whole = Graphs(
        np.concatenate([part.x for part in parts]),
        np.concatenate([p.edges + o for p, o in zip(parts, offsets, strict=True)], axis=1),
        _optional([part.edge_attr for part in parts]),
        pointers(np.concatenate([part.sizes for part in parts])),
    )
    return KnownGraphs(
        whole,
        np.concatenate([piece.ids for piece in pieces]),
        np.concatenate([piece.label for piece in pieces]),
        np.concatenate([piece.mask for piece in pieces]),
        *(
            _optional([getattr(piece, name) for piece in pieces])
            for name in ("cause", "alternative_bits", "node_weight")
        ),
    )


def _optional(arrays: list[npt.NDArray[Any] | None]) -> npt.NDArray[Any] | None:
    present = [array for array in arrays if array is not None]
    return np.concatenate(present) if present else None
