"""Proof of pairs of di-halo rings from the stored SMILES alone, without code of the generator."""

from rdkit import Chem

from graphxai_data.generators.dihalo_proof import (
    HalogenRing,
    MoleculeProver,
    flat_smiles,
    halogen_rings,
    stereo_problems,
    without,
)
from graphxai_data.graphs.record import GraphRecord


class DiHaloPairProver(MoleculeProver):
    """Proves that there are two di-halo rings, told apart by their bond to the background."""

    def problems_of(self, record: GraphRecord, molecule: Chem.Mol) -> list[str]:
        """Return what contradicts the claims about a graph, given its molecule."""
        rings = halogen_rings(molecule)
        by_link = {_link(molecule, ring): ring for ring in rings if ring.is_di_halo}
        if len(rings) != 2 or set(by_link) != {"a", "b"}:
            return [f"{len(rings)} rings with halogens, expected a di-halo ring A and one B"]
        causes = ("a", "b") if self.params.cause == "both" else (self.params.cause,)
        rationale = set[int]().union(*(by_link[cause].atoms for cause in causes))
        problems = self.graph_problems(record, molecule, rationale)
        for cause in causes:
            problems += self.class_problems(
                by_link[cause].name, int(record.y), f"ring {cause.upper()}"
            )
        problems += self._cause_problems(record, by_link)
        oxygen = by_link["b"].outside[0]
        grafts = by_link["a"].atoms | by_link["b"].atoms | {oxygen}
        background = without(molecule, grafts)
        problems += stereo_problems(molecule, background)
        return problems + self.repetitions(record, molecule, flat_smiles(background))

    def _cause_problems(self, record: GraphRecord, by_link: dict[str, HalogenRing]) -> list[str]:
        """Return whether `cause` and `cause_y` are not the two rings and their classes."""
        names = [self.params.classes[y] for y in record.meta["cause_y"].tolist()]
        problems = []
        if names != [by_link["a"].name, by_link["b"].name]:
            problems.append("cause_y is not the classes of its rings")
        for number, ring in enumerate((by_link["a"], by_link["b"]), start=1):
            nodes = record.meta["cause"] == number
            if set(record.meta["smiles_atom"][nodes].tolist()) != ring.atoms:
                problems.append(f"cause is not {number} exactly on ring {'AB'[number - 1]}")
        return problems


def _link(molecule: Chem.Mol, ring: HalogenRing) -> str:
    """Return "a" for a ring on an aromatic carbon, "b" for one on an oxygen on such, else ""."""
    if len(ring.outside) != 1:
        return ""
    atom = molecule.GetAtomWithIdx(ring.outside[0])
    if atom.GetSymbol() == "C" and atom.GetIsAromatic():
        return "a"
    others = [n for n in atom.GetNeighbors() if n.GetIdx() not in ring.ring]
    is_ether = atom.GetSymbol() == "O" and len(others) == 1 and not atom.GetIsAromatic()
    on_aromatic = is_ether and others[0].GetSymbol() == "C" and others[0].GetIsAromatic()
    return "b" if on_aromatic else ""
