"""Di-Halo-Benzene isomers grafted on real molecules.

Paper, appendix "Di-Halo-Benzene-Isomer": nine classes, halogen (Cl, F, Br) times position (ortho,
meta, para) of two halogens on a benzene ring that is grafted on a ZINC molecule; the rationale is
the six carbons of the ring and the two halogens. Here one C-H of the background is replaced by the
bond to the ring, so that every graph is a valid molecule.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Annotated, ClassVar

import numpy as np
from rdkit import Chem

from graphxai_data.errors import CheckFailedError
from graphxai_data.files.toml import Between, Names
from graphxai_data.generators.base import BaseParams, Generator, Prover, Rejected, Sources
from graphxai_data.generators.dihalo_graft import (
    PLACES,
    RATIONALE_ATOMS,
    RING_ATOMS,
    graft,
    guaranteed_decoys,
)
from graphxai_data.generators.molecule_pool import MAX_ATOMS, Background, select_backgrounds
from graphxai_data.generators.smiles_text import atoms_of
from graphxai_data.graphs.columns import Columns, Ints, global_edges, graph_of_rows, one_hot, pack
from graphxai_data.graphs.invariants import Findings
from graphxai_data.graphs.record import GraphRecord, Plan
from graphxai_data.graphs.schema import Column, Feature, Schema
from graphxai_data.seeds import rng_for

HALOGENS = ("F", "Cl", "Br", "I")
BONDS = ("single", "double", "triple", "aromatic")
# RDKit's bond orders are 1, 2, 3, and 1.5 for aromatic bonds.
_KIND_OF_TWICE_THE_ORDER = np.array([-1, -1, 0, 3, 1, -1, 2])
_ELEMENT = re.compile(r"\[?([A-Za-z][a-z]?)")


class DiHaloGenerator(Generator):
    """One of nine isomers, grafted on a real molecule."""

    sources: ClassVar = {"zinc": ()}

    @dataclass(frozen=True)
    class Params(BaseParams):
        """The recipe's numbers; classes are halogens times positions, see `classes`."""

        halogens: Annotated[tuple[str, ...], Names(HALOGENS)]
        positions: Annotated[tuple[str, ...], Names(tuple(PLACES))]
        atoms: Annotated[tuple[str, ...], Names()]  # in the order of the one-hot node features
        hydrogens: bool  # whether hydrogens are nodes
        min_heavy_atoms: Annotated[int, Between(1, 100)]  # of a background
        matched: bool  # every background carries all nine isomers at the same carbon, in one group
        # Every molecule carries two of each halogen; those that do not make the class sit on the
        # background, no two of them on one ring.
        decoys: bool

        def __post_init__(self) -> None:
            super().__post_init__()
            needed = {"C", *self.halogens, *(["H"] if self.hydrogens else [])}
            if missing := needed - set(self.atoms):
                raise ValueError(f"atoms must hold {', '.join(sorted(missing))}")
            table = Chem.GetPeriodicTable()
            elements = {table.GetElementSymbol(number) for number in range(1, 119)}
            if unknown := [symbol for symbol in self.atoms if symbol not in elements]:
                raise ValueError(f"atoms holds '{unknown[0]}', which is no element")

        @property
        def classes(self) -> tuple[tuple[str, str], ...]:
            """Halogen and position of each class."""
            return tuple((h, p) for h in self.halogens for p in self.positions)

        @property
        def group_size(self) -> int:
            """Graphs that share a background."""
            return len(self.classes) if self.matched else 1

    params: Params

    def schema(self) -> Schema:
        """One-hot elements and bond types, the SMILES, and the atom of the SMILES for each node."""
        return Schema(
            node_features=Feature(len(self.params.atoms), "onehot"),
            edge_features=Feature(len(BONDS), "onehot"),
            num_classes=len(self.params.classes),
            extras=(Column("smiles", "text"), Column("smiles_atom", "node")),
        )

    def class_names(self) -> list[str]:
        """Return names such as "Cl ortho"."""
        return [f"{halogen} {position}" for halogen, position in self.params.classes]

    def node_values(self) -> dict[str, list[str] | None]:
        """Return the elements that a node may be."""
        return {"element": list(self.params.atoms)}

    def edge_values(self) -> dict[str, list[str] | None]:
        """Return the types that a bond may have."""
        return {"bond": list(BONDS)}

    def picture(self, records: Sequence[GraphRecord], sources: Sources) -> str:
        """Return an SVG of molecules."""
        # Workers may lack the libraries that drawing needs.
        from graphxai_data.drawing.molecules import molecule_gallery

        return molecule_gallery(records, self.class_names())

    def plan(self, graphs: int) -> tuple[Ints, Ints]:
        """Return class and group of every graph: classes in turn, one group per background."""
        index = np.arange(graphs, dtype=np.int64)
        return index % len(self.params.classes), index // self.params.group_size

    def read(self, sources: Sources, group: Ints, seed: int) -> tuple[list[Background], Rejected]:
        """Return the background of each graph, and how many molecules were rejected and why."""
        groups = int(group[-1]) + 1
        draws = rng_for(seed, "dihalo/backgrounds")
        reason_against = partial(_reason_against, self.params)
        backgrounds, rejected = select_backgrounds(
            sources["zinc"].path, groups, draws, reason_against
        )
        return [backgrounds[g] for g in group.tolist()], {"zinc": rejected}

    def generate(self, plan: Plan, seed: int) -> Columns:
        """Return the planned graphs, grafted on the backgrounds in `plan.raw`."""
        plan_rows = zip(plan.index.tolist(), plan.label.tolist(), plan.group.tolist(), strict=True)
        records = [
            _draw(self.params, seed, background, *row)
            for background, row in zip(plan.raw or (), plan_rows, strict=True)
        ]
        return pack(records, self.schema(), plan.index, plan.split)

    def check(self, columns: Columns) -> list[str]:
        """Return what is wrong with the stored arrays of many graphs."""
        params = self.params
        findings = Findings(columns)
        mask = columns["node_mask"].astype(bool)
        x = columns["x"].astype(np.int64)
        label = columns["y"].astype(np.int64)
        source, target = global_edges(columns)
        halogen_ids = np.array([params.atoms.index(h) for h in params.halogens])
        halogen_of_class = halogen_ids[label // len(params.positions)]

        carbon = mask & (x == params.atoms.index("C"))
        halogen = mask & (x == halogen_of_class[graph_of_rows(columns["node_ptr"])])
        findings.require(
            findings.nodes(mask) == RATIONALE_ATOMS, "the rationale does not have eight atoms"
        )
        findings.require(
            findings.nodes(carbon) == RING_ATOMS, "the rationale does not have six carbons"
        )
        findings.require(
            findings.nodes(halogen) == 2, "the rationale does not have two of the class's halogen"
        )
        for other in halogen_ids:
            expected = np.where(other == halogen_of_class, 2, 2 if params.decoys else 0)
            findings.require(
                findings.nodes(x == other) == expected, "its halogens are not as planned"
            )

        ring_edge = carbon[source] & carbon[target]
        in_ring = np.bincount(source[ring_edge], minlength=len(x))
        findings.require(
            findings.nodes(carbon & (in_ring != 2)) == 0, "the six carbons are not a ring"
        )
        aromatic = columns["edge_attr"] == BONDS.index("aromatic")
        findings.require(findings.edges(ring_edge & ~aromatic) == 0, "the ring is not aromatic")
        hydrogen = params.atoms.index("H") if "H" in params.atoms else -1
        crossing = mask[source] & ~mask[target] & (x[target] != hydrogen)
        findings.require(
            findings.edges(crossing) == 1, "the ring is not attached by exactly one bond"
        )
        if findings.problems:
            return findings.problems  # the position needs a ring with two halogens

        bearing = np.zeros(len(x), bool)
        bearing[target[halogen[source]]] = True
        adjacent = findings.edges(ring_edge & bearing[source] & bearing[target]) > 0
        # A ring carbon between the two that bear halogens: they are meta to each other.
        both = np.bincount(source[ring_edge & bearing[target]], minlength=len(x)) == 2
        between = findings.nodes(both & ~bearing) > 0
        position = np.where(adjacent, "ortho", np.where(between, "meta", "para"))
        names = np.array(params.positions)
        findings.require(
            position == names[label % len(names)], "the halogens' position is not the label's"
        )
        return findings.problems

    def prover(self, sources: Sources) -> Prover:
        """Return the proof by independent code."""
        from graphxai_data.generators.dihalo_proof import DiHaloProver

        return DiHaloProver(self.params, sources)


def _draw(
    params: DiHaloGenerator.Params,
    seed: int,
    background: Background,
    index: int,
    label: int,
    group: int,
) -> GraphRecord:
    # The random words of a background decide in turn on the C-H bond; for each position the places
    # on the ring; the decoys; for each class the order of nodes. So matched molecules of the same
    # position differ only in their halogens.
    classes, positions = len(params.classes), len(params.positions)
    words = rng_for(seed, "dihalo", group).words(1 + positions + (1 + classes) * MAX_ATOMS)
    bond, place = int(words[0]), int(words[1 + label % positions])
    by_atom = words[1 + positions :].reshape(1 + classes, MAX_ATOMS)
    halogen, position = params.classes[label]
    others = [h for h in params.halogens if h != halogen and params.decoys for _ in range(2)]
    smiles, first = graft(background, halogen, position, others, bond, place, by_atom[0])
    molecule = Chem.MolFromSmiles(smiles)
    if molecule is None:
        raise CheckFailedError(f"graph {index}: RDKit does not accept {smiles}")
    if params.hydrogens:
        molecule = Chem.AddHs(molecule)
    symbols = _elements(smiles)  # hydrogens come last
    symbols += ["H"] * (molecule.GetNumAtoms() - len(symbols))
    element = np.array([params.atoms.index(symbol) for symbol in symbols])

    # Shuffled, so that an index never gives the ring away.
    atom_at = np.argsort(by_atom[1 + label, : len(element)], kind="stable")
    node_mask = (atom_at >= first) & (atom_at < first + RATIONALE_ATOMS)
    # The nonzero entries of the matrix of bond orders are the edges in both directions, sorted.
    # Iterating over RDKit's bond objects takes three times as long.
    orders = Chem.GetAdjacencyMatrix(molecule, useBO=True)[atom_at][:, atom_at]
    edge_index = np.stack(np.nonzero(orders))
    kind = _KIND_OF_TWICE_THE_ORDER[(2 * orders[edge_index[0], edge_index[1]]).astype(np.int64)]
    return GraphRecord(
        x=one_hot(element[atom_at], len(params.atoms)),
        edge_index=edge_index,
        edge_attr=one_hot(kind, len(BONDS)),
        y=label,
        node_mask=node_mask,
        edge_mask=node_mask[edge_index[0]] & node_mask[edge_index[1]],
        group=group,
        meta={"smiles": smiles, "smiles_atom": atom_at.astype(np.uint8)},
    )


def _reason_against(
    params: DiHaloGenerator.Params, molecule: Chem.Mol, background: Background
) -> str | None:
    """Return why a molecule cannot be a background of this recipe, or None."""
    elements = set(_elements(background.smiles))
    if elements & set(HALOGENS):
        return "has a halogen"
    if elements - set(params.atoms):
        return "has an element that the recipe does not list"
    if molecule.GetNumAtoms() < params.min_heavy_atoms:
        return f"has fewer than {params.min_heavy_atoms} heavy atoms"
    if not any(background.hydrogens):
        return "no C-H bond to replace"
    # The attachment of the ring may take the place of one decoy.
    enough = 2 * (len(params.halogens) - 1) + 1
    if params.decoys and guaranteed_decoys(molecule, background.hydrogens) < enough:
        return "has too few places for decoys"
    return None


def _elements(smiles: str) -> list[str]:
    """Return the element of every atom of a SMILES."""
    return [_element(text) for text in atoms_of(smiles)]


@lru_cache(maxsize=1024)
def _element(atom: str) -> str:
    """Return the element of an atom as SMILES writes it, such as N for "[nH]"."""
    symbol = _ELEMENT.match(atom)
    return symbol.group(1).capitalize() if symbol else atom
