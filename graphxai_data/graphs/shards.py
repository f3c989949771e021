"""Shards: graphs as HDF5 files that any language can read, and their digests.

A shard is a flat HDF5 file with the arrays that `Schema.columns` declares, contiguous and
uncompressed; the node ids of edges take the smallest unsigned type that holds them. There are no
timestamps, so equal graphs give equal files.
"""

import hashlib
import io
import math
import mmap
import operator
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar, cast

import h5py
import numpy as np
import numpy.typing as npt

from graphxai_data.errors import CheckFailedError, DamagedError
from graphxai_data.files.disk import write_atomically
from graphxai_data.graphs.columns import USUAL, Columns, layout_problem, pack, unpack
from graphxai_data.graphs.digest import shard_digest
from graphxai_data.graphs.invariants import check_columns, wrong_shape
from graphxai_data.graphs.meaning import ATTRIBUTES, Attributes, Meaning
from graphxai_data.graphs.record import GraphRecord
from graphxai_data.graphs.schema import Column, Feature, Level, Schema

# 2: rationales that are null, have alternatives or weights; labels that are numbers.
SCHEMA_VERSION = 2

T = TypeVar("T")
_CLOSE_AT_ONCE = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
_CLOSE_AT_ONCE.set_fclose_degree(h5py.h5f.CLOSE_STRONG)


def wrong_version(path: Path, version: object) -> DamagedError:
    """Return the error for a file of a build with this other schema version."""
    stated = f"schema version {version!r}, expected {SCHEMA_VERSION}"
    if type(version) is int and 0 < version < SCHEMA_VERSION:
        return DamagedError(
            f"{path}: made by an older version of graphxai-data ({stated}): remove {path.parent} "
            "or choose another --root (root= in Python), then build again"
        )
    return DamagedError(
        f"{path}: {stated}; build the dataset again with this version of graphxai-data"
    )


class ShardWriter:
    """Collects records and publishes them as one shard at the end of the `with` block.

    After an exception, or if a graph is not valid, nothing is written: a file at `path` is always a
    whole shard.
    """

    def __init__(
        self,
        path: str | Path,
        schema: Schema,
        *,
        dataset: str,
        recipe_sha256: str,
        seed: int,
        meaning: Meaning | None = None,
    ) -> None:
        self.path = Path(path)
        self._schema = schema
        self._meaning = meaning
        self._identity = {"dataset": dataset, "recipe_sha256": recipe_sha256, "seed": seed}
        self._records: list[GraphRecord] = []
        self._graph_ids: list[int] = []
        self._splits: list[int] = []

    def __enter__(self) -> "ShardWriter":
        return self

    def add(self, record: GraphRecord, *, graph_id: int, split: int) -> None:
        """Append one graph; split is 0 train, 1 valid, 2 test."""
        record = record.fitted(self._schema)
        if problem := wrong_shape(record, self._schema):
            raise CheckFailedError(f"graph {graph_id}: {problem}")
        self._records.append(record)
        self._graph_ids.append(graph_id)
        self._splits.append(split)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            return
        columns = pack(self._records, self._schema, self._graph_ids, self._splits)
        if problems := check_columns(columns, self._schema):
            raise CheckFailedError(f"{self.path}: nothing written; " + "; ".join(problems))
        content = shard_bytes(columns, self._schema, self._meaning, **self._identity)
        write_atomically(self.path, content)


def shard_bytes(
    columns: Columns, schema: Schema, meaning: Meaning | None = None, **identity: Any
) -> bytes:
    """Return a shard's HDF5 file.

    `identity` are the file attributes `dataset`, `recipe_sha256` and `seed`; with a `meaning`,
    arrays have the attributes that it gives them.
    """
    largest = int(columns["edge_index"].max(initial=0))
    narrow = columns["edge_index"].astype(np.min_scalar_type(largest))
    stored = {
        name: np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        for name, array in sorted((columns | {"edge_index": narrow}).items())
    }
    # Not the "core" driver's file image, which has a wrong checksum in HDF5 1.14.2 and older.
    buffer = io.BytesIO()
    with h5py.File(buffer, "w", libver=("v110", "v110")) as f:
        f.attrs["schema_version"] = SCHEMA_VERSION
        f.attrs["num_classes"] = schema.num_classes
        f.attrs["sha256"] = np.bytes_(shard_digest(stored))
        if not schema.has_rationale:  # explicit for other readers; ours sees that masks are missing
            f.attrs["has_rationale"] = False
        if schema.has_null:
            f.attrs["has_null"] = 1
        for name, value in sorted(identity.items()):
            f.attrs[name] = value
        for name, array in stored.items():
            f.create_dataset(name, data=array, track_times=False)
        for column in schema.columns():
            if column.feature is not None:
                f[column.name].attrs["width"] = column.feature.width
                if column.feature.widths:
                    widths = ",".join(map(str, column.feature.widths))
                    f[column.name].attrs["widths"] = np.bytes_(widths)
        for extra in schema.extras:
            f[extra.name].attrs["level"] = np.bytes_(extra.level)
        described = {} if meaning is None else meaning.attributes(schema)
        for name, attributes in sorted(described.items()):
            for key, value in sorted(attributes.items()):
                f[name].attrs.create(key, value, dtype=h5py.string_dtype())
    return buffer.getvalue()


class ShardReader:
    """One shard, read whole or memory-mapped.

    Args:
        path: the file.
        file_sha256: refuse the file unless its bytes have this SHA-256. HDF5 can hang on damaged
            files, so compare the hash of the manifest before HDF5 sees the file.
        file_crc32: the same with CRC-32: enough against damage, and three times as fast.
        mapped: memory-map the file instead of reading it, to find the `offsets` of its arrays.

    Attributes:
        columns: the arrays that `Schema.columns` declares; `edge_index` keeps its narrow type.
        offsets: at which byte of the file each array begins; arrays without elements have none.
        schema: as stored in the file.

    Raises:
        DamagedError: the file is missing, not HDF5, or not a shard.
    """

    def __init__(
        self,
        path: str | Path,
        file_sha256: str | None = None,
        file_crc32: int | None = None,
        mapped: bool = False,
    ) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise DamagedError(f"{self.path}: no such shard; build the dataset again")
        try:
            self._image = _map(self.path) if mapped else self.path.read_bytes()
            if file_sha256 is not None:
                self._compare("SHA-256", file_sha256, self.file_sha256)
            if file_crc32 is not None:
                self._compare("CRC-32", file_crc32, self.file_crc32)
            name = os.fsencode(self.path)
            with closing(h5py.h5f.open(name, h5py.h5f.ACC_RDONLY, _CLOSE_AT_ONCE)) as file:
                self._read(file)
        except _HDF5_ERRORS as error:
            raise _unreadable(self.path, error) from None

    def _compare(self, kind: str, expected: str | int, actual: str | int) -> None:
        if expected != actual:
            raise DamagedError(
                f"{self.path}: not the file that manifest.json lists ({kind} {expected}, got "
                f"{actual}); delete the build and build again"
            )

    def _read(self, file: h5py.h5f.FileID) -> None:
        version = _read_attribute(file, "schema_version", int)
        if version != SCHEMA_VERSION:
            raise wrong_version(self.path, version)
        self.columns: Columns = {}
        self.offsets: dict[str, int] = {}
        features: dict[str, Feature] = {}
        extras = []
        for key in file:
            name = key.decode()
            if file.links.get_info(key).type != h5py.h5l.TYPE_HARD:
                raise ValueError(f"'{name}' is a link to somewhere else")
            array_id = h5py.h5d.open(file, key)
            array = self.columns[name] = _cut(array_id, self._image)
            if array.size:
                self.offsets[name] = array_id.get_offset()
            if name in ("x", "edge_attr"):
                features[name] = _read_feature(array_id, array)
            elif name not in USUAL and not name.endswith("_ptr"):
                level = cast(Level, _read_attribute(array_id, "level", str))
                extras.append(Column(name, level, array.dtype.str, array.shape[1:]))
        self.schema = Schema(
            node_features=features["x"],
            edge_features=features.get("edge_attr"),
            num_classes=_read_attribute(file, "num_classes", int),
            extras=tuple(extras),
            has_rationale="node_mask" in self.columns,
            task="node" if "node_y" in self.columns else "graph",
            has_null=h5py.h5a.exists(file, b"has_null"),
            has_alternatives="alternative_bits" in self.columns,
            has_weights="node_weight" in self.columns,
            label="number" if self.columns["y"].dtype.kind == "f" else "class",
        )
        if problem := layout_problem(self.columns, self.schema):
            raise ValueError(problem)

    @cached_property
    def file_sha256(self) -> str:
        """SHA-256 of the file's bytes."""
        return hashlib.sha256(self._image).hexdigest()

    @cached_property
    def file_crc32(self) -> int:
        """CRC-32 of the file's bytes."""
        return zlib.crc32(self._image)

    @cached_property
    def sha256(self) -> str:
        """Digest of the stored arrays, as written in the file."""
        return self._read_again(lambda file: _read_attribute(file.id, "sha256", str))

    @cached_property
    def identity(self) -> dict[str, Any]:
        """The file attributes `dataset`, `recipe_sha256` and `seed`."""
        # Read separately, on demand: HDF5 can hang on text of variable length in a damaged file.
        return self._read_again(
            lambda file: {
                "dataset": file.attrs["dataset"],
                "recipe_sha256": file.attrs["recipe_sha256"],
                "seed": operator.index(file.attrs["seed"]),
            }
        )

    @cached_property
    def described(self) -> dict[str, Attributes]:
        """What the file says about its arrays, as in `Meaning.attributes`; nothing in older ones.

        Read it only from a file whose hash was compared: see `identity`.
        """
        arrays = self._read_again(lambda file: {name: _described(file[name]) for name in file})
        return {name: attributes for name, attributes in arrays.items() if attributes}

    def _read_again(self, read: Callable[[h5py.File], T]) -> T:
        try:
            with h5py.File(self.path, "r") as file:
                return read(file)
        except _HDF5_ERRORS as error:
            raise _unreadable(self.path, error) from None

    def check(self) -> None:
        """Raise a `DamagedError` unless the arrays have the digest that is written in the file."""
        digest = shard_digest(self.columns)
        if digest != self.sha256:
            raise DamagedError(
                f"{self.path}: its arrays do not have the digest written in it "
                f"(expected {self.sha256}, got {digest}); delete it and build again"
            )

    def check_bytes(self, schema: Schema, meaning: Meaning | None, **identity: Any) -> None:
        """Raise a `DamagedError` unless `shard_bytes` of the arrays gives the same bytes again."""
        same = self.schema == schema
        if not same or shard_bytes(self.columns, schema, meaning, **identity) != self._image:
            raise DamagedError(
                f"{self.path}: writing its arrays again gives other bytes; "
                "delete it and build again"
            )

    def __len__(self) -> int:
        return len(self.columns["y"])

    def __getitem__(self, i: int) -> GraphRecord:
        if not -len(self) <= i < len(self):
            raise IndexError(f"graph {i} of a shard with {len(self)} graphs")
        return unpack(self.columns, self.schema, i % len(self))

    def __iter__(self) -> Iterator[GraphRecord]:
        return (self[i] for i in range(len(self)))


# What h5py raises for damaged files.
_HDF5_ERRORS = (OSError, KeyError, ValueError, RuntimeError, TypeError)


def _unreadable(path: Path, error: Exception) -> DamagedError:
    reason = " ".join(str(error).split()).strip("'\"")
    return DamagedError(f"{path}: not a readable shard ({reason}); delete it and build again")


# Shards are read with h5py's low-level interface, and arrays are cut out of the file's bytes at the
# offsets that HDF5 gives: with many shards, h5py's objects cost more than the data
# (`benchmarks/load.py`). Only plain contiguous arrays have an offset, so this also refuses links,
# data in other files, and sizes beyond the end of the file.


def _map(path: Path) -> mmap.mmap:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _cut(dataset: h5py.h5d.DatasetID, image: bytes | mmap.mmap) -> npt.NDArray[Any]:
    shape, dtype, offset = dataset.shape, dataset.dtype, dataset.get_offset()
    count = math.prod(shape)
    if count == 0:
        return np.empty(shape, dtype)
    if offset is None or dtype.hasobject:
        raise ValueError("an array is not stored contiguously in this file")
    return np.frombuffer(image, dtype, count, offset).reshape(shape)


def _read_feature(array_id: h5py.h5d.DatasetID, array: npt.NDArray[Any]) -> Feature:
    """Return the encoding: one-hot features are bytes, multi-hot ones rows of bytes."""
    width = _read_attribute(array_id, "width", int)
    if array.dtype != np.uint8:
        return Feature(width, "dense")
    if array.ndim == 1:
        return Feature(width, "onehot")
    widths = tuple(int(part) for part in _read_attribute(array_id, "widths", str).split(","))
    return Feature(width, "multihot", widths)


def _described(array: h5py.Dataset) -> Attributes:
    """Return the attributes of an array that are for people: texts, and lists of names."""
    attributes: Attributes = {}
    for key in ATTRIBUTES:
        if key in array.attrs:
            value = array.attrs[key]
            attributes[key] = value if isinstance(value, str) else [str(name) for name in value]
    return attributes


def _read_attribute(location: Any, name: str, kind: type[T]) -> T:
    attribute = h5py.h5a.open(location, name.encode())
    # Text of variable length lies in a heap without checksums, where one wrong bit can make HDF5
    # loop for ever; so attributes that every reader needs have a fixed size.
    if attribute.shape != () or attribute.dtype.hasobject:
        raise ValueError(f"attribute '{name}' is not a single value of fixed size")
    value = np.empty((), attribute.dtype)
    attribute.read(value)
    plain = value.item()
    plain = plain.decode() if isinstance(plain, bytes) else plain
    if type(plain) is not kind:
        raise ValueError(f"attribute '{name}' is not of type {kind.__name__}")
    return plain
