"""Many graphs as one disjoint union, which rules and checks compute on: no object per graph."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from graphxai_data.graphs.columns import Ints, graph_of_rows, pointers


@dataclass(frozen=True, slots=True, eq=False)
class Graphs:
    """Many graphs in one disjoint union, as NumPy arrays.

    Attributes:
        x: [N, p] node features, or [N] class ids.
        edges: [2, M] rows of `x`, both directions, sorted.
        edge_attr: [M, q] or [M] edge features, or None.
        node_ptr: [g+1] first node of each graph.
    """

    x: npt.NDArray[np.generic]
    edges: Ints
    edge_attr: npt.NDArray[np.generic] | None
    node_ptr: Ints

    @property
    def sizes(self) -> Ints:
        """[g] nodes of each graph."""
        return np.diff(self.node_ptr)

    @property
    def owner(self) -> Ints:
        """[N] graph of each node."""
        return graph_of_rows(self.node_ptr)

    def nodes_of(self, selected: Ints) -> Ints:
        """Return the nodes of the selected graphs, in the order given."""
        return spans(self.node_ptr[selected], self.sizes[selected])

    def take(self, selected: Ints) -> "Graphs":
        """Return the selected graphs, in the order given."""
        edge_ptr = np.searchsorted(self.edges[0], self.node_ptr)
        nodes = self.nodes_of(selected)
        edges = spans(edge_ptr[selected], np.diff(edge_ptr)[selected])
        node_ptr = pointers(self.sizes[selected])
        shift = np.repeat(node_ptr[:-1] - self.node_ptr[selected], np.diff(edge_ptr)[selected])
        attributes = None if self.edge_attr is None else self.edge_attr[edges]
        return Graphs(self.x[nodes], self.edges[:, edges] + shift, attributes, node_ptr)


def spans(begins: Ints, lengths: Ints) -> Ints:
    """Return the concatenated ranges [begin, begin + length)."""
    ends = pointers(lengths)
    return np.arange(ends[-1]) + np.repeat(begins - ends[:-1], lengths)
