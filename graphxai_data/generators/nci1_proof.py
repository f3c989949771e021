"""Proof of NCI1: the files are read again line by line, without any code of the generator."""

from collections import defaultdict
from typing import Any

from graphxai_data.files.raw import read_member
from graphxai_data.generators.base import Prover, Sources
from graphxai_data.graphs.record import GraphRecord


class NCI1Prover(Prover):
    """Compares graphs with the lines of the files."""

    def __init__(self, params: Any, sources: Sources) -> None:
        def numbers(suffix: str) -> list[list[int]]:
            text = read_member(sources["nci1"].path, f"NCI1_{suffix}.txt").decode().strip()
            return [[int(part) for part in line.split(",")] for line in text.split("\n")]

        self._label = [label for (label,) in numbers("graph_labels")]
        self._kind = [kind for (kind,) in numbers("node_labels")]
        self._nodes: dict[int, list[int]] = defaultdict(list)
        self._neighbours: dict[int, set[int]] = defaultdict(set)
        for node, (graph,) in enumerate(numbers("graph_indicator"), start=1):
            self._nodes[graph].append(node)
        for source, target in numbers("A"):
            self._neighbours[source].add(target)

    def problems(self, record: GraphRecord) -> list[str]:
        """Return in what a graph differs from the files."""
        nodes = self._nodes[record.group + 1]
        if len(nodes) != record.num_nodes:
            return [f"{record.num_nodes} atoms, the file has {len(nodes)}"]
        problems = []
        if self._label[record.group] != record.y:
            problems.append(f"class {record.y}, the file has {self._label[record.group]}")
        if [self._kind[node - 1] for node in nodes] != (record.x.argmax(axis=1) + 1).tolist():
            problems.append("its atoms are not those of the file")
        place = {node: i for i, node in enumerate(nodes)}
        bonds = {(place[a], place[b]) for a in nodes for b in self._neighbours[a]}
        if bonds != set(map(tuple, record.edge_index.T.tolist())):
            problems.append("its bonds are not those of the file")
        return problems
