"""How `BatchLoader` cuts a batch out of the tensors of a dataset: one copy per field."""

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Batch, InMemoryDataset
from torch_geometric.data.storage import N_KEYS

from graphxai_data.datasets.data import Texts
from graphxai_data.files.jit import compiled
from graphxai_data.graphs.columns import Ints

# Bytes: fields with one row per graph of at most this size are reordered once per epoch.
_SMALL_ROW = 64


def fields_of(dataset: InMemoryDataset) -> dict[str, Any]:
    """Return the fields of its graphs, in PyG's order."""
    return {key: dataset._data[key] for key in dataset.slices if key in dataset._data._store}


def node_counter(fields: dict[str, Any]) -> str | None:
    """Return the field by whose rows PyG counts nodes."""
    rows = [key for key, value in fields.items() if not is_text(value)]
    known = [key for key in rows if key in N_KEYS] + [key for key in rows if "node" in key]
    return known[0] if known else None


def is_text(value: object) -> bool:
    """Return whether a field has one string per graph."""
    return isinstance(value, Texts) or (
        isinstance(value, list) and all(isinstance(text, str) for text in value)
    )


def holds_node_ids(key: str) -> bool:
    """Return whether `Data.__inc__` and `Data.__cat_dim__` take a field for node ids."""
    return "index" in key or key == "face"


class BatchCutter:
    """Makes the batches of one epoch from a dataset that has no `obstacle`."""

    def __init__(
        self, dataset: InMemoryDataset, keys: Sequence[str] | None, order: Ints, batch_size: int
    ) -> None:
        fields, slices = fields_of(dataset), dataset.slices
        indices = dataset._indices
        self._graphs = order if indices is None else np.array(indices, np.int64)[order]
        self._batch_size = batch_size
        # PyG's own steps, so that the batch knows what the dataset knows about its masks.
        self._empty = Batch(_base_cls=type(dataset._data)).stores_as(dataset._data)
        self._numbers = np.arange(batch_size)
        # Fields with equal slices, such as x and node_mask, share a level; nodes are the first.
        self._levels: list[_Level] = []
        self._level_of(slices[node_counter(fields)])
        self._cut: dict[str, Callable[[_Part], _Cut]] = {}
        for key, value in fields.items():
            if keys is not None and key not in keys:
                continue
            if is_text(value):
                self._cut[key] = _cut_texts(value)
                continue
            number = self._level_of(slices[key])
            level = self._levels[number]
            if holds_node_ids(key):
                self._cut[key] = _cut_node_ids(value, number)
            elif level.single and _row_bytes(value) <= _SMALL_ROW:
                self._cut[key] = _cut_in_order(value, level.starts, batch_size, number)
            else:
                self._cut[key] = _cut_rows(value, number)
        # Private copy: mutating `batch.ptr` must not corrupt slices.
        self._ptr = self._levels[0].new_ptr.copy()

    def __iter__(self) -> Iterator[Batch]:
        return map(self._batch, range(-(-len(self._graphs) // self._batch_size)))

    def _batch(self, i: int) -> Batch:
        first, last = i * self._batch_size, (i + 1) * self._batch_size
        part = _Part(i, self._graphs[first:last], [level.runs(i) for level in self._levels])
        count = len(part.graphs)
        values, slices, increments = {}, {}, {}
        for key, cut in self._cut.items():
            values[key], slices[key], increments[key] = cut(part)
        repeated = np.repeat(self._numbers[:count], part.runs[0].lengths)
        values["batch"] = torch.from_numpy(repeated)
        values["ptr"] = torch.from_numpy(self._ptr[first + i : last + i + 1])
        # As in PyG's collate, but without creating a class for every batch.
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
    """The rows of a batch, graph by graph."""

    starts: Ints  # [g] the first row of each graph in the dataset
    lengths: Ints  # [g] its number of rows
    ptr: Tensor  # [g+1] where its rows begin and end in the batch
    total: int  # number of rows in the batch


class _Level:
    """Fields with the same number of rows per graph; holds what is computed once per epoch."""

    def __init__(self, slices: Tensor, graphs: Ints, batch_size: int) -> None:
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
        """Return the rows of batch i."""
        first, last = i * self._size, (i + 1) * self._size
        ptr = self.new_ptr[first + i : last + i + 1]
        starts, lengths = self.starts[first:last], self._lengths[first:last]
        return _Runs(starts, lengths, torch.from_numpy(ptr), int(ptr[-1]))


class _Part:
    """What the fields of batch `number` share; `offsets` [g] counts the nodes before each graph."""

    def __init__(self, number: int, graphs: Ints, runs: list[_Runs]) -> None:
        self.number, self.graphs, self.runs = number, graphs, runs
        self.offsets = runs[0].ptr[:-1]
        self.zeros = torch.zeros(len(graphs), dtype=torch.int64)


# A field of a batch with the slices and increments by which PyG takes the batch apart.
_Cut = tuple[Any, Tensor, Tensor | None]


def _cut_texts(texts: Sequence[str]) -> Callable[[_Part], _Cut]:
    def cut(part: _Part) -> _Cut:
        if isinstance(texts, Texts):
            selected = texts.take(part.graphs)
        else:
            selected = [texts[i] for i in part.graphs.tolist()]
        return selected, torch.arange(len(selected) + 1), None

    return cut


def _cut_rows(value: Tensor, level: int) -> Callable[[_Part], _Cut]:
    """A field with any number of rows per graph, copied as bytes: one loop serves all types."""
    value, width = value.contiguous(), _row_bytes(value)
    source = _bytes(value)

    def cut(part: _Part) -> _Cut:
        runs = part.runs[level]
        rows = torch.empty((runs.total, *value.shape[1:]), dtype=value.dtype)
        _copy_runs(source, runs.starts, runs.lengths, width, _bytes(rows))
        return rows, runs.ptr, part.zeros

    return cut


def _cut_in_order(
    value: Tensor, rows: Ints, batch_size: int, level: int
) -> Callable[[_Part], _Cut]:
    """A field with one small row per graph, put in the order of the epoch at once."""
    batches = value.index_select(0, torch.from_numpy(rows)).split(batch_size)
    return lambda part: (batches[part.number].clone(), part.runs[level].ptr, part.zeros)


def _cut_node_ids(value: Tensor, level: int) -> Callable[[_Part], _Cut]:
    """A field such as `edge_index` [2, m], raised by the number of nodes before each graph."""
    shape = value.shape[:-1]
    source = value.reshape(shape.numel(), value.shape[-1]).contiguous().numpy()

    def cut(part: _Part) -> _Cut:
        runs = part.runs[level]
        ids = torch.empty((*shape, runs.total), dtype=torch.int64)
        lines = ids.view(shape.numel(), runs.total).numpy()
        _copy_raised(source, runs.starts, runs.lengths, part.offsets.numpy(), lines)
        return ids, runs.ptr, part.offsets

    return cut


def _row_bytes(value: Tensor) -> int:
    return value.shape[1:].numel() * value.element_size()


def _bytes(tensor: Tensor) -> npt.NDArray[np.uint8]:
    return tensor.numpy().reshape(-1).view(np.uint8)


# Each loop runs over slices, not over computed positions, so that the compiler can vectorise it.
@compiled
def _copy_runs(source, starts, lengths, width, target):  # type: ignore[no-untyped-def]
    done = 0
    for k in range(len(starts)):
        first, count = starts[k] * width, lengths[k] * width
        old, new = source[first : first + count], target[done : done + count]
        for j in range(count):
            new[j] = old[j]
        done += count


@compiled
def _copy_raised(source, starts, lengths, offsets, target):  # type: ignore[no-untyped-def]
    for line in range(len(source)):
        done = 0
        for k in range(len(starts)):
            first, count, offset = starts[k], lengths[k], offsets[k]
            old, new = source[line, first : first + count], target[line, done : done + count]
            for j in range(count):
                new[j] = old[j] + offset
            done += count
