"""Sums over edges and over graphs: the only operations of these models that mix nodes.

A sum over edges is a product with a sparse matrix of ones in CSR form, and so is its gradient. On
graphs with 8 neighbours per node that is 4 times as fast as `index_add_` on the messages of all
edges, which in turn is faster than `torch.segment_reduce` (`python -m benchmarks.train`). On a CPU
the result does not depend on the order in which threads finish. The same product adds a node's own
state. Where torch traces or transforms a model it sees operations of its own instead, with the same
result to rounding.
"""

import copy
import warnings
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import torch
from scipy.sparse import coo_array
from torch import Tensor

from graphxai_data.errors import InputError

# The ends of an edge: the rows of `edge_index`.
SOURCE, TARGET = 0, 1

# Sums of these are computed in float32: they would lose more than half of their digits.
_SHORT = (torch.bfloat16, torch.float16)
_AS_IS: AbstractContextManager[None] = nullcontext()

with warnings.catch_warnings():
    # torch warns once per process that CSR tensors are a beta feature; we only need a product.
    warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
    torch.sparse_csr_tensor(
        torch.tensor([0, 1]), torch.tensor([0]), torch.ones(1), (1, 1), check_invariants=False
    )


def plain() -> bool:
    """Return whether torch compiles, exports or transforms (`torch.func`) what runs now.

    It can do so with its own operations only: not with products of sparse matrices, counting sorts
    in NumPy, values that a program depends on, or functions with a written gradient.
    """
    return torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()


@dataclass(frozen=True)
class Members:
    """Groups of rows: `rows[ptr[i]:ptr[i+1]]`, out of `count` rows, belong to owner i."""

    ptr: Tensor
    rows: Tensor
    count: int
    _matrices: dict[torch.dtype, Tensor] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, owner: Tensor, owners: int) -> "Members":
        """Return the rows of each owner, in rising order, from the owner of each row."""
        count = len(owner)
        if owner.device.type == "cpu":
            # A counting sort: five times as fast as torch.argsort.
            ones = np.ones(count, np.int8)
            matrix = coo_array((ones, (owner.numpy(), np.arange(count))), (owners, count)).tocsr()
            return cls(torch.from_numpy(matrix.indptr), torch.from_numpy(matrix.indices), count)
        counts = torch.bincount(owner, minlength=owners)
        ptr = torch.nn.functional.pad(counts.cumsum(0), (1, 0))
        return cls(ptr, torch.argsort(owner, stable=True), count)

    def summed(self, values: Tensor) -> Tensor:
        """Return [owners, width] the sum of `values` [count, width] over each owner's rows."""
        self._check_rows(values)
        owners, width = len(self.ptr) - 1, values.shape[1]
        if not (owners and width and len(self.rows)):
            return values.new_zeros((owners, width))
        if values.dtype in _SHORT:
            return self.summed(values.float()).to(values.dtype)
        with full_precision(values.device.type):
            return self._matrix(values.dtype) @ values.contiguous()

    def summed_with_own(self, values: Tensor, own_weight: float) -> Tensor:
        """Return the same plus each owner's own row times a weight; rows and owners are nodes."""
        self._check_rows(values)
        if not (values.shape[1] and len(self.rows)):
            return own_weight * values
        if values.dtype in _SHORT:
            return self.summed_with_own(values.float(), own_weight).to(values.dtype)
        values = values.contiguous()
        with full_precision(values.device.type):
            return torch.addmm(values, self._matrix(values.dtype), values, beta=own_weight)

    def _check_rows(self, values: Tensor) -> None:
        if len(values) != self.count:  # the product would read beyond the end
            raise InputError(f"expected {self.count} rows to sum, got {len(values)}")

    def _matrix(self, dtype: torch.dtype) -> Tensor:
        """Return [owners, count], 1 where a row belongs to an owner; made once for all layers."""
        if dtype not in self._matrices:
            ones = torch.ones(len(self.rows), dtype=dtype, device=self.rows.device)
            self._matrices[dtype] = torch.sparse_csr_tensor(
                self.ptr, self.rows, ones, (len(self.ptr) - 1, self.count), check_invariants=False
            )
        return self._matrices[dtype]


def full_precision(device: str) -> AbstractContextManager[Any]:
    """Return a context without autocast, under which sparse matrices have no products."""
    return torch.autocast(device, enabled=False) if torch.is_autocast_enabled(device) else _AS_IS


class Edges:
    """The edges of a batch, ready for sums in both directions.

    Args:
        edge_index: [2, m] source and target of each edge.
        nodes: number of nodes.
        attr: [m, q] edge features, or None.
        weight: [m] factors of the messages, such as an attention; None for 1.
    """

    def __init__(
        self,
        edge_index: Tensor,
        nodes: int,
        attr: Tensor | None = None,
        weight: Tensor | None = None,
    ) -> None:
        if edge_index.ndim != 2 or edge_index.shape[0] != 2:
            raise InputError(f"edge_index: expected [2, edges], got {list(edge_index.shape)}")
        if edge_index.is_floating_point():
            raise InputError(f"edge_index: expected whole numbers, got {edge_index.dtype}")
        if edge_index.shape[1] and not plain():  # torch has checks of its own there
            low, high = (int(end) for end in edge_index.aminmax())
            if low < 0 or high >= nodes:
                raise InputError(
                    f"edge_index: expected nodes 0 to {nodes - 1}, got {low} to {high}"
                )
        self.index = edge_index
        self.nodes, self.attr, self.weight = nodes, attr, weight
        self._edges: dict[int, Members] = {}
        self._neighbours: dict[int, Members] = {}

    def __len__(self) -> int:
        return self.index.shape[1]

    def with_weight(self, weight: Tensor | None) -> "Edges":
        """Return the same edges with other weights; both share their members."""
        edges = copy.copy(self)
        edges.weight = weight
        return edges

    def edges_by(self, end: int) -> Members:
        """Return the edges that have each node at this end."""
        if end not in self._edges:
            self._edges[end] = Members.of(self.index[end], self.nodes)
        return self._edges[end]

    def neighbours_at(self, end: int) -> Members:
        """Return the nodes at this end of the edges that have each node at their other end."""
        if end not in self._neighbours:
            edges = self.edges_by(1 - end)
            nodes = self.index[end].index_select(0, edges.rows).to(edges.rows.dtype)
            self._neighbours[end] = Members(edges.ptr, nodes, self.nodes)
        return self._neighbours[end]

    def sum_with_neighbours(self, h: Tensor, own_weight: Tensor | float = 1.0) -> Tensor:
        """Return [n, width] own_weight · h_i + Σ_j weight_ji · h_j for rows `h` [n, width]."""
        if self.weight is not None:
            return own_weight * h + self.sum_at_targets(self.weigh(self.at_sources(h)))
        return _neighbour_sum(h, own_weight, self, SOURCE)

    def weigh(self, messages: Tensor) -> Tensor:
        """Return messages [m, width], each times the weight of its edge."""
        return messages if self.weight is None else messages * self.weight.unsqueeze(1)

    def at_sources(self, h: Tensor) -> Tensor:
        """Return [m, width] the row of `h` [n, width] at the source of each edge."""
        return _select(h, self, SOURCE)

    def at_targets(self, h: Tensor) -> Tensor:
        """Return [m, width] the row of `h` [n, width] at the target of each edge."""
        return _select(h, self, TARGET)

    def sum_at_targets(self, messages: Tensor) -> Tensor:
        """Return [n, width] the sum of `messages` [m, width] over the edges into each node."""
        return _edge_sum(messages, self, TARGET)


def sum_per_graph(rows: Tensor, batch: Tensor | None, graphs: int | None) -> Tensor:
    """Return [g, width] the sum of `rows` [n, width] over the nodes of each graph.

    `batch` [n] is the graph of each node, None for a single graph. If the number of graphs is None,
    it is one more than the largest in `batch`, which misses graphs without nodes at the end.
    """
    if batch is None:
        return rows.sum(dim=0, keepdim=True)
    if not plain() and (batch.shape != rows.shape[:1] or batch.is_floating_point()):
        raise InputError(
            f"batch: expected [{rows.shape[0]}] whole numbers, the graph of every node, got "
            f"{batch.dtype} {list(batch.shape)}"
        )
    if graphs is None:
        # Not `int`, which `torch.export` takes for a constant.
        graphs = cast(int, batch.max().item()) + 1 if batch.shape[0] else 1
    # Nothing is faster for rows as narrow as logits.
    return _index_sum(rows, batch, graphs)


def _index_sum(rows: Tensor, owner: Tensor, owners: int) -> Tensor:
    """Return [owners, width] the sum of `rows` [count, width] over the rows of each owner."""
    if rows.dtype in _SHORT:
        return _index_sum(rows.float(), owner, owners).to(rows.dtype)
    return rows.new_zeros((owners, rows.shape[1])).index_add_(0, owner, rows)


# Linear maps, each with its transpose as gradient. Members are computed at first use.
def _neighbour_sum(h: Tensor, own_weight: Tensor | float, edges: Edges, end: int) -> Tensor:
    """Return [n, width] own_weight · h_i plus the rows of `h` at this end of i's edges."""
    if plain():
        return own_weight * h + _edge_sum(_select(h, edges, end), edges, 1 - end)
    result: Tensor = _NeighbourSum.apply(h, own_weight, edges, end)
    return result


def _select(h: Tensor, edges: Edges, end: int) -> Tensor:
    """Return [m, width] the rows of `h` [n, width] at this end of the edges."""
    if plain():
        return h.index_select(0, edges.index[end])
    result: Tensor = _Select.apply(h, edges, end)
    return result


def _edge_sum(messages: Tensor, edges: Edges, end: int) -> Tensor:
    """Return [n, width] the sum of `messages` [m, width] over the edges at this end of a node."""
    if plain():
        return _index_sum(messages, edges.index[end], edges.nodes)
    result: Tensor = _EdgeSum.apply(messages, edges, end)
    return result


class _NeighbourSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, own_weight: Tensor | float, edges: Edges, end: int) -> Tensor:
        ctx.edges, ctx.end = edges, end
        ctx.own_weight = own_weight if isinstance(own_weight, float) else None
        if ctx.own_weight is None:
            ctx.save_for_backward(h, own_weight)
        return edges.neighbours_at(end).summed_with_own(h, float(own_weight))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None, None, None]:
        own_weight, through_weight = ctx.own_weight, None
        if own_weight is None:
            h, own_weight = ctx.saved_tensors
            through_weight = torch.dot(grad.reshape(-1), h.reshape(-1))
        through_h = _neighbour_sum(grad, own_weight, ctx.edges, 1 - ctx.end)
        return through_h, through_weight, None, None


class _Select(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, edges: Edges, end: int) -> Tensor:
        ctx.edges, ctx.end = edges, end
        return h.index_select(0, edges.index[end])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _edge_sum(grad, ctx.edges, ctx.end), None, None


class _EdgeSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, messages: Tensor, edges: Edges, end: int) -> Tensor:
        ctx.edges, ctx.end = edges, end
        return edges.edges_by(end).summed(messages)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _select(grad, ctx.edges, ctx.end), None, None
