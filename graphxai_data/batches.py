"""Batches cut straight out of a dataset's tensors: PyG's own batches, many times as fast.

An `InMemoryDataset` holds one long tensor a field, and where in it the rows of each graph begin and
end. PyG's loader makes an object of every graph and puts them together again; here a batch is one
copy a field, by compiled loops. What those loops do not cover, `obstacle` names, and PyG does it.
"""

import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data, InMemoryDataset
from torch_geometric.data.storage import N_KEYS

from graphxai_data.dataset import Texts
from graphxai_data.errors import InputError, whole_number
from graphxai_data.generators.superpixels import _compiled
from graphxai_data.seeds import MAX_GRAPHS, MAX_SEED, rng_for
from graphxai_data.typed_table import nearest

Integers = npt.NDArray[np.int64]
# Bytes: fields with one row a graph that is no larger may be copied for a whole epoch at once.
_SMALL_ROW = 64

_NUMPY_TYPES = {
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
    torch.float16, torch.float32, torch.float64, torch.complex64, torch.complex128,
}  # fmt: skip


class BatchLoader:
    """The batches of any PyG `InMemoryDataset`, or of a part of one such as `dataset[10:20]`.

    Every batch is the `torch_geometric.data.Batch` that PyG's `DataLoader` gives for these graphs,
    equal in every field. Its tensors are copies: changing a batch never changes the dataset. The
    dataset is looked at anew whenever an epoch begins. The first batch of a process waits half a
    second for numba.

    Args:
        dataset: where the graphs come from; a transform is applied whenever a graph is taken.
        batch_size: graphs in a batch.
        shuffle: take the graphs in another order every epoch, a function of `seed` and `epoch`.
        seed: of the orders; the global random generators are neither read nor changed.
        drop_last: leave out the last batch if it is not full.
        keys: the fields to keep, all if None; `batch` and `ptr` are there in any case.
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
                "take torch_geometric.loader.DataLoader for anything else"
            )
        if dataset._data is None:
            raise InputError(
                f"dataset: {type(dataset).__name__} holds no graphs yet; load it first"
            )
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
        """Number of the next epoch; set it to go on where an interrupted training stopped.

        An epoch is counted when it begins: during epoch 3, and after one that was left early, the
        number is 4. To repeat an unfinished epoch, set it back.
        """
        return self._epoch

    @epoch.setter
    def epoch(self, number: int) -> None:
        self._epoch = whole_number("epoch", number, 0, 2**32 - 1)

    @property
    def obstacle(self) -> str | None:
        """Why graphs are taken one at a time, with the same result but slower; None if not."""
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
            batches = iter(_Cutter(self.dataset, self.keys, order, size))
        else:
            firsts = range(0, len(order), self.batch_size)
            batches = (self._one_by_one(order[i : i + self.batch_size]) for i in firsts)
        self.epoch += 1
        return batches

    def _one_by_one(self, positions: Integers) -> Batch:
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
    """Why batches with these fields cannot be cut from the dataset's tensors; None if they can."""
    data, slices = dataset._data, dataset.slices
    if dataset.transform is not None:
        return "the dataset has a transform"
    for name in ("get", "len", "indices", "__len__", "__getitem__"):
        if getattr(type(dataset), name) is not getattr(InMemoryDataset, name):
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
    chosen = dataset._indices
    if chosen is not None and not 0 <= min(chosen) <= max(chosen) < dataset.len():
        return "the dataset chooses graphs that are not there"
    for key in data._store:
        if key not in slices:
            return f"'{key}' is not divided into graphs"
        if key in ("num_nodes", "ptr") or "batch" in key:
            return f"'{key}' has a meaning of its own in PyG"
    fields = _fields(dataset)
    counter = _counts_nodes(fields)
    if counter is None or not data._store.can_infer_num_nodes:
        return "no field tells the number of nodes"
    for key, value in fields.items():
        if keys is None or key in keys or key == counter:
            reason = _uncovered(key, value, slices[key], dataset.len())
            if reason is not None:
                return f"'{key}' {reason}"
    return None


def _fields(dataset: InMemoryDataset) -> dict[str, Any]:
    """The fields of its graphs, in the order in which PyG gives them to a graph."""
    return {key: dataset._data[key] for key in dataset.slices if key in dataset._data._store}


def _counts_nodes(fields: dict[str, Any]) -> str | None:
    """The field whose rows PyG takes for the nodes."""
    rows = [key for key, value in fields.items() if not _is_text(value)]
    known = [key for key in rows if key in N_KEYS] + [key for key in rows if "node" in key]
    return known[0] if known else None


def _uncovered(key: str, value: object, ptr: object, graphs: int) -> str | None:
    if _is_text(value):
        return None
    # The type itself, not a subclass such as PyG's EdgeIndex, which holds more than its numbers.
    if type(value) is not Tensor or value.layout != torch.strided or value.is_nested:
        return "is neither a plain tensor nor a list of strings"
    if value.requires_grad or value.is_conj() or value.is_neg() or value.device.type != "cpu":
        return "is not just numbers in memory"
    if value.dtype not in _NUMPY_TYPES:
        return f"is of a type that NumPy does not have, {value.dtype}"
    if _counted_in_nodes(key) and value.dtype != torch.int64:
        return "holds numbers of nodes, but not as int64"
    if not isinstance(ptr, Tensor) or not _divides(ptr, graphs) or value.dim() == 0:
        return "is not divided into graphs"
    if ptr[-1] > value.shape[_dim(key)]:  # the compiled loops do not look whether a row is there
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


def _is_text(value: object) -> bool:
    return isinstance(value, Texts) or (
        isinstance(value, list) and all(isinstance(text, str) for text in value)
    )


def _counted_in_nodes(key: str) -> bool:
    """Whether a field holds numbers of nodes, as `Data.__inc__` and `Data.__cat_dim__` see it."""
    return "index" in key or key == "face"


def _dim(key: str) -> int:
    return -1 if _counted_in_nodes(key) else 0


class _Cutter:
    """Makes the batches of one epoch, where there is no obstacle."""

    def __init__(
        self,
        dataset: InMemoryDataset,
        keys: Sequence[str] | None,
        order: Integers,
        batch_size: int,
    ) -> None:
        fields, slices = _fields(dataset), dataset.slices
        chosen = dataset._indices
        self._graphs = order if chosen is None else np.array(chosen, np.int64)[order]
        self._batch_size = batch_size
        self._empty = Batch(_base_cls=type(dataset._data))
        self._fields: dict[str, _Field] = {}
        # Fields that divide alike, such as x and node_mask, are one level; nodes are the first.
        self._levels: list[_Level] = []
        self._level_of(slices[_counts_nodes(fields)])
        for key, value in fields.items():
            if keys is not None and key not in keys:
                continue
            if isinstance(value, Texts):
                self._fields[key] = _Encoded(value)
            elif _is_text(value):
                self._fields[key] = _Strings(value)
            elif _counted_in_nodes(key):
                self._fields[key] = _NodeNumbers(value, self._level_of(slices[key]))
            else:
                rows = _Rows(value, self._level_of(slices[key]))
                level = self._levels[rows.level]
                if level.single and rows.width <= _SMALL_ROW:
                    self._fields[key] = _InOrder(value, level.starts, batch_size, rows.level)
                else:
                    self._fields[key] = rows
        self._numbers = np.arange(batch_size)
        # Of its own, so that who changes `ptr` of a batch can still take the batch apart.
        self._ptr = self._levels[0].new_ptr.copy()

    def __iter__(self) -> Iterator[Batch]:
        for i in range(-(-len(self._graphs) // self._batch_size)):
            yield self._batch(i)

    def _batch(self, i: int) -> Batch:
        first, last = i * self._batch_size, (i + 1) * self._batch_size
        part = _Part(i, self._graphs[first:last], [level.runs(i) for level in self._levels])
        count = len(part.graphs)
        values, slices, increments = {}, {}, {}
        for key, field in self._fields.items():
            values[key], slices[key], increments[key] = field.cut(part)
        repeated = np.repeat(self._numbers[:count], part.runs[0].lengths)
        values["batch"] = torch.from_numpy(repeated)
        values["ptr"] = torch.from_numpy(self._ptr[first + i : last + i + 1])
        # As PyG's collate does it, but without making a class anew for every batch.
        batch = copy.copy(self._empty)
        batch._store._mapping.update(values)
        batch._num_graphs, batch._slice_dict, batch._inc_dict = count, slices, increments
        return batch

    def _level_of(self, slices: Tensor) -> int:
        for i, level in enumerate(self._levels):
            if level.slices is slices or torch.equal(level.slices, slices):
                return i
        self._levels.append(_Level(slices, self._graphs, self._batch_size))
        return len(self._levels) - 1


class _Runs(NamedTuple):
    """The rows of a batch, graph by graph.

    Attributes:
        starts: [g] the first row of each graph in the dataset.
        lengths: [g] its number of rows.
        ptr: [g+1] where its rows begin and end in the batch.
        total: number of rows in the batch.
    """

    starts: Integers
    lengths: Integers
    ptr: Tensor
    total: int


class _Level:
    """Fields of which each graph has as many rows; what can be is computed once an epoch."""

    def __init__(self, slices: Tensor, graphs: Integers, batch_size: int) -> None:
        self.slices = slices
        self._size = batch_size
        ptr = slices.numpy()
        self.starts = ptr[graphs]
        self._lengths = ptr[graphs + 1] - self.starts
        self.single = bool((self._lengths == 1).all())
        firsts = np.arange(0, len(graphs), batch_size)
        ends = self._lengths.cumsum()
        before = np.repeat(ends[firsts] - self._lengths[firsts], batch_size)[: len(graphs)]
        self.new_ptr = np.insert(ends - before, firsts, 0)

    def runs(self, i: int) -> _Runs:
        """The rows of batch i."""
        first, last = i * self._size, (i + 1) * self._size
        ptr = self.new_ptr[first + i : last + i + 1]
        return _Runs(
            self.starts[first:last],
            self._lengths[first:last],
            torch.from_numpy(ptr),
            int(ptr[-1]),
        )


class _Part:
    """What the fields of batch `number` share; `offsets` [g] are the nodes before each graph."""

    def __init__(self, number: int, graphs: Integers, runs: list[_Runs]) -> None:
        self.number = number
        self.graphs = graphs
        self.runs = runs
        self.offsets = runs[0].ptr[:-1]
        self.zeros = torch.zeros(len(graphs), dtype=torch.int64)


# A field of a batch, and what PyG needs to take it apart: its slices and increments.
_Cut = tuple[Any, Tensor, Tensor | None]


class _Strings:
    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts

    def cut(self, part: _Part) -> _Cut:
        chosen = [self._texts[i] for i in part.graphs.tolist()]
        return chosen, torch.arange(len(chosen) + 1), None


class _Encoded:
    """`Texts`, decoded without the checks that an index given by a user needs."""

    def __init__(self, texts: Texts) -> None:
        self._content = texts._content.tobytes()
        self._ptr = texts._ptr.tolist()

    def cut(self, part: _Part) -> _Cut:
        content, ptr = self._content, self._ptr
        chosen = [content[ptr[i] : ptr[i + 1]].decode() for i in part.graphs.tolist()]
        return chosen, torch.arange(len(chosen) + 1), None


class _Rows:
    """A field with some rows a graph, copied as bytes so that one loop serves all types."""

    def __init__(self, value: Tensor, level: int) -> None:
        self.level = level
        self.width = value.shape[1:].numel() * value.element_size()
        self._value = value.contiguous()
        self._bytes = _bytes(self._value)

    def cut(self, part: _Part) -> _Cut:
        runs = part.runs[self.level]
        copied = torch.empty((runs.total, *self._value.shape[1:]), dtype=self._value.dtype)
        _copy_runs(self._bytes, runs.starts, runs.lengths, self.width, _bytes(copied))
        return copied, runs.ptr, part.zeros


class _InOrder:
    """A field with one small row a graph, put in the order of the epoch all at once."""

    def __init__(self, value: Tensor, rows: Integers, batch_size: int, level: int) -> None:
        self._parts = value.index_select(0, torch.from_numpy(rows)).split(batch_size)
        self._level = level

    def cut(self, part: _Part) -> _Cut:
        return self._parts[part.number].clone(), part.runs[self._level].ptr, part.zeros


class _NodeNumbers:
    """A field such as `edge_index` [2, m]: numbers of nodes, raised by the nodes before."""

    def __init__(self, value: Tensor, level: int) -> None:
        self._level = level
        self._shape = value.shape[:-1]
        self._lines = value.reshape(self._shape.numel(), value.shape[-1]).contiguous().numpy()

    def cut(self, part: _Part) -> _Cut:
        runs = part.runs[self._level]
        numbers = torch.empty((*self._shape, runs.total), dtype=torch.int64)
        lines = numbers.view(self._shape.numel(), runs.total).numpy()
        _copy_raised(self._lines, runs.starts, runs.lengths, part.offsets.numpy(), lines)
        return numbers, runs.ptr, part.offsets


_Field = _Strings | _Encoded | _Rows | _InOrder | _NodeNumbers


def _bytes(tensor: Tensor) -> npt.NDArray[np.uint8]:
    return tensor.numpy().reshape(-1).view(np.uint8)


# Each loop runs over slices, not over computed positions: that is what the compiler can vectorise.
@_compiled
def _copy_runs(source, starts, lengths, width, target):  # type: ignore[no-untyped-def]
    done = 0
    for k in range(len(starts)):
        first, count = starts[k] * width, lengths[k] * width
        old, new = source[first : first + count], target[done : done + count]
        for j in range(count):
            new[j] = old[j]
        done += count


@_compiled
def _copy_raised(source, starts, lengths, offsets, target):  # type: ignore[no-untyped-def]
    for line in range(len(source)):
        done = 0
        for k in range(len(starts)):
            first, count, offset = starts[k], lengths[k], offsets[k]
            old, new = source[line, first : first + count], target[line, done : done + count]
            for j in range(count):
                new[j] = old[j] + offset
            done += count
