"""Proof of the balanced BA-2Motif by networkx, without any code of the generator.

The motifs of a graph are found again from its bridges and colours alone. The prover remembers the
graphs: none may be isomorphic to one of another group, which may be in another split.
"""

from typing import Any

from graphxai_data.generators.base import Prover, Sources
from graphxai_data.generators.motifs_proof import (
    Repeats,
    bridged_motifs,
    coloured_graph,
    rationale_problems,
)
from graphxai_data.graphs.record import GraphRecord


class BalancedBA2MotifProver(Prover):
    """Searches for the motifs of one graph after the other."""

    def __init__(self, params: Any, sources: Sources | None = None) -> None:
        self._params = params
        self._repeats = Repeats()

    def problems(self, record: GraphRecord) -> list[str]:
        """Return what contradicts the claims about a graph; empty when all is proven."""
        graph = coloured_graph(record)
        pairs = self._params.decoys + 1
        motifs = list(bridged_motifs(graph, self._params.motifs))
        if sorted(motif.colour // 2 for motif in motifs) != list(range(pairs)):
            colours = sorted(motif.colour for motif in motifs)
            return [f"motifs of colours {colours}, expected one of each of {pairs} pairs"]
        (counted,) = (motif for motif in motifs if motif.colour < 2)
        problems = rationale_problems(record, graph, [counted])
        if counted.shape ^ counted.colour != record.y:
            problems.append(f"label {record.y} does not follow from the motif")
        return problems + self._repeats.problems(record, graph)
