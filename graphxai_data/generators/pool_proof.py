"""What the proofs of `smarts` and `crippen` share: a graph is its molecule, and none repeats.

RDKit reads the SMILES of a graph; the stored arrays have to show the same atoms and bonds. A group
has to be one Murcko scaffold, and a scaffold one group, so that no scaffold is in two splits.
"""

from abc import abstractmethod
from typing import Any

from rdkit import Chem
from rdkit.Chem.Scaffolds import MurckoScaffold

from graphxai_data.generators.base import Prover
from graphxai_data.graphs.record import GraphRecord

_murcko_smiles: Any = MurckoScaffold.MurckoScaffoldSmiles  # has no types
_BONDS = ("single", "double", "triple", "aromatic")  # in the order of edge features


class PoolProver(Prover):
    """Checks that a graph is its molecule; a subclass adds `claims`."""

    def __init__(self, params: Any) -> None:
        self.params = params
        self._graph_of_molecule: dict[str, int] = {}
        self._group_of_scaffold: dict[str, int] = {}
        self._scaffold_of_group: dict[int, str] = {}

    @abstractmethod
    def claims(self, record: GraphRecord, molecule: Chem.Mol) -> list[str]:
        """Return what contradicts label and rationale of a graph whose arrays are its molecule."""

    def problems(self, record: GraphRecord) -> list[str]:
        """Return what contradicts the claims about a graph; empty when all is proven."""
        molecule: Chem.Mol | None = Chem.MolFromSmiles(record.meta["smiles"])
        if molecule is None:
            return ["its SMILES does not parse"]
        if sorted(atom_of_node(record)) != list(range(molecule.GetNumAtoms())):
            return ["its nodes are not the atoms of its SMILES"]
        problems = self.differences(record, molecule)
        return problems or [*self.claims(record, molecule), *self._repetitions(record, molecule)]

    def differences(self, record: GraphRecord, molecule: Chem.Mol) -> list[str]:
        """Return in what the arrays differ from the molecule of the SMILES."""
        nodes = atom_of_node(record)
        atoms = [molecule.GetAtomWithIdx(atom) for atom in nodes]
        problems = []
        if self.elements(record) != [atom.GetSymbol() for atom in atoms]:
            problems.append("a node feature is not its element")
        if record.meta["hydrogens"].tolist() != [atom.GetTotalNumHs() for atom in atoms]:
            problems.append("its hydrogens are not those of its SMILES")
        if record.meta["charge"].tolist() != [atom.GetFormalCharge() for atom in atoms]:
            problems.append("its charges are not those of its SMILES")
        expected = {}
        for bond in molecule.GetBonds():
            ends = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
            expected[ends] = expected[ends[::-1]] = bond.GetBondType().name.lower()
        stored = {(nodes[a], nodes[b]): kind for (a, b), kind in bonds_of(record).items()}
        if stored != expected:
            problems.append("its edges are not the bonds of its SMILES")
        return problems

    def elements(self, record: GraphRecord) -> list[str]:
        """Return the element of each node, from its features."""
        atoms = self.params.atoms
        return [atoms[i] for i in record.x[:, : len(atoms)].argmax(axis=1)]

    def _repetitions(self, record: GraphRecord, molecule: Chem.Mol) -> list[str]:
        """Return whether the molecule was met before, or its scaffold in another group."""
        graph, problems = record.meta["graph_id"], []
        # Graphs are without stereochemistry.
        flat = Chem.MolToSmiles(molecule, isomericSmiles=False)
        if (other := self._graph_of_molecule.setdefault(flat, graph)) != graph:
            problems.append(f"the same molecule as graph {other}")
        scaffold = _murcko_smiles(mol=molecule, includeChirality=False)
        group = self._group_of_scaffold.setdefault(scaffold, record.group)
        same = self._scaffold_of_group.setdefault(record.group, scaffold) == scaffold
        if group != record.group or not same:
            problems.append("its group is not its Murcko scaffold")
        return problems


def atom_of_node(record: GraphRecord) -> list[int]:
    """Return the number [n] of each node's atom in the SMILES."""
    numbers: list[int] = record.meta["smiles_atom"].astype(int).tolist()
    return numbers


def bonds_of(record: GraphRecord) -> dict[tuple[int, int], str]:
    """Return the kind of each stored edge, in both directions, in the order of the edges."""
    if record.edge_attr is None:
        return {}
    kinds = record.edge_attr.argmax(axis=1).tolist()
    ends = map(tuple, record.edge_index.T.tolist())
    return {pair: _BONDS[kind] for pair, kind in zip(ends, kinds, strict=True)}
