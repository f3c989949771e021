"""Published graphs: which of them a build takes, and how they become columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from graphxai_data.errors import InputError
from graphxai_data.files.raw import Source, read_numbers
from graphxai_data.generators.base import Values
from graphxai_data.graphs.columns import Columns, Ints, pointers
from graphxai_data.graphs.record import Plan
from graphxai_data.graphs.splits import stratified_order
from graphxai_data.seeds import rng_for


class RawGraph(NamedTuple):
    """One graph as shards store it, on its way to a worker.

    Attributes:
        x: [n] class ids of nodes, or [n, k] several side by side.
        edge_index: [2, m] both directions, sorted by source and target.
        edge_attr: [m, k] class ids of edges, or None.
        node_y: [n] classes of nodes, or None.
    """

    x: Values
    edge_index: Ints
    edge_attr: Values | None = None
    node_y: Values | None = None


@dataclass(frozen=True)
class PublishedGraphs:
    """All graphs of a source, concatenated; `x`, `edge_index` and `edge_attr` as in `RawGraph`.

    Attributes:
        label: [g] class.
        node_ptr: [g+1] where the nodes of each graph begin and end.
        edge_ptr: [g+1] where the edges of each graph begin and end.
    """

    label: Ints
    node_ptr: Ints
    edge_ptr: Ints
    x: Values
    edge_index: Ints
    edge_attr: Values | None = None

    def take(self, rows: Ints) -> list[RawGraph]:
        """Return the graphs in some rows."""
        node_ptr, edge_ptr, graphs = self.node_ptr.tolist(), self.edge_ptr.tolist(), []
        for i in rows.tolist():
            nodes, edges = slice(*node_ptr[i : i + 2]), slice(*edge_ptr[i : i + 2])
            attr = None if self.edge_attr is None else self.edge_attr[edges]
            graphs.append(RawGraph(self.x[nodes], self.edge_index[:, edges], attr))
        return graphs


def read_ids(path: Path, name: str, widths: tuple[int, ...], first: int = 0) -> Values:
    """Return the class ids [lines, columns] in a file of a source, as numbers from 0.

    Args:
        path: the folder or archive.
        name: of the file.
        widths: how many classes each column has.
        first: number of the first class in the file.
    """
    ids = read_numbers(path, name, len(widths)) - first
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

    Args:
        source: named in the error if it has too few graphs.
        strata: [g] what to keep in proportion, for all graphs of the source.
        graphs: how many to take.
        stream: name of the random stream that selects them.
    """
    if graphs > len(strata):
        raise InputError(
            f"{source.path}: {len(strata)} graphs, {graphs} asked for; ask for no more"
        )
    return np.sort(stratified_order(strata, rng_for(0, stream))[:graphs])


def stack(plan: Plan, graphs: Sequence[RawGraph]) -> Columns:
    """Return the columns of the planned graphs."""
    columns = plan.columns() | {
        "node_ptr": pointers([len(graph.x) for graph in graphs]),
        "edge_ptr": pointers([graph.edge_index.shape[1] for graph in graphs]),
        "edge_index": np.concatenate([graph.edge_index for graph in graphs], axis=1),
    }
    for name in ("x", "edge_attr", "node_y"):
        if getattr(graphs[0], name) is not None:
            columns[name] = np.concatenate([getattr(graph, name) for graph in graphs])
    return columns


def check(params: object, columns: Columns) -> list[str]:
    """Return no problems: beyond the invariants of all datasets, the arrays alone tell nothing."""
    return []
