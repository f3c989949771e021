"""Whole molecules of a pool as graphs: what `smarts`, `crippen` and their like share.

Nodes are heavy atoms in random order. A dataset judges every molecule: its class and its ground
truth, or why it is left out. Classes are equally frequent, also among molecules of the same size.
Molecules with the same Murcko scaffold are one group, and so in one split.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from rdkit import Chem

from graphxai_data.errors import CheckFailedError, InputError
from graphxai_data.files.raw import Source
from graphxai_data.files.toml import Between, Names
from graphxai_data.generators.base import BaseParams, Generator, Planned, Rejected, Sources
from graphxai_data.generators.dihalo_molecules import BONDS, element_of, graph_of
from graphxai_data.generators.molecule_pool import parse_simple, read_molecules
from graphxai_data.generators.pool_selection import (
    HEAVY_ATOMS,
    Judgement,
    Selection,
    select_molecules,
)
from graphxai_data.generators.smiles_text import atoms_of
from graphxai_data.graphs.columns import Columns, Ints, pack
from graphxai_data.graphs.rationale import edges_inside
from graphxai_data.graphs.record import GraphRecord, Plan
from graphxai_data.graphs.schema import DRAWN_DESCRIPTIONS, Column, Feature, Schema
from graphxai_data.graphs.splits import assign_splits
from graphxai_data.seeds import Draws, rng_for

# Numbers of atoms have to fit into a byte.
MAX_HEAVY_ATOMS = 255
# Below this, splits could not have their share of every size.
_GRAPHS_PER_STRATUM = 20


@dataclass(frozen=True)
class PoolParams(BaseParams):
    """The numbers that all recipes of this kind have."""

    # In the order of the one-hot node features.
    atoms: Annotated[tuple[str, ...], Names(noun="element")]
    min_heavy_atoms: Annotated[int, Between(1, MAX_HEAVY_ATOMS)]
    max_heavy_atoms: Annotated[int, Between(1, MAX_HEAVY_ATOMS)]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.min_heavy_atoms > self.max_heavy_atoms:
            raise ValueError(
                f"min_heavy_atoms is {self.min_heavy_atoms}, more than max_heavy_atoms, "
                f"{self.max_heavy_atoms}; exchange them"
            )
        table = Chem.GetPeriodicTable()
        heavy = {table.GetElementSymbol(number) for number in range(2, 119)}
        if unknown := [symbol for symbol in self.atoms if symbol not in heavy]:
            raise ValueError(f"atoms holds '{unknown[0]}', which is no element heavier than H")


class PoolMoleculeGenerator(Generator):
    """Base of the generators whose graphs are molecules of a pool, unchanged.

    A subclass has `schema` (by `pool_schema`), `judge` and `truth_columns`.
    """

    sources: ClassVar = {"molecules": ()}
    shuffle_nodes: ClassVar = False  # `generate` does it
    class_keys: ClassVar = "params"  # what errors name: the keys that decide classes

    params: PoolParams

    @abstractmethod
    def judge(self, molecule: Chem.Mol) -> Judgement | str:
        """Return the class of a molecule, 0 where labels are numbers, and its ground truth.

        The truth is anything that can be sent to a worker, for `truth_columns`. Text instead says
        why the molecule is left out, such as "its rationale is the whole molecule".
        """

    @abstractmethod
    def truth_columns(self, truth: Any, atoms: int) -> dict[str, Any]:
        """Return fields of a record from a molecule's truth: arrays with a row per atom.

        Rows are in the order of the SMILES: `alternative_bits`, or `node_weight`, or `node_mask`,
        any of which gives the other masks; and y, if labels are numbers.
        """

    def strata_of_classes(self) -> list[list[str]]:
        """Return the names of the strata of each class, which are equally frequent in it."""
        return [[name] for name in self.class_names()]

    def check_pool(self, path: Path, pool: Sequence[str]) -> None:
        """Raise an `InputError` if the SMILES of a pool are of no use for the dataset."""

    def pool_schema(self, num_classes: int, *extras: Column, **form: Any) -> Schema:
        """Return the schema of molecules; `form` says what labels and rationales are like."""
        own = (
            Column("smiles", "text"),
            Column("smiles_atom", "node"),
            Column("hydrogens", "node"),
            Column("charge", "node", "|i1"),
        )
        return Schema(
            node_features=Feature(len(self.params.atoms), "onehot"),
            edge_features=Feature(len(BONDS), "onehot"),
            num_classes=num_classes,
            extras=(*own, *extras),
            **form,
        )

    def node_values(self) -> dict[str, list[str] | None]:
        """Return the elements that a node may be."""
        return {"element": list(self.params.atoms)}

    def edge_values(self) -> dict[str, list[str] | None]:
        """Return the types that a bond may have."""
        return {"bond": list(BONDS)}

    def field_descriptions(self) -> dict[str, str]:
        """Return what the fields of molecules mean."""
        return {
            "smiles": f"{DRAWN_DESCRIPTIONS['smiles']}, as the pool has it",
            "smiles_atom": "number of the node's atom in the SMILES, from 0 in the order of the "
            "text",
            "hydrogens": "hydrogens bonded to the atom; they are no nodes",
            "charge": "formal charge of the atom",
        }

    def plan_from_sources(
        self, fractions: Sequence[float], graphs: int, sources: Sources, draws: Draws
    ) -> Planned:
        """Return class, scaffold and split of every molecule."""
        selection = self._selection(sources["molecules"], graphs, draws.seed)
        # Classes are equally frequent in every size, as near as scaffolds allow, in every split;
        # with few graphs, at least in all sizes together.
        strata = selection.atoms * self.schema().num_classes + selection.label
        if len(np.unique(strata)) * _GRAPHS_PER_STRATUM > graphs:
            strata = selection.label
        split = assign_splits(strata, selection.scaffold, fractions, draws)
        sizes = np.bincount(split, minlength=len(fractions))
        if (sizes[np.asarray(fractions) * graphs >= 1] == 0).any():
            largest = int(np.bincount(selection.scaffold).max())
            raise InputError(
                f"{sources['molecules'].path}: a split stays empty: {graphs} molecules have "
                f"{int(selection.scaffold.max()) + 1} scaffolds, and one of them {largest} "
                "molecules, which have to be in one split; give a more diverse pool with "
                "--source molecules=FILE"
            )
        return selection.label, selection.scaffold, split

    def read(self, sources: Sources, group: Ints, seed: int) -> tuple[list[Any], Rejected]:
        """Return SMILES and truth of each molecule, and how many were rejected, and why."""
        selection = self._selection(sources["molecules"], len(group), seed)
        if not np.array_equal(group, selection.scaffold):
            raise CheckFailedError(
                f"{sources['molecules'].path}: its molecules are not those of the plan; give the "
                "same pool to both"
            )
        return selection.molecules, {"molecules": selection.rejected}

    def generate(self, plan: Plan, seed: int) -> Columns:
        """Return the planned molecules, given as SMILES and truth in `plan.raw`."""
        rows = zip(plan.index.tolist(), plan.label.tolist(), plan.group.tolist(), strict=True)
        records = [
            self._draw(seed, smiles, truth, *row)
            for (smiles, truth), row in zip(plan.raw or (), rows, strict=True)
        ]
        return pack(records, self.schema(), plan.index, plan.split)

    def picture(self, records: Sequence[GraphRecord], sources: Sources) -> str:
        """Return an SVG of molecules."""
        # Workers may lack the libraries that drawing needs.
        from graphxai_data.drawing.molecules import molecule_gallery

        return molecule_gallery(records, self.class_names())

    def usable(self, smiles: str) -> Chem.Mol | str:
        """Return the molecule of a SMILES, or why it is not usable whatever the dataset says."""
        parsed = parse_simple(smiles)
        if isinstance(parsed, str):
            return parsed
        molecule, atoms = parsed
        if len(atoms) < self.params.min_heavy_atoms:
            return f"has fewer than {self.params.min_heavy_atoms} {HEAVY_ATOMS}"
        if len(atoms) > self.params.max_heavy_atoms:
            return f"has more than {self.params.max_heavy_atoms} {HEAVY_ATOMS}"
        if not self._elements.issuperset(map(element_of, set(atoms))):
            return "has an element that the recipe does not list"
        return molecule

    @cached_property
    def _elements(self) -> frozenset[str]:
        return frozenset(self.params.atoms)

    def _selection(self, source: Source, graphs: int, seed: int) -> Selection:
        return selected(self, source, graphs, seed)

    def _draw(
        self, seed: int, smiles: str, truth: Any, index: int, label: int, group: int
    ) -> GraphRecord:
        molecule: Chem.Mol | None = Chem.MolFromSmiles(smiles)
        if molecule is None:
            raise CheckFailedError(f"graph {index}: RDKit does not accept {smiles}")
        texts = atoms_of(smiles)
        # By number: RDKit's iterator over atoms takes twice as long.
        atoms = [molecule.GetAtomWithIdx(i) for i in range(len(texts))]
        hydrogens = np.array([atom.GetTotalNumHs() for atom in atoms], np.uint8)
        charge = np.zeros(len(atoms), np.int8)
        for i, text in enumerate(texts):
            if text[0] == "[":  # only an atom in brackets can have one
                charge[i] = atoms[i].GetFormalCharge()
        element = [self.params.atoms.index(element_of(text)) for text in texts]
        words = rng_for(seed, f"{self.name}/nodes", index).words(len(atoms))
        graph = graph_of(molecule, element, self.params.atoms, words)
        columns = self.truth_columns(truth, len(atoms))
        own = {name: rows[graph.atom_at] for name, rows in columns.items() if name != "y"}
        marks = own.get("alternative_bits", own.get("node_mask"))
        marks = own["node_weight"] > 0 if marks is None else marks
        return GraphRecord(
            x=graph.x,
            edge_index=graph.edge_index,
            edge_attr=graph.edge_attr,
            y=columns.get("y", label),
            edge_mask=edges_inside(marks, graph.edge_index[0], graph.edge_index[1]),
            group=group,
            meta={
                "smiles": smiles,
                "smiles_atom": graph.atom_at.astype(np.uint8),
                "hydrogens": hydrogens[graph.atom_at],
                "charge": charge[graph.atom_at],
            },
            **{"node_mask": marks != 0, **own},
        )


@lru_cache(maxsize=2)  # a plan and the reading that follows it walk the pool once
def selected(generator: PoolMoleculeGenerator, source: Source, graphs: int, seed: int) -> Selection:
    """Return the molecules of a build; the same object for the same arguments."""
    pool = read_molecules(source.path)
    generator.check_pool(source.path, pool)
    return select_molecules(
        source.path,
        pool,
        rng_for(seed, f"{generator.name}/molecules"),
        graphs,
        generator.strata_of_classes(),
        generator.usable,
        generator.judge,
        generator.class_keys,
    )
