"""Proof of NCI1: the files are read again line by line, without any code of the generator."""

from typing import Any

from graphxai_data.files.raw import Source, read_member
from graphxai_data.graphs.record import GraphRecord


class Prover:
    """Compares graphs with the lines of the files."""

    sample = 10_000

    def __init__(self, params: Any, sources: dict[str, Source]) -> None:
        path = sources["nci1"].path

        def lines(suffix: str) -> list[str]:
            return read_member(path, f"NCI1_{suffix}.txt").decode().split("\n")

        self._label = [int(line) for line in lines("graph_labels") if line.strip()]
        self._nodes: dict[int, list[int]] = {}
        self._kind: dict[int, int] = {}
        self._neighbours: dict[int, set[int]] = {}
        kinds = lines("node_labels")
        for node, line in enumerate(lines("graph_indicator"), start=1):
            if line.strip():
                self._nodes.setdefault(int(line), []).append(node)
                self._kind[node] = int(kinds[node - 1])
        for line in lines("A"):
            if line.strip():
                source, target = (int(part) for part in line.split(","))
                self._neighbours.setdefault(source, set()).add(target)

    def problems(self, record: GraphRecord) -> list[str]:
        """Return in what a graph differs from the files."""
        nodes = self._nodes.get(record.group + 1, [])
        if len(nodes) != record.num_nodes:
            return [f"{record.num_nodes} atoms, the file has {len(nodes)}"]
        problems = []
        if self._label[record.group] != record.y:
            problems.append(f"class {record.y}, the file has {self._label[record.group]}")
        if [self._kind[node] for node in nodes] != (record.x.argmax(axis=1) + 1).tolist():
            problems.append("its atoms are not those of the file")
        place = {node: i for i, node in enumerate(nodes)}
        bonds = {(place[a], place[b]) for a in nodes for b in self._neighbours.get(a, ())}
        if bonds != set(map(tuple, record.edge_index.T.tolist())):
            problems.append("its bonds are not those of the file")
        return problems
