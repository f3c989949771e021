"""BA-2Motif without shortcuts: of several one-coloured motifs in a graph, one makes the class.

With d decoys there are 2 (d + 1) colours, in pairs: 0 and 1, 2 and 3, and so on. Every graph has
one motif for each pair, of one of its two colours. The class is motif XOR colour of the motif in
colour 0 or 1; the motifs of all other pairs are decoys. Up to the names of colours, nothing tells
the motif that counts from the others, so a rule that does not know labels finds it in one of d + 1
graphs at best. `recipes/ba2motif-balanced.toml` says what groups of graphs have in common, and why.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from graphxai_data.files.toml import Between, Names
from graphxai_data.generators.base import BaseParams, Generator, Prover, Rule, Sources
from graphxai_data.generators.motif_graphs import Drawn, Layout, assemble, draw
from graphxai_data.generators.motifs import (
    MOTIF_NODES,
    MOTIFS,
    is_connected,
    recognised_motifs,
    words_of_groups,
)
from graphxai_data.graphs.columns import Columns, Ints, global_edges, graph_of_rows
from graphxai_data.graphs.invariants import Findings
from graphxai_data.graphs.record import Plan
from graphxai_data.graphs.schema import Feature, Schema

# Graphs that differ only in shape and colour of the motif that counts.
TWINS = 4
STREAM = "ba2motif_balanced"


class BalancedBA2MotifGenerator(Generator):
    """A motif that counts and decoys of other colours on a Barabási–Albert graph."""

    @dataclass(frozen=True)
    class Params(BaseParams):
        """The recipe's numbers; every colour has as many nodes in a graph as every other."""

        motifs: Annotated[tuple[str, ...], Names(tuple(MOTIFS), 2, 2)]
        decoys: Annotated[int, Between(0, 9)]  # per graph
        base_edges: Annotated[int, Between(1, 5)]  # from each new node of the base (m)
        colour_nodes_min: Annotated[int, Between(1, 60)]  # nodes of each colour, decoys included
        colour_nodes_max: Annotated[int, Between(1, 60)]

        def __post_init__(self) -> None:
            super().__post_init__()
            self.layout.check()

        @property
        def layout(self) -> Layout:
            """Where nodes are laid out; two colours for each motif."""
            places = self.decoys + 1
            return Layout(
                2 * places, places, self.base_edges, self.colour_nodes_min, self.colour_nodes_max
            )

    params: Params

    def schema(self) -> Schema:
        """One-hot colours on nodes, no edge features, two classes."""
        return Schema(Feature(self.params.layout.colours, "onehot"), None, num_classes=2)

    def class_names(self) -> list[str]:
        """Return whether motif and colour agree."""
        return ["motif = colour", "motif ≠ colour"]

    def node_values(self) -> dict[str, list[str] | None]:
        """Return the colours that a node may have."""
        return {"colour": [str(colour) for colour in range(self.params.layout.colours)]}

    def plan(self, graphs: int) -> tuple[Ints, Ints]:
        """Return class and group of every graph; a group has four twins for each place."""
        index = np.arange(graphs, dtype=np.int64)
        motif, colour = _motif_and_colour(index)
        return motif ^ colour, index // (TWINS * self.params.layout.motifs)

    def generate(self, plan: Plan, seed: int) -> Columns:
        """Return the planned graphs, drawn all at once; a group shares one random stream."""
        layout = self.params.layout
        motif, colour = _motif_and_colour(plan.index)
        member = plan.index % (TWINS * layout.motifs)
        # The place of the motif that counts: each of the group's motifs in turn.
        place, rows = member // TWINS, np.arange(len(member))
        own = {"own_shape": (layout.motifs,), "own_colour": (layout.motifs,)}
        shapes = layout.word_shapes(orders=TWINS * layout.motifs) | own
        words, group = words_of_groups(shapes, plan.group, seed, STREAM)

        own_shape, own_colour = (
            (words[name] & np.uint64(1)).astype(np.int64) for name in ("own_shape", "own_colour")
        )
        drawn = draw(layout, words, 2 * np.arange(layout.motifs) + own_colour).take(group)
        # Decoys change with the motif that counts. Else they would be the same in all twins, and a
        # rule that looks for what is rare among test graphs would find what is not a decoy.
        shape = own_shape[group] ^ (own_shape[group][rows, place] ^ motif)[:, None]
        exchanged = own_colour[group][rows, place] ^ colour
        columns, motif_of_node = assemble(
            layout,
            self.params.motifs,
            _recoloured(drawn, place, exchanged, layout),
            shape,
            words["order"][group, member],
        )
        node_mask = motif_of_node == place[graph_of_rows(columns["node_ptr"])] + 1
        source, target = global_edges(columns)
        return (
            plan.columns()
            | columns
            | {"node_mask": node_mask, "edge_mask": node_mask[source] & node_mask[target]}
        )

    def check(self, columns: Columns) -> list[str]:
        """Return what is wrong with the stored arrays of many graphs."""
        layout = self.params.layout
        findings = Findings(columns)
        mask = columns["node_mask"].astype(bool)
        x = columns["x"].astype(np.int64)
        source, target = global_edges(columns)

        findings.require(is_connected(columns), "not connected")
        five = findings.nodes(mask) == MOTIF_NODES
        findings.require(five, f"the rationale does not have {MOTIF_NODES} nodes")
        if findings.problems:
            return findings.problems  # the other checks need five marked nodes per graph

        counts = np.stack([findings.nodes(x == colour) for colour in range(layout.colours)])
        equal = (counts == counts[0]).all(axis=0)
        sized = (counts[0] >= layout.least) & (counts[0] <= layout.most)
        findings.require(
            equal & sized, f"not {layout.least} to {layout.most} nodes of every colour"
        )
        crossing = findings.edges(mask[source] & ~mask[target])
        findings.require(crossing == 1, "not exactly one bridge from motif to the rest")
        motif = recognised_motifs(self.params.motifs, columns, mask)
        names = " nor ".join(self.params.motifs)
        findings.require(motif >= 0, f"the rationale is neither {names}")
        in_colour = [findings.nodes(mask & (x == colour)) for colour in (0, 1)]
        one_coloured = np.maximum(*in_colour) == MOTIF_NODES
        findings.require(one_coloured, "the motif is not of colour 0 or 1")
        findings.require(
            columns["y"] == motif ^ (in_colour[1] > 0), "the label is not motif XOR colour"
        )
        return findings.problems

    def prover(self, sources: Sources) -> Prover:
        """Return the proof by independent code."""
        from graphxai_data.generators.ba2motif_balanced_proof import BalancedBA2MotifProver

        return BalancedBA2MotifProver(self.params, sources)

    def rules(self) -> tuple[Rule, ...]:
        """Return the definition of the rationale as a rule."""
        from graphxai_data.generators.ba2motif_rules import one_colour_motifs

        return (
            Rule(
                "one-colour-motif",
                "five nodes of colour 0 or of colour 1 behind a bridge: the definition",
                lambda graphs: one_colour_motifs(graphs, (0, 1)),
                is_definition=True,
            ),
        )


def _motif_and_colour(index: Ints) -> tuple[Ints, Ints]:
    """Return motif and colour [g]: bits 0 and 1 of the index, so four in a row all differ."""
    return index & 1, (index >> 1) & 1


def _recoloured(drawn: Drawn, place: Ints, exchanged: Ints, layout: Layout) -> Drawn:
    """Return graphs with the pairs of colours in turn, so that the motif in `place` [g] counts.

    The two colours of every pair are exchanged where `exchanged` [g] is 1.
    """
    pair = (drawn.colour // 2 - place[:, None]) % layout.motifs
    second = drawn.colour % 2 ^ exchanged[:, None]
    return Drawn(drawn.base_nodes, drawn.targets, drawn.bridges, 2 * pair + second)
