"""A small generator of one's own, as a plug-in would have it: a path with a marked end."""

from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np

from graphxai_data import Feature, Generator, GraphRecord, Prover, Schema

RECIPE = {
    "name": "toy",
    "version": 1,
    "generator": "toy",
    "params": {"graphs": 40, "longest": 9},
    "splits": {"train": 0.8, "valid": 0.1, "test": 0.1},
}
RECIPE_TEXT = """
name = "toy"
version = 1
generator = "toy"
summary = "A star of three or four rays at the end of a path"
params = { graphs = 40, longest = 9 }
splits = { train = 0.8, valid = 0.1, test = 0.1 }
"""


class Toy(Generator):
    """A star of three (class 0) or four rays at the end of a path."""

    @dataclass(frozen=True)
    class Params(Generator.Params):
        longest: int

    def schema(self) -> Schema:
        return Schema(Feature(3, "onehot"), edge_features=None, num_classes=2)

    def make(self, label: int, rng: Any, raw: Any = None) -> GraphRecord:
        path, rays = rng.integers(3, self.params.longest + 1), 3 + label
        edges = [(i, i + 1) for i in range(path)]  # the last one leads to the centre of the star
        edges += [(path, path + 1 + ray) for ray in range(rays)]
        nodes = path + 1 + rays
        x = np.eye(3)[rng.integers(3, size=nodes)]
        return GraphRecord.from_edges(x, edges, label, np.arange(nodes) >= path)

    def prover(self, sources: Any) -> Prover:
        return StarProver()


class StarProver(Prover):
    """The only node with more than two neighbours is the centre of the star."""

    def problems(self, record: GraphRecord) -> list[str]:
        graph: Any = nx.Graph(record.edge_index.T.tolist())
        (centre,) = [node for node, degree in graph.degree if degree > 2]
        rays = {node for node in graph[centre] if graph.degree[node] == 1}
        problems = []
        if len(rays) != 3 + record.y:
            problems.append(f"{len(rays)} rays, but class {record.y}")
        if rays | {centre} != set(np.flatnonzero(record.rationale).tolist()):
            problems.append("the rationale is not the star")
        return problems
