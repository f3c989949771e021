"""What all datasets of Di-Halo-Benzene share: params, usable molecules, the graph of a SMILES."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from rdkit import Chem

from graphxai_data.errors import CheckFailedError
from graphxai_data.files.toml import Between, Names
from graphxai_data.generators.base import BaseParams, Generator, Sources
from graphxai_data.generators.dihalo_graft import PLACES
from graphxai_data.generators.dihalo_sufficient import halogen_paths
from graphxai_data.generators.molecule_pool import Background
from graphxai_data.generators.smiles_text import atoms_of
from graphxai_data.graphs.columns import Ints, one_hot
from graphxai_data.graphs.record import GraphRecord
from graphxai_data.graphs.schema import Column, Feature, Schema
from graphxai_data.graphs.union import Graphs
from graphxai_data.seeds import Words

HALOGENS = ("F", "Cl", "Br", "I")
BONDS = ("single", "double", "triple", "aromatic")
# RDKit's bond orders are 1, 2, 3, and 1.5 for aromatic bonds.
_KIND_OF_TWICE_THE_ORDER = np.array([-1, -1, 0, 3, 1, -1, 2])
_ELEMENT = re.compile(r"\[?([A-Za-z][a-z]?)")


@dataclass(frozen=True)
class DiHaloParams(BaseParams):
    """The numbers that all recipes of the family have; classes are halogens times positions."""

    halogens: Annotated[tuple[str, ...], Names(HALOGENS)]
    positions: Annotated[tuple[str, ...], Names(tuple(PLACES))]
    atoms: Annotated[tuple[str, ...], Names()]  # in the order of the one-hot node features
    hydrogens: bool  # whether hydrogens are nodes
    min_heavy_atoms: Annotated[int, Between(1, 100)]  # of a background

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


class MoleculeGenerator(Generator):
    """Base of the generators of the family: molecules with di-halo rings grafted onto them."""

    sources: ClassVar = {"zinc": ()}
    # Element of an atom between a grafted ring and the background, if there is one.
    link: ClassVar[str | None] = None

    params: DiHaloParams

    def molecule_schema(self, *extras: Column) -> Schema:
        """One-hot elements and bond types, the SMILES, and the atom of the SMILES for each node."""
        return Schema(
            node_features=Feature(len(self.params.atoms), "onehot"),
            edge_features=Feature(len(BONDS), "onehot"),
            num_classes=len(self.params.classes),
            extras=(Column("smiles", "text"), Column("smiles_atom", "node"), *extras),
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

    def sufficient(self, graphs: Graphs, mask: npt.NDArray[np.bool_]) -> Ints:
        """Return the shortest paths between the halogens of a ring: para has two, one per side."""
        ids = [self.params.atoms.index(halogen) for halogen in self.params.halogens]
        return halogen_paths(graphs, mask, np.isin(graphs.x, ids))

    def picture(self, records: Sequence[GraphRecord], sources: Sources) -> str:
        """Return an SVG of molecules."""
        # Workers may lack the libraries that drawing needs.
        from graphxai_data.drawing.molecules import molecule_gallery

        return molecule_gallery(records, self.class_names())

    def card_sections(self, records: Sequence[GraphRecord]) -> list[str]:
        """Return weight, logP and the like, next to those of the backgrounds."""
        from graphxai_data.generators.dihalo_descriptors import molecule_sections

        return molecule_sections(records, self.link)


class MoleculeGraph(NamedTuple):
    """The graph of a molecule with its atoms in random order."""

    atom_at: Ints  # [n] the atom of the SMILES, hydrogens last, that each node is
    x: npt.NDArray[np.float32]  # [n, p]
    edge_index: Ints  # [2, m]
    edge_attr: npt.NDArray[np.float32]  # [m, q]


def molecule_graph(params: DiHaloParams, smiles: str, words: Words, index: int) -> MoleculeGraph:
    """Return the graph of a SMILES; random `words`, at least one per atom, order its nodes.

    Shuffled, so that an index never gives the ring away. Errors name the graph's `index`.
    """
    molecule: Chem.Mol | None = Chem.MolFromSmiles(smiles)
    if molecule is None:
        raise CheckFailedError(f"graph {index}: RDKit does not accept {smiles}")
    if params.hydrogens:
        molecule = Chem.AddHs(molecule)
    symbols = elements_of(smiles)  # hydrogens come last
    symbols += ["H"] * (molecule.GetNumAtoms() - len(symbols))
    return graph_of(
        molecule, [params.atoms.index(symbol) for symbol in symbols], params.atoms, words
    )


def graph_of(
    molecule: Chem.Mol, element: Sequence[int], atoms: Sequence[str], words: Words
) -> MoleculeGraph:
    """Return the graph of a molecule, its nodes in the order of random `words`, at least [n].

    Args:
        molecule: with n atoms.
        element: [n] position of each atom's element in `atoms`.
        atoms: the elements, in the order of the one-hot node features.
        words: one for each atom or more.
    """
    atom_at = np.argsort(words[: len(element)], kind="stable")
    # The nonzero entries of the matrix of bond orders are the edges in both directions, sorted.
    # Iterating over RDKit's bond objects takes three times as long.
    orders = Chem.GetAdjacencyMatrix(molecule, useBO=True)[atom_at][:, atom_at]
    edge_index = np.stack(np.nonzero(orders))
    kind = _KIND_OF_TWICE_THE_ORDER[(2 * orders[edge_index[0], edge_index[1]]).astype(np.int64)]
    x = one_hot(np.asarray(element)[atom_at], len(atoms))
    return MoleculeGraph(atom_at, x, edge_index, one_hot(kind, len(BONDS)))


def reason_against(params: DiHaloParams, molecule: Chem.Mol, background: Background) -> str | None:
    """Return why `dihalo` cannot use a molecule as a background, or None."""
    elements = set(elements_of(background.smiles))
    if elements & set(HALOGENS):
        return "has a halogen"
    if elements - set(params.atoms):
        return "has an element that the recipe does not list"
    if molecule.GetNumAtoms() < params.min_heavy_atoms:
        return f"has fewer than {params.min_heavy_atoms} heavy atoms"
    if not any(background.hydrogens):
        return "no C-H bond to replace"
    return None


def elements_of(smiles: str) -> list[str]:
    """Return the element of every atom of a SMILES."""
    return [element_of(text) for text in atoms_of(smiles)]


@lru_cache(maxsize=1024)
def element_of(atom: str) -> str:
    """Return the element of an atom as SMILES writes it, such as N for "[nH]"."""
    symbol = _ELEMENT.match(atom)
    return symbol.group(1).capitalize() if symbol else atom
