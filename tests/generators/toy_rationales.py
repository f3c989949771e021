"""A small generator for every form of rationale: paths whose nodes have one of three colours.

Forms (`params.form`):
- "single": class 1 has exactly one edge between two red nodes, its rationale. Class 0 has none: its
  rationale is null.
- "alternatives": class 1 has one or more such edges, and each is an alternative; neighbouring ones
  share a node. Class 0 is null.
- "signed": every node has the weight of its colour, and the label is the sum: a number.
- "signed-classes": the label is whether this sum is positive; the same weights speak for class 1.
"""

import tomllib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from graphxai_data import Feature, Generator, GraphRecord, Prover, Schema
from graphxai_data.recipe import Recipe

RED = 2
WEIGHTS = (0.0, 1.0, -0.75)  # of the colours; multiples of 1/4, so that sums are exact


def toy_recipe_text(form: str, graphs: int = 60) -> str:
    """Return the TOML text of `toy_recipe`."""
    return f"""
name = "toy-{form}"
version = 1
generator = "toy_rationales"
params = {{ graphs = {graphs}, longest = 12, form = "{form}" }}
splits = {{ train = 0.5, valid = 0.1, test = 0.4 }}
"""


def toy_recipe(form: str, graphs: int = 60) -> Recipe:
    """Return the recipe of a form; its generator has to be registered as "toy_rationales"."""
    return Recipe.from_dict(tomllib.loads(toy_recipe_text(form, graphs)))


class ToyRationales(Generator):
    """Paths whose nodes have one of three colours."""

    @dataclass(frozen=True)
    class Params(Generator.Params):
        longest: int
        form: str

    @property
    def _is_signed(self) -> bool:
        return self.params.form.startswith("signed")

    def schema(self) -> Schema:
        is_number = self.params.form == "signed"
        return Schema(
            Feature(len(WEIGHTS), "onehot"),
            edge_features=None,
            num_classes=1 if is_number else 2,
            has_null=not self._is_signed,
            has_alternatives=self.params.form == "alternatives",
            has_weights=self._is_signed,
            label="number" if is_number else "class",
        )

    def make(self, label: int, rng: Any, raw: Any = None) -> GraphRecord:
        while True:
            colour = rng.integers(len(WEIGHTS), size=int(rng.integers(5, self.params.longest + 1)))
            nodes = np.arange(len(colour))
            edges, x = np.stack([nodes[:-1], nodes[1:]], axis=1), np.eye(len(WEIGHTS))[colour]
            if self._is_signed:
                weight, total = np.take(WEIGHTS, colour), float(np.take(WEIGHTS, colour).sum())
                if self.params.form == "signed":
                    return GraphRecord.from_edges(x, edges, total, node_weight=weight)
                if (total > 0) == bool(label):
                    return GraphRecord.from_edges(x, edges, label, node_weight=weight)
                continue
            red = (colour[edges] == RED).all(axis=1)
            alternatives = np.stack([np.isin(nodes, edge) for edge in edges])[red]
            if bool(label) != bool(len(alternatives)) or (colour == RED).all():
                continue
            if self.params.form == "alternatives":
                return GraphRecord.from_edges(x, edges, label, alternatives=alternatives)
            if len(alternatives) <= 1:
                mask = alternatives.any(axis=0)
                return GraphRecord.from_edges(x, edges, label, mask)

    def prover(self, sources: Any) -> Prover:
        return ToyProver(self.params.form)


class ToyProver(Prover):
    """Finds the rationale in the stored arrays."""

    def __init__(self, form: str) -> None:
        self.form = form

    def problems(self, record: GraphRecord) -> list[str]:
        colour = record.x.argmax(axis=1)
        if self.form.startswith("signed"):
            return _weight_problems(record, colour, self.form)
        red_pairs = {
            frozenset((int(a), int(b))) for a, b in record.edge_index.T
            if colour[a] == colour[b] == RED
        }  # fmt: skip
        stated = {frozenset(np.flatnonzero(mask).tolist()) for mask in record.alternatives}
        problems = (
            [] if red_pairs == stated else ["the rationale is not the edges between red nodes"]
        )
        return problems + ([] if record.y == bool(red_pairs) else ["its class is wrong"])


def _weight_problems(record: GraphRecord, colour: npt.NDArray[Any], form: str) -> list[str]:
    expected = [WEIGHTS[c] for c in colour.tolist()]
    label: float = sum(expected)
    if form == "signed-classes":
        label = int(label > 0)
    weight = record.node_weight
    assert weight is not None
    problems = [] if weight.tolist() == expected else ["a weight is not that of its colour"]
    return problems + ([] if record.y == label else ["its label is wrong"])
