"""BA-2Motif: a five-node motif hung by one edge on a Barabási–Albert graph.

Paper, appendix "Custom BA-2Motif": House (class 0) or Cycle (class 1), one-hot degrees, and a mask
of the five motif nodes. The base has m = 1 (a tree): the paper's mean numbers of nodes and edges
admit nothing else. The `colour` features and the twins belong to `ba2motif-balanced`.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import ceil, prod
from typing import Annotated, Literal

import networkx as nx
import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from graphxai_data.files.toml import Between, Names
from graphxai_data.generators.ba2motif_proof import Prover as Prover
from graphxai_data.generators.params import BaseParams
from graphxai_data.graphs.columns import (
    Columns,
    Ints,
    global_edges,
    graph_of_edge,
    graph_of_node,
    pointers,
)
from graphxai_data.graphs.invariants import Findings
from graphxai_data.graphs.record import Feature, Plan, Schema
from graphxai_data.seeds import Words, below, rng_for, uniform

SOURCES: dict[str, tuple[str, ...]] = {}
MOTIF_NODES = 5
_LAST = np.uint64(2**64 - 1)
# Nodes are numbered by falling degree, so that a node of one motif and the node of the same number
# of its counterfactual twin have the same degree (House and K2,3: 3, 3, 2, 2, 2).
MOTIFS: dict[str, tuple[tuple[int, int], ...]] = {
    "house": ((0, 1), (0, 2), (1, 2), (0, 3), (1, 4), (3, 4)),
    "cycle": ((0, 1), (1, 2), (2, 3), (3, 4), (4, 0)),
    "k23": ((0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 4)),
}


@dataclass(frozen=True)
class Params(BaseParams):
    """The recipe's numbers.

    Attributes:
        motifs: the two motifs; with degree features, their position is the class.
        base_nodes_min: smallest base graph.
        base_nodes_mean: exact expectation of the base's size, which is spread evenly around it.
        features: "degree": one-hot degrees, class = motif. "colour": two colours, drawn for each
            base node and one for the whole motif; class = motif XOR colour of the motif.
        twins: graphs come in groups that differ in motif (and motif colour) alone.
    """

    motifs: Annotated[tuple[str, ...], Names(tuple(MOTIFS), 2, 2)]
    base_nodes_min: Annotated[int, Between(2, 100)]
    base_nodes_mean: float
    features: Literal["degree", "colour"]
    twins: bool

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.base_nodes_min <= self.base_nodes_mean <= self.base_nodes_min + 70:
            raise ValueError(
                f"base_nodes_mean must be from base_nodes_min = {self.base_nodes_min} to 70 above, "
                f"got {self.base_nodes_mean}"
            )

    @property
    def base_nodes_max(self) -> int:
        """Largest base graph that can be drawn."""
        return self.base_nodes_min + ceil(2 * (self.base_nodes_mean - self.base_nodes_min))

    @property
    def group_size(self) -> int:
        """Graphs a group holds: one of each motif (and colour) with twins, else one."""
        if not self.twins:
            return 1
        return 2 if self.features == "degree" else 4


def schema(params: Params) -> Schema:
    """One-hot degrees or colours on nodes, nothing on edges, two classes."""
    return Schema(Feature(_feature_width(params), "onehot"), edge_features=None, num_classes=2)


def class_names(params: Params) -> list[str]:
    """The motifs, or what the class is the XOR of."""
    if params.features == "degree":
        return list(params.motifs)
    return ["motif = colour", "motif ≠ colour"]


def node_values(params: Params) -> dict[str, list[str] | None]:
    """The degree, or the colour."""
    return {params.features: [str(value) for value in range(_feature_width(params))]}


def plan(params: Params, graphs: int) -> tuple[Ints, Ints]:
    """Class and group of every graph; any run of graphs is balanced to within one."""
    index = np.arange(graphs, dtype=np.int64)
    motif, colour = _motif_and_colour(params, index)
    return motif ^ colour, index // params.group_size


def generate(params: Params, plan: Plan, seed: int) -> Columns:
    """The planned graphs, all at once; twins share the stream of their group.

    A graph is laid out in fixed places before its nodes are shuffled: the base in places
    0..B-1, of which a smaller base leaves the last empty, and the motif in B..B+4.
    """
    base_max = params.base_nodes_max
    places = base_max + MOTIF_NODES
    motif, motif_colour = _motif_and_colour(params, plan.index)
    words = _words_of_groups(params, plan.group, seed)

    base_nodes = _base_sizes(params, words["size"])
    parent = _preferential_parents(words["parent"])
    used = np.ones((len(motif), places), bool)
    used[:, :base_max] = np.arange(base_max) < base_nodes[:, None]

    # Shuffled, so that an index never gives the motif away; each twin in its own way.
    twin = plan.index % params.group_size
    keys = np.where(used, words["order"][np.arange(len(twin)), twin] >> np.uint64(1), _LAST)
    place_at = np.argsort(keys, axis=1, kind="stable")
    position_of = np.argsort(place_at, axis=1, kind="stable")

    source, target, present = _edges(params, parent, used, words["bridge"], base_nodes, motif)
    owner = np.nonzero(present)[0]
    u, v = position_of[owner, source[present]], position_of[owner, target[present]]
    edge_owner, edge_index = _both_directions_sorted(owner, u, v, places)

    filled = np.arange(places) < used.sum(axis=1)[:, None]
    node_ptr = pointers(used.sum(axis=1))
    mask = (place_at >= base_max)[filled]
    source_row, target_row = edge_index + node_ptr[edge_owner]
    if params.features == "degree":
        kind = np.bincount(source_row, minlength=node_ptr[-1])
    else:
        colour = np.repeat(motif_colour[:, None], places, axis=1)
        colour[:, :base_max] = below(words["colour"], 2)
        kind = np.take_along_axis(colour, place_at, axis=1)[filled]
    return {
        "node_ptr": node_ptr,
        "edge_ptr": pointers(np.bincount(edge_owner, minlength=len(motif))),
        "x": kind.astype(np.uint8),
        "edge_index": edge_index,
        "y": plan.label,
        "node_mask": mask,
        "edge_mask": mask[source_row] & mask[target_row],
        "split": plan.split,
        "graph_id": plan.index,
        "group": plan.group,
    }


def check(params: Params, columns: Columns) -> list[str]:
    """Invariants of many graphs at once, from the stored arrays alone."""
    findings = Findings(columns)
    mask = columns["node_mask"].astype(bool)
    label = columns["y"].astype(np.int64)
    x = columns["x"].astype(np.int64)
    graphs = len(label)
    owner = graph_of_node(columns)
    source, target = global_edges(columns)

    adjacency = coo_array((np.ones(len(source), np.int8), (source, target)), (len(x), len(x)))
    _, component = connected_components(adjacency, directed=False)
    components = np.unique(np.stack([owner, component]), axis=1)[0]
    findings.require(np.bincount(components, minlength=graphs) == 1, "not connected")

    five = findings.nodes(mask) == MOTIF_NODES
    findings.require(five, f"the rationale does not have {MOTIF_NODES} nodes")
    if findings.problems:
        return findings.problems  # the rest counts on five marked nodes a graph

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

    motif = _recognise_motifs(params, columns)
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


def _motif_and_colour(params: Params, index: Ints) -> tuple[Ints, Ints]:
    """Motif alternates with the index, colour with its half: four in a row are all different."""
    return index & 1, (index >> 1) & (params.features == "colour")


def _feature_width(params: Params) -> int:
    """Two colours, or degrees: with its bridge, a node of the base has at most the base's size."""
    return 2 if params.features == "colour" else max(params.base_nodes_max, MOTIF_NODES) + 1


def _words_of_groups(params: Params, group: Ints, seed: int) -> dict[str, Words]:
    """Random words of each graph's group by purpose, [g, ...]; a word has one fixed use."""
    base_max = params.base_nodes_max
    shapes = {
        "size": (2,),
        "bridge": (2,),
        "parent": (base_max,),
        "colour": (base_max,),
        "order": (params.group_size, base_max + MOTIF_NODES),
    }
    ends = np.cumsum([prod(shape) for shape in shapes.values()])
    groups, row = np.unique(group, return_inverse=True)
    streams = [rng_for(seed, "ba2motif", g).words(ends[-1]) for g in groups.tolist()]
    parts = np.split(np.stack(streams)[row], ends[:-1], axis=1)
    return {
        name: part.reshape(len(group), *shape)
        for (name, shape), part in zip(shapes.items(), parts, strict=True)
    }


def _base_sizes(params: Params, words: Words) -> Ints:
    """[g] uniform from the smallest size to twice the mean's distance from it, rounded at random.

    Random rounding keeps the expectation exact: E[floor(s + u)] = s for u uniform in [0, 1).
    """
    spread = 2 * (params.base_nodes_mean - params.base_nodes_min)
    above_min = spread * uniform(words[:, 0]) + uniform(words[:, 1])
    sizes: Ints = params.base_nodes_min + above_min.astype(np.int64)
    return np.minimum(sizes, params.base_nodes_max)


def _preferential_parents(words: Words) -> Ints:
    """[g, B] the node that each node of a Barabási–Albert tree (m = 1) was joined to.

    Edge e joins node e + 1 to its parent. A uniform draw from the 2e ends of the first e edges
    is a node drawn by its degree, exactly.
    """
    parent = np.zeros(words.shape, np.int64)
    rows = np.arange(len(words))
    for new in range(2, words.shape[1]):
        end = below(words[:, new], 2 * (new - 1))
        child = end // 2 + 1
        parent[:, new] = np.where(end % 2 == 1, child, parent[rows, child])
    return parent


def _edges(
    params: Params,
    parent: Ints,
    used: npt.NDArray[np.bool_],
    bridge: Words,
    base_nodes: Ints,
    motif: Ints,
) -> tuple[Ints, Ints, npt.NDArray[np.bool_]]:
    """[g, E] both ends of every edge, as places, and which of them the graph has."""
    graphs, base_max = parent.shape
    most = max(len(MOTIFS[name]) for name in params.motifs)
    ends = np.zeros((2, most, 2), np.int64)
    has = np.zeros((2, most), bool)
    for i, name in enumerate(params.motifs):
        ends[i, : len(MOTIFS[name])] = MOTIFS[name]
        has[i, : len(MOTIFS[name])] = True
    children = np.broadcast_to(np.arange(1, base_max), (graphs, base_max - 1))
    bridge_base = below(bridge[:, 0], base_nodes)[:, None]
    bridge_motif = base_max + below(bridge[:, 1], MOTIF_NODES)[:, None]
    source = np.concatenate([parent[:, 1:], bridge_base, base_max + ends[motif, :, 0]], axis=1)
    target = np.concatenate([children, bridge_motif, base_max + ends[motif, :, 1]], axis=1)
    present = np.concatenate([used[:, 1:base_max], np.ones((graphs, 1), bool), has[motif]], axis=1)
    return source, target, present


def _both_directions_sorted(owner: Ints, u: Ints, v: Ints, nodes: int) -> tuple[Ints, Ints]:
    """[m] owners and [2, m] ends of edges, each both ways, sorted by (owner, source, target)."""
    code = np.concatenate([(owner * nodes + u) * nodes + v, (owner * nodes + v) * nodes + u])
    code.sort()
    rest, target = np.divmod(code, nodes)
    sorted_owner, source = np.divmod(rest, nodes)
    return sorted_owner, np.stack([source, target])


def _recognise_motifs(params: Params, columns: Columns) -> Ints:
    """[g] which motif the five marked nodes form, -1 for neither: by table over all 2^10 graphs."""
    mask = columns["node_mask"].astype(bool)
    source, target = global_edges(columns)
    marked = mask[source] & mask[target] & (source < target)
    # The marked nodes of every graph are numbered 0..4 in their order of appearance.
    rank = (np.cumsum(mask) - 1) % MOTIF_NODES
    bit = _PAIR_BIT[rank[source[marked]], rank[target[marked]]]
    owner = graph_of_edge(columns)[marked]
    code = np.bincount(owner, weights=2.0**bit, minlength=len(columns["y"])).astype(np.int64)
    motif = np.full(len(code), -1, np.int64)
    for position, name in enumerate(params.motifs):
        motif[np.isin(code, sorted(_codes_of(name)))] = position
    return motif


_PAIRS = list(combinations(range(MOTIF_NODES), 2))
_PAIR_BIT = np.zeros((MOTIF_NODES, MOTIF_NODES), np.int64)
for _bit, (_u, _v) in enumerate(_PAIRS):
    _PAIR_BIT[_u, _v] = _PAIR_BIT[_v, _u] = _bit


@lru_cache(maxsize=8)
def _codes_of(motif: str) -> frozenset[int]:
    """Adjacency codes (one bit a node pair) of all labelled graphs isomorphic to the motif."""
    wanted = nx.Graph(MOTIFS[motif])
    codes = set()
    for chosen in combinations(range(len(_PAIRS)), wanted.number_of_edges()):
        graph = nx.Graph([_PAIRS[bit] for bit in chosen])
        graph.add_nodes_from(range(MOTIF_NODES))
        if nx.faster_could_be_isomorphic(graph, wanted) and nx.is_isomorphic(graph, wanted):
            codes.add(sum(1 << bit for bit in chosen))
    return frozenset(codes)
