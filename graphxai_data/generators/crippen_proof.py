"""Proof of crippen: RDKit's own contributions of the SMILES, and types from the stored arrays.

Two kinds of evidence, neither with code or numbers of the generator. RDKit has a table and a typing
of its own in C++, `_CalcCrippenContribs`: its numbers have to be the weights, atom by atom, and
their sum as decimals the label. The names of its types have to be those that the descriptions in
`crippen_descriptions` give for the stored elements, hydrogens and bonds. So the stored graph alone
determines the truth.
"""

from decimal import Decimal

import numpy as np
from rdkit import Chem
from rdkit.Chem import rdMolDescriptors

from graphxai_data.generators.crippen_descriptions import Molecule
from graphxai_data.generators.pool_proof import PoolProver, atom_of_node, bonds_of
from graphxai_data.graphs.record import GraphRecord

_FIVE_DECIMALS = Decimal("0.00001")


class CrippenProver(PoolProver):
    """Checks one molecule after the other, that no two are the same, and their scaffolds."""

    def claims(self, record: GraphRecord, molecule: Chem.Mol) -> list[str]:
        """Return whether weights, types or label are not those of RDKit's contributions."""
        whole = Chem.AddHs(molecule)
        values, names = _rdkit_contributions(whole)
        nodes = atom_of_node(record)
        problems = self._weight_problems(record, whole, values, nodes)
        if self._described(record) != _types(whole, names, nodes):
            problems.append("its arrays do not give RDKit's types of atoms")
        return problems + self._label_problems(record, values)

    def differences(self, record: GraphRecord, molecule: Chem.Mol) -> list[str]:
        """Return in what the arrays differ from the molecule, the hydrogens of x included."""
        problems = super().differences(record, molecule)
        atoms = [molecule.GetAtomWithIdx(atom) for atom in atom_of_node(record)]
        if self._hydrogens(record) != [atom.GetTotalNumHs() for atom in atoms]:
            problems.append("a node feature is not its number of hydrogens")
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
        return Molecule(self.elements(record), self._hydrogens(record), bonds_of(record)).types()

    def _hydrogens(self, record: GraphRecord) -> list[int]:
        """Return the number of hydrogens of each node, from its features."""
        numbers: list[int] = record.x[:, len(self.params.atoms) :].argmax(axis=1).tolist()
        return numbers


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
