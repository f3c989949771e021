"""Shards: graphs as HDF5 files that any language can read, and their digests.

A shard is a flat HDF5 file with the arrays of `columns.py`, contiguous and uncompressed; the node
ids of edges take the smallest unsigned type that holds them. Neither timestamps nor anything else
but the data go in, so equal graphs give equal files.
"""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from graphxai_data.columns import Columns, pack, unpack
from graphxai_data.errors import DamagedError
from graphxai_data.record import Feature, GraphRecord, Schema

SCHEMA_VERSION = 1


class ShardWriter:
    """Collects records and publishes them as one shard when the `with` block ends well.

    After an exception nothing is written: a file under `path` is always a whole shard.
    """

    def __init__(
        self, path: str | Path, schema: Schema, *, dataset: str, recipe_sha256: str, seed: int
    ) -> None:
        self.path = Path(path)
        self._schema = schema
        self._identity = {"dataset": dataset, "recipe_sha256": recipe_sha256, "seed": seed}
        self._records: list[GraphRecord] = []
        self._graph_ids: list[int] = []
        self._splits: list[int] = []

    def __enter__(self) -> "ShardWriter":
        return self

    def add(self, record: GraphRecord, *, graph_id: int, split: int) -> None:
        """Append one graph; split is 0 train, 1 valid, 2 test."""
        self._records.append(record)
        self._graph_ids.append(graph_id)
        self._splits.append(split)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None:
            return
        columns = pack(
            self._records,
            self._schema,
            np.array(self._graph_ids, np.int64),
            np.array(self._splits, np.uint8),
        )
        write_atomically(self.path, shard_bytes(columns, self._schema, **self._identity))


def shard_bytes(columns: Columns, schema: Schema, **identity: str | int) -> bytes:
    """The HDF5 file image of a shard.

    Args:
        columns: the graphs.
        schema: what they have in common.
        identity: `dataset`, `recipe_sha256` and `seed`, stored as file attributes.
    """
    stored = _narrowed(columns)
    with h5py.File("shard", "w", driver="core", backing_store=False, libver=("v110", "v110")) as f:
        f.attrs["schema_version"] = SCHEMA_VERSION
        f.attrs["num_classes"] = schema.num_classes
        f.attrs["sha256"] = shard_digest(stored)
        for name, value in sorted(identity.items()):
            f.attrs[name] = value
        for name, array in sorted(stored.items()):
            f.create_dataset(name, data=array, track_times=False)
        for name, feature in (("x", schema.node_features), ("edge_attr", schema.edge_features)):
            if feature is not None:
                f[name].attrs["encoding"] = feature.encoding
                f[name].attrs["width"] = feature.width
        f.flush()
        image: bytes = f.id.get_file_image()
    return image


class ShardReader:
    """One shard, read whole and checked against its own digest.

    Attributes:
        columns: the arrays as in `columns.py`; `edge_index` keeps its stored, narrow type.
        schema: as stored in the file.
        identity: the file attributes `dataset`, `recipe_sha256`, `seed`.
        sha256: digest of the arrays as stored.

    Raises:
        DamagedError: the file is missing, not HDF5, not a shard, or not what was written.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise DamagedError(f"{self.path}: no such shard; build the dataset again")
        try:
            with h5py.File(self.path, "r") as f:
                self._read(f)
        except (OSError, KeyError, ValueError, RuntimeError, TypeError) as error:
            reason = str(error).strip("'\"").splitlines()[0]
            raise DamagedError(
                f"{self.path}: not a readable shard ({reason}); delete it and build again"
            ) from None

    def _read(self, f: h5py.File) -> None:
        version = f.attrs["schema_version"]
        if version != SCHEMA_VERSION:
            raise DamagedError(
                f"{self.path}: schema version {version}, expected {SCHEMA_VERSION}; "
                "build the dataset again with this version of graphxai-data"
            )
        self.identity: dict[str, str | int] = {
            "dataset": str(f.attrs["dataset"]),
            "recipe_sha256": str(f.attrs["recipe_sha256"]),
            "seed": int(f.attrs["seed"]),
        }
        size = self.path.stat().st_size
        self.columns: Columns = {name: _read_array(f, name, size) for name in f}
        self.schema = Schema(
            node_features=_read_feature(f, "x"),
            edge_features=_read_feature(f, "edge_attr") if "edge_attr" in f else None,
            num_classes=int(f.attrs["num_classes"]),
        )
        problem = _layout_problem(self.columns, self.schema)
        if problem:
            raise ValueError(problem)
        self.sha256 = shard_digest(self.columns)
        if self.sha256 != f.attrs["sha256"]:
            raise DamagedError(
                f"{self.path}: its arrays do not have the digest written in it "
                f"(expected {f.attrs['sha256']}, got {self.sha256}); delete it and build again"
            )

    def __len__(self) -> int:
        return len(self.columns["y"])

    def __getitem__(self, i: int) -> GraphRecord:
        if not -len(self) <= i < len(self):
            raise IndexError(f"graph {i} of a shard of {len(self)}")
        return unpack(self.columns, self.schema, i % len(self))

    def __iter__(self) -> Iterator[GraphRecord]:
        return (self[i] for i in range(len(self)))


class ArrayDigest:
    """SHA-256 over name, type, shape and bytes of each array, in name order.

    Fed shard by shard it gives what one shard with all those graphs would give: every array has a
    running hash along the graphs, and pointers go on where the last shard's stopped. So the digest
    of a build does not depend on how many graphs a shard holds.
    """

    def __init__(self) -> None:
        self._hashes: dict[str, Any] = {}
        self._layouts: dict[str, tuple[str, tuple[int, ...]]] = {}
        self._lengths: dict[str, int] = {}
        self._pointer_ends: dict[str, int] = {}

    def update(self, columns: Columns) -> "ArrayDigest":
        """Add the next graphs."""
        for name, array in columns.items():
            # [2, M] grows along its second axis: hash it as M pairs.
            rows = array.T if name == "edge_index" else array
            if name in ("node_ptr", "edge_ptr"):
                rows = rows + np.int64(self._pointer_ends.get(name, 0))
                rows = rows[1:] if name in self._pointer_ends else rows
                self._pointer_ends[name] = int(rows[-1]) if len(rows) else 0
            rows = np.ascontiguousarray(rows, rows.dtype.newbyteorder("<"))
            layout = rows.dtype.str, rows.shape[1:]
            if self._layouts.setdefault(name, layout) != layout:
                raise DamagedError(f"array '{name}' changes its type or width between shards")
            self._hashes.setdefault(name, hashlib.sha256()).update(rows.data)
            self._lengths[name] = self._lengths.get(name, 0) + len(rows)
        return self

    def hexdigest(self) -> str:
        """Digest of all that was added."""
        whole = hashlib.sha256()
        for name in sorted(self._hashes):
            dtype, row_shape = self._layouts[name]
            shape = [self._lengths[name], *row_shape]
            whole.update(f"{name} {dtype} {shape} {self._hashes[name].hexdigest()}\n".encode())
        return whole.hexdigest()


def shard_digest(stored: Columns) -> str:
    """Digest of one shard, of the arrays as they are stored."""
    return ArrayDigest().update(stored).hexdigest()


def widened(stored: Columns) -> Columns:
    """The same graphs with node ids as int64: stored types differ with the largest graph."""
    return stored | {"edge_index": stored["edge_index"].astype(np.int64)}


def write_atomically(path: Path, content: bytes) -> None:
    """Write under a temporary name beside `path`, flush to disk, then rename."""
    temporary = path.with_name(f".{path.name}.tmp")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def _narrowed(columns: Columns) -> Columns:
    largest = int(columns["edge_index"].max(initial=0))
    return columns | {"edge_index": columns["edge_index"].astype(np.min_scalar_type(largest))}


def _read_array(f: h5py.File, name: str, file_size: int) -> npt.NDArray[np.generic]:
    """One array, and only if it is plain: links, other files and inflated sizes are refused."""
    link = f.get(name, getlink=True)
    dataset = f[name] if isinstance(link, h5py.HardLink) else None
    if not isinstance(dataset, h5py.Dataset):
        raise ValueError(f"'{name}' is not an array")
    if dataset.chunks or dataset.external or dataset.is_virtual or dataset.nbytes > file_size:
        raise ValueError(f"array '{name}' is not stored contiguously in this file")
    array: npt.NDArray[np.generic] = dataset[...]
    return array


def _read_feature(f: h5py.File, name: str) -> Feature:
    return Feature(int(f[name].attrs["width"]), f[name].attrs["encoding"])


def _layout_problem(columns: Columns, schema: Schema) -> str | None:
    """Why these arrays are not a shard of this schema, if they are not."""
    expected: dict[str, tuple[np.dtype[Any] | None, tuple[int, ...]]] = {}
    graphs = len(columns["node_ptr"]) - 1
    ends = {}
    for pointers in ("node_ptr", "edge_ptr"):
        values = columns[pointers]
        if values.dtype != np.int64 or values.ndim != 1 or len(values) != graphs + 1 or graphs < 0:
            return f"'{pointers}' is not [graphs + 1] int64"
        if values[0] != 0 or (np.diff(values) < 0).any():
            return f"'{pointers}' does not rise from 0"
        ends[pointers] = int(values[-1])
    nodes, edges = ends["node_ptr"], ends["edge_ptr"]
    expected = {
        "node_ptr": (np.dtype("i8"), (graphs + 1,)),
        "edge_ptr": (np.dtype("i8"), (graphs + 1,)),
        "edge_index": (None, (2, edges)),
        "node_mask": (np.dtype("?"), (nodes,)),
        "edge_mask": (np.dtype("?"), (edges,)),
        "split": (np.dtype("u1"), (graphs,)),
        "x": _stored_layout(schema.node_features, nodes),
    }
    expected |= {name: (np.dtype("i8"), (graphs,)) for name in ("y", "graph_id", "group")}
    if schema.edge_features is not None:
        expected["edge_attr"] = _stored_layout(schema.edge_features, edges)
    if columns.keys() != expected.keys():
        return f"arrays {sorted(columns)}, expected {sorted(expected)}"
    for name, (dtype, shape) in expected.items():
        array = columns[name]
        if array.shape != shape or (array.dtype != dtype if dtype else array.dtype.kind != "u"):
            return f"array '{name}' is {array.dtype} {list(array.shape)}, expected {dtype} {shape}"
    return None


def _stored_layout(feature: Feature, rows: int) -> tuple[np.dtype[Any], tuple[int, ...]]:
    if feature.encoding == "onehot":
        return np.dtype("u1"), (rows,)
    return np.dtype("f4"), (rows, feature.width)
