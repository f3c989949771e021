"""Proof of crippen: RDKit's own contributions of the SMILES, and types from the stored arrays.

Two kinds of evidence, neither with code or numbers of the generator. RDKit has a table and a typing
of its own in C++, `_CalcCrippenContribs`: its numbers have to be the weights, atom by atom, and
their sum as decimals the label. The names of its types have to be those that the descriptions in
`crippen_descriptions` give for the stored elements, hydrogens and bonds. So the stored graph alone
determines the truth.
"""

from decimal import Decimal
from typing import Any

import numpy as np
from rdkit import Chem
from rdkit.Chem import rdMolDescriptors

from graphxai_data.generators.base import Prover
from graphxai_data.generators.crippen_descriptions import Molecule
from graphxai_data.graphs.record import GraphRecord

_BONDS = ("single", "double", "triple", "aromatic")  # in the order of edge features
_FIVE_DECIMALS = Decimal("0.00001")


class CrippenProver(Prover):
    """Checks one molecule after the other, and that no two of them are the same."""

    def __init__(self, params: Any) -> None:
        self.params = params
        self._graph_of_molecule: dict[str, int] = {}

    def problems(self, record: GraphRecord) -> list[str]:
        """Return what contradicts the claims about a graph; empty when all is proven."""
        molecule: Chem.Mol | None = Chem.MolFromSmiles(record.meta["smiles"])
        if molecule is None:
            return ["its SMILES does not parse"]
        atom_of_node = record.meta["smiles_atom"].astype(int).tolist()
        if sorted(atom_of_node) != list(range(molecule.GetNumAtoms())):
            return ["its nodes are not the atoms of its SMILES"]
        whole = Chem.AddHs(molecule)
        values, names = _rdkit_contributions(whole)
        problems = self._graph_problems(record, molecule, atom_of_node)
        problems += self._weight_problems(record, whole, values, atom_of_node)
        if not problems and self._described(record) != _types(whole, names, atom_of_node):
            problems.append("its arrays do not give RDKit's types of atoms")
        return problems + self._label_problems(record, values) + self._repetitions(record, molecule)

    def _graph_problems(
        self, record: GraphRecord, molecule: Chem.Mol, atom_of_node: list[int]
    ) -> list[str]:
        """Return in what elements, hydrogens and bonds differ from the molecule."""
        problems = []
        elements, hydrogens = self._atoms(record)
        atoms = [molecule.GetAtomWithIdx(atom) for atom in atom_of_node]
        if elements != [atom.GetSymbol() for atom in atoms]:
            problems.append("a node feature is not its element")
        if hydrogens != [atom.GetTotalNumHs() for atom in atoms]:
            problems.append("a node feature is not its number of hydrogens")
        node_of_atom = {atom: node for node, atom in enumerate(atom_of_node)}
        expected = {}
        for bond in molecule.GetBonds():
            ends = node_of_atom[bond.GetBeginAtomIdx()], node_of_atom[bond.GetEndAtomIdx()]
            expected[ends] = expected[ends[::-1]] = bond.GetBondType().name.lower()
        if _bonds(record) != expected:
            problems.append("its edges are not the bonds of its SMILES")
        return problems

    def _weight_problems(
        self, record: GraphRecord, whole: Chem.Mol, values: list[Decimal], atom_of_node: list[int]
    ) -> list[str]:
        """Return whether weights and masks are not those of RDKit's contributions."""
        with_hydrogens = values[: len(atom_of_node)]
        for atom in range(len(atom_of_node), whole.GetNumAtoms()):
            (bond,) = whole.GetAtomWithIdx(atom).GetBonds()
            with_hydrogens[bond.GetOtherAtomIdx(atom)] += values[atom]
        expected = [with_hydrogens[atom] for atom in atom_of_node]
        weight = record.node_weight
        if weight is None or weight.tolist() != np.array(expected, np.float32).tolist():
            return ["node_weight is not RDKit's contribution of the atom and its hydrogens"]
        problems = []
        raises = [value > 0 for value in expected]
        if record.rationale.tolist() != raises:
            problems.append("node_mask is not the atoms with a positive contribution")
        inside = [raises[a] and raises[b] for a, b in record.edge_index.T.tolist()]
        if record.edge_mask is None or record.edge_mask.tolist() != inside:
            problems.append("edge_mask is not the bonds between such atoms")
        return problems

    def _label_problems(self, record: GraphRecord, values: list[Decimal]) -> list[str]:
        """Return whether the label is not the sum of the contributions."""
        total = sum(values, Decimal(0))
        if self.params.threshold is None:
            expected = float(np.float32(float(total)))
        else:
            expected = int(total > Decimal(self.params.threshold))
        got = record.y
        return [] if got == expected else [f"label {got}, but its contributions sum to {total}"]

    def _described(self, record: GraphRecord) -> list[tuple[str, str]]:
        """Return the types of atoms and of their hydrogens from the stored arrays."""
        return Molecule(*self._atoms(record), _bonds(record)).types()

    def _atoms(self, record: GraphRecord) -> tuple[list[str], list[int]]:
        """Return element and number of hydrogens of each node, from its features."""
        count = len(self.params.atoms)
        elements = [self.params.atoms[i] for i in record.x[:, :count].argmax(axis=1)]
        return elements, record.x[:, count:].argmax(axis=1).tolist()

    def _repetitions(self, record: GraphRecord, molecule: Chem.Mol) -> list[str]:
        """Return whether the molecule has been met before; graphs are without stereochemistry."""
        graph = record.meta["graph_id"]
        flat = Chem.MolToSmiles(molecule, isomericSmiles=False)
        first = self._graph_of_molecule.setdefault(flat, graph)
        return [] if first == graph else [f"the same molecule as graph {first}"]


def _rdkit_contributions(whole: Chem.Mol) -> tuple[list[Decimal], list[str]]:
    """Return contribution and type of each atom of a molecule with hydrogens, by RDKit."""
    count = whole.GetNumAtoms()
    numbers, names = [0] * count, [""] * count
    rows = rdMolDescriptors._CalcCrippenContribs(whole, True, numbers, names)
    # RDKit's numbers are floats with at most five decimals.
    return [Decimal(logp).quantize(_FIVE_DECIMALS) for logp, _ in rows], names


def _types(whole: Chem.Mol, names: list[str], atom_of_node: list[int]) -> list[tuple[str, str]]:
    """Return RDKit's type of each node, and that of its hydrogens, "" if it has none."""
    hydrogen = [""] * len(atom_of_node)
    for atom in range(len(atom_of_node), len(names)):
        (bond,) = whole.GetAtomWithIdx(atom).GetBonds()
        hydrogen[bond.GetOtherAtomIdx(atom)] = names[atom]
    return [(names[atom], hydrogen[atom]) for atom in atom_of_node]


def _bonds(record: GraphRecord) -> dict[tuple[int, int], str]:
    """Return the kind of each stored edge, in both directions."""
    if record.edge_attr is None:
        return {}
    kinds = record.edge_attr.argmax(axis=1).tolist()
    ends = map(tuple, record.edge_index.T.tolist())
    return {pair: _BONDS[kind] for pair, kind in zip(ends, kinds, strict=True)}
