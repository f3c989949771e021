"""Proof of BA-2Motif labels and masks by networkx, without any code of the generator."""

from typing import Any

import networkx as nx
import numpy as np

from graphxai_data.generators.base import Prover, Sources
from graphxai_data.generators.motifs_proof import MOTIFS_OF_NETWORKX
from graphxai_data.graphs.record import GraphRecord


class BA2MotifProver(Prover):
    """Checks one graph after the other."""

    def __init__(self, params: Any, sources: Sources | None = None) -> None:
        self._params = params

    def problems(self, record: GraphRecord) -> list[str]:
        """Return what contradicts the claims about a graph; empty when all is proven."""
        graph: nx.Graph[int] = nx.Graph(record.edge_index.T.tolist())
        graph.add_nodes_from(range(record.num_nodes))
        motif_nodes = set(np.flatnonzero(record.rationale).tolist())
        inside = graph.subgraph(motif_nodes)
        crossing = [e for e in graph.edges if (e[0] in motif_nodes) != (e[1] in motif_nodes)]
        problems = []
        if not nx.is_connected(graph):
            problems.append("not connected")
        if len(crossing) != 1 or not set(crossing) <= set(nx.bridges(graph)):
            problems.append(f"{len(crossing)} edges join motif and base, expected one bridge")
        marked = {tuple(sorted(e)) for e in record.edge_index[:, record.edge_mask].T.tolist()}
        if marked != {tuple(sorted(e)) for e in inside.edges}:
            problems.append("edge_mask is not the set of edges inside the motif")
        matches = [nx.is_isomorphic(inside, MOTIFS_OF_NETWORKX[n]()) for n in self._params.motifs]
        motif_colours = {int(record.x[node].argmax()) for node in motif_nodes}
        flip = motif_colours == {1} if self._params.features == "colour" else False
        if sum(matches) != 1 or matches.index(True) ^ flip != record.y:
            problems.append(f"label {record.y} does not follow from the motif")
        if self._params.features == "degree":
            degrees = [degree for _, degree in sorted(graph.degree)]
            if record.x.argmax(axis=1).tolist() != degrees:
                problems.append("a feature is not the node's degree")
        elif len(motif_colours) != 1:
            problems.append("the motif is not of one colour")
        return problems
