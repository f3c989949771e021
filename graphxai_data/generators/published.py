"""Published graphs: which of them a build takes, and how they become columns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from graphxai_data.errors import InputError
from graphxai_data.files.numbers import read_numbers
from graphxai_data.files.raw import Source
from graphxai_data.generators.base import Generator, Values
from graphxai_data.graphs.columns import Columns, Ints, pointers
from graphxai_data.graphs.record import Plan
from graphxai_data.graphs.splits import stratified_order
from graphxai_data.seeds import rng_for

# One graph as shards store it, on its way to a worker: `x` [n] or [n, k] class ids of nodes,
# `edge_index` [2, m] sorted, `edge_attr` [m, k] class ids of edges or None, `node_y` [n] or None.
# A plain tuple: the garbage collector tracks a NamedTuple, and then reading ogbg-molhiv takes half
# as long again.
RawGraph = tuple[Values, Ints, Values | None, Values | None]


@dataclass(frozen=True)
class PublishedGraphs:
    """All graphs of a source, concatenated; `x`, `edge_index` and `edge_attr` as in `RawGraph`.

    `label` is [g]; `node_ptr` and `edge_ptr` [g+1] say where the rows of each graph begin and end.
    """

    label: Ints
    node_ptr: Ints
    edge_ptr: Ints
    x: Values
    edge_index: Ints
    edge_attr: Values | None = None

    def take(self, rows: Ints) -> list[RawGraph]:
        """Return the graphs in some rows."""
        nodes, edges, attr = self.node_ptr.tolist(), self.edge_ptr.tolist(), self.edge_attr
        return [
            (
                self.x[nodes[i] : nodes[i + 1]],
                self.edge_index[:, edges[i] : edges[i + 1]],
                None if attr is None else attr[edges[i] : edges[i + 1]],
                None,
            )
            for i in rows.tolist()
        ]


def read_ids(path: Path, name: str, widths: tuple[int, ...], first: int = 0) -> Values:
    """Return the class ids [lines, columns] in a file of a source, as numbers from 0.

    `widths` says how many classes each column has; their numbers begin with `first` in the file.
    """
    ids = read_numbers(path, name, len(widths))
    ids -= first
    # Read as unsigned, a negative number is larger than any width.
    wrong = ids.view(np.uint64) >= np.array(widths, np.uint64)
    if wrong.any():
        line, column = (int(at[0]) for at in wrong.nonzero())
        raise InputError(
            f"{path}: {name}: line {line + 1}: {ids[line, column] + first} in column {column + 1}, "
            f"expected {first} to {first + widths[column] - 1}"
        )
    return ids.astype(np.uint8)


def rows_to_build(source: Source, strata: Ints, graphs: int, stream: str) -> Ints:
    """Return the rows of a build of so many graphs, sorted; the same ones for every seed.

    `strata` [g] is what to keep in proportion, `stream` names the random stream that selects.
    """
    if graphs > len(strata):
        count = len(strata)
        raise InputError(f"{source.path}: {count} graphs, {graphs} asked for; ask for no more")
    return np.sort(stratified_order(strata, rng_for(0, stream))[:graphs])


def edge_order(edges: Ints, nodes: int, refuse: Callable[[int, str], object]) -> Ints:
    """Return the order [m] of `edges` [2, m] by source and target.

    `refuse(edge, reason)` raises the error if an edge is a self-loop, occurs twice or lacks its
    reverse.
    """
    source, target = edges
    code, reverse = source * nodes + target, target * nodes + source
    order = np.argsort(code)
    ordered = code[order]
    if (loops := source == target).any():
        refuse(int(np.argmax(loops)), "is a self-loop")
    if not np.diff(ordered).all():
        repeated = np.setdiff1d(order, np.unique(code, return_index=True)[1])
        refuse(int(repeated[0]), "is there twice")
    if not np.array_equal(np.sort(reverse), ordered):
        refuse(int(np.argmin(np.isin(reverse, code))), "lacks its reverse")
    return order


class PublishedGenerator(Generator):
    """Base of datasets whose graphs were published: `read` returns them as `RawGraph`."""

    is_published = True

    def generate(self, plan: Plan, seed: int) -> Columns:
        """Return the planned graphs, which are in `plan.raw`."""
        return stack(plan, plan.raw or [])


def stack(plan: Plan, graphs: Sequence[RawGraph]) -> Columns:
    """Return the columns of the planned graphs."""
    columns = plan.columns() | {
        "node_ptr": pointers([len(x) for x, *_ in graphs]),
        "edge_ptr": pointers([edges.shape[1] for _, edges, *_ in graphs]),
        "x": np.concatenate([graph[0] for graph in graphs]),
        "edge_index": np.concatenate([graph[1] for graph in graphs], axis=1),
    }
    for name, i in (("edge_attr", 2), ("node_y", 3)):
        if graphs[0][i] is not None:
            columns[name] = np.concatenate([graph[i] for graph in graphs])
    return columns
