"""What `pre_filter` and `pre_transform` make of a build, kept next to it for the next load.

The file `.processed/<key>.safetensors` in the folder of the build holds the collated graphs. Its
key is a digest of the build's content, of the split and of the two callables with their code, so
that any change is noticed. It holds tensors and JSON, and is written atomically.
"""

import hashlib
import json
import logging
import os
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch_geometric
from filelock import FileLock
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor
from torch_geometric.data import Data

import graphxai_data
from graphxai_data.datasets.base import Build
from graphxai_data.datasets.data import GraphXAIData, Texts
from graphxai_data.datasets.identity import UnidentifiedError, identity
from graphxai_data.datasets.masks import mark_collated, note_lost, why_lost
from graphxai_data.files.disk import write_atomically

log = logging.getLogger(__name__)

FOLDER = ".processed"
FORMAT = "graphxai-data processed graphs, version 2"
# Results of other callables and splits that stay; the ones used longest ago are deleted.
KEPT = 8

_CLASSES = {cls.__name__: cls for cls in (GraphXAIData, Data)}


class Graphs(NamedTuple):
    """The content of an `InMemoryDataset`; `slices` are tensors by field, or None for one graph."""

    data: Any
    slices: Any


class UnstorableError(Exception):
    """These graphs cannot be written as tensors and JSON; the message says why."""


def kept(
    place: Build, options: Mapping[str, object], make: Callable[[], Graphs]
) -> tuple[Graphs, Path | None]:
    """Return graphs from the file of an earlier load, or make them and keep them.

    Args:
        place: the build.
        options: what decides the result, besides the build.
        make: returns the graphs.

    Returns:
        The graphs, and their file if there is one. Where nothing can be kept, the log says why.
    """
    try:
        path = _path(place, options)
    except UnidentifiedError as error:
        return _not_kept(place, str(error), make()), None
    if place.url is not None:
        return _not_kept(place, "the build is at a URL", make()), None
    if (found := _read(path)) is not None:
        return found, path
    with ExitStack() as held:
        try:
            path.parent.mkdir(exist_ok=True)
            # Processes that load at the same time wait for the first one instead of working too.
            held.enter_context(FileLock(path.with_suffix(".lock")))
        except (OSError, NotImplementedError) as error:
            return _not_kept(place, _reason(error), make()), None
        if (found := _read(path)) is not None:
            return found, path
        graphs = make()
        try:
            write_atomically(path, _content(graphs))
        except (OSError, UnstorableError) as error:
            return _not_kept(place, _reason(error), graphs), None
        _sweep(path)
        return graphs, path


def _not_kept(place: Build, reason: str, graphs: Graphs) -> Graphs:
    log.warning(
        "%s: what pre_filter and pre_transform gave is not kept, so the next load runs them again: "
        "%s", place.url or place.folder, reason,
    )  # fmt: skip
    return graphs


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{error.filename or 'the disk'}: {error.strerror or error}"
    return str(error) or type(error).__name__


def _path(place: Build, options: Mapping[str, object]) -> Path:
    versions = graphxai_data.__version__, torch.__version__, torch_geometric.__version__
    parts = [FORMAT, *map(str, versions), place.manifest.content_sha256]
    for name, value in sorted(options.items()):
        try:
            parts += [name, identity(value)]
        except UnidentifiedError as error:
            raise UnidentifiedError(f"{name}: {error}") from None
    key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    return place.folder / FOLDER / f"{key[:32]}.safetensors"


def _note_use(path: Path) -> None:
    """Note that a file is used now, by a clock that is finer than that of the file system."""
    now = time.time_ns()
    with suppress(OSError):
        os.utime(path, ns=(now, now))


def _sweep(path: Path) -> None:
    """Delete all but the files that were used last, and their locks; this one is used now."""
    _note_use(path)
    with suppress(OSError):
        files = sorted(path.parent.glob("*.safetensors"), key=lambda file: -file.stat().st_mtime_ns)
        for file in files[KEPT:]:
            file.unlink(missing_ok=True)
            file.with_suffix(".lock").unlink(missing_ok=True)


def _content(graphs: Graphs) -> bytes:
    """Return graphs as the bytes of a safetensors file."""
    data, slices = graphs
    if _CLASSES.get(type(data).__name__) is not type(data):
        raise UnstorableError(f"the graphs are of type {type(data).__name__}")
    tensors: dict[str, Tensor] = {}
    kinds: dict[str, str] = {}
    for key, value in data._store.items():
        kinds[key], tensors[f"value.{key}"] = _stored(key, value, data)
    for key, ends in (slices or {}).items():
        if not isinstance(ends, Tensor):
            raise UnstorableError(f"'{key}' is nested")
        tensors[f"slices.{key}"] = ends
    # safetensors wants tensors that share no memory.
    tensors = {name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}
    about = {
        "class": type(data).__name__,
        "kinds": kinds,
        "slices": None if slices is None else list(slices),
        "why_no_masks": why_lost(data),
        "crc32": _checksum(tensors),
    }
    return save(tensors, {"format": FORMAT, "about": json.dumps(about)})


def _stored(key: str, value: Any, data: Data) -> tuple[str, Tensor]:
    """Return the kind of a field, and a tensor that holds it."""
    if type(value) is Tensor and value.layout == torch.strided and not value.is_nested:
        if value.is_complex() or value.device.type != "cpu":
            raise UnstorableError(f"'{key}' is a tensor of {value.dtype} on {value.device}")
        return "tensor", value
    if key == "num_nodes" and "_num_nodes" in data._store.__dict__:
        return "numbers of nodes", torch.tensor(data._store.__dict__["_num_nodes"])
    if isinstance(value, Texts):
        value = list(value)
    known = str | int | float
    if not (isinstance(value, known) or _is_list_of(value, known)):
        raise UnstorableError(f"'{key}' is a {type(value).__name__}, not a tensor or text")
    return "json", torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)


def _is_list_of(value: object, kind: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, kind) for item in value)


def _checksum(tensors: Mapping[str, Tensor]) -> int:
    crc = 0
    for name in sorted(tensors):
        content = tensors[name].reshape(-1).view(torch.uint8).numpy().data
        crc = zlib.crc32(content, zlib.crc32(f"{name} {tensors[name].shape}".encode(), crc))
    return crc


def _read(path: Path) -> Graphs | None:
    """Return the graphs in a file; None if there is none, or none that is whole."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        log.warning("%s cannot be read: %s", path, error.strerror)
        return None
    try:
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        about = json.loads(header["__metadata__"]["about"])
        tensors = load(content)
        if about["crc32"] != _checksum(tensors):
            raise ValueError("its checksum is another")
        graphs = _graphs(about, tensors)
    except (SafetensorError, ValueError, LookupError, TypeError, AttributeError) as error:
        log.warning("%s is damaged and is made again: %s", path, error)
        return None
    _note_use(path)
    return graphs


def _graphs(about: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Graphs:
    data = _CLASSES[about["class"]]()
    for key, kind in about["kinds"].items():
        value: Any = tensors[f"value.{key}"]
        if kind == "numbers of nodes":
            data._store.__dict__["_num_nodes"] = value.tolist()
            value = int(value.sum())
        elif kind == "json":
            value = json.loads(value.numpy().tobytes())
        data._store._mapping[key] = value
    if about["why_no_masks"] is not None:
        note_lost(data, about["why_no_masks"])
    if about["slices"] is None:
        return Graphs(data, None)
    mark_collated(data)
    return Graphs(data, {key: tensors[f"slices.{key}"] for key in about["slices"]})
