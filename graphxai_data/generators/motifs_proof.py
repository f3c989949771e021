"""Motifs in coloured graphs, found again by networkx, without any code of a generator."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np

from graphxai_data.graphs.record import GraphRecord

MOTIFS_OF_NETWORKX: dict[str, Callable[[], "nx.Graph[int]"]] = {
    "house": nx.house_graph,
    "cycle": lambda: nx.cycle_graph(5),
    "k23": lambda: nx.complete_bipartite_graph(2, 3),
    # A hub that is joined to all nodes of a path of four.
    "crane": lambda: nx.compose(nx.star_graph(4), nx.path_graph([1, 2, 3, 4])),
}


@dataclass(frozen=True)
class Motif:
    """A motif of one colour that a bridge joins to the rest of its graph."""

    nodes: frozenset[int]
    shape: int  # position of its name among the recipe's motifs
    colour: int


def coloured_graph(record: GraphRecord) -> "nx.Graph[int]":
    """Return a graph whose nodes have a `colour`."""
    graph: nx.Graph[int] = nx.Graph()
    for node, colour in enumerate(record.x.argmax(axis=1).tolist()):
        graph.add_node(node, colour=colour)
    graph.add_edges_from(record.edge_index.T.tolist())
    return graph


def bridged_motifs(graph: "nx.Graph[int]", names: Sequence[str]) -> Iterator[Motif]:
    """Yield the motifs: what one bridge cuts off, if it has their shape and one colour."""
    rest = graph.copy()
    bridges: Any = list(nx.bridges(graph))  # networkx types edges as nodes
    rest.remove_edges_from(bridges)
    for nodes in nx.connected_components(rest):
        colours = {graph.nodes[node]["colour"] for node in nodes}
        crossing = [edge for edge in graph.edges if (edge[0] in nodes) != (edge[1] in nodes)]
        if (len(nodes), len(colours), len(crossing)) != (5, 1, 1):
            continue
        inside = graph.subgraph(nodes)
        for shape, name in enumerate(names):
            if nx.is_isomorphic(inside, MOTIFS_OF_NETWORKX[name]()):
                yield Motif(frozenset(nodes), shape, colours.pop())


def rationale_problems(
    record: GraphRecord, graph: "nx.Graph[int]", motifs: Iterable[Motif]
) -> list[str]:
    """Return where masks are not the nodes and edges of these motifs, or colours not balanced."""
    problems = []
    parts = [motif.nodes for motif in motifs]
    if set(np.flatnonzero(record.rationale).tolist()) != frozenset().union(*parts):
        problems.append("the rationale is not the motif that makes the class")
    marked = {frozenset(edge) for edge in record.edge_index[:, record.edge_mask].T.tolist()}
    if marked != {frozenset(edge) for nodes in parts for edge in graph.subgraph(nodes).edges}:
        problems.append("edge_mask is not the set of edges inside the motif")
    if len(set(record.x.sum(axis=0).tolist())) != 1:
        problems.append("not as many nodes of one colour as of another")
    return problems


class Repeats:
    """Remembers coloured graphs, and finds those that are isomorphic to one of another group."""

    def __init__(self) -> None:
        self._seen: dict[str, list[GraphRecord]] = {}

    def problems(self, record: GraphRecord, graph: "nx.Graph[int]") -> list[str]:
        """Return which earlier graph of another group is the same up to the order of nodes."""
        digest = nx.weisfeiler_lehman_graph_hash(graph, node_attr="colour")
        earlier = self._seen.setdefault(digest, [])
        same = [
            other.meta["graph_id"]
            for other in earlier
            if other.group != record.group
            and nx.is_isomorphic(graph, coloured_graph(other), node_match=_same_colour)
        ]
        earlier.append(record)
        return [f"isomorphic to graph {same[0]}, which is in another group"] if same else []


def _same_colour(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return bool(one["colour"] == other["colour"])
