"""Proof of the pairs of coloured motifs by networkx, without any code of the generator."""

from typing import Any

from graphxai_data.generators.base import Prover, Sources
from graphxai_data.generators.motifs_proof import (
    Repeats,
    bridged_motifs,
    coloured_graph,
    rationale_problems,
)
from graphxai_data.graphs.record import GraphRecord


class BA2MotifPairProver(Prover):
    """Searches for the red motif (colour 0) and the blue one (colour 1) of every graph."""

    def __init__(self, params: Any, sources: Sources | None = None) -> None:
        self._params = params
        self._repeats = Repeats()

    def problems(self, record: GraphRecord) -> list[str]:
        """Return what contradicts the claims about a graph; empty when all is proven."""
        graph = coloured_graph(record)
        motifs = sorted(bridged_motifs(graph, self._params.motifs), key=lambda motif: motif.colour)
        if (colours := [motif.colour for motif in motifs]) != [0, 1]:
            return [f"motifs of colours {colours}, expected a red and a blue one: [0, 1]"]
        counted = {"a": motifs[:1], "b": motifs[1:], "both": motifs}[self._params.cause]
        problems = rationale_problems(record, graph, counted)
        if {motif.shape for motif in counted} != {record.y}:
            problems.append(f"label {record.y} does not follow from the motif")
        if record.meta["cause_y"].tolist() != [motif.shape for motif in motifs]:
            problems.append("cause_y is not the shapes of the red and the blue motif")
        cause = [1 * (node in motifs[0].nodes) + 2 * (node in motifs[1].nodes) for node in graph]
        if record.meta["cause"].tolist() != cause:
            problems.append("cause is not where the red and the blue motif are")
        return problems + self._repeats.problems(record, graph)
