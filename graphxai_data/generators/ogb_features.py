"""OGB's encoding of atoms and bonds, computed by RDKit."""

from typing import Any

import numpy as np
from rdkit import Chem, rdBase
from rdkit.Chem import rdchem

from graphxai_data.errors import InputError
from graphxai_data.generators import ogb_files
from graphxai_data.generators.published import RawGraph


def _codes(kind: Any, names: tuple[str, ...]) -> dict[Any, int]:
    return {getattr(kind, name): code for code, name in enumerate(names)}


# One dictionary each: members of RDKit's enumerations are whole numbers and equal to one another.
_CHIRALITY = _codes(rdchem.ChiralType, ogb_files.CHIRALITY)
_HYBRIDISATION = _codes(rdchem.HybridizationType, ogb_files.HYBRIDISATION)
_BOND_TYPES = _codes(rdchem.BondType, ogb_files.BOND_TYPES)
_STEREO = _codes(rdchem.BondStereo, ogb_files.STEREO)


def molecule_graph(smiles: str, row: int) -> RawGraph:
    """Return atoms [n, 9], edges and bonds [m, 3] of a molecule; `row` is named in errors."""
    molecule = _parse(smiles, row)
    atoms = [
        (
            (atom.GetAtomicNum() or 119) - 1,
            _CHIRALITY.get(atom.GetChiralTag(), 4),
            min(atom.GetTotalDegree(), 11),
            charge + 5 if -5 <= (charge := atom.GetFormalCharge()) <= 5 else 11,
            min(atom.GetTotalNumHs(), 9),
            min(atom.GetNumRadicalElectrons(), 5),
            _HYBRIDISATION.get(atom.GetHybridization(), 5),
            atom.GetIsAromatic(),
            atom.IsInRing(),
        )
        for atom in molecule.GetAtoms()
    ]
    ends, values = [], []
    for bond in molecule.GetBonds():
        a, b = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
        bond_type = _BOND_TYPES.get(bond.GetBondType(), 4)
        value = bond_type, _STEREO[bond.GetStereo()], bond.GetIsConjugated()
        ends += [(a, b), (b, a)]
        values += [value, value]
    edges = np.array(ends, np.int64).reshape(-1, 2)
    order = np.lexsort((edges[:, 1], edges[:, 0]))
    bonds = np.array(values, np.uint8).reshape(-1, len(ogb_files.BOND_WIDTHS))
    x = np.array(atoms, np.uint8).reshape(-1, len(ogb_files.ATOM_WIDTHS))
    return x, edges[order].T, bonds[order], None


def _parse(smiles: str, row: int) -> Any:
    """Return the molecule of a SMILES; valences are not checked if RDKit refuses them."""
    with rdBase.BlockLogs():  # the log would name rows that are accepted in the end
        molecule: Any = Chem.MolFromSmiles(smiles)
        if molecule is None:
            molecule = Chem.MolFromSmiles(smiles, sanitize=False)
            if molecule is None:
                raise InputError(f"row {row}: not a SMILES: {smiles[:60]!r}")
            molecule.UpdatePropertyCache(strict=False)
            steps = Chem.SanitizeFlags.SANITIZE_ALL ^ Chem.SanitizeFlags.SANITIZE_PROPERTIES
            Chem.SanitizeMol(molecule, steps)
    return molecule
