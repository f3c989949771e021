"""An independent look at molhiv: the table line by line, the molecule written as SMILES again."""

import csv
import io
from typing import Any

from graphxai_data.raw_files import read_member
from graphxai_data.record import SPLIT_NAMES, GraphRecord
from graphxai_data.sources import Source


class Prover:
    """Compares molecules with the rows of the table, and their atoms and bonds with the SMILES."""

    sample = 10_000

    def __init__(self, params: Any, sources: dict[str, Source]) -> None:
        path = sources["molhiv"].path
        self._rows = list(csv.DictReader(io.StringIO(read_member(path, "hiv.csv").decode())))
        self._split = {}
        for number, name in enumerate(SPLIT_NAMES):
            for line in read_member(path, f"split/scaffold/{name}.csv").decode().split():
                self._split[int(line)] = number

    def problems(self, record: GraphRecord) -> list[str]:
        """What of a molecule is not as the files have it."""
        from rdkit import Chem

        row = self._rows[record.group]
        problems = []
        if record.y != int(row["HIV_active"]):
            problems.append(f"class {record.y}, the table has {row['HIV_active']}")
        if record.meta["split"] != self._split[record.group]:
            problems.append("its split is not OGB's")
        if record.meta["smiles"] != row["smiles"]:
            problems.append("its SMILES is not the table's")
        # Without sanitisation a molecule is what the text says, before RDKit thinks about it.
        molecule = Chem.MolFromSmiles(row["smiles"], sanitize=False)
        symbols = [atom.GetAtomicNum() or 119 for atom in molecule.GetAtoms()]
        charges = [atom.GetFormalCharge() + 5 for atom in molecule.GetAtoms()]
        # Where hydrogens are written as atoms, sanitisation takes some of them away.
        if len(symbols) == record.num_nodes:
            if (record.x[:, :119].argmax(axis=1) + 1).tolist() != symbols:
                problems.append("its atoms are not those of its SMILES")
            if record.x[:, 136:148].argmax(axis=1).tolist() != charges:
                problems.append("its charges are not those of its SMILES")
            bonds = {(b.GetBeginAtomIdx(), b.GetEndAtomIdx()) for b in molecule.GetBonds()}
            both = bonds | {(b, a) for a, b in bonds}
            if set(map(tuple, record.edge_index.T.tolist())) != both:
                problems.append("its bonds are not those of its SMILES")
        elif symbols.count(1) == 0:
            problems.append(f"{record.num_nodes} atoms, its SMILES has {len(symbols)}")
        return problems
