"""ogbg-molhiv: molecules that do or do not inhibit HIV, in OGB's order, with its scaffold split.

Atoms and bonds have OGB's encodings, each value a one-hot feature of its own. They come from the
files that OGB publishes, or RDKit computes them from a table of SMILES. RDKit's full sanitisation
refuses a few rows today; those are read without its check of valences, since OGB has graphs for
them. No rationale is known.
"""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np

from graphxai_data.errors import InputError
from graphxai_data.files.numbers import read_numbers
from graphxai_data.files.raw import Source, has_file, read_member
from graphxai_data.generators import ogb_files
from graphxai_data.generators.base import BaseParams, Planned, Prover, Rejected, Sources, Values
from graphxai_data.generators.ogb_files import ATOM_WIDTHS, BOND_WIDTHS
from graphxai_data.generators.published import (
    PublishedGenerator,
    PublishedGraphs,
    RawGraph,
    rows_to_build,
    stack,
)
from graphxai_data.graphs.columns import Columns, Ints, pointers
from graphxai_data.graphs.record import SPLIT_NAMES, Plan
from graphxai_data.graphs.schema import Column, Feature, Schema
from graphxai_data.seeds import Draws

CLASSES = 2
TABLE = "hiv.csv"
SPLIT_FILES = tuple(f"split/scaffold/{name}.csv" for name in SPLIT_NAMES)

# A molecule on its way to a worker: its SMILES, and its graph if the files have it.
RawMolecule = tuple[str, RawGraph | None]


class MolHIVGenerator(PublishedGenerator):
    """The molecules of ogbg-molhiv."""

    sources: ClassVar = {"molhiv": (TABLE, *SPLIT_FILES)}
    other_files: ClassVar = {"molhiv": (*ogb_files.FILES, *SPLIT_FILES)}

    @dataclass(frozen=True)
    class Params(BaseParams):
        """The recipe's numbers."""

    params: Params

    def schema(self) -> Schema:
        """OGB's features of atoms and bonds, two classes, no rationale, and the SMILES."""
        atoms, bonds = Feature.multihot(ATOM_WIDTHS), Feature.multihot(BOND_WIDTHS)
        return Schema(
            atoms, bonds, CLASSES, extras=(Column("smiles", "text"),), has_rationale=False
        )

    def class_names(self) -> list[str]:
        """Return the results of the assay."""
        return ["inactive", "active"]

    def node_values(self) -> dict[str, list[str] | None]:
        """Return OGB's nine values of an atom."""
        return dict(ogb_files.ATOM_VALUES)

    def edge_values(self) -> dict[str, list[str] | None]:
        """Return OGB's three values of a bond."""
        return dict(ogb_files.BOND_VALUES)

    def field_descriptions(self) -> dict[str, str]:
        """Return that nodes are in the order of the SMILES."""
        return {"smiles": "SMILES of the molecule; node i is its atom i, in the order of the text"}

    def plan_from_sources(
        self, fractions: Sequence[float], graphs: int, sources: Sources, draws: Draws
    ) -> Planned:
        """Return class, row in the table, and OGB's split of every molecule."""
        molecules = read_molecules(sources["molhiv"])
        strata = molecules.label * len(SPLIT_NAMES) + molecules.split
        rows = rows_to_build(sources["molhiv"], strata, graphs, "molhiv")
        return molecules.label[rows], rows, molecules.split[rows]

    def read(self, sources: Sources, group: Ints, seed: int) -> tuple[list[RawMolecule], Rejected]:
        """Return SMILES and graph of each molecule; none is rejected."""
        molecules = read_molecules(sources["molhiv"])
        graphs = [None] * len(group) if molecules.graphs is None else molecules.graphs.take(group)
        smiles = [molecules.smiles[i] for i in group.tolist()]
        return list(zip(smiles, graphs, strict=True)), {"molhiv": {}}

    def generate(self, plan: Plan, seed: int) -> Columns:
        """Return the planned molecules: atoms in the order of their SMILES, bonds sorted."""
        # RDKit takes a while to load and is needed only here.
        from graphxai_data.generators.ogb_features import molecule_graph

        raw: list[RawMolecule] = list(plan.raw or [])
        graphs = [
            molecule_graph(smiles, row) if graph is None else graph
            for (smiles, graph), row in zip(raw, plan.group.tolist(), strict=True)
        ]
        texts = [smiles.encode() for smiles, _ in raw]
        return stack(plan, graphs) | {
            "smiles": np.frombuffer(b"".join(texts), np.uint8),
            "smiles_ptr": pointers([len(text) for text in texts]),
        }

    def prover(self, sources: Sources) -> Prover:
        """Return the proof by independent code."""
        from graphxai_data.generators.molhiv_proof import MolHIVProver

        return MolHIVProver(self.params, sources)


@dataclass(frozen=True)
class Molecules:
    """The rows of a source: SMILES, class [g], split [g], and graphs if the files have them."""

    smiles: list[str]
    label: Ints
    split: Values
    graphs: PublishedGraphs | None


@lru_cache(maxsize=1)
def read_molecules(source: Source) -> Molecules:
    """Return all rows of a folder or zip archive; an `InputError` says where it is wrong."""
    published = has_file(source.path, ogb_files.ATOMS)
    table = ogb_files.MAPPING if published else TABLE
    smiles, label = _table(source.path, table)
    graphs = None
    if published:
        graphs = ogb_files.read_ogb(source.path, CLASSES)
        if not np.array_equal(graphs.label, label):
            raise InputError(
                f"{source.path}: {table}: {len(label)} rows with other classes than "
                f"the {len(graphs.label)} of {ogb_files.LABELS}; get both again"
            )
    return Molecules(smiles, label, _splits(source.path, table, len(label)), graphs)


def _table(path: Path, table: str) -> tuple[list[str], Ints]:
    """Return SMILES and class of every row."""
    where = f"{path}: {table}"
    smiles, label = [], []
    try:
        rows = csv.reader(io.StringIO(read_member(path, table).decode()))
        header = next(rows, [])
        if not {"smiles", "HIV_active"} <= set(header):
            raise InputError(f"{where}: expected columns smiles and HIV_active, got {header[:6]}")
        text, active = header.index("smiles"), header.index("HIV_active")
        for row in rows:
            if len(row) != len(header) or row[active] not in ("0", "1"):
                raise InputError(
                    f"{where}: line {rows.line_num}: expected a SMILES and 0 or 1, got {row[:3]}"
                )
            smiles.append(row[text])
            label.append(row[active] == "1")
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{where}: not a CSV file ({error})") from None
    return smiles, np.array(label, np.int64)


def _splits(path: Path, table: str, count: int) -> Values:
    """Return OGB's split of every row."""
    split, occurs = np.empty(count, np.uint8), np.zeros(count, np.int64)
    for number, name in enumerate(SPLIT_FILES):
        where = f"{path}: {name}"
        rows = read_numbers(path, name, 1)[:, 0]
        outside = rows[(rows < 0) | (rows >= count)]
        if len(outside):
            raise InputError(f"{where}: {outside[0]}; expected rows of {table}, 0 to {count - 1}")
        split[rows] = number
        occurs += np.bincount(rows, minlength=count)
        if occurs.max() > 1:
            row = np.argmax(occurs)
            raise InputError(f"{where}: row {row} occurs twice, or is also in another split")
    if not occurs.all():
        raise InputError(f"{path}: row {np.argmin(occurs)} of {table} is in no split")
    return split
