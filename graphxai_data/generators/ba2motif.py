"""BA-2Motif: a five-node motif hung by one edge on a Barabási–Albert graph.

Paper, appendix "Custom BA-2Motif": House (class 0) or Cycle (class 1), one-hot degrees, and a mask
of the five motif nodes. The `colour` features and the twins belong to `ba2motif-balanced`.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import ceil
from typing import Literal, TypeVar

import networkx as nx
import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from graphxai_data.columns import Columns, global_edges, graph_of_edge, graph_of_node
from graphxai_data.record import Feature, GraphRecord, Schema, Slot
from graphxai_data.seeds import MAX_INDEX, Draws, rng_for

MOTIF_NODES = 5
# Nodes are numbered by falling degree, so that a node of one motif and the node of the same number
# of its counterfactual twin have the same degree (House and K2,3: 3, 3, 2, 2, 2).
MOTIFS: dict[str, tuple[tuple[int, int], ...]] = {
    "house": ((0, 1), (0, 2), (1, 2), (0, 3), (1, 4), (3, 4)),
    "cycle": ((0, 1), (1, 2), (2, 3), (3, 4), (4, 0)),
    "k23": ((0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 4)),
}


@dataclass(frozen=True)
class Params:
    """The recipe's numbers.

    Attributes:
        graphs: how many graphs the reference build holds.
        motifs: the two motifs; with degree features, their position is the class.
        base_nodes_min: smallest base graph.
        base_nodes_mean: exact expectation of the base's size, which is spread evenly around it.
        edges_per_new_node: m of the Barabási–Albert process.
        features: "degree": one-hot degrees, class = motif. "colour": two colours, drawn for each
            base node and one for the whole motif; class = motif XOR colour of the motif.
        twins: graphs come in groups that differ in motif (and motif colour) alone.
    """

    graphs: int
    motifs: tuple[str, ...]
    base_nodes_min: int
    base_nodes_mean: float
    edges_per_new_node: int
    features: Literal["degree", "colour"]
    twins: bool

    def __post_init__(self) -> None:
        if not 1 <= self.graphs <= MAX_INDEX:
            raise ValueError(f"graphs must be from 1 to {MAX_INDEX}, got {self.graphs}")
        if len(self.motifs) != 2 or not set(self.motifs) <= MOTIFS.keys():
            raise ValueError(f"motifs must be two of {', '.join(MOTIFS)}, got {self.motifs}")
        if not 1 <= self.edges_per_new_node < self.base_nodes_min:
            raise ValueError(
                f"edges_per_new_node must be from 1 to base_nodes_min - 1 = "
                f"{self.base_nodes_min - 1}, got {self.edges_per_new_node}"
            )
        if not self.base_nodes_min <= self.base_nodes_mean <= self.base_nodes_min + 100:
            raise ValueError(
                f"base_nodes_mean must be from base_nodes_min = {self.base_nodes_min} to 100 above, "
                f"got {self.base_nodes_mean}"
            )
        if self.features == "degree" and self.base_nodes_max > 255:
            raise ValueError(f"base graphs of {self.base_nodes_max} nodes: degrees must fit a byte")

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
    """Two colours, or degrees: with its bridge a node of the base has at most the base's size."""
    width = max(params.base_nodes_max, MOTIF_NODES) + 1 if params.features == "degree" else 2
    return Schema(Feature(width, "onehot"), edge_features=None, num_classes=2)


def plan(params: Params, graphs: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Class and group of every graph; any run of graphs is balanced to within one."""
    index = np.arange(graphs, dtype=np.int64)
    motif, colour = _motif_and_colour(params, index)
    return motif ^ colour, index // params.group_size


def generate(params: Params, slot: Slot, seed: int) -> GraphRecord:
    """One graph. What twins share is drawn from their group's stream, node order from their own."""
    draws = rng_for(seed, "ba2motif/base", slot.group)
    base_nodes = _base_size(params, draws)
    edges = barabasi_albert(base_nodes, params.edges_per_new_node, draws)
    edges.append((draws.below(base_nodes), base_nodes + draws.below(MOTIF_NODES)))
    motif, motif_colour = _motif_and_colour(params, slot.index)
    edges += [(base_nodes + u, base_nodes + v) for u, v in MOTIFS[params.motifs[motif]]]

    # Shuffled, so that an index never gives the motif away.
    nodes = base_nodes + MOTIF_NODES
    place = rng_for(seed, "ba2motif/order", slot.index).permutation(nodes)
    node_mask = np.zeros(nodes, bool)
    node_mask[place[base_nodes:]] = True
    edge_index = _both_directions_sorted(place[np.array(edges)], nodes)

    if params.features == "degree":
        kind = np.bincount(edge_index[0], minlength=nodes)
    else:
        kind = np.full(nodes, motif_colour, np.int64)
        kind[place[:base_nodes]] = [draws.below(2) for _ in range(base_nodes)]
    return GraphRecord(
        x=_identity(schema(params).node_features.width)[kind],
        edge_index=edge_index,
        y=slot.label,
        node_mask=node_mask,
        edge_mask=node_mask[edge_index].all(axis=0),
        group=slot.group,
    )


def barabasi_albert(nodes: int, m: int, draws: Draws) -> list[tuple[int, int]]:
    """Edges of a Barabási–Albert graph: each new node joins m others, likely as their degrees.

    Starts from a star of m + 1 nodes. Every edge puts both its ends into the urn, so a uniform
    draw from the urn is exactly preferential.
    """
    edges = [(0, leaf) for leaf in range(1, m + 1)]
    urn = [end for edge in edges for end in edge]
    for new in range(m + 1, nodes):
        targets: list[int] = []
        while len(targets) < m:
            target = draws.choice(urn)
            if target not in targets:
                targets.append(target)
        for target in targets:
            edges.append((target, new))
            urn += (target, new)
    return edges


def check(params: Params, columns: Columns) -> list[str]:
    """Invariants of many graphs at once, from the stored arrays alone."""
    mask = columns["node_mask"].astype(bool)
    label = columns["y"].astype(np.int64)
    x = columns["x"].astype(np.int64)
    graphs = len(label)
    owner = graph_of_node(columns)
    edge_owner = graph_of_edge(columns)
    source, target = global_edges(columns)

    def per_graph(selected_edges: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        return np.bincount(edge_owner[selected_edges], minlength=graphs)

    problems = []

    def require(holds: npt.NDArray[np.bool_], sentence: str) -> None:
        if not holds.all():
            first = int(columns["graph_id"][int(np.argmin(holds))])
            problems.append(f"{int((~holds).sum())} graphs, first graph {first}: {sentence}")

    adjacency = coo_array((np.ones(len(source), np.int8), (source, target)), (len(x), len(x)))
    _, component = connected_components(adjacency, directed=False)
    components = np.unique(np.stack([owner, component]), axis=1)[0]
    require(np.bincount(components, minlength=graphs) == 1, "not connected")

    motif_nodes = np.bincount(owner[mask], minlength=graphs)
    require(motif_nodes == MOTIF_NODES, f"the rationale does not have {MOTIF_NODES} nodes")
    if problems:
        return problems  # the rest counts on five marked nodes a graph

    base_nodes = np.bincount(owner[~mask], minlength=graphs)
    require(
        (base_nodes >= params.base_nodes_min) & (base_nodes <= params.base_nodes_max),
        f"the base does not have {params.base_nodes_min} to {params.base_nodes_max} nodes",
    )
    m = params.edges_per_new_node
    require(
        per_graph(~mask[source] & ~mask[target]) == 2 * m * (base_nodes - m),
        f"the base does not have the edges of a Barabási–Albert graph with m = {m}",
    )
    require(
        per_graph(mask[source] & ~mask[target]) == 1, "not exactly one bridge from motif to base"
    )

    motif = _recognise_motifs(params, columns)
    require(motif >= 0, f"the rationale is neither {' nor '.join(params.motifs)}")
    if params.features == "degree":
        right = x == np.bincount(source, minlength=len(x))
        require(np.bincount(owner[~right], minlength=graphs) == 0, "a feature is not its degree")
        require(label == motif, "the label is not the motif's")
    else:
        colours = np.bincount(owner[mask], weights=x[mask], minlength=graphs)
        require(np.isin(colours, [0, MOTIF_NODES]), "the motif is not of one colour")
        require(label == motif ^ (colours > 0), "the label is not motif XOR colour")
    return problems


def prove(params: Params, record: GraphRecord) -> list[str]:
    """The same claims about one graph, by networkx and by nothing that `check` uses."""
    graph = nx.Graph(record.edge_index.T.tolist())
    graph.add_nodes_from(range(record.num_nodes))
    motif_nodes = set(np.flatnonzero(record.node_mask).tolist())
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
    found = [nx.is_isomorphic(inside, nx.Graph(MOTIFS[name])) for name in params.motifs]
    motif_colours = {int(record.x[node].argmax()) for node in motif_nodes}
    flip = motif_colours == {1} if params.features == "colour" else False
    if sum(found) != 1 or found.index(True) ^ flip != record.y:
        problems.append(f"label {record.y} does not follow from the motif")
    if params.features == "degree":
        degrees = [degree for _, degree in sorted(graph.degree)]
        if record.x.argmax(axis=1).tolist() != degrees:
            problems.append("a feature is not the node's degree")
    elif len(motif_colours) != 1:
        problems.append("the motif is not of one colour")
    return problems


Index = TypeVar("Index", int, npt.NDArray[np.int64])


def _motif_and_colour(params: Params, index: Index) -> tuple[Index, Index]:
    """Motif alternates with the index, colour with its half: four in a row are all different."""
    return index & 1, (index >> 1) & (params.features == "colour")


def _base_size(params: Params, draws: Draws) -> int:
    """Uniform from the smallest size to twice the mean distance, rounded at random.

    Random rounding keeps the expectation exact: E[floor(s + u)] = s for u uniform in [0, 1).
    """
    spread = 2 * (params.base_nodes_mean - params.base_nodes_min)
    size = int(params.base_nodes_min + spread * draws.uniform() + draws.uniform())
    return min(size, params.base_nodes_max)


def _both_directions_sorted(
    edges: npt.NDArray[np.int64], nodes: int
) -> npt.NDArray[np.int64]:
    """[2, m] from [m/2, 2]: each edge both ways, sorted by (source, target)."""
    code = np.concatenate([edges[:, 0] * nodes + edges[:, 1], edges[:, 1] * nodes + edges[:, 0]])
    code.sort()
    return np.stack(np.divmod(code, nodes))


@lru_cache(maxsize=8)
def _identity(width: int) -> npt.NDArray[np.float32]:
    return np.eye(width, dtype=np.float32)


def _recognise_motifs(params: Params, columns: Columns) -> npt.NDArray[np.int64]:
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
