"""Columns: many graphs as concatenated arrays with pointers, no object per graph.

`Schema.columns` declares the arrays. For g graphs with N nodes and M directed edges in total, an
array has one row per graph [g], node [N] or edge [M]; `edge_index` is [2, M], with node ids within
the graph. `node_ptr`, `edge_ptr` and, for each text, `<name>_ptr` [g+1] int64 say where the rows of
each graph begin and end.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from graphxai_data.errors import CheckFailedError
from graphxai_data.graphs.record import RECORD_FIELDS, GraphRecord
from graphxai_data.graphs.schema import Column, Feature, Schema

Columns = dict[str, npt.NDArray[Any]]
Ints = npt.NDArray[np.int64]

_EVERYTHING = Schema(
    Feature(1, "onehot"), Feature(1, "onehot"), 1, task="node", has_alternatives=True,
    has_weights=True,
).columns()  # fmt: skip
# The arrays that any dataset may have; all others are a dataset's own.
USUAL = {c.name for c in _EVERYTHING} | {c.pointer for c in _EVERYTHING if c.pointer}


def pack(
    records: Sequence[GraphRecord], schema: Schema, graph_id: npt.ArrayLike, split: npt.ArrayLike
) -> Columns:
    """Concatenate records; `graph_id` and `split` [g] are in the same order."""
    given: dict[str, Any] = {"graph_id": graph_id, "split": split}
    columns: Columns = {
        "node_ptr": pointers([r.num_nodes for r in records]),
        "edge_ptr": pointers([r.edge_index.shape[1] for r in records]),
    }
    for column in schema.columns():
        name = column.name
        if name in given:
            values: Sequence[Any] = given[name]
        elif name in RECORD_FIELDS:
            values = [getattr(record, name) for record in records]
        else:
            values = [record.meta[name] for record in records]
        if any(value is None for value in values):
            raise CheckFailedError(f"a record has no {name}, but its schema says that all have")
        columns |= _pack_column(column, values)
    return columns


def _pack_column(column: Column, values: Sequence[Any]) -> Columns:
    """Return the array, or the two arrays of a text, with one value per graph."""
    if column.level == "text":
        texts = [value.encode() for value in values]
        return {
            column.name: np.frombuffer(b"".join(texts), np.uint8),
            f"{column.name}_ptr": pointers([len(text) for text in texts]),
        }
    if column.level == "graph":
        return {column.name: np.array(values, column.dtype).reshape(len(values), *column.shape)}
    rows = column.expanded
    arrays = [np.empty(rows.array_shape(0), rows.dtype)]  # so that no graphs give an empty array
    arrays += [np.asarray(value, rows.dtype) for value in values]
    joined = np.concatenate(arrays, axis=column.axis)
    return {column.name: compact(joined, column)}


# The columns that a record has as Python's own int or float.
_NUMBERS = ("graph_id", "group", "split", "y")


def unpack(columns: Columns, schema: Schema, i: int) -> GraphRecord:
    """Return the i-th graph as a record of its own."""
    values = {column.name: _value(columns, column, i) for column in schema.columns()}
    known = {name: values.pop(name, None) for name in RECORD_FIELDS}
    return GraphRecord(**known, meta=values)


def _value(columns: Columns, column: Column, i: int) -> Any:
    array = columns[column.name]
    if column.pointer is None:
        return array[i].item() if column.name in _NUMBERS else array[i]
    first, last = columns[column.pointer][i : i + 2].tolist()
    rows = array[:, first:last] if column.axis else array[first:last]
    if column.level == "text":
        return rows.tobytes().decode()
    return rows.astype(column.dtype) if column.feature is None else expand(rows, column.feature)


def expand(stored: npt.NDArray[Any], feature: Feature) -> npt.NDArray[np.float32]:
    """Return [rows, width] float32 from the stored rows; IndexError if a class id is too large."""
    if feature.encoding == "dense":
        return stored.astype(np.float32)
    if feature.encoding == "onehot":
        return one_hot(stored, feature.width)
    widths = np.array(feature.widths)
    if (stored >= widths).any():
        raise IndexError(f"a class id is not within the widths {feature.widths}")
    rows = np.zeros((len(stored), feature.width), np.float32)
    rows[np.arange(len(stored))[:, None], stored + np.cumsum(widths) - widths] = 1
    return rows


def one_hot(ids: npt.NDArray[Any], width: int) -> npt.NDArray[np.float32]:
    """Return [rows, width] float32 with a one in the column of each id."""
    return _identity(width).take(ids, axis=0)


_identity = lru_cache(maxsize=32)(lambda width: np.eye(width, dtype=np.float32))


def graph_of_rows(ptr: npt.NDArray[Any]) -> Ints:
    """Return [N] or [M] the position in the shard of each row's graph, from `ptr` [g+1]."""
    return np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))


def global_edges(columns: Columns) -> Ints:
    """Return [2, M] the ends of edges as rows of the concatenated node arrays."""
    offset = columns["node_ptr"][graph_of_rows(columns["edge_ptr"])]
    ends: Ints = columns["edge_index"].astype(np.int64) + offset
    return ends


def pointers(lengths: npt.ArrayLike) -> Ints:
    """Return [g+1] where each graph's rows begin, and where the last one's end."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)


def compact(rows: npt.NDArray[Any], column: Column) -> npt.NDArray[Any]:
    """Return the rows of a column as they are stored."""
    feature = column.feature
    if feature is None or feature.encoding == "dense":
        return rows
    parts = np.split(rows, np.cumsum(feature.widths)[:-1], axis=1) if feature.widths else [rows]
    for part in parts:
        valid = ((part == 0) | (part == 1)).all(axis=1) & (part.sum(axis=1) == 1)
        if not valid.all():
            bad = int(np.argmin(valid))
            raise CheckFailedError(
                f"{column.name} is declared {feature.encoding}, but row {bad} of its shard is not"
            )
    ids = np.stack([part.argmax(axis=1) for part in parts], axis=1).astype(np.uint8)
    return ids if feature.widths else ids.reshape(-1)


def names_problem(columns: Columns, schema: Schema) -> str | None:
    """Return why these arrays are not those of a schema, by their names; None if they are."""
    names = {column.name for column in schema.columns()} | _pointer_names(schema)
    if columns.keys() == names:
        return None
    return f"arrays {sorted(columns)}, expected {sorted(names)}"


def _pointer_names(schema: Schema) -> set[str]:
    return {column.pointer for column in schema.columns() if column.pointer}


def layout_problem(columns: Columns, schema: Schema) -> str | None:
    """Return why these arrays are not a shard of this schema; None if they are."""
    if problem := names_problem(columns, schema):
        return problem
    declared, pointer_names = schema.columns(), _pointer_names(schema)
    graphs = len(columns["y"])
    for name in sorted(pointer_names):
        ptr = columns[name]
        if ptr.dtype != np.dtype("<i8") or ptr.shape != (graphs + 1,):
            return f"'{name}' is not [graphs + 1] int64"
        if ptr[0] != 0 or (np.diff(ptr) < 0).any():
            return f"'{name}' does not rise from 0"
    for column in declared:
        name, array = column.name, columns[column.name]
        ptr = columns[column.pointer] if column.pointer else np.arange(graphs + 1)
        shape = column.array_shape(int(ptr[-1]))
        # Node ids take the smallest unsigned type that holds them.
        narrowed = name == "edge_index"
        same_type = array.dtype.kind == "u" if narrowed else array.dtype == np.dtype(column.dtype)
        if not same_type or array.shape != shape:
            dtype = "unsigned" if narrowed else column.dtype
            return f"array '{name}' is {array.dtype} {list(array.shape)}, expected {dtype} {shape}"
        if column.level == "text" and not _is_text(array, ptr):
            return f"array '{name}' is not UTF-8 text"
    return None


def _is_text(content: npt.NDArray[Any], ptr: npt.NDArray[Any]) -> bool:
    try:
        content.tobytes().decode()
    except UnicodeDecodeError:
        return False
    # A byte 10xxxxxx continues a character: a text that begins with one was cut in the middle.
    first = content[ptr[:-1][np.diff(ptr) > 0]]
    return not (first & 0xC0 == 0x80).any()
