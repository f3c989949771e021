"""The graphs that a check measures, from a build or from any PyG dataset."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from graphxai_data.errors import InputError
from graphxai_data.graphs.columns import Columns, Ints, expand, global_edges, pointers
from graphxai_data.graphs.schema import Feature, Schema
from graphxai_data.graphs.shards import ShardReader
from graphxai_data.graphs.union import Graphs
from graphxai_data.manifest import Manifest
from graphxai_data.rings.modes import as_rows, tidy_edges
from graphxai_data.seeds import rng_for, spread

# Limits of graphs, and of nodes and edges together: enough for a verdict, and memory stays flat.
MAX_GRAPHS = 10_000
MAX_PARTS = 1_500_000
# Up to this many different rows of features are treated as classes of nodes, more as dense.
_MAX_KINDS = 256


@dataclass(frozen=True)
class Sample:
    """Graphs with their classes [g] and groups [g]; graphs of one group stay together.

    Where labels are numbers, the class of a graph is whether its number is above their median.
    """

    graphs: Graphs
    label: Ints
    group: Ints
    node_level: bool = False  # nodes have classes, not graphs: `label` means nothing
    median: float | None = None  # the median label, where labels are numbers

    def __len__(self) -> int:
        return len(self.label)


def sample_build(folder: Path, manifest: Manifest, most: int = MAX_GRAPHS) -> Sample:
    """Return up to `most` random graphs, spread evenly over a build."""
    statistics = manifest.statistics
    first_shard = manifest.shards[0]
    schema = ShardReader(folder / first_shard.name, file_crc32=first_shard.file_crc32).schema
    dense = schema.node_features.encoding != "onehot"
    # Dense features go through random layers, which take longer than counting colours.
    parts = statistics["nodes_mean"] * (5 if dense else 1) + statistics["edges_mean"]
    count = max(1, min(manifest.graphs, most, int(MAX_PARTS / parts)))
    selected = spread(count, manifest.graphs, rng_for(0, "rings/sample"))
    pieces, first = [], 0
    for entry in manifest.shards:
        inside = selected[(selected >= first) & (selected < first + entry.graphs)] - first
        if len(inside):
            shard = ShardReader(folder / entry.name, file_crc32=entry.file_crc32)
            pieces.append(_cut(shard.columns, inside))
        first += entry.graphs
    return _joined(pieces, schema, schema.label == "number")


def sample_dataset(dataset: Any, most: int = MAX_GRAPHS) -> Sample:
    """Return up to `most` random graphs, spread evenly over a PyG dataset.

    Each graph has `x`, `edge_index`, and in `y` one class, one per node, or one number; optionally
    `edge_attr` and `group`. Labels that are not all whole are numbers, and so are those of a
    dataset whose `label` is "number".
    """
    count = len(dataset)
    if count == 0:
        raise InputError("dataset: expected graphs, got a dataset without graphs")
    selected = spread(most, count, rng_for(0, "rings/sample"))
    pieces = [_read_data(dataset[i], i) for i in selected.tolist()]
    widths = set()
    for graphs in (piece.graphs for piece in pieces):
        edge_width = "none" if graphs.edge_attr is None else graphs.edge_attr.shape[1]
        widths.add(f"{graphs.x.shape[1]} and {edge_width}")
    if len(widths) > 1:
        raise InputError(
            "graphs differ in the number of their node and edge features: "
            + ", ".join(sorted(widths))
        )
    is_number = getattr(dataset, "label", None) == "number"
    is_number |= any(not float(piece.label[0]).is_integer() for piece in pieces)
    return _joined(pieces, is_number=is_number)


def _read_data(data: Any, number: int) -> Sample:
    """Return one graph of a PyG dataset, with edges in both directions."""
    x, y, edges = (getattr(data, key, None) for key in ("x", "y", "edge_index"))
    classes = np.asarray([] if y is None else y).ravel()
    if x is None or edges is None or len(x) == 0 or len(classes) not in (1, len(x)):
        raise InputError(
            f"graph {number}: needs nodes with x, an edge_index, and one label in y or per node"
        )
    if not np.isfinite(classes).all():
        raise InputError(f"graph {number}: its label is not finite; leave it out")
    attributes, group = (getattr(data, key, None) for key in ("edge_attr", "group"))
    rows = None if attributes is None else as_rows(attributes, np.float32)
    try:
        ends, rows = tidy_edges(np.asarray(edges, np.int64), rows, len(x))
    except InputError as error:
        raise InputError(f"graph {number}: {error}") from None
    return Sample(
        Graphs(as_rows(x, np.float32), ends, rows, np.array([0, len(x)])),
        classes[:1],
        np.array([number if group is None else int(group)]),
        node_level=len(classes) > 1,
    )


def _cut(columns: Columns, selected: Ints) -> Sample:
    ptr = columns["node_ptr"].astype(np.int64)
    graphs = Graphs(columns["x"], global_edges(columns), columns.get("edge_attr"), ptr)
    return Sample(
        graphs.take(selected),
        columns["y"][selected],
        columns["group"][selected].astype(np.int64),
        "node_y" in columns,
    )


def _joined(pieces: list[Sample], schema: Schema | None = None, is_number: bool = False) -> Sample:
    """Return all pieces as one sample, whose labels are classes; those of pieces may be numbers."""
    offsets = pointers([len(piece.graphs.x) for piece in pieces])
    parts = [piece.graphs for piece in pieces]
    attributes = [part.edge_attr for part in parts if part.edge_attr is not None]
    node_features = schema.node_features if schema else None
    edge_features = schema.edge_features if schema else None
    graphs = Graphs(
        _kinds(np.concatenate([part.x for part in parts]), node_features),
        np.concatenate([p.edges + o for p, o in zip(parts, offsets[:-1], strict=True)], axis=1),
        _kinds(np.concatenate(attributes), edge_features) if attributes else None,
        pointers(np.concatenate([part.sizes for part in parts])),
    )
    label = np.concatenate([piece.label for piece in pieces])
    node_level = any(piece.node_level for piece in pieces)
    median = float(np.median(label)) if is_number and not node_level else None
    return Sample(
        graphs,
        (label if median is None else label > median).astype(np.int64),
        np.concatenate([piece.group for piece in pieces]),
        node_level,
        median,
    )


def _kinds(x: npt.NDArray[Any], feature: Feature | None = None) -> npt.NDArray[Any]:
    """Return class ids [N] if few rows differ, else the rows [N, p] as models see them."""
    if x.ndim == 1:
        return x
    if np.isfinite(x).all() and len(np.unique(x[:2000], axis=0)) <= _MAX_KINDS:
        rows, kind = np.unique(x, axis=0, return_inverse=True)
        if len(rows) <= _MAX_KINDS:
            return kind.ravel()
    return expand(x, feature) if feature is not None else x
