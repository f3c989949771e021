"""Pictures of molecules with their rationale highlighted."""

from collections.abc import Iterable

import numpy as np
from rdkit import Chem
from rdkit.Chem.Draw import MolsToGridImage

from graphxai_data.drawing.gallery import first_of_each_class
from graphxai_data.graphs.record import GraphRecord

_RATIONALE = (0.98, 0.75, 0.35)


def class_gallery(records: Iterable[GraphRecord], names: list[str]) -> str:
    """SVG with the first molecule of each class, its rationale highlighted."""
    shown = first_of_each_class(records, len(names))
    molecules = [Chem.MolFromSmiles(record.meta["smiles"]) for record in shown]
    rationales = [
        record.meta["smiles_atom"][np.flatnonzero(record.rationale)].tolist() for record in shown
    ]
    svg = MolsToGridImage(
        molecules,
        molsPerRow=3,
        subImgSize=(320, 240),
        legends=[names[record.y] for record in shown],
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
    # In a notebook RDKit gives an object that IPython shows, with the text inside.
    return str(getattr(svg, "data", svg))
