"""The file of PATTERN that PyG offers, read without executing anything in it.

`PATTERN_v2.pt` is a list of three lists of graphs, for training, validation and test; a graph is a
dictionary of tensors.
"""

import zipfile
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from graphxai_data.errors import InputError
from graphxai_data.files.raw import Source
from graphxai_data.graphs.record import SPLIT_NAMES

_EXPECTED = "expected PATTERN_v2.pt, three lists of graphs, as PyG's GNNBenchmarkDataset loads it"


@lru_cache(maxsize=1)
def read_lists(source: Source) -> list[list[Any]]:
    """Return the graphs for training, validation and test, as stored in the file."""
    import torch

    try:
        if zipfile.is_zipfile(source.path):
            with zipfile.ZipFile(source.path) as archive:
                if any(i.compress_type != zipfile.ZIP_STORED for i in archive.infolist()):
                    raise ValueError("compressed; torch never compresses its files")
        content = torch.load(source.path, map_location="cpu", weights_only=True)
    except Exception as error:
        # torch raises errors of many types, also for a pickle of anything but tensors.
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise InputError(
            f"{source.path}: cannot be read ({reason[0][:200]}); {_EXPECTED}"
        ) from None
    lists = content if isinstance(content, list | tuple) else []
    if len(lists) != len(SPLIT_NAMES) or not all(isinstance(part, list) for part in lists):
        raise InputError(f"{source.path}: other content than expected; {_EXPECTED}")
    return list(lists)


def tensor_of(graph: Any, key: str, kinds: str, where: str) -> npt.NDArray[Any]:
    """Return a tensor of a graph as an array; only plain tensors are accepted.

    Its `dtype.kind` must be one of the letters in `kinds`.
    """
    import torch

    tensor = graph.get(key) if isinstance(graph, dict) else None
    if not isinstance(tensor, torch.Tensor):
        raise InputError(f"{where}: expected a dictionary with a tensor {key}")
    try:
        # A tensor can claim to be larger than its storage, by repeating it.
        stored = tensor.untyped_storage().nbytes() if tensor.layout is torch.strided else -1
        if tensor.numel() * tensor.element_size() > stored:
            raise TypeError("more numbers than are stored")
        array = tensor.detach().numpy()
    except (RuntimeError, TypeError, NotImplementedError) as error:
        raise InputError(f"{where}: {key}: not a plain tensor ({error})") from None
    if array.dtype.kind not in kinds:
        raise InputError(f"{where}: {key}: numbers of type {array.dtype} are not expected here")
    return np.asarray(array)
