"""Explanation files: scores of the nodes, and maybe edges, of a dataset's graphs, in HDF5.

So that anybody's explainer can be compared without running its code. A file names the very dataset,
by the digest of its content, and the model that it explains, by the hash of its weights; it is
refused for any other.

    attributes   format "graphxai-data scores", version 1, dataset, content_sha256,
                 model_sha256 ("" if no model was explained), explainer
    graph_id     [g] i64, as in the dataset; any graphs in any order
    node_ptr     [g+1] i64, where the nodes of each graph begin and end
    node_scores  [N] float
    edge_scores  [M] float, optional, edges in the order of `edge_index`
    edge_ptr     [g+1] i64, with edge_scores
"""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from graphxai_data.errors import InputError
from graphxai_data.files.disk import explained_disk_errors, write_atomically
from graphxai_data.metrics import checked_scores

FORMAT, VERSION = "graphxai-data scores", 1
# A file may say that it holds more than it does: zlib never packs more than 1,032 to 1.
_MOST_PACKED, _MOST_BYTES = 1032, 2**31
_HEAP = b"GCOL\x01"
_TEXTS = ("dataset", "content_sha256", "model_sha256", "explainer")
_ATTRIBUTES = ("format", "version", *_TEXTS)
_ARRAYS = ("graph_id", "node_ptr", "node_scores", "edge_ptr", "edge_scores")


@dataclass(frozen=True)
class ScoreFile:
    """What an explanation file says.

    Attributes:
        dataset: name of the dataset.
        content_sha256: of its build.
        explainer: a name, for tables.
        graph_id: [g] which graphs.
        node_ptr: [g+1] where the nodes of each begin and end.
        node_scores: [N].
        edge_ptr: [g+1] where the edges of each begin and end, or None.
        edge_scores: [M], or None.
        model_sha256: hash of the weights of the model that is explained; "" for none.
    """

    dataset: str
    content_sha256: str
    explainer: str
    graph_id: npt.NDArray[np.int64]
    node_ptr: npt.NDArray[np.int64]
    node_scores: npt.NDArray[Any]
    edge_ptr: npt.NDArray[np.int64] | None = None
    edge_scores: npt.NDArray[Any] | None = None
    model_sha256: str = ""

    def __post_init__(self) -> None:
        if (self.edge_ptr is None) != (self.edge_scores is None):
            raise InputError("edge_ptr and edge_scores: expected both or neither")
        for key in ("graph_id", "node_ptr", "edge_ptr"):
            numbers = getattr(self, key)
            if numbers is not None and np.asarray(numbers).dtype.kind not in "iu":
                raise InputError(f"{key}: expected whole numbers, got {numbers.dtype}")
        count = len(self.graph_id)
        if len(np.unique(self.graph_id)) != count:
            raise InputError("graph_id: a graph is there twice; expected each once")
        for what in ("node", "edge"):
            ptr, scores = getattr(self, f"{what}_ptr"), getattr(self, f"{what}_scores")
            if ptr is None:
                continue
            if (
                ptr.shape != (count + 1,)
                or ptr[0] != 0
                or (np.diff(ptr.astype(np.int64)) < 0).any()
            ):
                raise InputError(f"{what}_ptr: expected [{count + 1}], from 0 and never falling")
            checked_scores(scores, ptr, f"{what}_scores")

    def save(self, path: str | Path) -> None:
        """Write the file."""
        buffer = io.BytesIO()
        with h5py.File(buffer, "w", libver=("v110", "v110")) as file:
            file.attrs["version"] = VERSION
            file.attrs["format"] = FORMAT
            for key in _TEXTS:
                file.attrs[key] = getattr(self, key)
            for key in _ARRAYS:
                value = getattr(self, key)
                if value is not None:
                    file.create_dataset(key, data=value, compression="gzip", track_times=False)
        with explained_disk_errors(Path(path), "place"):
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            write_atomically(Path(path), buffer.getvalue())

    @classmethod
    def load(cls, path: str | Path) -> "ScoreFile":
        """Read a file; an `InputError` if it is none, or makes no sense."""
        if not Path(path).is_file():
            raise InputError(f"{path}: no such file; expected one with scores")
        try:
            check_heaps(Path(path).read_bytes())
            with h5py.File(path, "r") as file:
                attributes = {
                    key: _text(file.attrs[key]) for key in _ATTRIBUTES if key in file.attrs
                }
                arrays = {key: _array(file, key) for key in _ARRAYS if key in file}
        except (OSError, ValueError, TypeError, KeyError, RuntimeError, MemoryError) as error:
            raise InputError(f"{path}: no HDF5 file, or a damaged one ({error})") from None
        found = f"{attributes.get('format')}, version {attributes.get('version')}"
        if found != f"{FORMAT}, version {VERSION}":
            raise InputError(f"{path}: expected {FORMAT}, version {VERSION}, got {found}")
        wanted = ("dataset", "content_sha256", "explainer")
        missing = [key for key in wanted if key not in attributes]
        missing += [key for key in _ARRAYS[:3] if key not in arrays]
        if missing:
            raise InputError(f"{path}: '{missing[0]}' is missing; docs/metrics.md has the format")
        texts = {key: attributes[key] for key in wanted}
        model = attributes.get("model_sha256", "")
        try:
            return cls(**texts, **arrays, model_sha256=model)  # type: ignore[arg-type]
        except InputError as error:
            raise InputError(f"{path}: {error}") from None


def _text(value: Any) -> str:
    if np.ndim(value):
        raise ValueError("an attribute is not a single value")
    return value.decode() if isinstance(value, bytes) else str(value)


def _array(file: h5py.File, key: str) -> npt.NDArray[Any]:
    """An array [rows] of numbers that lies in this very file, and is no larger than it can be."""
    if not isinstance(file.get(key, getlink=True), h5py.HardLink):
        raise ValueError(f"'{key}' is a link to somewhere else")
    found = file[key]
    if not isinstance(found, h5py.Dataset) or found.external or found.is_virtual:
        raise ValueError(f"'{key}' is not an array in this file")
    if found.ndim != 1 or found.dtype.kind not in "iuf":
        raise ValueError(f"'{key}' is {found.dtype} {found.shape}, expected numbers [rows]")
    if found.nbytes > min(_MOST_BYTES, _MOST_PACKED * found.id.get_storage_size() + 2**16):
        raise ValueError(f"'{key}' claims {found.nbytes} bytes, more than are stored")
    array: npt.NDArray[Any] = found[()]
    return array


def check_heaps(image: bytes) -> None:
    """A ValueError where HDF5 could loop for ever: in a heap of texts whose objects do not end."""
    at = image.find(_HEAP)
    while at >= 0:
        size = int.from_bytes(image[at + 8 : at + 16], "little")
        place, end = at + 16, at + size
        if not 16 <= size <= len(image) - at:
            raise ValueError("a heap of texts that is larger than the file")
        while place + 16 <= end:
            number = int.from_bytes(image[place : place + 2], "little")
            length = int.from_bytes(image[place + 8 : place + 16], "little")
            # Number 0 is what is free: all the rest. Else HDF5 could look at one place for ever.
            place += 16 + -(-length // 8) * 8 if number else length
            if place > end or (number == 0 and place != end):
                raise ValueError("a heap of texts with an object that does not end")
        at = image.find(_HEAP, at + 4)
