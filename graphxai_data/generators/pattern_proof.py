"""Proof of PATTERN: graphs of the same pattern contain the same subgraph.

A pattern that occurs only once in a small build cannot be compared with anything.
"""

from typing import Any

import networkx as nx
import numpy as np

from graphxai_data.generators.base import Prover, Sources
from graphxai_data.graphs.record import GraphRecord


class PatternProver(Prover):
    """Compares the nodes of class 1 between graphs of the same pattern."""

    def __init__(self, params: Any, sources: Sources) -> None:
        self._patterns = params.patterns
        self._seen: dict[int, tuple[int, str]] = {}

    def problems(self, record: GraphRecord) -> list[str]:
        """Return whether the pattern of a graph differs from that of an earlier one."""
        if record.node_y is None:
            return ["its nodes have no classes"]
        graph: Any = nx.Graph(record.edge_index.T.tolist())
        graph.add_nodes_from(range(record.num_nodes))
        inside = graph.subgraph(np.flatnonzero(record.node_y).tolist()).copy()
        kinds = record.x.argmax(axis=1)
        nx.set_node_attributes(inside, {n: str(kinds[n]) for n in inside}, "kind")
        pattern = nx.weisfeiler_lehman_graph_hash(inside, node_attr="kind")
        graph_id = int(record.meta["graph_id"])
        first, expected = self._seen.setdefault(graph_id % self._patterns, (graph_id, pattern))
        if pattern == expected:
            return []
        return [f"its nodes of class 1 are not the pattern of graph {first}, as they should be"]
