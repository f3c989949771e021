"""Batches cut straight out of a dataset's tensors: equal to PyG's, many times as fast.

An `InMemoryDataset` holds one long tensor per field, with the slices of its graphs. PyG's loader
creates an object for every graph and concatenates them again; here compiled loops copy each field
once per batch. `obstacle` names what those loops do not cover; PyG makes the batches then.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data, InMemoryDataset

from graphxai_data.datasets.collate import (
    BatchCutter,
    fields_of,
    holds_node_ids,
    is_text,
    node_counter,
)
from graphxai_data.datasets.pyg_methods import PyGMethods
from graphxai_data.errors import InputError, nearest, whole_number
from graphxai_data.graphs.columns import Ints
from graphxai_data.seeds import MAX_GRAPHS, MAX_SEED, rng_for

_NUMPY_TYPES = {
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
    torch.float16, torch.float32, torch.float64, torch.complex64, torch.complex128,
}  # fmt: skip

# Without a transform, these do what PyG's methods do.
_SAME = (PyGMethods.__getitem__,)


class BatchLoader:
    """The batches of any PyG `InMemoryDataset`, or of a part of one such as `dataset[10:20]`.

    Every batch equals, in every field, the `torch_geometric.data.Batch` of PyG's `DataLoader` for
    these graphs. Its tensors are copies: changing a batch never changes the dataset. Changes to the
    dataset take effect in the next epoch. The first batch of a process waits half a second for
    numba.

    Args:
        dataset: where the graphs come from; a transform is applied whenever a graph is taken.
        batch_size: graphs per batch.
        shuffle: take the graphs in another order every epoch, a function of `seed` and `epoch`.
        seed: of the orders; the global random generators are neither read nor changed.
        drop_last: leave out the last batch if it is not full.
        keys: the fields to keep, all if None; `batch` and `ptr` are always kept.
    """

    def __init__(
        self,
        dataset: InMemoryDataset,
        batch_size: int = 64,
        shuffle: bool = False,
        seed: int = 0,
        drop_last: bool = False,
        *,
        keys: Iterable[str] | None = None,
    ) -> None:
        if not isinstance(dataset, InMemoryDataset):
            raise InputError(
                f"dataset: expected a PyG InMemoryDataset, got {type(dataset).__name__}; "
                "use torch_geometric.loader.DataLoader for anything else"
            )
        if dataset._data is None:
            raise InputError(f"dataset: {type(dataset).__name__} holds no graphs; load it first")
        if isinstance(keys, str):
            raise InputError(f"keys: expected several names, got {keys!r}; write ({keys!r},)")
        self.dataset = dataset
        self.batch_size = whole_number("batch_size", batch_size, 1, MAX_GRAPHS)
        self.shuffle = shuffle
        self.seed = whole_number("seed", seed, 0, MAX_SEED)
        self.drop_last = drop_last
        self.keys = None if keys is None else tuple(keys)
        self.epoch = 0
        if dataset.transform is None:  # a transform may add fields
            self._refuse_unknown_keys(dataset._data)

    @property
    def epoch(self) -> int:
        """Number of the next epoch; set it to resume an interrupted training.

        An epoch is counted when it begins: during epoch 3, and after leaving it early, the number
        is 4. To repeat an unfinished epoch, set it back.
        """
        return self._epoch

    @epoch.setter
    def epoch(self, number: int) -> None:
        self._epoch = whole_number("epoch", number, 0, 2**32 - 1)

    @property
    def obstacle(self) -> str | None:
        """Why graphs are taken one at a time, which is slower; None if batches are cut."""
        return obstacle(self.dataset, self.keys)

    def __len__(self) -> int:
        graphs = len(self.dataset)
        return graphs // self.batch_size if self.drop_last else -(-graphs // self.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        count = len(self.dataset)
        order = np.arange(count)
        if self.shuffle:
            order = rng_for(self.seed, "batches/order", self.epoch).permutation(count)
        order = order[: len(self) * self.batch_size]
        if len(order) and self.obstacle is None:
            size = min(self.batch_size, len(order))
            batches = iter(BatchCutter(self.dataset, self.keys, order, size))
        else:
            firsts = range(0, len(order), self.batch_size)
            batches = (self._one_by_one(order[i : i + self.batch_size]) for i in firsts)
        self.epoch += 1
        return batches

    def _one_by_one(self, positions: Ints) -> Batch:
        graphs = [self.dataset[i] for i in positions.tolist()]
        if self.keys is None:
            return Batch.from_data_list(graphs)
        self._refuse_unknown_keys(graphs[0])
        others = set(graphs[0].keys()).difference(self.keys)
        return Batch.from_data_list(graphs, exclude_keys=sorted(others))

    def _refuse_unknown_keys(self, graph: Any) -> None:
        known = list(graph.keys())
        for key in self.keys or ():
            if key not in known:
                raise InputError(f"keys: the graphs have no field {key!r}; {nearest(key, known)}")


def obstacle(dataset: InMemoryDataset, keys: Sequence[str] | None = None) -> str | None:
    """Return why batches with these fields cannot be cut from tensors; None if they can."""
    data, slices = dataset._data, dataset.slices
    if dataset.transform is not None:
        return "the dataset has a transform"
    for name in ("get", "len", "indices", "__len__", "__getitem__"):
        if getattr(type(dataset), name) not in (getattr(InMemoryDataset, name), *_SAME):
            return f"{type(dataset).__name__} has its own {name}"
    if dataset.len() == 1:
        return "PyG keeps a single graph in a form of its own"
    if not isinstance(data, Data) or isinstance(data, Batch):
        return f"the graphs are of type {type(data).__name__}"
    for name in ("__init__", "__inc__", "__cat_dim__", "num_nodes"):
        if getattr(type(data), name) is not getattr(Data, name):
            return f"{type(data).__name__} has its own {name}"
    if "_num_nodes" in data._store.__dict__:
        return "the number of nodes is stored"
    indices = dataset._indices
    if indices and not 0 <= min(indices) <= max(indices) < dataset.len():
        return "the dataset selects graphs that do not exist"
    for key in data._store:
        if key not in slices:
            return f"'{key}' is not divided into graphs"
        if key in ("num_nodes", "ptr") or "batch" in key:
            return f"'{key}' has a meaning of its own in PyG"
    fields = fields_of(dataset)
    counter = node_counter(fields)
    if counter is None or not data._store.can_infer_num_nodes:
        return "no field tells the number of nodes"
    for key, value in fields.items():
        if keys is not None and key not in keys and key != counter:
            continue
        if reason := _uncovered(key, value, slices[key], dataset.len()):
            return f"'{key}' {reason}"
    return None


def _uncovered(key: str, value: object, ptr: object, graphs: int) -> str | None:
    if is_text(value):
        return None
    # Not a subclass such as PyG's EdgeIndex, which holds more than its values.
    if type(value) is not Tensor or value.layout != torch.strided or value.is_nested:
        return "is neither a plain tensor nor a list of strings"
    if value.requires_grad or value.is_conj() or value.is_neg() or value.device.type != "cpu":
        return "is not a plain array in memory"
    if value.dtype not in _NUMPY_TYPES:
        return f"is of a type that NumPy does not have, {value.dtype}"
    if holds_node_ids(key) and value.dtype != torch.int64:
        return "holds node ids, but not as int64"
    if not isinstance(ptr, Tensor) or not _divides(ptr, graphs) or value.dim() == 0:
        return "is not divided into graphs"
    # The compiled loops do not check bounds.
    if ptr[-1] > value.shape[-1 if holds_node_ids(key) else 0]:
        return "has fewer rows than its slices say"
    return None


def _divides(ptr: Tensor, graphs: int) -> bool:
    return (
        ptr.dtype == torch.int64
        and ptr.device.type == "cpu"
        and ptr.shape == (graphs + 1,)
        and bool(ptr[0] >= 0)
        and bool((ptr[1:] >= ptr[:-1]).all())
    )
