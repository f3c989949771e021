"""Descriptors of molecules and of their backgrounds, for data cards.

PAINS are patterns of compounds that disturb assays, Brenk alerts those of groups that are reactive
or toxic. QED, from 0 to 1, says how much a molecule looks like an oral drug. Values depend on the
version of RDKit, so they are on the card only.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import rdkit
from rdkit import Chem
from rdkit.Chem import QED, Crippen, Descriptors
from rdkit.Chem.FilterCatalog import FilterCatalog, FilterCatalogParams

from graphxai_data.generators.dihalo_proof import halogen_rings, without
from graphxai_data.graphs.record import GraphRecord

_ROWS = {
    "weight, mean": "{:.0f}",
    "logP, mean": "{:.2f}",
    "QED, mean": "{:.2f}",
    "with a PAINS or Brenk alert": "{:.0%}",
    "stereo centres, mean": "{:.2f}",
    "with a stereo centre that is not assigned": "{:.0%}",
}
_SMILES_WARNING = (
    "The stored `smiles` is the text of the background with grafts written into it: a grafted ring "
    "is in one piece, with a ring-closure number that nothing else uses. A model of text would get "
    "it for free. `data.canonical_smiles` of a graph is written again by RDKit and has no such "
    "trace (the atoms of a ring with one bond to the rest still mostly follow each other, as in "
    "any SMILES)."
)
# The stubs of RDKit do not know these functions.
_modules: Any = (Descriptors, Crippen, QED)


def molecule_sections(records: Sequence[GraphRecord], link: str | None = None) -> list[str]:
    """Return the sections of a card about a sample of graphs; `link` as in `background_of`."""
    molecules = [Chem.MolFromSmiles(record.meta["smiles"]) for record in records]
    values = [_descriptors(ms) for ms in (molecules, [background_of(m, link) for m in molecules])]
    lines = ["| molecules | this build | without the grafts |", "| --- | --- | --- |"]
    for number, (name, form) in enumerate(_ROWS.items()):
        cells = [form.format(column[number]) for column in values]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return [
        "## Molecules",
        "\n".join(lines),
        f"A sample of {len(records)} graphs, computed by RDKit {rdkit.__version__}. Without the "
        "grafts, the molecules are those of the source.",
        _SMILES_WARNING,
    ]


def background_of(molecule: Chem.Mol, link: str | None = None) -> Chem.Mol:
    """Return the molecule that rings and halogens were grafted onto.

    Grafted rings have one bond to the rest; an atom of the element `link` there is of the graft.
    """
    grafts: set[int] = set()
    for ring in halogen_rings(molecule):
        if len(ring.outside) == 1:
            is_link = molecule.GetAtomWithIdx(ring.outside[0]).GetSymbol() == link
            grafts |= {*ring.atoms, *(ring.outside if is_link else ())}
    return without(molecule, grafts)


def _descriptors(molecules: Sequence[Chem.Mol]) -> list[float]:
    """Return the values of the rows of the table."""
    descriptors, crippen, qed = _modules
    patterns = FilterCatalogParams()
    for name in ("PAINS", "BRENK"):
        patterns.AddCatalog(getattr(FilterCatalogParams.FilterCatalogs, name))
    alerts = FilterCatalog(patterns)
    centres = [
        [
            element.specified == Chem.StereoSpecified.Specified
            for element in Chem.FindPotentialStereo(molecule)
            if element.type == Chem.StereoType.Atom_Tetrahedral
        ]
        for molecule in molecules
    ]
    rows = [
        [descriptors.MolWt(m) for m in molecules],
        [crippen.MolLogP(m) for m in molecules],
        [qed.qed(m) for m in molecules],
        [alerts.HasMatch(m) for m in molecules],
        [len(assigned) for assigned in centres],
        [not all(assigned) for assigned in centres],
    ]
    return [float(np.mean(row)) for row in rows]
