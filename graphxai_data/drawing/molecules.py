"""Pictures of molecules with their rationale highlighted."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from rdkit import Chem
from rdkit.Chem.Draw import MolsToGridImage

from graphxai_data.drawing.rationale import NULL, colours_of, colours_of_weights
from graphxai_data.graphs.record import GraphRecord

# Highlights are paler than in other pictures, because letters and bonds lie on top of them.
_PALE = 0.45


def molecule_gallery(records: Sequence[GraphRecord], names: Sequence[str]) -> str:
    """Return an SVG of molecules, each with the name of its class and its rationale highlighted.

    Each alternative has a colour of its own. Atoms with signed weights are red or blue. Where the
    label is a number, `names` is one line about it.
    """
    drawn = [_molecule(record) for record in records]
    svg = MolsToGridImage(
        [molecule for molecule, _ in drawn],
        molsPerRow=3,
        subImgSize=(320, 240),
        legends=[_legend(record, names) for record in records],
        highlightAtomLists=[list(colours) for _, colours in drawn],
        highlightBondLists=[
            _bonds(record, molecule) for record, (molecule, _) in zip(records, drawn, strict=True)
        ],
        highlightAtomColors=[colours for _, colours in drawn],
        useSVG=True,
    )
    # In a notebook RDKit returns an object of IPython, with the text inside.
    return str(getattr(svg, "data", svg))


def _legend(record: GraphRecord, names: Sequence[str]) -> str:
    if isinstance(record.y, float):
        return f"{names[0]}: {record.y:.2f}"
    is_null = record.node_weight is None and not record.rationale.any()
    return f"{names[record.y]}: {NULL}" if is_null else names[record.y]


def _molecule(record: GraphRecord) -> tuple[Any, dict[int, tuple[float, ...]]]:
    """Return a molecule, and the colour of each atom that is highlighted."""
    molecule: Any = Chem.MolFromSmiles(record.meta["smiles"])
    if record.node_weight is not None:
        shown, colours = record.node_weight != 0, colours_of_weights(record.node_weight)
    else:
        shown, colours = record.rationale, colours_of(record.rationale, record.alternative_bits)
        colours = colours + _PALE * (1 - colours)
    atoms = _atoms(record)
    if (atoms[shown] >= molecule.GetNumAtoms()).any():
        molecule = Chem.AddHs(molecule)
    nodes = np.flatnonzero(shown)
    return molecule, {int(atoms[node]): tuple(colours[node].tolist()) for node in nodes}


def _atoms(record: GraphRecord) -> Any:
    """Return [n] the atom of each node in the SMILES."""
    return np.asarray(record.meta.get("smiles_atom", np.arange(record.num_nodes)), np.int64)


def _bonds(record: GraphRecord, molecule: Any) -> list[int]:
    """Return the bonds inside the rationale, or inside one of its alternatives."""
    if record.node_weight is not None:
        return []
    atoms, inside = _atoms(record), record.edge_mask
    pairs = {frozenset(pair) for pair in atoms[record.edge_index[:, inside]].T.tolist()}
    return [
        bond.GetIdx()
        for bond in molecule.GetBonds()
        if frozenset((bond.GetBeginAtomIdx(), bond.GetEndAtomIdx())) in pairs
    ]
