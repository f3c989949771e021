"""Pictures of molecules with their rationale highlighted."""

from collections.abc import Sequence

import numpy as np
from rdkit import Chem
from rdkit.Chem.Draw import MolsToGridImage

from graphxai_data.graphs.record import GraphRecord

_RATIONALE = (0.98, 0.75, 0.35)


def molecule_gallery(records: Sequence[GraphRecord], names: Sequence[str]) -> str:
    """Return an SVG of molecules, each with the name of its class and its rationale highlighted."""
    molecules = [Chem.MolFromSmiles(record.meta["smiles"]) for record in records]
    rationales = [
        record.meta["smiles_atom"][np.flatnonzero(record.rationale)].tolist() for record in records
    ]
    svg = MolsToGridImage(
        molecules,
        molsPerRow=3,
        subImgSize=(320, 240),
        legends=[names[record.y] for record in records],
        highlightAtomLists=rationales,
        highlightBondLists=[
            [
                bond.GetIdx()
                for bond in molecule.GetBonds()
                if {bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()} <= set(atoms)
            ]
            for molecule, atoms in zip(molecules, rationales, strict=True)
        ],
        highlightAtomColors=[dict.fromkeys(atoms, _RATIONALE) for atoms in rationales],
        useSVG=True,
    )
    # In a notebook RDKit returns an object of IPython, with the text inside.
    return str(getattr(svg, "data", svg))
