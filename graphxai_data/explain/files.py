"""Explanation files: scores of the nodes, and maybe the edges, of a dataset's graphs.

With a file, any explainer can be compared without running its code. It is a safetensors file: the
arrays of a `ScoreFile` are its tensors; the texts, "format" and "version" are its metadata.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from graphxai_data.errors import InputError
from graphxai_data.files.disk import explained_disk_errors, write_atomically
from graphxai_data.metrics import checked_scores

FORMAT, VERSION, SUFFIX = "graphxai-data scores", "2", ".safetensors"
# Version 1 was HDF5. Such files are recognised, so that an error can say what to do with them.
OLD_SUFFIXES = (".h5", ".hdf5")
_HDF5 = b"\x89HDF\r\n\x1a\n"
_TEXTS = ("dataset", "content_sha256", "explainer", "model_sha256")
_ARRAYS = ("graph_id", "node_ptr", "node_scores", "edge_ptr", "edge_scores")


@dataclass(frozen=True)
class ScoreFile:
    """The content of an explanation file.

    Attributes:
        dataset: name of the dataset.
        content_sha256: of its build.
        explainer: a name, for tables.
        graph_id: [g] which graphs.
        node_ptr: [g+1] where the nodes of each graph begin and end.
        node_scores: [N].
        edge_ptr: [g+1] where the edges of each graph begin and end, or None.
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
        if np.ndim(self.graph_id) != 1:
            raise InputError(f"graph_id: expected [graphs], got {list(self.graph_id.shape)}")
        count = len(self.graph_id)
        if len(np.unique(self.graph_id)) != count:
            raise InputError("graph_id: a graph is there twice; expected each once")
        for what in ("node", "edge"):
            ptr, scores = getattr(self, f"{what}_ptr"), getattr(self, f"{what}_scores")
            if ptr is None:
                continue
            starts_at_0 = ptr.shape == (count + 1,) and ptr[0] == 0
            if not starts_at_0 or (np.diff(ptr.astype(np.int64)) < 0).any():
                raise InputError(f"{what}_ptr: expected [{count + 1}], from 0 and never falling")
            checked_scores(scores, ptr, f"{what}_scores")

    def save(self, path: str | Path) -> None:
        """Write the file; equal content gives equal bytes."""
        texts = {key: getattr(self, key) for key in _TEXTS}
        arrays = {key: getattr(self, key) for key in _ARRAYS if getattr(self, key) is not None}
        arrays = {key: np.ascontiguousarray(value) for key, value in arrays.items()}
        for key, array in arrays.items():
            if array.dtype == np.longdouble:  # safetensors has none
                arrays[key] = array.astype(np.float64)
        content = save(arrays, {"format": FORMAT, "version": VERSION, **texts})
        with explained_disk_errors(Path(path), "place"):
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            write_atomically(Path(path), _with_sorted_header(content))

    @classmethod
    def load(cls, path: str | Path) -> "ScoreFile":
        """Read a file; raise an `InputError` if it is of another kind, damaged or inconsistent."""
        texts, arrays = _read(Path(path))
        kind = f"{texts.get('format')}, version {texts.get('version')}"
        if kind != f"{FORMAT}, version {VERSION}":
            raise InputError(f"{path}: expected {FORMAT}, version {VERSION}, got {kind}")
        for key in (*_TEXTS[:3], *_ARRAYS[:3]):
            if key not in texts | arrays:
                raise InputError(f"{path}: '{key}' is missing; docs/metrics.md has the format")
        for key, array in arrays.items():
            if array.dtype.kind == "b":
                raise InputError(f"{path}: {key}: expected numbers, got {array.dtype}")
        values: dict[str, Any] = {key: texts[key] for key in _TEXTS if key in texts} | arrays
        try:
            return cls(**values)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None


def is_score_file(path: str | Path) -> bool:
    """Whether a path names an explanation file, of this version or an earlier one."""
    return Path(path).suffix in (SUFFIX, *OLD_SUFFIXES)


def _read(path: Path) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the metadata and the known arrays of a file."""
    if not path.is_file():
        raise InputError(f"{path}: no such file; expected one with scores")
    try:
        with path.open("rb") as start:
            is_old = start.read(len(_HDF5)) == _HDF5
        if not is_old:
            with safe_open(path, framework="numpy") as file:
                known = [key for key in file.keys() if key in _ARRAYS]  # noqa: SIM118
                return file.metadata() or {}, {key: file.get_tensor(key) for key in known}
    except (
        SafetensorError, OSError, ValueError, TypeError, LookupError, AttributeError, MemoryError,
    ) as error:  # fmt: skip
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"{path}: not a safetensors file, or a damaged one ({reason}); save it again"
        ) from None
    raise InputError(
        f"{path}: an HDF5 file, as an earlier version wrote it; expected safetensors: save it "
        "again with `graphxai-data evaluate --save-scores`, or with ScoreFile.save"
    )


def _with_sorted_header(content: bytes) -> bytes:
    """Return a safetensors file with its header's keys in order: the library shuffles them."""
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.dumps(
        json.loads(content[8:end]), sort_keys=True, separators=(",", ":"), ensure_ascii=False
    ).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + content[end:]
