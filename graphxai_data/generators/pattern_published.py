"""PATTERN as it was published: the graphs of Dwivedi et al., from the file that PyG offers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from graphxai_data.errors import InputError
from graphxai_data.files.toml import Between
from graphxai_data.generators.base import BaseParams, Planned, Prover, Rejected, Sources
from graphxai_data.generators.pattern import CLASSES, PatternTask
from graphxai_data.generators.pattern_file import read_lists, tensor_of
from graphxai_data.generators.published import (
    PublishedGenerator,
    RawGraph,
    edge_order,
    rows_to_build,
)
from graphxai_data.graphs.columns import Ints
from graphxai_data.graphs.record import SPLIT_NAMES
from graphxai_data.seeds import Draws


class PublishedPatternGenerator(PatternTask, PublishedGenerator):
    """The published graphs of PATTERN."""

    sources: ClassVar = {"pattern": ()}

    @dataclass(frozen=True)
    class Params(BaseParams):
        """The recipe's numbers; `kinds` are the values of the node feature."""

        kinds: Annotated[int, Between(1, 256)]

    params: Params

    def plan_from_sources(
        self, fractions: Sequence[float], graphs: int, sources: Sources, draws: Draws
    ) -> Planned:
        """Return class (0, since nodes have classes), row in the file, and split of every graph."""
        sizes = [len(part) for part in read_lists(sources["pattern"])]
        split = np.repeat(np.arange(len(SPLIT_NAMES), dtype=np.uint8), sizes)
        strata = split.astype(np.int64)
        rows = rows_to_build(sources["pattern"], strata, graphs, "pattern-published")
        return np.zeros(graphs, np.int64), rows, split[rows]

    def read(self, sources: Sources, group: Ints, seed: int) -> tuple[list[RawGraph], Rejected]:
        """Return features, classes and edges of each graph; none is rejected."""
        path = sources["pattern"].path
        stored = [graph for graphs in read_lists(sources["pattern"]) for graph in graphs]
        graphs = [_graph(self.params, stored[i], f"{path}: graph {i}") for i in group.tolist()]
        return graphs, {"pattern": {}}

    def prover(self, sources: Sources) -> Prover:
        """Return the proof by independent code."""
        from graphxai_data.generators.pattern_published_proof import PublishedPatternProver

        return PublishedPatternProver(self.params, sources)


def _graph(params: PublishedPatternGenerator.Params, stored: Any, where: str) -> RawGraph:
    """Return one graph of the file, checked."""
    x, label = (tensor_of(stored, key, "biuf", where) for key in ("x", "y"))
    edges = tensor_of(stored, "edge_index", "iu", where)
    if x.ndim != 2 or x.shape[1] != params.kinds or not len(x):
        raise InputError(f"{where}: x has shape {x.shape}, expected [nodes, {params.kinds}]")
    if not (np.isin(x, (0, 1)).all() and (x.sum(axis=1) == 1).all()):
        raise InputError(f"{where}: x is not one-hot")
    if label.shape != (len(x),) or not np.isin(label, range(CLASSES)).all():
        raise InputError(f"{where}: y: expected {len(x)} classes, 0 or 1, one per node")
    if edges.ndim != 2 or len(edges) != 2:
        raise InputError(f"{where}: edge_index has shape {edges.shape}, expected [2, edges]")
    if edges.size and (edges.min() < 0 or edges.max() >= len(x)):
        raise InputError(
            f"{where}: edge_index: {edges.min()} to {edges.max()}, expected 0 to {len(x) - 1}"
        )
    edges = edges.astype(np.int64)

    def refuse(edge: int, reason: str) -> None:
        source, target = edges[:, edge]
        raise InputError(f"{where}: edge_index: column {edge}: {source}, {target} {reason}")

    ordered = edges[:, edge_order(edges, len(x), refuse)]
    kind = x.argmax(axis=1).astype(np.uint8)
    return kind, ordered, None, label.astype(np.uint8)
