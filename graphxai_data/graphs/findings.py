"""Findings: a list of broken promises about graphs, each naming the first graph that breaks it."""

from functools import cached_property

import numpy as np
import numpy.typing as npt

from graphxai_data.graphs.columns import Columns, Ints, graph_of_edge, graph_of_node


class Findings:
    """Collects problems of the graphs in `columns`; `problems` is empty when there are none.

    `nodes` and `edges` count, for every graph, the rows for which something is true: what most
    requirements are made of.
    """

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._graph_id = columns["graph_id"]
        self.problems: list[str] = []

    @cached_property
    def _owner_of_node(self) -> Ints:
        return graph_of_node(self._columns)

    @cached_property
    def _owner_of_edge(self) -> Ints:
        return graph_of_edge(self._columns)

    def nodes(self, holds: npt.NDArray[np.bool_]) -> Ints:
        """[g] how many nodes of each graph `holds` [N] is true for."""
        return np.bincount(self._owner_of_node[holds], minlength=len(self._graph_id))

    def edges(self, holds: npt.NDArray[np.bool_]) -> Ints:
        """[g] how many directed edges of each graph `holds` [M] is true for."""
        return np.bincount(self._owner_of_edge[holds], minlength=len(self._graph_id))

    def require(self, holds: npt.NDArray[np.bool_], sentence: str) -> None:
        """Note a problem unless `holds` [g] is true for every graph."""
        if not holds.all():
            broken = int((~holds).sum())
            first = int(self._graph_id[int(np.argmin(holds))])
            others = f" (and {broken - 1} more)" if broken > 1 else ""
            self.problems.append(f"graph {first}{others}: {sentence}")
