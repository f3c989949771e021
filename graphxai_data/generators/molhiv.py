"""ogbg-molhiv: molecules that do or do not inhibit HIV, in OGB's order, with its scaffold split.

Atoms and bonds have OGB's encodings, each value a one-hot feature of its own. They are taken from
the files that OGB publishes; or made by RDKit from a table of SMILES, where the few rows that full
sanitisation refuses today are read without its check of valences, since OGB has graphs for them. No
rationale is known.
"""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from graphxai_data.errors import InputError
from graphxai_data.files.raw import Source, has_file, read_member, read_numbers
from graphxai_data.generators import ogb_files
from graphxai_data.generators.molhiv_proof import Prover as Prover
from graphxai_data.generators.params import BaseParams
from graphxai_data.graphs.columns import Columns, Ints, pointers
from graphxai_data.graphs.record import SPLIT_NAMES, Extra, Feature, Plan, Schema
from graphxai_data.graphs.splits import stratified_order
from graphxai_data.seeds import Draws, rng_for

CLASSES = 2
TABLE = "hiv.csv"
SPLIT_FILES = tuple(f"split/scaffold/{name}.csv" for name in SPLIT_NAMES)
SOURCES: dict[str, tuple[str, ...]] = {"molhiv": (TABLE, *SPLIT_FILES)}
OTHER_FILES = {"molhiv": (*ogb_files.FILES, *SPLIT_FILES)}
GIVEN = True

# A molecule on its way to a worker: its SMILES, and its graph where the files have it.
RawMolecule = tuple[str, ogb_files.Graph | None]

# OGB's encodings: the values that have a column of their own; the last column is for all others.
_CHIRALITY = ("CHI_UNSPECIFIED", "CHI_TETRAHEDRAL_CW", "CHI_TETRAHEDRAL_CCW", "CHI_OTHER")
_HYBRIDISATION = ("SP", "SP2", "SP3", "SP3D", "SP3D2")
_BOND_TYPES = ("SINGLE", "DOUBLE", "TRIPLE", "AROMATIC")
_STEREO = (
    "STEREONONE", "STEREOZ", "STEREOE", "STEREOCIS", "STEREOTRANS", "STEREOANY",
)  # fmt: skip
# Atomic number, chirality, degree, charge, hydrogens, radical electrons, hybridisation, aromatic,
# in a ring.
ATOM_WIDTHS = (119, 5, 12, 12, 10, 6, 6, 2, 2)
# Type, stereo, conjugated.
BOND_WIDTHS = (5, 6, 2)


@dataclass(frozen=True)
class Params(BaseParams):
    """The recipe's numbers."""


def schema(params: Params) -> Schema:
    """OGB's features of atoms and bonds, two classes, no rationale; and the SMILES."""
    return Schema(
        Feature.multihot(ATOM_WIDTHS),
        Feature.multihot(BOND_WIDTHS),
        num_classes=CLASSES,
        extras=(Extra("smiles", "text"),),
        has_rationale=False,
    )


def class_names(params: Params) -> list[str]:
    """What the assay said."""
    return ["inactive", "active"]


def node_values(params: Params) -> dict[str, list[str] | None]:
    """OGB's nine values of an atom."""
    charges, no_yes = [str(charge) for charge in range(-5, 6)], ["no", "yes"]
    return {
        "atomic number": [*(str(z) for z in range(1, 119)), "other"],
        "chirality": [*_CHIRALITY, "other"],
        "degree": _up_to(10),
        "charge": [*charges, "other"],
        "hydrogens": _up_to(8),
        "radical electrons": _up_to(4),
        "hybridisation": [*_HYBRIDISATION, "other"],
        "aromatic": no_yes,
        "in a ring": no_yes,
    }


def _up_to(largest: int) -> list[str]:
    return [*(str(value) for value in range(largest + 1)), "other"]


@dataclass(frozen=True)
class Molecules:
    """The rows of a source: SMILES, class [g], split [g], and graphs where files have them."""

    smiles: list[str]
    label: Ints
    split: npt.NDArray[np.uint8]
    graphs: ogb_files.OGBGraphs | None


def plan_from_sources(
    params: Params,
    fractions: Sequence[float],
    graphs: int,
    sources: dict[str, Source],
    draws: Draws,
) -> tuple[Ints, Ints, npt.NDArray[np.uint8]]:
    """Class, row and OGB's split of every molecule; fewer are always the same ones."""
    found = read_molecules(sources["molhiv"])
    if graphs > len(found.label):
        raise InputError(
            f"{sources['molhiv'].path}: {len(found.label)} molecules, {graphs} asked for; "
            "ask for no more"
        )
    strata = found.label * len(SPLIT_NAMES) + found.split
    chosen = np.sort(stratified_order(strata, rng_for(0, "molhiv"))[:graphs])
    return found.label[chosen], chosen, found.split[chosen]


def read(
    params: Params, sources: dict[str, Source], group: Ints, seed: int
) -> tuple[list[RawMolecule], dict[str, dict[str, int]]]:
    """SMILES and graph of each molecule; none is passed over."""
    found = read_molecules(sources["molhiv"])
    graphs = [None] * len(group) if found.graphs is None else found.graphs.chosen(group)
    smiles = [found.smiles[i] for i in group.tolist()]
    return list(zip(smiles, graphs, strict=True)), {"molhiv": {}}


@lru_cache(maxsize=1)
def read_molecules(source: Source) -> Molecules:
    """All rows of a folder or zip archive, or an `InputError` that says where it is wrong."""
    published = has_file(source.path, ogb_files.ATOMS)
    table = ogb_files.MAPPING if published else TABLE
    smiles, label = _table(source.path, table)
    graphs = None
    if published:
        graphs = ogb_files.read_ogb(source.path, CLASSES, ATOM_WIDTHS, BOND_WIDTHS)
        if not np.array_equal(graphs.label, label):
            raise InputError(
                f"{source.path}: {table}: {len(label)} rows with other classes than "
                f"the {len(graphs)} of {ogb_files.LABELS}; get both anew"
            )
    return Molecules(smiles, label, _splits(source.path, table, len(label)), graphs)


def _table(path: Path, table: str) -> tuple[list[str], Ints]:
    """SMILES and class of every row."""
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
        raise InputError(f"{where}: no CSV file ({error})") from None
    return smiles, np.array(label, np.int64)


def _splits(path: Path, table: str, count: int) -> npt.NDArray[np.uint8]:
    split = np.full(count, len(SPLIT_NAMES), np.uint8)
    for number, name in enumerate(SPLIT_FILES):
        where = f"{path}: {name}"
        rows = read_numbers(path, name, 1)[:, 0]
        wrong = rows[(rows < 0) | (rows >= count)]
        if len(wrong):
            raise InputError(f"{where}: {wrong[0]}; expected rows of {table}, 0 to {count - 1}")
        again = rows[split[rows] != len(SPLIT_NAMES)]
        if len(again) or len(np.unique(rows)) != len(rows):
            row = again[0] if len(again) else rows[np.diff(np.sort(rows), append=-1) == 0][0]
            raise InputError(f"{where}: row {row} is there twice, or in another split, too")
        split[rows] = number
    missing = np.flatnonzero(split == len(SPLIT_NAMES))
    if len(missing):
        raise InputError(f"{path}: row {missing[0]} of {table} is in no split")
    return split


def generate(params: Params, plan: Plan, seed: int) -> Columns:
    """The planned molecules: atoms in the order of their SMILES, bonds both ways and sorted."""
    from rdkit import rdBase

    raw: list[RawMolecule] = list(plan.raw or [])
    with rdBase.BlockLogs():  # of rows without full sanitisation; all others raise
        graphs = [
            _graph(smiles, index) if graph is None else graph
            for (smiles, graph), index in zip(raw, plan.group.tolist(), strict=True)
        ]
    texts = [smiles.encode() for smiles, _ in raw]
    return {
        "node_ptr": pointers([len(atoms) for atoms, _, _ in graphs]),
        "edge_ptr": pointers([len(bonds) for _, _, bonds in graphs]),
        "x": np.concatenate([np.empty((0, len(ATOM_WIDTHS)), np.uint8), *(g[0] for g in graphs)]),
        "edge_index": np.concatenate([np.empty((2, 0), np.int64), *(g[1] for g in graphs)], axis=1),
        "edge_attr": np.concatenate(
            [np.empty((0, len(BOND_WIDTHS)), np.uint8), *(g[2] for g in graphs)]
        ),
        "y": plan.label,
        "split": plan.split,
        "graph_id": plan.index,
        "group": plan.group,
        "smiles": np.frombuffer(b"".join(texts), np.uint8),
        "smiles_ptr": pointers([len(text) for text in texts]),
    }


def _graph(smiles: str, row: int) -> ogb_files.Graph:
    """Atoms [n, 9], edges [2, m] and bonds [m, 3] of a molecule, by RDKit."""
    molecule = parsed(smiles, row)
    chirality, hybridisation, bond_type, stereo = _codes()
    atoms = np.array(
        [
            (
                (atom.GetAtomicNum() or 119) - 1,
                chirality.get(atom.GetChiralTag(), 4),
                min(atom.GetTotalDegree(), 11),
                _charge(atom.GetFormalCharge()),
                min(atom.GetTotalNumHs(), 9),
                min(atom.GetNumRadicalElectrons(), 5),
                hybridisation.get(atom.GetHybridization(), 5),
                atom.GetIsAromatic(),
                atom.IsInRing(),
            )
            for atom in molecule.GetAtoms()
        ],
        np.uint8,
    ).reshape(-1, len(ATOM_WIDTHS))
    ends, kinds = [], []
    for bond in molecule.GetBonds():
        a, b = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
        kind = (
            bond_type.get(bond.GetBondType(), 4),
            stereo[bond.GetStereo()],
            bond.GetIsConjugated(),
        )
        ends += [(a, b), (b, a)]
        kinds += [kind, kind]
    edges = np.array(ends, np.int64).reshape(-1, 2)
    order = np.lexsort((edges[:, 1], edges[:, 0]))
    bonds = np.array(kinds, np.uint8).reshape(-1, len(BOND_WIDTHS))
    return atoms, edges[order].T, bonds[order]


def parsed(smiles: str, row: int) -> Any:
    """The molecule of a SMILES; without a check of valences where there is no other way."""
    from rdkit import Chem

    molecule: Any = Chem.MolFromSmiles(smiles)
    if molecule is None:
        molecule = Chem.MolFromSmiles(smiles, sanitize=False)
        if molecule is None:
            raise InputError(f"row {row}: not a SMILES: {smiles[:60]!r}")
        molecule.UpdatePropertyCache(strict=False)
        steps = Chem.SanitizeFlags.SANITIZE_ALL ^ Chem.SanitizeFlags.SANITIZE_PROPERTIES
        Chem.SanitizeMol(molecule, steps)
    return molecule


def _charge(charge: int) -> int:
    return charge + 5 if -5 <= charge <= 5 else 11


@lru_cache(maxsize=1)
def _codes() -> tuple[dict[Any, int], dict[Any, int], dict[Any, int], dict[Any, int]]:
    """Codes of RDKit's values: chirality, hybridisation, bond type, stereo.

    A dictionary each, since RDKit's enumerations are whole numbers, and equal to one another.
    """
    from rdkit.Chem import rdchem

    def numbered(kind: Any, names: tuple[str, ...]) -> dict[Any, int]:
        return {getattr(kind, name): i for i, name in enumerate(names)}

    return (
        numbered(rdchem.ChiralType, _CHIRALITY),
        numbered(rdchem.HybridizationType, _HYBRIDISATION),
        numbered(rdchem.BondType, _BOND_TYPES),
        numbered(rdchem.BondStereo, _STEREO),
    )


def check(params: Params, columns: Columns) -> list[str]:
    """Nothing beyond what holds for every dataset can be known from the arrays alone."""
    return []
