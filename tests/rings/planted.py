"""Datasets for which it is known what solves the task."""

import networkx as nx
import numpy as np
import torch
from torch_geometric.data import Data

# Verdicts on P1 and P2 for each kind.
EXPECTED = {
    "features": ("fail", "fail"),
    "structure": ("fail", "fail"),
    "both": ("pass", "pass"),
    "nothing": ("inconclusive", "inconclusive"),
    "size": ("fail", "fail"),
}


def planted(kind: str, count: int = 300, seed: int = 0) -> list[Data]:
    """Graphs of two classes, half of each.

    features: the class is the more frequent feature; random trees.
    structure: a star or a path; random features.
    both: a path with two marked nodes, adjacent in one class, far apart in the other.
    nothing: the same path, random classes.
    size: random trees, larger in one class; constant features.
    """
    rng = np.random.default_rng(seed)
    return [_graph(kind, i % 2, rng) for i in range(count)]


def _graph(kind: str, label: int, rng: np.random.Generator) -> Data:
    nodes = 10
    if kind == "features":
        graph = nx.random_labeled_tree(nodes, seed=int(rng.integers(10**6)))
        marks = np.arange(nodes) < (3 if label else 7)
        rng.shuffle(marks)
    elif kind == "structure":
        graph = nx.star_graph(nodes - 1) if label else nx.path_graph(nodes)
        marks = rng.integers(0, 2, nodes)
    elif kind == "size":
        nodes = int(rng.integers(8, 12)) + 4 * label
        graph = nx.random_labeled_tree(nodes, seed=int(rng.integers(10**6)))
        marks = np.zeros(nodes)
    else:
        graph = nx.path_graph(nodes)
        first = int(rng.integers(1, 5))
        second = first + (1 if (rng.integers(2) if kind == "nothing" else label) else 4)
        marks = np.isin(np.arange(nodes), [first, second])
    order = rng.permutation(nodes)
    place = np.argsort(order)
    edges = np.array([(place[a], place[b]) for e in graph.edges for a, b in (e, e[::-1])]).T
    x = np.eye(2, dtype=np.float32)[np.asarray(marks, int)][order]
    return Data(x=torch.from_numpy(x), edge_index=torch.from_numpy(edges), y=torch.tensor([label]))
