"""A small generator whose labels are numbers: trees of coloured nodes, and what each colour adds.

A `conftest.py` that imports the fixtures gives its tests the dataset `numbers`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphxai_data import Feature, Generator, GraphRecord, Prover, Schema, register
from graphxai_data.building.build import build
from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.generators import PLUGINS
from graphxai_data.recipe import Recipe

# What a node of each colour adds to the label: sums of these are exact in a float32.
WEIGHTS = np.array([-1.25, 0.5, 1.75])
RECIPE = {
    "name": "numbers",
    "version": 1,
    "generator": "numbers",
    "params": {"graphs": 240, "largest": 10},
    "splits": {"train": 0.7, "valid": 0.15, "test": 0.15},
}


class Numbers(Generator):
    """A random tree; y is the sum of the weights of its nodes, which follow from their colours."""

    @dataclass(frozen=True)
    class Params(Generator.Params):
        largest: int

    def schema(self) -> Schema:
        return Schema(
            Feature(3, "onehot"), Feature(2, "onehot"), 1, has_weights=True, label="number"
        )

    def make(self, label: int, rng: Any, raw: Any = None) -> GraphRecord:
        nodes = int(rng.integers(4, self.params.largest + 1))
        edges = [(int(rng.integers(i)), i) for i in range(1, nodes)]
        colour = rng.integers(3, size=nodes)
        colour[:2] = 0, 2  # both signs, so that every graph can be ranked
        weight = WEIGHTS[colour]
        return GraphRecord.from_edges(
            np.eye(3)[colour],
            edges,
            float(weight.sum()),
            edge_attr=np.eye(2)[rng.integers(2, size=len(edges))],
            node_weight=weight,
        )

    def prover(self, sources: Any) -> Prover:
        return NumberProver()


class NumberProver(Prover):
    """Counts the colours of the stored features."""

    def problems(self, record: GraphRecord) -> list[str]:
        counts = record.x.sum(axis=0).tolist()
        expected = -1.25 * counts[0] + 0.5 * counts[1] + 1.75 * counts[2]
        return [] if record.y == expected else [f"y = {record.y}, expected {expected}"]


@pytest.fixture(scope="session")
def numbers_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Root with a build of the dataset, without RINGS; tests must not change it."""
    root = tmp_path_factory.mktemp("numbers")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PLUGINS, "registered", {})
        register("numbers", Numbers)
        build(Recipe.from_dict(RECIPE), root=root, engine="serial", rings=False)
    return root


@pytest.fixture
def numbers(numbers_root: Path, monkeypatch: pytest.MonkeyPatch) -> GraphXAIDataset:
    """The dataset, whose generator is registered while the test runs."""
    monkeypatch.setattr(PLUGINS, "registered", {})
    register("numbers", Numbers)
    return GraphXAIDataset.from_folder(numbers_root / "numbers" / "seed-0")
