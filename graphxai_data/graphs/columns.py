"""Columns: many graphs as concatenated arrays with pointers, no object per graph.

For g graphs with N nodes and M directed edges in all:

- of a graph: `graph_id`, `group`, `y` [g] i64; `split` [g] u8; `node_ptr`, `edge_ptr` [g+1] i64
- of a node: `x` [N] u8 (one-hot class ids), [N, k] u8 (k of them side by side) or [N, p] f32;
  `node_mask` [N] bool, where a rationale is known; `node_y` [N] u8, where nodes have classes
  (`y` is 0 then)
- of an edge: `edge_index` [2, M] i64 (node ids within the graph); `edge_mask` [M] bool, where a
  rationale is known; `edge_attr` [M] u8 or [M, q] f32, where the dataset has edge features
- a dataset's own fields: rows of a node or a graph; text as UTF-8 bytes with pointers `<name>_ptr`
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from graphxai_data.errors import CheckFailedError
from graphxai_data.graphs.record import Extra, Feature, GraphRecord, Schema

Columns = dict[str, npt.NDArray[Any]]
Ints = npt.NDArray[np.int64]


def pack(
    records: Sequence[GraphRecord], schema: Schema, graph_id: Ints, split: npt.NDArray[np.uint8]
) -> Columns:
    """Concatenate records; their order, and `graph_id` and `split` [g], belong together."""
    columns: Columns = {
        "node_ptr": pointers([r.num_nodes for r in records]),
        "edge_ptr": pointers([r.edge_index.shape[1] for r in records]),
        "x": _compact(_stack([r.x for r in records], schema.node_features), schema.node_features),
        "edge_index": np.concatenate(
            [np.empty((2, 0), np.int64), *(r.edge_index for r in records)], axis=1
        ),
        "y": np.array([r.y for r in records], np.int64),
        "split": np.asarray(split, np.uint8),
        "graph_id": np.asarray(graph_id, np.int64),
        "group": np.array([r.group for r in records], np.int64),
    }
    if schema.edge_features is not None:
        stacked = _stack(_all(records, "edge_attr"), schema.edge_features)
        columns["edge_attr"] = _compact(stacked, schema.edge_features)
    if schema.has_rationale:
        for name in ("node_mask", "edge_mask"):
            columns[name] = np.concatenate([np.empty(0, bool), *_all(records, name)])
    if schema.task == "node":
        columns["node_y"] = np.concatenate([np.empty(0, np.uint8), *_all(records, "node_y")])
    for extra in schema.extras:
        columns |= pack_extra(extra, [r.meta[extra.name] for r in records])
    return columns


def _all(records: Sequence[GraphRecord], name: str) -> list[npt.NDArray[Any]]:
    found = [getattr(record, name) for record in records]
    if any(array is None for array in found):
        raise CheckFailedError(f"a record has no {name}, but its schema says that all have")
    return found


def pack_extra(extra: Extra, values: Sequence[Any]) -> Columns:
    """The array, or the two arrays of a text, that hold one value for each graph."""
    if extra.level == "text":
        texts = [value.encode() for value in values]
        return {
            extra.name: np.frombuffer(b"".join(texts), np.uint8),
            f"{extra.name}_ptr": pointers([len(text) for text in texts]),
        }
    join = np.concatenate if extra.level == "node" else np.stack
    return {extra.name: join([np.asarray(value, extra.dtype) for value in values])}


def unpack(columns: Columns, schema: Schema, i: int) -> GraphRecord:
    """The i-th graph as a record of its own."""
    nodes = slice(*columns["node_ptr"][i : i + 2].tolist())
    edges = slice(*columns["edge_ptr"][i : i + 2].tolist())
    meta: dict[str, Any] = {
        "graph_id": int(columns["graph_id"][i]),
        "split": int(columns["split"][i]),
    }
    for extra in schema.extras:
        array = columns[extra.name]
        if extra.level == "text":
            begin, end = columns[f"{extra.name}_ptr"][i : i + 2]
            meta[extra.name] = array[begin:end].tobytes().decode()
        else:
            meta[extra.name] = array[nodes] if extra.level == "node" else array[i]
    return GraphRecord(
        x=expand(columns["x"][nodes], schema.node_features),
        edge_index=columns["edge_index"][:, edges].astype(np.int64),
        y=int(columns["y"][i]),
        node_mask=columns["node_mask"][nodes].astype(bool) if schema.has_rationale else None,
        edge_mask=columns["edge_mask"][edges].astype(bool) if schema.has_rationale else None,
        group=int(columns["group"][i]),
        edge_attr=None
        if schema.edge_features is None
        else expand(columns["edge_attr"][edges], schema.edge_features),
        node_y=columns["node_y"][nodes] if schema.task == "node" else None,
        meta=meta,
    )


def expand(stored: npt.NDArray[Any], feature: Feature) -> npt.NDArray[np.float32]:
    """[rows, width] float32 from what is stored."""
    if feature.encoding == "dense":
        return stored.astype(np.float32)
    if feature.encoding == "multihot":
        parts = [one_hot(ids, width) for ids, width in zip(stored.T, feature.widths, strict=True)]
        return np.concatenate(parts, axis=1)
    return one_hot(stored, feature.width)


def one_hot(ids: npt.NDArray[Any], width: int) -> npt.NDArray[np.float32]:
    """[rows, width] float32 with a one in the column of each id."""
    rows: npt.NDArray[np.float32] = _identity(width)[ids]
    return rows


@lru_cache(maxsize=32)
def _identity(width: int) -> npt.NDArray[np.float32]:
    return np.eye(width, dtype=np.float32)


def graph_of_node(columns: Columns) -> Ints:
    """[N] position in the shard of each node's graph."""
    return _owner(columns["node_ptr"])


def graph_of_edge(columns: Columns) -> Ints:
    """[M] position in the shard of each edge's graph."""
    return _owner(columns["edge_ptr"])


def global_edges(columns: Columns) -> Ints:
    """[2, M] edge ends as rows of the concatenated node arrays."""
    offset = columns["node_ptr"][:-1].astype(np.int64)[graph_of_edge(columns)]
    ends: Ints = columns["edge_index"].astype(np.int64) + offset
    return ends


def _owner(ptr: npt.NDArray[Any]) -> Ints:
    return np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))


def pointers(lengths: "Sequence[int] | Ints") -> Ints:
    """[g+1] where each graph's rows begin, and where the last one's end."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)


def _stack(rows: Sequence[npt.NDArray[np.float32]], feature: Feature) -> npt.NDArray[np.float32]:
    return np.concatenate([np.empty((0, feature.width), np.float32), *rows])


def _compact(rows: npt.NDArray[np.float32], feature: Feature) -> npt.NDArray[Any]:
    if feature.encoding == "dense":
        return rows
    if feature.encoding == "multihot":
        blocks = np.split(rows, np.cumsum(feature.widths)[:-1], axis=1)
        widths = [Feature(width, "onehot") for width in feature.widths]
        parts = [_compact(block, width) for block, width in zip(blocks, widths, strict=True)]
        return np.stack(parts, axis=1)
    if not (((rows == 0) | (rows == 1)).all() and (rows.sum(axis=1) == 1).all()):
        bad = int(np.flatnonzero(((rows != 0).sum(axis=1) != 1) | (rows.max(axis=1) != 1))[0])
        raise CheckFailedError(f"a feature declared one-hot is not, in row {bad} of its shard")
    ids: npt.NDArray[np.uint8] = rows.argmax(axis=1).astype(np.uint8)
    return ids
