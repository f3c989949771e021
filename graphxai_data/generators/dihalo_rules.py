"""Rules that find di-halo rings without a model; vectorised over all graphs.

Distances are numbers of bonds. Among atoms that are equally close, carbon comes first, because the
rationale has six carbons and two halogens.
"""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from graphxai_data.generators.base import Rule
from graphxai_data.generators.dihalo_molecules import BONDS, HALOGENS
from graphxai_data.graphs.columns import Ints
from graphxai_data.graphs.union import Graphs

Scores = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


def dihalo_rules(atoms: Sequence[str], definitions: Collection[str]) -> tuple[Rule, ...]:
    """Return the rules of datasets of molecules; `definitions` repeat how the class is defined.

    Args:
        atoms: the elements that node features stand for.
        definitions: names of rules.
    """
    rules: dict[str, tuple[str, Callable[..., Scores]]] = {
        "halogen-closeness": ("closeness to the nearest halogen", halogen_closeness),
        "aryl-halogens": (
            "closeness to the two nearest halogens on aromatic carbon, of any element",
            aryl_halogens,
        ),
        "like-pair": (
            "closeness to both halogens of the closest like pair on aromatic carbon",
            like_pair,
        ),
        "di-halo-ring": ("benzene rings with two like halogens", di_halo_ring),
    }
    return tuple(
        Rule(name, what, partial(score, atoms=tuple(atoms)), is_definition=name in definitions)
        for name, (what, score) in rules.items()
    )


def halogen_closeness(graphs: Graphs, atoms: Sequence[str]) -> Scores:
    """Return [N] closeness to the nearest halogen; carbon wins among equally close atoms."""
    halogens = np.isin(graphs.x, _ids(atoms, HALOGENS))
    return _scores(_distances(graphs, halogens[None])[0], graphs, atoms)


def aryl_halogens(graphs: Graphs, atoms: Sequence[str]) -> Scores:
    """Return [N] closeness to the two nearest aryl halogens, blind to the element."""
    distance = _distances(graphs, _in_turn(_aryl_halogens(graphs, atoms), graphs))
    return _scores(np.sort(distance, axis=0)[:2].sum(axis=0), graphs, atoms)


def like_pair(graphs: Graphs, atoms: Sequence[str]) -> Scores:
    """Return [N] closeness to both halogens of the closest like pair of aryl halogens.

    If several pairs are equally close, nodes are scored by the nearest of them.
    """
    turns = _in_turn(_aryl_halogens(graphs, atoms), graphs)
    distance = _distances(graphs, turns)
    owner, count = graphs.owner, len(graphs.sizes)
    at = np.full((len(turns), count), -1)  # node of each turn, by graph
    for turn, nodes in enumerate(turns):
        at[turn, owner[nodes]] = np.flatnonzero(nodes)
    apart, to_both = [], []
    for i, j in combinations(range(len(turns)), 2):
        exist = (at[i] >= 0) & (at[j] >= 0)
        like = exist & (graphs.x[at[i]] == graphs.x[at[j]])
        apart.append(np.where(like, distance[i, at[j]], np.inf))
        to_both.append(distance[i] + distance[j])
    if not apart:
        return _scores(np.full(len(graphs.x), np.inf), graphs, atoms)
    gaps = np.stack(apart)
    closest = np.isfinite(gaps) & (gaps == gaps.min(axis=0))
    nearest = np.where(closest[:, owner], np.stack(to_both), np.inf).min(axis=0)
    return _scores(nearest, graphs, atoms)


def di_halo_ring(graphs: Graphs, atoms: Sequence[str]) -> Scores:
    """Return [N] one for the atoms of benzene rings with two like halogens, else zero."""
    source, target = graphs.edges
    ring = _benzene_rings(graphs, atoms)
    rings = ring.max(initial=-1) + 1
    kinds = _ids(atoms, HALOGENS)
    on_ring = np.isin(graphs.x[source], kinds) & (ring[target] >= 0)
    halogen, carbon = source[on_ring], target[on_ring]
    by_kind = np.stack([
        np.bincount(ring[carbon[graphs.x[halogen] == kind]], minlength=rings) for kind in kinds
    ])  # fmt: skip
    is_di_halo = (by_kind.max(axis=0) == 2) & (by_kind.sum(axis=0) == 2)
    scores = np.zeros(len(ring))
    scores[ring >= 0] = is_di_halo[ring[ring >= 0]]
    scores[halogen] = is_di_halo[ring[carbon]]
    return scores


def _benzene_rings(graphs: Graphs, atoms: Sequence[str]) -> Ints:
    """Return [N] the number of each node's benzene ring, -1 if it is in none.

    Among aromatic bonds between carbons, whatever is in no cycle is stripped; what remains of a
    benzene ring, also of one that is fused to a heterocycle, is six carbons.
    """
    nodes = len(graphs.x)
    carbon = graphs.x == _ids(atoms, ["C"])[0]
    source, target = graphs.edges[:, np.asarray(graphs.edge_attr) == BONDS.index("aromatic")]
    inside = carbon
    while True:
        kept = inside[source] & inside[target]
        degree = np.bincount(source[kept], minlength=nodes)
        if not (inside & (degree < 2)).any():
            break
        inside = inside & (degree >= 2)
    bonds = coo_array((np.ones(kept.sum()), (source[kept], target[kept])), (nodes, nodes))
    _, part = connected_components(bonds, directed=False)
    is_ring = inside & (np.bincount(part)[part] == 6)
    ring = np.full(nodes, -1)
    ring[is_ring] = np.unique(part[is_ring], return_inverse=True)[1]
    return ring


def _ids(atoms: Sequence[str], wanted: Collection[str]) -> Ints:
    """Return the node features of the wanted elements."""
    return np.array([i for i, atom in enumerate(atoms) if atom in wanted], np.int64)


def _aryl_halogens(graphs: Graphs, atoms: Sequence[str]) -> Mask:
    """Return [N] which nodes are halogens on an aromatic carbon."""
    source, target = graphs.edges
    aromatic = np.zeros(len(graphs.x), bool)
    aromatic[source[np.asarray(graphs.edge_attr) == BONDS.index("aromatic")]] = True
    aryl = aromatic & (graphs.x == _ids(atoms, ["C"])[0])
    on_aryl = np.zeros(len(graphs.x), bool)
    on_aryl[source[aryl[target]]] = True
    return on_aryl & np.isin(graphs.x, _ids(atoms, HALOGENS))


def _in_turn(selected: Mask, graphs: Graphs) -> Mask:
    """Return [t, N] at most one of the selected nodes of each graph in each turn."""
    nodes = np.flatnonzero(selected)
    owner = graphs.owner[nodes]
    turn = np.arange(len(nodes)) - np.searchsorted(owner, owner)
    turns = np.zeros((turn.max(initial=-1) + 1, len(selected)), bool)
    turns[turn, nodes] = True
    return turns


def _distances(graphs: Graphs, starts: Mask) -> Scores:
    """Return [t, N] bonds from each node to the nearest start of each turn [t, N], or infinity."""
    distance = np.where(starts, 0.0, np.inf)
    linked, first = np.unique(graphs.edges[0], return_index=True)
    while linked.size:
        reached = np.minimum.reduceat(distance[:, graphs.edges[1]], first, axis=1) + 1
        closer = reached < distance[:, linked]
        if not closer.any():
            break
        distance[:, linked] = np.where(closer, reached, distance[:, linked])
    return distance


def _scores(distance: Scores, graphs: Graphs, atoms: Sequence[str]) -> Scores:
    """Return [N] scores from distances; where there is no path, the number of all nodes counts."""
    carbon = graphs.x == _ids(atoms, ["C"])[0]
    scores: Scores = 0.5 * carbon - np.minimum(distance, len(graphs.x))
    return scores
