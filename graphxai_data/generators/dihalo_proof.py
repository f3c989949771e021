"""Proof of Di-Halo-Benzene labels and masks from the stored SMILES alone.

It uses no code of the generator: RDKit reads the molecule again, the rings are found by SMARTS and
ring information, and class, mask and background are derived from them.
"""

from collections import Counter
from collections.abc import Collection
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from rdkit import Chem

from graphxai_data.generators.base import Prover, Sources
from graphxai_data.graphs.record import GraphRecord

_HALOGEN_ON_BENZENE = Chem.MolFromSmarts("[F,Cl,Br,I]-!@c1ccccc1")
_HALOGENS = ("F", "Cl", "Br", "I")
_POSITION = {1: "ortho", 2: "meta", 3: "para"}
_BOND_ORDER = {"SINGLE": 0, "DOUBLE": 1, "TRIPLE": 2, "AROMATIC": 3}


class HalogenRing(NamedTuple):
    """A benzene ring with halogens, as atoms of the molecule."""

    ring: tuple[int, ...]  # in the order of the bonds
    halogens: dict[int, int]  # by the carbon that carries them
    symbols: tuple[str, ...]  # of the halogens, sorted
    outside: tuple[int, ...]  # other atoms bonded to the ring

    @property
    def atoms(self) -> set[int]:
        """Carbons and halogens."""
        return {*self.ring, *self.halogens.values()}

    @property
    def is_di_halo(self) -> bool:
        """Whether it has two halogens, which are alike."""
        return len(self.symbols) == 2 and len(set(self.symbols)) == 1

    @property
    def name(self) -> tuple[str, str]:
        """Halogen and position of a ring with two like halogens."""
        (distance,) = distances(self.ring, self.halogens)
        return self.symbols[0], _POSITION[distance]


class MoleculeProver(Prover):
    """Checks one molecule after the other, and that no two of them are the same."""

    def __init__(self, params: Any, sources: Sources | None = None) -> None:
        self.params = params
        self._graph_of_molecule: dict[str, int] = {}
        self._home_of_background: dict[str, tuple[int, int]] = {}

    def problems(self, record: GraphRecord) -> list[str]:
        """Return what contradicts the claims about a graph; empty when all is proven."""
        try:
            molecule: Chem.Mol | None = Chem.MolFromSmiles(record.meta["smiles"])
            if molecule is None:
                return ["its SMILES does not parse"]
            return self.problems_of(record, molecule)
        except (ValueError, KeyError, RuntimeError, StopIteration) as error:
            return [f"RDKit cannot make sense of it ({type(error).__name__}: {error})"]

    def problems_of(self, record: GraphRecord, molecule: Chem.Mol) -> list[str]:
        """Return what contradicts the claims about a graph, given its molecule."""
        raise NotImplementedError

    def class_problems(self, name: tuple[str, str], label: int, what: str) -> list[str]:
        """Return whether the class of a ring is not the label."""
        expected = dict(enumerate(self.params.classes)).get(label)
        said = f"its {what} is {' '.join(name)}, its label {label} says {expected}"
        return [] if name == expected else [said]

    def graph_problems(
        self, record: GraphRecord, molecule: Chem.Mol, rationale: set[int]
    ) -> list[str]:
        """Return in what the graph differs from the molecule, or its masks from the rationale."""
        whole = Chem.AddHs(molecule) if self.params.hydrogens else molecule
        atom_of_node = record.meta["smiles_atom"].astype(int)
        if sorted(atom_of_node) != list(range(whole.GetNumAtoms())):
            return ["its nodes are not the atoms of its SMILES"]
        problems = []
        symbols = [self.params.atoms[i] for i in record.x.argmax(axis=1)]
        if symbols != [whole.GetAtomWithIdx(a).GetSymbol() for a in atom_of_node.tolist()]:
            problems.append("a node feature is not its element")
        ends = atom_of_node[record.edge_index]
        kinds = np.zeros(0, int) if record.edge_attr is None else record.edge_attr.argmax(axis=1)
        bonds = {}
        for bond in whole.GetBonds():
            pair = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
            bonds[pair] = bonds[pair[::-1]] = _BOND_ORDER[str(bond.GetBondType())]
        if dict(zip(map(tuple, ends.T.tolist()), kinds.tolist(), strict=True)) != bonds:
            problems.append("its edges are not the bonds of its SMILES")
        if set(atom_of_node[record.rationale].tolist()) != rationale:
            problems.append("node_mask is not the di-halo ring")
        # A ring has as many bonds as atoms, halogens included.
        marked = set(map(tuple, ends[:, record.edge_mask].T.tolist()))
        inside = {ends for ends in bonds if rationale >= set(ends)}
        if marked != inside or len(marked) != 2 * len(rationale):
            problems.append("edge_mask is not the eight bonds of the di-halo ring")
        return problems

    def repetitions(self, record: GraphRecord, molecule: Chem.Mol, background: str) -> list[str]:
        """Return whether the molecule or its background has been met before."""
        problems = []
        graph, split = record.meta["graph_id"], record.meta["split"]
        canonical = Chem.MolToSmiles(molecule, isomericSmiles=False)  # graphs are without stereo
        first = self._graph_of_molecule.setdefault(canonical, graph)
        if first != graph:
            problems.append(f"the same molecule as graph {first}")
        home = (record.group, split)
        known = self._home_of_background.setdefault(background, home)
        if known != home:
            problems.append(
                f"its background is also in group {known[0]}, split {known[1]}; "
                f"here group {home[0]}, split {home[1]}"
            )
        return problems


class DiHaloProver(MoleculeProver):
    """Proves that exactly one ring has two like halogens, and where the other halogens are."""

    def problems_of(self, record: GraphRecord, molecule: Chem.Mol) -> list[str]:
        """Return what contradicts the claims about a graph, given its molecule."""
        rings = halogen_rings(molecule)
        di_halo = [ring for ring in rings if ring.is_di_halo]
        if len(di_halo) != 1:
            return [f"{len(di_halo)} di-halo rings, expected exactly one"]
        truth = di_halo[0]
        if problems := self.graph_problems(record, molecule, truth.atoms):
            return problems
        problems = self.class_problems(truth.name, int(record.y), "ring")
        problems += self._halogen_problems(molecule, truth.symbols[0])
        grafted = [ring for ring in rings if len(ring.outside) == 1]
        if len(grafted) != 1 or not (self.params.decoys or grafted[0] is truth):
            return [*problems, f"{len(grafted)} grafted rings with halogens, expected one"]
        if self.params.decoys:
            problems += _decoy_problems(molecule, rings, grafted[0])
        background = without(molecule, grafted[0].atoms)
        if self.params.decoys:
            problems += stereo_problems(molecule, background)
        return problems + self.repetitions(record, molecule, flat_smiles(background))

    def _halogen_problems(self, molecule: Chem.Mol, halogen: str) -> list[str]:
        counts = Counter(atom.GetSymbol() for atom in molecule.GetAtoms())
        for other in _HALOGENS:
            decoy = self.params.decoys and other in self.params.halogens
            expected = 2 if other == halogen or decoy else 0
            if counts[other] != expected:
                return [f"{counts[other]} {other}, expected {expected}"]
        return []


def _decoy_problems(
    molecule: Chem.Mol, rings: list[HalogenRing], grafted: HalogenRing
) -> list[str]:
    """Return in what three rings with two halogens each are not as claimed."""
    unlike = [ring.symbols for ring in rings if not ring.is_di_halo]
    problems = []
    if len(rings) != 3 or any(len(ring.symbols) != 2 for ring in rings):
        problems.append("its halogens are not two each on three benzene rings")
    elif len(set(unlike)) != 1:
        problems.append("its decoys are not the same unlike pair on two rings")
    if not molecule.GetAtomWithIdx(grafted.outside[0]).GetIsAromatic():
        problems.append("its grafted ring is not attached at an aromatic atom")
    for ring in rings:
        atoms = [molecule.GetAtomWithIdx(atom) for atom in ring.ring]
        places = [a.GetIdx() for a in atoms if a.GetTotalNumHs() or a.GetIdx() in ring.halogens]
        if set(distances(ring.ring, places)) != set(_POSITION):
            problems.append("a ring has no room for halogens at every position")
    return problems


def halogen_rings(molecule: Chem.Mol) -> list[HalogenRing]:
    """Return the benzene rings with halogens."""
    halogens_of_ring: dict[frozenset[int], dict[int, int]] = {}
    for halogen, *ring in molecule.GetSubstructMatches(_HALOGEN_ON_BENZENE, uniquify=False):
        halogens_of_ring.setdefault(frozenset(ring), {})[ring[0]] = halogen
    rings = []
    for carbons, halogens in halogens_of_ring.items():
        ring = next(r for r in molecule.GetRingInfo().AtomRings() if set(r) == carbons)
        symbols = sorted(molecule.GetAtomWithIdx(h).GetSymbol() for h in halogens.values())
        outside = {
            neighbour.GetIdx()
            for carbon in carbons
            for neighbour in molecule.GetAtomWithIdx(carbon).GetNeighbors()
        } - {*carbons, *halogens.values()}
        rings.append(HalogenRing(ring, halogens, tuple(symbols), tuple(sorted(outside))))
    return rings


def distances(ring: tuple[int, ...], atoms: Collection[int]) -> list[int]:
    """Return how many bonds of the ring are between each two of its atoms."""
    gaps = [abs(ring.index(one) - ring.index(other)) for one, other in combinations(atoms, 2)]
    return [min(gap, len(ring) - gap) for gap in gaps]


def without(molecule: Chem.Mol, atoms: Collection[int]) -> Chem.Mol:
    """Return the molecule without these atoms and without halogens: its background."""
    editable = Chem.RWMol(molecule)
    halogens = {a.GetIdx() for a in molecule.GetAtoms() if a.GetSymbol() in _HALOGENS}
    for atom in sorted({*atoms, *halogens}, reverse=True):
        editable.RemoveAtom(atom)
    # Sanitising gives the free valences their hydrogens back.
    background = editable.GetMol()
    Chem.SanitizeMol(background)
    return background


def flat_smiles(molecule: Chem.Mol) -> str:
    """Return the canonical SMILES without stereochemistry, which graphs do not have."""
    return str(Chem.MolToSmiles(molecule, isomericSmiles=False))


def stereo_problems(molecule: Chem.Mol, background: Chem.Mol) -> list[str]:
    """Return whether the grafts have made or removed stereo centres or stereo double bonds."""
    after, before = (len(list(Chem.FindPotentialStereo(m))) for m in (molecule, background))
    return [] if after == before else [f"{after} stereo elements, its background has {before}"]
