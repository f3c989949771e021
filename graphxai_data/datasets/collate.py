"""How `BatchLoader` cuts a batch out of the tensors of a dataset: one copy a field."""

import copy
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Batch, InMemoryDataset
from torch_geometric.data.storage import N_KEYS

from graphxai_data.datasets.data import Texts
from graphxai_data.files.jit import compiled

Integers = npt.NDArray[np.int64]
# Bytes: fields with one row a graph that is no larger may be copied for a whole epoch at once.
_SMALL_ROW = 64


def fields_of(dataset: InMemoryDataset) -> dict[str, Any]:
    """The fields of its graphs, in the order in which PyG gives them to a graph."""
    return {key: dataset._data[key] for key in dataset.slices if key in dataset._data._store}


def node_counter(fields: dict[str, Any]) -> str | None:
    """The field whose rows PyG takes for the nodes."""
    rows = [key for key, value in fields.items() if not is_text(value)]
    known = [key for key in rows if key in N_KEYS] + [key for key in rows if "node" in key]
    return known[0] if known else None


def is_text(value: object) -> bool:
    """Whether a field has one string a graph."""
    return isinstance(value, Texts) or (
        isinstance(value, list) and all(isinstance(text, str) for text in value)
    )


def counts_in_nodes(key: str) -> bool:
    """Whether a field holds numbers of nodes, as `Data.__inc__` and `Data.__cat_dim__` see it."""
    return "index" in key or key == "face"


class BatchCutter:
    """Makes the batches of one epoch, where there is no obstacle."""

    def __init__(
        self,
        dataset: InMemoryDataset,
        keys: Sequence[str] | None,
        order: Integers,
        batch_size: int,
    ) -> None:
        fields, slices = fields_of(dataset), dataset.slices
        chosen = dataset._indices
        self._graphs = order if chosen is None else np.array(chosen, np.int64)[order]
        self._batch_size = batch_size
        self._empty = Batch(_base_cls=type(dataset._data))
        self._fields: dict[str, _Field] = {}
        # Fields that divide alike, such as x and node_mask, are one level; nodes are the first.
        self._levels: list[_Level] = []
        self._level_of(slices[node_counter(fields)])
        for key, value in fields.items():
            if keys is not None and key not in keys:
                continue
            if isinstance(value, Texts):
                self._fields[key] = _Encoded(value)
            elif is_text(value):
                self._fields[key] = _Strings(value)
            elif counts_in_nodes(key):
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
