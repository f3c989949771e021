"""Proof of Spurious-Motif labels, masks and bases by networkx, without code of the generator."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import networkx as nx
import numpy as np

from graphxai_data.generators.base import Prover, Sources
from graphxai_data.generators.motifs_proof import MOTIFS_OF_NETWORKX
from graphxai_data.graphs.record import GraphRecord

# The key of the recipe that has the sizes of each kind of base, and the base of a size.
BASES_OF_NETWORKX: dict[str, tuple[str, Callable[[int], "nx.Graph[int]"]]] = {
    "tree": ("tree_heights", lambda height: nx.balanced_tree(2, height)),
    "ladder": ("ladder_rungs", nx.ladder_graph),
    "wheel": ("wheel_nodes", nx.wheel_graph),
}
# Degree and triangles, within its motif, of the node that the bridge ends at: the top of a house,
# the hub of a crane, any node of a cycle, one of the three nodes of K2,3.
BRIDGE_ENDS = {"cycle": (2, 0), "house": (2, 1), "crane": (4, 3), "k23": (2, 0)}


class SPMotifProver(Prover):
    """Checks one graph after the other."""

    def __init__(self, params: Any, sources: Sources | None = None) -> None:
        self._params = params

    def problems(self, record: GraphRecord) -> list[str]:
        """Return what contradicts the claims about a graph; empty when all is proven."""
        graph: nx.Graph[int] = nx.Graph(record.edge_index.T.tolist())
        graph.add_nodes_from(range(record.num_nodes))
        motif = set(np.flatnonzero(record.rationale).tolist())
        base = set(np.flatnonzero(record.meta["base"]).tolist())
        problems = []
        if motif & base or motif | base != set(graph):
            problems.append("base and rationale do not divide the nodes between them")
        crossing = [edge for edge in graph.edges if (edge[0] in motif) != (edge[1] in motif)]
        if len(crossing) != 1 or not nx.is_connected(graph):
            problems.append(f"{len(crossing)} edges join motif and base, expected one bridge")
        marked = {frozenset(edge) for edge in record.edge_index[:, record.edge_mask].T.tolist()}
        inside = graph.subgraph(motif)
        if marked != {frozenset(edge) for edge in inside.edges}:
            problems.append("edge_mask is not the set of edges inside the motif")
        names = [n for n in self._params.motifs if nx.is_isomorphic(inside, _motif(n))]
        if names != [self._params.motifs[int(record.y)]]:
            problems.append(f"label {record.y} does not follow from the motif")
        elif len(crossing) == 1:
            (end,) = motif.intersection(crossing[0])
            if (inside.degree[end], nx.triangles(inside, end)) != BRIDGE_ENDS[names[0]]:
                problems.append(f"the bridge ends at another node of the {names[0]} than it should")
        if self._params.features == "degree":
            last = self._params.feature_width - 1
            degrees = [min(degree, last) for _, degree in sorted(graph.degree)]
            if record.x.argmax(axis=1).tolist() != degrees:
                problems.append("a feature is not the node's degree")
        return problems + self._base_problems(graph.subgraph(base), record)

    def _base_problems(self, base: "nx.Graph[int]", record: GraphRecord) -> list[str]:
        """Return why the base is not one of its kind and of the sizes that its split may have."""
        kind = self._params.bases[int(record.meta["base_kind"])]
        key, make = BASES_OF_NETWORKX[kind]
        large = bool(record.meta["large"])
        least, most = getattr(self._params, f"large_{key}" if large else key)
        problems = []
        if large and record.meta["split"] != 2:
            problems.append("a large base outside of the test split")
        same_size = [g for size in range(least, most + 1) if len(g := make(size)) == len(base)]
        if not any(nx.is_isomorphic(base, other) for other in same_size):
            problems.append(f"the base is not a {kind} of {least} to {most} ({key})")
        return problems


@lru_cache(maxsize=8)
def _motif(name: str) -> "nx.Graph[int]":
    return MOTIFS_OF_NETWORKX[name]()
