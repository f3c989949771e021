"""Proof of molhiv: the files are read again line by line, and the SMILES without sanitisation."""

import csv
import io
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from graphxai_data.files.raw import has_file, read_member
from graphxai_data.generators.base import Prover, Sources
from graphxai_data.graphs.record import SPLIT_NAMES, GraphRecord


class MolHIVProver(Prover):
    """Compares molecules with the rows of the table, and atoms and bonds with the SMILES."""

    def __init__(self, params: Any, sources: Sources) -> None:
        path = sources["molhiv"].path
        published = has_file(path, "raw/node-feat.csv")
        table = read_member(path, "mapping/mol.csv" if published else "hiv.csv")
        self._rows = list(csv.DictReader(io.StringIO(table.decode())))
        self._files = _PublishedGraphs(path) if published else None
        self._split = {}
        for number, name in enumerate(SPLIT_NAMES):
            for line in read_member(path, f"split/scaffold/{name}.csv").decode().split():
                self._split[int(line)] = number

    def problems(self, record: GraphRecord) -> list[str]:
        """Return in what a molecule differs from the files."""
        from rdkit import Chem

        row = self._rows[record.group]
        problems = []
        if record.y != int(row["HIV_active"]):
            problems.append(f"class {record.y}, the table has {row['HIV_active']}")
        if record.meta["split"] != self._split[record.group]:
            problems.append("its split is not OGB's")
        if record.meta["smiles"] != row["smiles"]:
            problems.append("its SMILES is not the table's")
        # Without sanitisation, RDKit changes nothing that the text says.
        molecule: Any = Chem.MolFromSmiles(row["smiles"], sanitize=False)
        if molecule is None:
            return [*problems, "its SMILES cannot be read"]
        symbols = [atom.GetAtomicNum() or 119 for atom in molecule.GetAtoms()]
        charges = [atom.GetFormalCharge() + 5 for atom in molecule.GetAtoms()]
        # Sanitisation removes some hydrogens that are written as atoms.
        if len(symbols) == record.num_nodes:
            if (record.x[:, :119].argmax(axis=1) + 1).tolist() != symbols:
                problems.append("its atoms are not those of its SMILES")
            if record.x[:, 136:148].argmax(axis=1).tolist() != charges:
                problems.append("its charges are not those of its SMILES")
            bonds = {(b.GetBeginAtomIdx(), b.GetEndAtomIdx()) for b in molecule.GetBonds()}
            both = bonds | {(b, a) for a, b in bonds}
            if set(map(tuple, record.edge_index.T.tolist())) != both:
                problems.append("its bonds are not those of its SMILES")
        elif symbols.count(1) == 0:
            problems.append(f"{record.num_nodes} atoms, its SMILES has {len(symbols)}")
        return problems + (self._files.problems(record) if self._files else [])


class _PublishedGraphs:
    """The lines of OGB's files, by the molecule they belong to."""

    def __init__(self, path: Path) -> None:
        def lines(name: str) -> list[str]:
            return read_member(path, f"raw/{name}.csv").decode().rstrip().splitlines()

        self._atoms, self._ends, self._bonds = map(lines, ("node-feat", "edge", "edge-feat"))
        self._first_atom = list(accumulate(map(int, lines("num-node-list")), initial=0))
        self._first_bond = list(accumulate(map(int, lines("num-edge-list")), initial=0))

    def problems(self, record: GraphRecord) -> list[str]:
        """Return in what a molecule differs from its lines."""
        atoms = slice(*self._first_atom[record.group : record.group + 2])
        bonds = slice(*self._first_bond[record.group : record.group + 2])
        problems = []
        if _hot(record.x, (119, 5, 12, 12, 10, 6, 6, 2, 2)) != _numbers(self._atoms[atoms]):
            problems.append("its atoms are not those of the files")
        ends, kinds = _numbers(self._ends[bonds]), _numbers(self._bonds[bonds])
        expected = {}
        for (a, b), kind in zip(ends, kinds, strict=True):
            expected[a, b] = expected[b, a] = kind
        edges = map(tuple, record.edge_index.T.tolist())
        if dict(zip(edges, _hot(record.edge_attr, (5, 6, 2)), strict=True)) != expected:
            problems.append("its bonds are not those of the files")
        return problems


def _hot(rows: Any, widths: tuple[int, ...]) -> list[list[int]]:
    """Return the values [rows][features] of one-hot features side by side."""
    parts = np.split(rows, list(accumulate(widths))[:-1], axis=1)
    values: list[list[int]] = np.stack([part.argmax(axis=1) for part in parts], axis=1).tolist()
    return values


def _numbers(lines: list[str]) -> list[list[int]]:
    return [[int(cell) for cell in line.split(",")] for line in lines]
