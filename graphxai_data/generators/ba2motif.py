"""BA-2Motif: a five-node motif attached by one edge to a Barabási–Albert graph.

Paper, appendix "Custom BA-2Motif": House (class 0) or Cycle (class 1), one-hot degrees, and a mask
of the five motif nodes. The base has m = 1 (a tree), which alone agrees with the paper's mean
numbers of nodes and edges. `ba2motif-balanced` has a generator of its own since its version 2; the
`colour` features and twins of version 1 remain for builds of it and for recipes of one's own.
"""

from dataclasses import dataclass
from math import ceil
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt

from graphxai_data.files.toml import Between, Names
from graphxai_data.generators.base import BaseParams, Generator, Prover, Sources
from graphxai_data.generators.motifs import (
    MOTIF_NODES,
    MOTIFS,
    both_directions_sorted,
    is_connected,
    motif_edges,
    recognised_motifs,
    words_of_groups,
)
from graphxai_data.graphs.columns import Columns, Ints, global_edges, pointers
from graphxai_data.graphs.invariants import Findings
from graphxai_data.graphs.record import Plan
from graphxai_data.graphs.schema import Feature, Schema
from graphxai_data.seeds import Words, below, uniform

_LAST = np.uint64(2**64 - 1)


class BA2MotifGenerator(Generator):
    """A House or another motif on a Barabási–Albert tree."""

    @dataclass(frozen=True)
    class Params(BaseParams):
        """The recipe's numbers.

        With the features "degree", nodes have one-hot degrees, and the class is the motif. With
        "colour", they have one of two colours, drawn for each base node and once for the whole
        motif, and the class is motif XOR colour of the motif.
        """

        motifs: Annotated[tuple[str, ...], Names(tuple(MOTIFS), 2, 2)]
        base_nodes_min: Annotated[int, Between(2, 100)]
        base_nodes_mean: float  # exact expectation; sizes are spread evenly around it
        features: Literal["degree", "colour"]
        twins: bool  # graphs come in groups that differ only in motif (and motif colour)

        def __post_init__(self) -> None:
            super().__post_init__()
            if not self.base_nodes_min <= self.base_nodes_mean <= self.base_nodes_min + 70:
                raise ValueError(
                    f"base_nodes_mean must be from base_nodes_min = {self.base_nodes_min} to 70 "
                    f"above, got {self.base_nodes_mean}"
                )

        @property
        def base_nodes_max(self) -> int:
            """Largest base graph that can be drawn."""
            return self.base_nodes_min + ceil(2 * (self.base_nodes_mean - self.base_nodes_min))

        @property
        def group_size(self) -> int:
            """Graphs per group: one for each motif (and colour) with twins, else one."""
            if not self.twins:
                return 1
            return 2 if self.features == "degree" else 4

    params: Params

    def schema(self) -> Schema:
        """One-hot degrees or colours on nodes, no edge features, two classes."""
        return Schema(
            Feature(_feature_width(self.params), "onehot"), edge_features=None, num_classes=2
        )

    def class_names(self) -> list[str]:
        """Return the motifs, or whether motif and colour agree."""
        if self.params.features == "degree":
            return list(self.params.motifs)
        return ["motif = colour", "motif ≠ colour"]

    def node_values(self) -> dict[str, list[str] | None]:
        """Return the degrees or the colours that a node may have."""
        return {self.params.features: [str(value) for value in range(_feature_width(self.params))]}

    def plan(self, graphs: int) -> tuple[Ints, Ints]:
        """Return class and group of every graph; any run of graphs is balanced to within one."""
        index = np.arange(graphs, dtype=np.int64)
        motif, colour = _motif_and_colour(self.params, index)
        return motif ^ colour, index // self.params.group_size

    def generate(self, plan: Plan, seed: int) -> Columns:
        """Return the planned graphs, drawn all at once; twins share the stream of their group.

        Every graph is first laid out in slots: the base in slots 0 to B - 1, where B is the size of
        the largest base, and the motif in slots B to B + 4. Then its nodes are shuffled, so that
        the number of a node never gives the motif away. With B = 4 and a base of 3 nodes, for
        example:

            slot            0  1  2  3 | 4  5  6  7  8    the motif is in slots 4 to 8
            occupied        1  1  1  0 | 1  1  1  1  1    the base leaves slot 3 empty
            random key      7  2  9  ∞ | 4  1  8  3  6    an empty slot comes last
            slot_of_node    5  1  7  4  8  0  6  2  (3)   argsort of the keys: slot 5 becomes node 0
            node_of_slot    5  1  7 (8) 3  0  6  2  4     its inverse: slot 0 becomes node 5
            node_mask       1  0  1  1  1  0  1  0        whether the node was in slot 4 to 8

        The bridge between slots 2 and 6 becomes the edge between nodes 7 and 6.
        """
        params = self.params
        base_max = params.base_nodes_max
        slots = base_max + MOTIF_NODES
        motif, motif_colour = _motif_and_colour(params, plan.index)
        words = _words_of_groups(params, plan.group, seed)

        base_nodes = _base_sizes(params, words["size"])
        occupied = np.ones((len(motif), slots), bool)
        occupied[:, :base_max] = np.arange(base_max) < base_nodes[:, None]

        twin = plan.index % params.group_size
        random_key = words["order"][np.arange(len(twin)), twin] >> np.uint64(1)
        slot_of_node = np.argsort(np.where(occupied, random_key, _LAST), axis=1, kind="stable")
        node_of_slot = np.argsort(slot_of_node, axis=1, kind="stable")

        parent = _preferential_parents(words["parent"])
        source, target, present = _edges(
            params, parent, occupied, words["bridge"], base_nodes, motif
        )
        owner = np.nonzero(present)[0]
        u, v = node_of_slot[owner, source[present]], node_of_slot[owner, target[present]]
        edge_owner, edge_index = both_directions_sorted(owner, u, v, slots)

        nodes = occupied.sum(axis=1)
        is_node = np.arange(slots) < nodes[:, None]
        node_ptr = pointers(nodes)
        node_mask = (slot_of_node >= base_max)[is_node]
        source_row, target_row = edge_index + node_ptr[edge_owner]
        if params.features == "degree":
            kind = np.bincount(source_row, minlength=node_ptr[-1])
        else:
            colour = np.repeat(motif_colour[:, None], slots, axis=1)
            colour[:, :base_max] = below(words["colour"], 2)
            kind = np.take_along_axis(colour, slot_of_node, axis=1)[is_node]
        return plan.columns() | {
            "node_ptr": node_ptr,
            "edge_ptr": pointers(np.bincount(edge_owner, minlength=len(motif))),
            "x": kind.astype(np.uint8),
            "edge_index": edge_index,
            "node_mask": node_mask,
            "edge_mask": node_mask[source_row] & node_mask[target_row],
        }

    def check(self, columns: Columns) -> list[str]:
        """Return what is wrong with the stored arrays of many graphs."""
        params = self.params
        findings = Findings(columns)
        mask = columns["node_mask"].astype(bool)
        label = columns["y"].astype(np.int64)
        x = columns["x"].astype(np.int64)
        source, target = global_edges(columns)

        findings.require(is_connected(columns), "not connected")
        five = findings.nodes(mask) == MOTIF_NODES
        findings.require(five, f"the rationale does not have {MOTIF_NODES} nodes")
        if findings.problems:
            return findings.problems  # the other checks need five marked nodes per graph

        base_nodes = findings.nodes(~mask)
        findings.require(
            (base_nodes >= params.base_nodes_min) & (base_nodes <= params.base_nodes_max),
            f"the base does not have {params.base_nodes_min} to {params.base_nodes_max} nodes",
        )
        findings.require(
            findings.edges(~mask[source] & ~mask[target]) == 2 * (base_nodes - 1),
            "the base is not a tree",
        )
        findings.require(
            findings.edges(mask[source] & ~mask[target]) == 1,
            "not exactly one bridge from motif to base",
        )

        motif = recognised_motifs(params.motifs, columns, mask)
        findings.require(motif >= 0, f"the rationale is neither {' nor '.join(params.motifs)}")
        if params.features == "degree":
            wrong = x != np.bincount(source, minlength=len(x))
            findings.require(findings.nodes(wrong) == 0, "a feature is not its degree")
            findings.require(label == motif, "the label is not the motif's")
        else:
            colours = findings.nodes(mask & (x == 1))
            findings.require(np.isin(colours, [0, MOTIF_NODES]), "the motif is not of one colour")
            findings.require(label == motif ^ (colours > 0), "the label is not motif XOR colour")
        return findings.problems

    def prover(self, sources: Sources) -> Prover:
        """Return the proof by independent code."""
        from graphxai_data.generators.ba2motif_proof import BA2MotifProver

        return BA2MotifProver(self.params, sources)


def _motif_and_colour(params: BA2MotifGenerator.Params, index: Ints) -> tuple[Ints, Ints]:
    """Return motif and colour [g]: bits 0 and 1 of the index, so four in a row all differ."""
    return index & 1, (index >> 1) & (params.features == "colour")


def _feature_width(params: BA2MotifGenerator.Params) -> int:
    """Number of colours or degrees; the degree of a base node is at most the base's size."""
    return 2 if params.features == "colour" else max(params.base_nodes_max, MOTIF_NODES) + 1


def _words_of_groups(params: BA2MotifGenerator.Params, group: Ints, seed: int) -> dict[str, Words]:
    """Return the random words [g, ...] of each graph's group, by what they decide."""
    base_max = params.base_nodes_max
    shapes = {
        "size": (2,),
        "bridge": (2,),
        "parent": (base_max,),
        "colour": (base_max,),
        "order": (params.group_size, base_max + MOTIF_NODES),
    }
    words, position = words_of_groups(shapes, group, seed, "ba2motif")
    return {name: part[position] for name, part in words.items()}


def _base_sizes(params: BA2MotifGenerator.Params, words: Words) -> Ints:
    """Return base sizes [g], uniform around the mean and rounded at random.

    Random rounding keeps the expectation exact: E[floor(s + u)] = s for u uniform in [0, 1).
    """
    spread = 2 * (params.base_nodes_mean - params.base_nodes_min)
    above_min = spread * uniform(words[:, 0]) + uniform(words[:, 1])
    sizes: Ints = params.base_nodes_min + above_min.astype(np.int64)
    return np.minimum(sizes, params.base_nodes_max)


def _preferential_parents(words: Words) -> Ints:
    """Return the parent [g, B] of each node of a Barabási–Albert tree (m = 1).

    Edge e joins node e + 1 to its parent. A uniform draw from the 2e ends of the first e edges
    is a node drawn exactly in proportion to its degree.
    """
    parent = np.zeros(words.shape, np.int64)
    rows = np.arange(len(words))
    for new in range(2, words.shape[1]):
        end = below(words[:, new], 2 * (new - 1))
        child = end // 2 + 1
        parent[:, new] = np.where(end % 2 == 1, child, parent[rows, child])
    return parent


def _edges(
    params: BA2MotifGenerator.Params,
    parent: Ints,
    occupied: npt.NDArray[np.bool_],
    bridge: Words,
    base_nodes: Ints,
    motif: Ints,
) -> tuple[Ints, Ints, npt.NDArray[np.bool_]]:
    """Return the slots [g, E] of both ends of every possible edge, and which edges exist."""
    graphs, base_max = parent.shape
    ends, has = motif_edges(params.motifs)
    children = np.broadcast_to(np.arange(1, base_max), (graphs, base_max - 1))
    bridge_base = below(bridge[:, 0], base_nodes)[:, None]
    bridge_motif = base_max + below(bridge[:, 1], MOTIF_NODES)[:, None]
    source = np.concatenate([parent[:, 1:], bridge_base, base_max + ends[motif, :, 0]], axis=1)
    target = np.concatenate([children, bridge_motif, base_max + ends[motif, :, 1]], axis=1)
    present = np.concatenate(
        [occupied[:, 1:base_max], np.ones((graphs, 1), bool), has[motif]], axis=1
    )
    return source, target, present
