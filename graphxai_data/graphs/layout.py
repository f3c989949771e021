"""Which arrays a shard has, of which types and shapes."""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphxai_data.graphs.columns import Columns
from graphxai_data.graphs.record import Feature, Schema

# What every dataset has; other arrays are its own.
USUAL = {
    "node_ptr", "edge_ptr", "x", "edge_index", "edge_attr", "y", "node_y", "node_mask", "edge_mask",
    "split", "graph_id", "group",
}  # fmt: skip


def layout_problem(columns: Columns, schema: Schema) -> str | None:
    """Why these arrays are not a shard of this schema, if they are not."""
    graphs = len(columns["y"])
    for name in ("node_ptr", "edge_ptr"):
        if problem := _pointer_problem(name, columns[name], graphs):
            return problem
    nodes, edges = int(columns["node_ptr"][-1]), int(columns["edge_ptr"][-1])
    expected: dict[str, tuple[np.dtype[Any] | None, tuple[int, ...]]] = {
        "node_ptr": (np.dtype("<i8"), (graphs + 1,)),
        "edge_ptr": (np.dtype("<i8"), (graphs + 1,)),
        "edge_index": (None, (2, edges)),
        "split": (np.dtype("u1"), (graphs,)),
        "x": _stored_layout(schema.node_features, nodes),
    }
    expected |= {name: (np.dtype("<i8"), (graphs,)) for name in ("y", "graph_id", "group")}
    if schema.has_rationale:
        expected["node_mask"] = np.dtype("?"), (nodes,)
        expected["edge_mask"] = np.dtype("?"), (edges,)
    if schema.task == "node":
        expected["node_y"] = np.dtype("u1"), (nodes,)
    if schema.edge_features is not None:
        expected["edge_attr"] = _stored_layout(schema.edge_features, edges)
    rows = {"node": nodes, "graph": graphs}
    for extra in schema.extras:
        if extra.level == "text":
            ptr = columns[f"{extra.name}_ptr"]
            if problem := _pointer_problem(f"{extra.name}_ptr", ptr, graphs):
                return problem
            if problem := _text_problem(extra.name, columns[extra.name], ptr):
                return problem
            expected[f"{extra.name}_ptr"] = (ptr.dtype, ptr.shape)
            expected[extra.name] = (np.dtype("u1"), (int(ptr[-1]),))
        elif extra.level in rows:
            expected[extra.name] = (np.dtype(extra.dtype), (rows[extra.level], *extra.shape))
        else:
            return f"array '{extra.name}' is of an unknown level {extra.level!r}"
    if columns.keys() != expected.keys():
        return f"arrays {sorted(columns)}, expected {sorted(expected)}"
    for name, (dtype, shape) in expected.items():
        array = columns[name]
        if array.shape != shape or (array.dtype != dtype if dtype else array.dtype.kind != "u"):
            return f"array '{name}' is {array.dtype} {list(array.shape)}, expected {dtype} {shape}"
    return None


def _pointer_problem(name: str, values: npt.NDArray[Any], graphs: int) -> str | None:
    if values.dtype != np.dtype("<i8") or values.shape != (graphs + 1,):
        return f"'{name}' is not [graphs + 1] int64"
    if values[0] != 0 or (np.diff(values) < 0).any():
        return f"'{name}' does not rise from 0"
    return None


def _text_problem(name: str, content: npt.NDArray[Any], ptr: npt.NDArray[Any]) -> str | None:
    begins = content[ptr[:-1][np.diff(ptr) > 0]] if int(ptr[-1]) == len(content) else None
    try:
        content.tobytes().decode()
    except UnicodeDecodeError:
        begins = None
    # Bytes 10xxxxxx go on with a character: no text begins with one.
    if begins is None or (begins & 0xC0 == 0x80).any():
        return f"array '{name}' is not UTF-8 text"
    return None


def _stored_layout(feature: Feature, rows: int) -> tuple[np.dtype[Any], tuple[int, ...]]:
    if feature.encoding == "onehot":
        return np.dtype("u1"), (rows,)
    if feature.encoding == "multihot":
        return np.dtype("u1"), (rows, len(feature.widths))
    return np.dtype("<f4"), (rows, feature.width)
