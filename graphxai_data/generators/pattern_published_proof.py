"""Proof of the published PATTERN: each graph is compared with the tensors of the file."""

from typing import Any

from graphxai_data.generators.base import Prover, Sources
from graphxai_data.generators.pattern_file import read_lists
from graphxai_data.graphs.record import SPLIT_NAMES, GraphRecord


class PublishedPatternProver(Prover):
    """Compares graphs with those of the file."""

    def __init__(self, params: Any, sources: Sources) -> None:
        self._parts = read_lists(sources["pattern"])

    def problems(self, record: GraphRecord) -> list[str]:
        """Return in what a graph differs from the file."""
        at, split = record.group, 0
        while split < len(SPLIT_NAMES) and at >= len(self._parts[split]):
            at, split = at - len(self._parts[split]), split + 1
        stored = self._parts[split][at]
        problems = []
        if record.meta["split"] != split:
            problems.append(f"its split is not {SPLIT_NAMES[split]}, as in the file")
        if record.node_y is None or record.node_y.tolist() != stored["y"].tolist():
            problems.append("the classes of its nodes are not those of the file")
        if record.x.tolist() != stored["x"].tolist():
            problems.append("its features are not those of the file")
        edges = set(map(tuple, record.edge_index.T.tolist()))
        if edges != set(map(tuple, stored["edge_index"].t().tolist())):
            problems.append("its edges are not those of the file")
        return problems
