"""PATTERN: find the nodes of a planted pattern in a stochastic block model (node classification).

Dwivedi et al., "Benchmarking Graph Neural Networks", drew their graphs without a seed, so these
graphs follow the same distribution but are not the published ones. A number of patterns (inner
graphs and features) are drawn once, and each is planted into many graphs; its nodes are class 1. No
rationale is known: class and structure are the same thing here.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt

from graphxai_data.files.toml import Between
from graphxai_data.generators.base import BaseParams, Generator, Prover, Sources
from graphxai_data.generators.published import stack
from graphxai_data.graphs.columns import Columns, Ints
from graphxai_data.graphs.invariants import Findings
from graphxai_data.graphs.record import Plan
from graphxai_data.graphs.schema import Feature, Schema
from graphxai_data.seeds import Draws, below, rng_for

CLASSES = 2


class PatternTask(Generator):
    """What the graphs drawn here and the published ones have in common; `params` has `kinds`."""

    proof_sample = 2_000

    def schema(self) -> Schema:
        """One one-hot node feature, no edge features, two classes of nodes, no rationale."""
        return Schema(
            Feature(self.params.kinds, "onehot"),
            edge_features=None,
            num_classes=CLASSES,
            has_rationale=False,
            task="node",
        )

    def class_names(self) -> list[str]:
        """Return where a node may be."""
        return ["background", "pattern"]

    def node_values(self) -> dict[str, list[str] | None]:
        """Return the values of the signal at a node."""
        return {"signal": [str(kind) for kind in range(self.params.kinds)]}


class PatternGenerator(PatternTask):
    """Stochastic block models with planted patterns; as published, splits share patterns."""

    @dataclass(frozen=True)
    class Params(BaseParams):
        """The recipe's numbers; the four from `inside` on are probabilities of an edge."""

        patterns: Annotated[int, Between(1, 10**6)]  # graph i has pattern i modulo this
        communities: Annotated[int, Between(1, 100)]  # blocks of the background
        size_min: Annotated[int, Between(1, 1000)]  # of a block, and of a pattern
        size_max: Annotated[int, Between(1, 1000)]
        inside: Annotated[float, Between(0, 1)]  # between nodes of a block
        across: Annotated[float, Between(0, 1)]  # between blocks
        pattern_inside: Annotated[float, Between(0, 1)]  # between nodes of a pattern
        pattern_across: Annotated[float, Between(0, 1)]  # between pattern and background
        kinds: Annotated[int, Between(1, 256)]  # values of the node feature, equally probable

        def __post_init__(self) -> None:
            super().__post_init__()
            if self.size_min > self.size_max:
                raise ValueError(
                    f"size_max must be from size_min = {self.size_min} to 1000, got {self.size_max}"
                )

    params: Params

    def strata(self, graphs: int) -> Ints:
        """Return the pattern [g] of each graph: every split gets its share of each."""
        return np.arange(graphs, dtype=np.int64) % self.params.patterns

    def generate(self, plan: Plan, seed: int) -> Columns:
        """Return the planned graphs, drawn one after the other."""
        params = self.params
        graphs = []
        patterns: dict[int, tuple[npt.NDArray[np.bool_], Ints]] = {}
        for index in plan.index.tolist():
            number = index % params.patterns
            if number not in patterns:
                patterns[number] = _pattern(params, rng_for(seed, "pattern/pattern", number))
            kind, inside, adjacency = _graph(
                params, *patterns[number], rng_for(seed, "pattern/graph", index)
            )
            edges = np.stack(np.nonzero(adjacency))  # sorted by source and target
            graphs.append((kind.astype(np.uint8), edges, None, inside.astype(np.uint8)))
        return stack(plan, graphs)

    def check(self, columns: Columns) -> list[str]:
        """Return which graphs have a pattern or background of an impossible size."""
        params = self.params
        findings = Findings(columns)
        inside = findings.nodes(columns["node_y"] == 1)
        outside = findings.nodes(columns["node_y"] == 0)
        low, high = params.size_min, params.size_max
        findings.require(
            (inside >= low) & (inside <= high), f"the pattern does not have {low} to {high} nodes"
        )
        low, high = low * params.communities, high * params.communities
        findings.require(
            (outside >= low) & (outside <= high),
            f"the background does not have {low} to {high} nodes",
        )
        return findings.problems

    def prover(self, sources: Sources) -> Prover:
        """Return the proof by independent code."""
        from graphxai_data.generators.pattern_proof import PatternProver

        return PatternProver(self.params, sources)


def _pattern(params: PatternGenerator.Params, draws: Draws) -> tuple[npt.NDArray[np.bool_], Ints]:
    """Return the inner graph [k, k] of a pattern, and the features [k] of its nodes."""
    size = int(_sizes(params, draws, 1)[0])
    adjacency = _random_graph(draws, np.full((size, size), params.pattern_inside))
    return adjacency, below(draws.words(size), params.kinds)


def _graph(
    params: PatternGenerator.Params,
    pattern: npt.NDArray[np.bool_],
    pattern_kind: Ints,
    draws: Draws,
) -> tuple[Ints, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return features [n], which nodes are the pattern's [n], and the adjacency [n, n]."""
    block = np.repeat(np.arange(params.communities), _sizes(params, draws, params.communities))
    background, total = len(block), len(block) + len(pattern)
    chance = np.full((total, total), params.pattern_across)
    same = block[:, None] == block
    chance[:background, :background] = np.where(same, params.inside, params.across)
    adjacency = _random_graph(draws, chance)
    adjacency[background:, background:] = pattern
    kind = np.concatenate([below(draws.words(background), params.kinds), pattern_kind])
    order = draws.permutation(total)
    return kind[order], order >= background, adjacency[order][:, order]


def _sizes(params: PatternGenerator.Params, draws: Draws, count: int) -> Ints:
    span = params.size_max - params.size_min + 1
    return params.size_min + below(draws.words(count), span)


def _random_graph(draws: Draws, chance: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Return a symmetric adjacency [n, n] without loops; each pair is joined with its chance."""
    rows, columns = np.triu_indices(len(chance), 1)
    # A pair is joined if its random word is below chance · 2^64; for 1 that exceeds 64 bits.
    probability = chance[rows, columns]
    limit = np.minimum(probability * 2.0**64, np.nextafter(2.0**64, 0)).astype(np.uint64)
    upper = np.zeros(chance.shape, bool)
    upper[rows, columns] = (draws.words(len(rows)) < limit) | (probability >= 1)
    return upper | upper.T
