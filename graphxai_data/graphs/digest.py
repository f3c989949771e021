"""Digests of one shard's arrays, and of a whole build; never of HDF5 bytes."""

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from graphxai_data.errors import DamagedError
from graphxai_data.graphs.columns import Columns


class ArrayDigest:
    """SHA-256 over name, type, shape and bytes of each array, in name order.

    Updated shard by shard, it equals the digest of one shard with all graphs: every array has a
    running hash, and pointers continue where those of the last shard ended. So the digest of a
    build does not depend on the shard size.
    """

    def __init__(self) -> None:
        self._hashes: dict[str, Any] = {}
        self._layouts: dict[str, tuple[str, tuple[int, ...]]] = {}
        self._lengths: dict[str, int] = {}
        self._pointer_ends: dict[str, int] = {}

    def update(self, columns: Columns) -> "ArrayDigest":
        """Add the next graphs."""
        for name, array in columns.items():
            if name == "edge_index":
                # [2, M] grows along its second axis: two running hashes, one per row.
                self._add("edge_index/0", array[0])
                self._add("edge_index/1", array[1])
            elif name.endswith("_ptr"):
                end = self._pointer_ends.get(name)
                self._pointer_ends[name] = (end or 0) + int(array[-1])
                self._add(name, array if end is None else array[1:] + np.int64(end))
            else:
                self._add(name, array)
        return self

    def _add(self, name: str, rows: npt.NDArray[Any]) -> None:
        rows = np.ascontiguousarray(rows, rows.dtype.newbyteorder("<"))
        layout = rows.dtype.str, rows.shape[1:]
        if self._layouts.setdefault(name, layout) != layout:
            raise DamagedError(f"array '{name}' changes its type or width between shards")
        self._hashes.setdefault(name, hashlib.sha256()).update(rows)
        self._lengths[name] = self._lengths.get(name, 0) + len(rows)

    def hexdigest(self) -> str:
        """Return the digest of all graphs so far."""
        whole = hashlib.sha256()
        for name in sorted(self._hashes):
            dtype, row_shape = self._layouts[name]
            shape = [self._lengths[name], *row_shape]
            whole.update(f"{name} {dtype} {shape} {self._hashes[name].hexdigest()}\n".encode())
        return whole.hexdigest()


def shard_digest(stored: Columns) -> str:
    """Return the digest of one shard's stored arrays."""
    return ArrayDigest().update(stored).hexdigest()


def widened(stored: Columns) -> Columns:
    """Return the arrays with node ids as int64: the stored type depends on the largest graph."""
    return stored | {"edge_index": stored["edge_index"].astype(np.int64)}
