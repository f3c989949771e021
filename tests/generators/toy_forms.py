"""Small generators of one's own: null rationales and alternatives, and signed weights."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import networkx as nx
import numpy as np

from graphxai_data import Feature, Generator, GraphRecord, Prover, Recipe, Schema, build
from graphxai_data.generators import PLUGINS

_SPLITS = {"train": 0.8, "valid": 0.1, "test": 0.1}
PAIRS = {
    "name": "pairs-of-red", "version": 1, "generator": "red_pairs", "params": {"graphs": 40},
    "splits": _SPLITS, "summary": "Two red nodes next to each other",
}  # fmt: skip
SUMS = PAIRS | {"name": "sums", "generator": "sums", "summary": "The sum of weights of colours"}

# Colours of nodes: grey, red, blue.
COLOURS = ["grey", "red", "blue"]


class RedPairs(Generator):
    """A tree has class 1 if two red nodes are neighbours: each such pair is enough.

    Nothing makes class 0.
    """

    def schema(self) -> Schema:
        return Schema(Feature(3, "onehot"), None, 2, has_null=True, has_alternatives=True)

    def class_names(self) -> list[str]:
        return ["no pair", "red pair"]

    def node_values(self) -> dict[str, list[str] | None]:
        return {"colour": COLOURS}

    def make(self, label: int, rng: Any, raw: Any = None) -> GraphRecord:
        nodes = int(rng.integers(8, 14))
        edges = [(i, int(rng.integers(i))) for i in range(1, nodes)]
        colours = 2 * rng.integers(2, size=nodes)
        pairs = rng.permutation(len(edges))[: int(rng.integers(1, 3)) * label]
        for pair in pairs:
            colours[list(edges[pair])] = 1
        red = [edge for edge in edges if (colours[list(edge)] == 1).all()]
        alternatives = [np.isin(np.arange(nodes), edge) for edge in red]
        return GraphRecord.from_edges(np.eye(3)[colours], edges, label, alternatives=alternatives)

    def prover(self, sources: Any) -> Prover:
        return PairProver()


class PairProver(Prover):
    """Looks for red neighbours with NetworkX."""

    def problems(self, record: GraphRecord) -> list[str]:
        graph: Any = nx.Graph(record.edge_index.T.tolist())
        red = {node for node in graph if record.x[node, 1] == 1}
        expected = {frozenset(edge) for edge in graph.subgraph(red).edges}
        stored = [frozenset(np.flatnonzero(mask).tolist()) for mask in record.alternatives]
        problems = []
        if bool(expected) != bool(record.y):
            problems.append(f"{len(expected)} pairs, but class {record.y}")
        if expected != set(stored) or len(stored) != len(expected):
            problems.append("the alternatives are not the pairs")
        return problems


class Sums(Generator):
    """The label is the sum of the weights of the nodes: 1 for red, -0.5 for blue, else 0."""

    @dataclass(frozen=True)
    class Params(Generator.Params):
        longest: int = 12

    def schema(self) -> Schema:
        return Schema(Feature(3, "onehot"), None, 1, has_weights=True, label="number")

    def class_names(self) -> list[str]:
        return ["sum of the weights"]

    def node_values(self) -> dict[str, list[str] | None]:
        return {"colour": COLOURS}

    def make(self, label: int, rng: Any, raw: Any = None) -> GraphRecord:
        nodes = int(rng.integers(6, self.params.longest))
        edges = [(i, int(rng.integers(i))) for i in range(1, nodes)]
        colours = rng.integers(3, size=nodes)
        weight = np.array([0.0, 1.0, -0.5])[colours]
        y = float(weight.sum())
        return GraphRecord.from_edges(np.eye(3)[colours], edges, y, node_weight=weight)

    def prover(self, sources: Any) -> Prover:
        return SumProver()


class SumProver(Prover):
    """Counts colours."""

    def problems(self, record: GraphRecord) -> list[str]:
        _, red, blue = record.x.sum(axis=0).tolist()
        problems = []
        if record.y != red - blue / 2:
            problems.append(f"the sum is {red - blue / 2}, but the label is {record.y}")
        expected = (record.x @ np.array([0, 1, -0.5], np.float32)).tolist()
        if np.asarray(record.node_weight).tolist() != expected:
            problems.append("a weight is not that of its colour")
        return problems


@contextmanager
def built(root: Path) -> Iterator[tuple[Path, Path]]:
    """Build both without RINGS, and yield their folders; the classes are registered."""
    classes = {"red_pairs": RedPairs, "sums": Sums}
    with mock.patch.object(PLUGINS, "registered", classes):
        for recipe in (PAIRS, SUMS):
            recipe_object = Recipe.from_dict(recipe)
            build(recipe_object, root=root, engine="serial", rings=False, shard_size=16)
        yield root / "pairs-of-red" / "seed-0", root / "sums" / "seed-0"
