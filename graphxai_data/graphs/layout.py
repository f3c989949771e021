"""Whether arrays are a shard of a schema."""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphxai_data.graphs.columns import Columns
from graphxai_data.graphs.record import Column, Feature, Schema

_EVERYTHING = Schema(Feature(1, "onehot"), Feature(1, "onehot"), 1, task="node").columns()
# The arrays that any dataset may have; all others are a dataset's own.
USUAL = {c.name for c in _EVERYTHING} | {c.pointer for c in _EVERYTHING if c.pointer}


def layout_problem(columns: Columns, schema: Schema) -> str | None:
    """Return why these arrays are not a shard of this schema; None if they are."""
    declared = schema.columns()
    pointers = {column.pointer for column in declared if column.pointer}
    names = {column.name for column in declared} | pointers
    if columns.keys() != names:
        return f"arrays {sorted(columns)}, expected {sorted(names)}"
    graphs = len(columns["y"])
    for name in sorted(pointers):
        if problem := _pointer_problem(name, columns[name], graphs):
            return problem
    for column in declared:
        array = columns[column.name]
        ptr = columns[column.pointer] if column.pointer else np.arange(graphs + 1)
        if problem := _array_problem(column, array, int(ptr[-1])):
            return problem
        if column.level == "text" and not _is_text(array, ptr):
            return f"array '{column.name}' is not UTF-8 text"
    return None


def _array_problem(column: Column, array: npt.NDArray[Any], rows: int) -> str | None:
    shape = column.array_shape(rows)
    # Node ids take the smallest unsigned type that holds them.
    narrowed = column.name == "edge_index"
    same_type = array.dtype.kind == "u" if narrowed else array.dtype == np.dtype(column.dtype)
    if same_type and array.shape == shape:
        return None
    dtype = "unsigned" if narrowed else column.dtype
    return f"array '{column.name}' is {array.dtype} {list(array.shape)}, expected {dtype} {shape}"


def _pointer_problem(name: str, values: npt.NDArray[Any], graphs: int) -> str | None:
    if values.dtype != np.dtype("<i8") or values.shape != (graphs + 1,):
        return f"'{name}' is not [graphs + 1] int64"
    if values[0] != 0 or (np.diff(values) < 0).any():
        return f"'{name}' does not rise from 0"
    return None


def _is_text(content: npt.NDArray[Any], ptr: npt.NDArray[Any]) -> bool:
    try:
        content.tobytes().decode()
    except UnicodeDecodeError:
        return False
    # A byte 10xxxxxx continues a character: a text that begins with one was cut in the middle.
    first = content[ptr[:-1][np.diff(ptr) > 0]]
    return not (first & 0xC0 == 0x80).any()
