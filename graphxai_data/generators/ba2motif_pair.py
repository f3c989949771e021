"""BA-2Motif with two causes: a red motif (A) and a blue one (B) on a coloured graph.

The class of a cause is its shape. Both shapes and both motifs are independent, and the rest of the
graph depends on neither. Every colour has as many nodes as every other.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from graphxai_data.files.toml import Between, Names
from graphxai_data.generators.base import Prover, Rule, Sources
from graphxai_data.generators.motif_graphs import Layout, assemble, draw
from graphxai_data.generators.motifs import (
    MOTIF_NODES,
    MOTIFS,
    is_connected,
    recognised_motifs,
    words_of_groups,
)
from graphxai_data.generators.pairs import PAIR_COLUMNS, PairGenerator, PairParams
from graphxai_data.graphs.columns import Columns, Ints, global_edges
from graphxai_data.graphs.invariants import Findings
from graphxai_data.graphs.record import Plan
from graphxai_data.graphs.schema import Feature, Schema

# The first colour is that of cause A, the second that of cause B.
COLOURS = ("red", "blue", "grey")
STREAM = "ba2motif_pair"


class BA2MotifPairGenerator(PairGenerator):
    """A red and a blue motif on a Barabási–Albert graph of three colours."""

    @dataclass(frozen=True)
    class Params(PairParams):
        """The recipe's numbers; the motifs are the classes of a cause."""

        motifs: Annotated[tuple[str, ...], Names(tuple(MOTIFS), 2, 2)]
        base_edges: Annotated[int, Between(1, 5)]  # from each new node of the base (m)
        colour_nodes_min: Annotated[int, Between(1, 80)]  # nodes of each colour
        colour_nodes_max: Annotated[int, Between(1, 80)]

        def __post_init__(self) -> None:
            super().__post_init__()
            self.layout.check()

        @property
        def layout(self) -> Layout:
            """Where nodes are laid out."""
            sizes = self.colour_nodes_min, self.colour_nodes_max
            return Layout(len(COLOURS), 2, self.base_edges, *sizes)

    params: Params

    def schema(self) -> Schema:
        """One-hot colours on nodes, no edge features, two classes."""
        return Schema(Feature(len(COLOURS), "onehot"), None, num_classes=2, extras=PAIR_COLUMNS)

    def class_names(self) -> list[str]:
        """Return the motifs."""
        return list(self.params.motifs)

    def node_values(self) -> dict[str, list[str] | None]:
        """Return the colours that a node may have."""
        return {"colour": list(COLOURS)}

    def draw(self, plan: Plan, seed: int, classes: Ints) -> Columns:
        """Return the planned graphs with these shapes [2, g] of the red and the blue motif."""
        layout = self.params.layout
        words, graph = words_of_groups(layout.word_shapes(orders=1), plan.index, seed, STREAM)
        red_and_blue = np.tile(np.arange(2), (len(words["size"]), 1))
        drawn = draw(layout, words, red_and_blue).take(graph)
        order = words["order"][graph, 0]
        columns, cause = assemble(layout, self.params.motifs, drawn, classes.T, order)
        return plan.columns() | columns | {"cause": cause.astype(np.uint8)}

    def check(self, columns: Columns) -> list[str]:
        """Return what is wrong with the stored arrays of many graphs."""
        layout, findings = self.params.layout, Findings(columns)
        x, cause = columns["x"], columns["cause"]
        source, target = global_edges(columns)
        findings.require(is_connected(columns), "not connected")
        counts = np.stack([findings.nodes(x == colour) for colour in range(len(COLOURS))])
        sized = (counts[0] >= layout.least) & (counts[0] <= layout.most)
        findings.require(
            (counts == counts[0]).all(axis=0) & sized,
            f"not {layout.least} to {layout.most} nodes of every colour",
        )
        for position, name in enumerate("AB"):
            inside = cause == position + 1
            five = (findings.nodes(inside) == MOTIF_NODES) & (
                findings.nodes(inside & (x == position)) == MOTIF_NODES
            )
            findings.require(five, f"{name} does not have {MOTIF_NODES} {COLOURS[position]} nodes")
            if not five.all():
                continue  # shapes can be told of five nodes only
            crossing = findings.edges(inside[source] & ~inside[target])
            findings.require(crossing == 1, f"not exactly one bridge from {name} to the rest")
            shape = recognised_motifs(self.params.motifs, columns, inside)
            right = shape == columns["cause_y"][:, position]
            findings.require(right, f"the shape of {name} is not its class")
        return findings.problems + super().check(columns)

    def prover(self, sources: Sources) -> Prover:
        """Return the proof by independent code."""
        from graphxai_data.generators.ba2motif_pair_proof import BA2MotifPairProver

        return BA2MotifPairProver(self.params, sources)

    def rules(self) -> tuple[Rule, ...]:
        """Return the rule that knows all but which cause counts."""
        from graphxai_data.generators.ba2motif_rules import one_colour_motifs

        # Red motifs are 2 and blue ones 1: a ranking without ties finds all of one cause.
        return (
            Rule(
                "red-then-blue-motif",
                "nodes of the red motif, then those of the blue one, for A and B alike",
                lambda graphs: (
                    2 * one_colour_motifs(graphs, (0,)) + one_colour_motifs(graphs, (1,))
                ),
            ),
        )
