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

from graphxai_data.disk import explained_disk_errors, write_atomically
from graphxai_data.errors import DamagedError, InputError
from graphxai_data.metrics import checked_scores

FORMAT, VERSION = "graphxai-data scores", 1
_TEXTS = ("format", "dataset", "content_sha256", "model_sha256", "explainer")
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
        count = len(self.graph_id)
        if len(np.unique(self.graph_id)) != count:
            raise InputError("graph_id: a graph is there twice; expected each once")
        if (self.edge_ptr is None) != (self.edge_scores is None):
            raise InputError("edge_ptr and edge_scores: expected both or neither")
        for what in ("node", "edge"):
            ptr, scores = getattr(self, f"{what}_ptr"), getattr(self, f"{what}_scores")
            if ptr is None:
                continue
            if ptr.shape != (count + 1,) or ptr[0] != 0 or (np.diff(ptr) < 0).any():
                raise InputError(f"{what}_ptr: expected [{count + 1}], from 0 and never falling")
            checked_scores(scores, ptr, f"{what}_scores")

    def save(self, path: str | Path) -> None:
        """Write the file."""
        buffer = io.BytesIO()
        with h5py.File(buffer, "w", libver=("v110", "v110")) as file:
            file.attrs["version"] = VERSION
            file.attrs["format"] = FORMAT
            for key in _TEXTS[1:]:
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
        """Read a file; a `DamagedError` if it is none."""
        if not Path(path).is_file():
            raise InputError(f"{path}: no such file; expected one with scores")
        try:
            with h5py.File(path, "r") as file:
                texts = {key: str(file.attrs[key]) for key in _TEXTS}
                arrays = {key: file[key][()] for key in _ARRAYS if key in file}
                version = int(file.attrs["version"])
        except (OSError, KeyError, ValueError, TypeError) as error:
            raise DamagedError(f"{path}: no explanation file, or a damaged one ({error})") from None
        if texts.pop("format") != FORMAT or version != VERSION:
            raise InputError(f"{path}: expected {FORMAT}, version {VERSION}, got version {version}")
        try:
            return cls(**texts, **arrays)  # type: ignore[arg-type]
        except (InputError, TypeError) as error:
            raise InputError(f"{path}: {error}") from None
