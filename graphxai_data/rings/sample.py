"""The graphs that a check looks at, from a build or from any PyG dataset."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from graphxai_data.columns import (
    Columns,
    Ints,
    global_edges,
    graph_of_edge,
    graph_of_node,
    pointers,
)
from graphxai_data.errors import InputError
from graphxai_data.manifest import Manifest
from graphxai_data.rings.modes import Graphs
from graphxai_data.shards import ShardReader

# So many nodes and edges at most, and so many graphs: enough to tell, and memory stays flat.
MOST_GRAPHS = 10_000
MOST_PARTS = 1_500_000
# Rows of features that repeat are kinds of nodes; more kinds than this are dense features.
_MOST_KINDS = 256


@dataclass(frozen=True)
class Sample:
    """Graphs with their classes and groups.

    Attributes:
        graphs: all of them.
        label: [g] class of each.
        group: [g] graphs of one group are not torn apart.
    """

    graphs: Graphs
    label: Ints
    group: Ints

    def __len__(self) -> int:
        return len(self.label)


def sample_build(folder: Path, manifest: Manifest, most: int = MOST_GRAPHS) -> Sample:
    """Graphs of a build, evenly spread over it."""
    statistics = manifest.statistics
    dense = ShardReader(folder / manifest.shards[0].name).schema.node_features.encoding == "dense"
    # Dense features are mixed by random layers, which costs more than counting colours.
    parts = statistics["nodes_mean"] * (5 if dense else 1) + statistics["edges_mean"]
    count = max(1, min(manifest.graphs, most, int(MOST_PARTS / parts)))
    chosen = np.unique(np.linspace(0, manifest.graphs - 1, count).astype(np.int64))
    pieces, first = [], 0
    for entry in manifest.shards:
        inside = chosen[(chosen >= first) & (chosen < first + entry.graphs)] - first
        if len(inside):
            shard = ShardReader(folder / entry.name, file_crc32=entry.file_crc32)
            pieces.append(_cut(shard.columns, inside))
        first += entry.graphs
    return _joined(pieces)


def sample_dataset(dataset: Iterable[Any], most: int = MOST_GRAPHS) -> Sample:
    """Graphs of a PyG dataset: `x`, `edge_index`, `y`, perhaps `edge_attr` and `group`."""
    pieces = []
    for number, data in enumerate(dataset):
        if number == most:
            break
        if data.x is None or data.y is None or data.y.numel() != 1:
            raise InputError(f"graph {number}: needs x, and one class in y")
        edges = np.asarray(data.edge_index, np.int64)
        order = np.lexsort(edges[::-1])
        attributes = getattr(data, "edge_attr", None)
        group = getattr(data, "group", None)
        pieces.append(
            Sample(
                Graphs(
                    np.asarray(data.x, np.float32),
                    edges[:, order],
                    None if attributes is None else np.asarray(attributes)[order],
                    np.array([0, len(data.x)]),
                ),
                np.asarray(data.y, np.int64).reshape(1),
                np.array([number if group is None else int(group)]),
            )
        )
    if not pieces:
        raise InputError("a dataset without graphs cannot be checked")
    return _joined(pieces)


def _cut(columns: Columns, chosen: Ints) -> Sample:
    keep = np.zeros(len(columns["y"]), bool)
    keep[chosen] = True
    nodes, edges = keep[graph_of_node(columns)], keep[graph_of_edge(columns)]
    new_place = np.cumsum(nodes) - 1
    return Sample(
        Graphs(
            columns["x"][nodes],
            new_place[global_edges(columns)[:, edges]],
            columns["edge_attr"][edges] if "edge_attr" in columns else None,
            pointers(np.diff(columns["node_ptr"]).astype(np.int64)[keep]),
        ),
        columns["y"][keep].astype(np.int64),
        columns["group"][keep].astype(np.int64),
    )


def _joined(pieces: list[Sample]) -> Sample:
    offsets = pointers([len(piece.graphs.x) for piece in pieces])
    parts = [piece.graphs for piece in pieces]
    attributes = [part.edge_attr for part in parts if part.edge_attr is not None]
    graphs = Graphs(
        _kinds(np.concatenate([part.x for part in parts])),
        np.concatenate([p.edges + o for p, o in zip(parts, offsets[:-1], strict=True)], axis=1),
        np.concatenate(attributes) if len(attributes) == len(parts) else None,
        pointers(np.concatenate([part.sizes for part in parts])),
    )
    return Sample(
        graphs,
        np.concatenate([piece.label for piece in pieces]),
        np.concatenate([piece.group for piece in pieces]),
    )


def _kinds(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Class ids [N] instead of rows [N, p] where few rows differ."""
    if x.ndim == 1 or not np.isfinite(x).all() or len(np.unique(x[:2000], axis=0)) > _MOST_KINDS:
        return x
    rows, kind = np.unique(x, axis=0, return_inverse=True)
    return kind.ravel() if len(rows) <= _MOST_KINDS else x
