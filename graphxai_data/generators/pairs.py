"""Causes in pairs: every graph has two causes of one kind, A and B, and the class is that of one.

The recipes of a pair, `-a` and `-b`, give the same graphs bit for bit; only label and mask differ.
In `-both`, A and B have the same class, so that labels do not say which of them counts. A rule that
looks neither at the model nor at labels ranks the nodes of a graph once, for both recipes. So it
finds one cause at most: docs/pairs.md states and proves the bound.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from graphxai_data.generators.base import BaseParams, Generator
from graphxai_data.graphs.columns import Columns, Ints, global_edges
from graphxai_data.graphs.invariants import Findings
from graphxai_data.graphs.record import Plan
from graphxai_data.graphs.schema import Column
from graphxai_data.seeds import below, rng_for

Cause = Literal["a", "b"]
# `cause` [N]: 0 for nodes of neither cause, 1 for A, 2 for B. `cause_y` [g, 2]: their classes.
PAIR_COLUMNS = (Column("cause", "node"), Column("cause_y", "graph", "|u1", (2,)))


@dataclass(frozen=True)
class PairParams(BaseParams):
    """Base of the `Params` of a pair: which cause makes the class."""

    cause: Literal["a", "b", "both"]


class PairGenerator(Generator):
    """Base of generators of pairs; a subclass writes `draw`, and lists `PAIR_COLUMNS` in extras."""

    Params: ClassVar = PairParams
    # Labels of `-a` and `-b` differ, so only strata that both share give both the same splits.
    needs_exact_strata = False

    @abstractmethod
    def draw(self, plan: Plan, seed: int, classes: Ints) -> Columns:
        """Return the planned graphs with these classes [2, g] of A and B.

        All columns of the schema but `y`, `cause_y`, `node_mask` and `edge_mask`, which follow.
        What is drawn at random must not depend on `self.params.cause`, nor the rest of a graph on
        the classes.
        """

    def field_descriptions(self) -> dict[str, str]:
        """Return what the fields about causes mean, in addition to those of all datasets."""
        return super().field_descriptions() | {
            "cause": "cause that the node belongs to: 0 none, 1 A, 2 B",
            "cause_y": "classes of causes A and B, whichever of them makes the class of the graph",
        }

    def cause_classes(self, index: Ints) -> Ints:
        """Return the classes [2, g] of A and B; all combinations in turn, except in `-both`."""
        count = self.schema().num_classes
        first = index % count
        return np.stack([first, first if self.params.cause == "both" else index // count % count])

    def plan(self, graphs: int) -> tuple[Ints, Ints]:
        """Return class and group of every graph; each graph is a group."""
        index = np.arange(graphs, dtype=np.int64)
        return self._label(self.cause_classes(index)), index

    def strata(self, graphs: int) -> Ints:
        """Return a number [g] for each combination of classes, the same for all recipes."""
        return np.arange(graphs, dtype=np.int64) % self.schema().num_classes ** 2

    def generate(self, plan: Plan, seed: int) -> Columns:
        """Return the planned graphs."""
        classes = self.cause_classes(plan.index)
        return self.with_truth(self.draw(plan, seed, classes), classes)

    def intervene(self, plan: Plan, seed: int, changed: Cause) -> Columns:
        """Return the planned graphs again, with another class of one cause and nothing else."""
        classes, count = self.cause_classes(plan.index), self.schema().num_classes
        stream = f"{self.name}/intervene/{changed}"
        words = np.array([rng_for(seed, stream, i).words(1)[0] for i in plan.index.tolist()])
        row = "ab".index(changed)
        classes[row] = (classes[row] + 1 + below(words, count - 1)) % count
        return self.with_truth(self.draw(plan, seed, classes), classes)

    def with_truth(self, columns: Columns, classes: Ints) -> Columns:
        """Return the columns of `draw` with label and masks."""
        mask = self._mask(columns)
        source, target = global_edges(columns)
        return columns | {
            "y": self._label(classes),
            "cause_y": classes.T.astype(np.uint8),
            "node_mask": mask,
            "edge_mask": mask[source] & mask[target],
        }

    def check(self, columns: Columns) -> list[str]:
        """Return where label or mask are not those of the recipe's cause."""
        findings = Findings(columns)
        classes = columns["cause_y"].astype(np.int64).T
        findings.require(columns["y"] == self._label(classes), "the label is not its cause's class")
        differs = columns["node_mask"] != self._mask(columns)
        findings.require(findings.nodes(differs) == 0, "the rationale is not the cause")
        if self.params.cause == "both":
            findings.require(classes[0] == classes[1], "A and B do not have the same class")
        return findings.problems

    def _label(self, classes: Ints) -> Ints:
        label: Ints = classes[1 if self.params.cause == "b" else 0]
        return label

    def _mask(self, columns: Columns) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
        numbers = {"a": (1,), "b": (2,), "both": (1, 2)}[self.params.cause]
        return np.isin(columns["cause"], numbers)
