"""Coloured Barabási–Albert graphs with several motifs, each on a bridge of its own.

Every colour has the same number of nodes in a graph, whatever the colours of its motifs. So to
count colours tells nothing. What is drawn for the base, its colours, the bridges and the order of
nodes does not depend on the shapes of the motifs: a graph can be drawn again with another shape and
nothing else changed.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from graphxai_data.errors import InputError
from graphxai_data.generators.motifs import MOTIF_NODES, both_directions_sorted, motif_edges
from graphxai_data.graphs.columns import Columns, Ints, pointers
from graphxai_data.seeds import Words, below

_LAST = np.uint64(2**64 - 1)


@dataclass(frozen=True)
class Layout:
    """Where the nodes of graphs are laid out, before they are shuffled.

    With B nodes in the largest base, the base is in slots 0 to B - 1, the first motif in slots B to
    B + 4, and so on. A smaller base leaves its last slots empty.

    Attributes:
        colours: number of colours.
        motifs: motifs in every graph.
        base_edges: edges from each new node of the base to older ones (m).
        least: nodes of each colour in the smallest graphs.
        most: nodes of each colour in the largest graphs.
    """

    colours: int
    motifs: int
    base_edges: int
    least: int
    most: int

    def check(self) -> None:
        """Raise an `InputError` unless every graph has room for its motifs and a base."""
        if not self.least <= self.most:
            raise InputError(
                f"colour_nodes_max: expected at least colour_nodes_min = {self.least}, "
                f"got {self.most}"
            )
        needed = MOTIF_NODES * self.motifs + self.base_edges + 2
        fewest = max(MOTIF_NODES, -(-needed // self.colours))
        if self.least < fewest:
            raise InputError(
                f"colour_nodes_min: expected at least {fewest}, so that {self.motifs} motifs and a "
                f"base fit into every graph, got {self.least}"
            )

    @property
    def base_max(self) -> int:
        """Nodes of the largest base."""
        return self.colours * self.most - MOTIF_NODES * self.motifs

    @property
    def slots(self) -> int:
        """Slots of every graph: nodes of the largest graph."""
        return self.colours * self.most

    def word_shapes(self, orders: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the random words of a group with so many orders of nodes."""
        return {
            "size": (),
            "bridge": (self.motifs, 2),
            "target": (self.base_max, self.base_edges),
            "colour": (self.base_max,),
            "order": (orders, self.slots),
        }


@dataclass(frozen=True, eq=False)
class Drawn:
    """What is drawn for graphs, except shapes of motifs and orders of nodes.

    Attributes:
        base_nodes: [g] nodes of the base.
        targets: [g, B, m] older nodes that each node of the base is joined to; -1 for none.
        bridges: [g, k, 2] ends of each motif's bridge: node of the base, node of the motif.
        colour: [g, slots] colour of each slot.
    """

    base_nodes: Ints
    targets: Ints
    bridges: Ints
    colour: Ints

    def take(self, position: Ints) -> "Drawn":
        """Return the graphs in these positions [h], which may repeat."""
        return Drawn(
            self.base_nodes[position],
            self.targets[position],
            self.bridges[position],
            self.colour[position],
        )


def draw(layout: Layout, words: dict[str, Words], motif_colour: Ints) -> Drawn:
    """Return what the words [g, …] of `Layout.word_shapes` decide.

    Args:
        layout: the layout.
        words: random words by what they decide.
        motif_colour: [g, k] the colour of all nodes of each motif.
    """
    per_colour = layout.least + below(words["size"], layout.most - layout.least + 1)
    base_nodes = layout.colours * per_colour - MOTIF_NODES * layout.motifs
    bridges = np.stack(
        [
            below(words["bridge"][:, :, 0], base_nodes[:, None]),
            below(words["bridge"][:, :, 1], MOTIF_NODES),
        ],
        axis=2,
    )
    return Drawn(
        base_nodes,
        preferential_targets(words["target"]),
        bridges,
        _colours(layout, per_colour, base_nodes, words["colour"], motif_colour),
    )


def preferential_targets(words: Words) -> Ints:
    """Return the neighbours [g, B, m] of each node of a Barabási–Albert graph among older ones.

    As in networkx, the first m + 1 nodes are a star, and each new node is joined to m different
    nodes, drawn one after the other in proportion to their degrees. Absent edges are -1.
    """
    graphs, nodes, m = words.shape
    targets = np.full((graphs, nodes, m), -1, np.int64)
    targets[:, 1 : m + 1, 0] = 0
    degree = np.zeros((graphs, nodes), np.int64)
    degree[:, 0] = m
    degree[:, 1 : m + 1] = 1
    rows = np.arange(graphs)
    for new in range(m + 1, nodes):
        left = degree[:, :new].copy()
        for edge in range(m):
            ends = np.cumsum(left, axis=1)
            end = below(words[:, new, edge], ends[:, -1])
            target = (ends <= end[:, None]).sum(axis=1)
            targets[:, new, edge] = target
            left[rows, target] = 0  # so that the next edge goes to another node
            degree[rows, target] += 1
        degree[:, new] = m
    return targets


def _colours(
    layout: Layout, per_colour: Ints, base_nodes: Ints, words: Words, motif_colour: Ints
) -> Ints:
    """Return the colours [g, slots]: `per_colour` nodes of each, those of the base shuffled."""
    of_motifs = (motif_colour[:, :, None] == np.arange(layout.colours)).sum(axis=1)
    last = np.cumsum(per_colour[:, None] - MOTIF_NODES * of_motifs, axis=1)
    slot = np.arange(layout.base_max)
    key = np.where(slot < base_nodes[:, None], words >> np.uint64(1), _LAST)
    rank = np.argsort(np.argsort(key, axis=1, kind="stable"), axis=1, kind="stable")
    colour = (last[:, None, :-1] <= rank[:, :, None]).sum(axis=2)
    return np.concatenate([colour, np.repeat(motif_colour, MOTIF_NODES, axis=1)], axis=1)


def assemble(
    layout: Layout, names: tuple[str, ...], drawn: Drawn, shape: Ints, order: Words
) -> tuple[Columns, Ints]:
    """Return the columns of graphs, and which motif [N] each node is of: 1, 2, …, or 0 for none.

    Args:
        layout: the layout.
        names: the motifs that may occur.
        drawn: bases, bridges and colours.
        shape: [g, k] position in `names` of each motif.
        order: [g, slots] random words, which put nodes in random order.
    """
    slots = np.arange(layout.slots)
    occupied = (slots >= layout.base_max) | (slots < drawn.base_nodes[:, None])
    slot_of_node = np.argsort(
        np.where(occupied, order >> np.uint64(1), _LAST), axis=1, kind="stable"
    )
    node_of_slot = np.argsort(slot_of_node, axis=1, kind="stable")
    source, target, present = _edges(layout, names, drawn, shape)
    owner = np.nonzero(present)[0]
    u, v = node_of_slot[owner, source[present]], node_of_slot[owner, target[present]]
    edge_owner, edge_index = both_directions_sorted(owner, u, v, layout.slots)

    nodes = occupied.sum(axis=1)
    is_node = slots < nodes[:, None]
    motif_of_slot = np.maximum((slots - layout.base_max) // MOTIF_NODES + 1, 0)
    colour = np.take_along_axis(drawn.colour, slot_of_node, axis=1)[is_node]
    columns: Columns = {
        "node_ptr": pointers(nodes),
        "edge_ptr": pointers(np.bincount(edge_owner, minlength=len(nodes))),
        "x": colour.astype(np.uint8),
        "edge_index": edge_index,
    }
    return columns, motif_of_slot[slot_of_node][is_node]


def _edges(
    layout: Layout, names: tuple[str, ...], drawn: Drawn, shape: Ints
) -> tuple[Ints, Ints, npt.NDArray[np.bool_]]:
    """Return the slots [g, E] of both ends of every possible edge, and which edges exist."""
    graphs, base_max = len(shape), layout.base_max
    ends, exists = motif_edges(names)
    first = base_max + MOTIF_NODES * np.arange(layout.motifs)
    inside = ends[shape] + first[:, None, None]
    child = np.repeat(np.arange(base_max), layout.base_edges)
    child = np.broadcast_to(child, (graphs, len(child)))
    targets = drawn.targets.reshape(graphs, -1)
    source = [targets, drawn.bridges[:, :, 0], inside[..., 0].reshape(graphs, -1)]
    target = [child, first + drawn.bridges[:, :, 1], inside[..., 1].reshape(graphs, -1)]
    present = [
        (targets >= 0) & (child < drawn.base_nodes[:, None]),
        np.ones((graphs, layout.motifs), bool),
        exists[shape].reshape(graphs, -1),
    ]
    joined = [np.concatenate(parts, axis=1) for parts in (source, target, present)]
    return joined[0], joined[1], joined[2]
