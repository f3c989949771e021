"""Proof of Di-Halo-Benzene labels and masks from the stored SMILES alone.

It uses no code of the generator: RDKit reads the molecule again, the ring is found by SMARTS and
ring information, and class, mask and background are derived from it.
"""

from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
from rdkit import Chem

from graphxai_data.generators.base import Prover, Sources
from graphxai_data.graphs.record import GraphRecord

_HALOGEN_ON_BENZENE = Chem.MolFromSmarts("[F,Cl,Br,I]-!@c1ccccc1")
_HALOGENS = ("F", "Cl", "Br", "I")
_POSITION = {1: "ortho", 2: "meta", 3: "para"}
_BOND_ORDER = {"SINGLE": 0, "DOUBLE": 1, "TRIPLE": 2, "AROMATIC": 3}


class DiHaloProver(Prover):
    """Checks one molecule after the other, and that no two of them are the same."""

    def __init__(self, params: Any, sources: Sources | None = None) -> None:
        self._params = params
        self._graph_of_molecule: dict[str, int] = {}
        self._home_of_background: dict[str, tuple[int, int]] = {}

    def problems(self, record: GraphRecord) -> list[str]:
        """Return what contradicts the claims about a graph; empty when all is proven."""
        try:
            return self._problems(record)
        except (ValueError, KeyError, RuntimeError, StopIteration) as error:
            return [f"RDKit cannot make sense of it ({type(error).__name__}: {error})"]

    def _problems(self, record: GraphRecord) -> list[str]:
        molecule: Chem.Mol | None = Chem.MolFromSmiles(record.meta["smiles"])
        if molecule is None:
            return ["its SMILES does not parse"]
        rings = _dihalo_rings(molecule)
        if len(rings) != 1:
            return [f"{len(rings)} di-halo rings, expected exactly one"]
        ring, halogens, name = rings[0]
        problems = self._graph_problems(record, molecule, ring | halogens)
        if problems:
            return problems
        expected = dict(enumerate(self._params.classes)).get(record.y)
        if name != expected:
            problems.append(f"its ring is {' '.join(name)}, its label {record.y} says {expected}")
        problems += self._halogen_problems(molecule, name[0])
        outside = {
            (atom, neighbour.GetIdx())
            for atom in ring
            for neighbour in molecule.GetAtomWithIdx(atom).GetNeighbors()
            if neighbour.GetIdx() not in ring | halogens
        }
        if len(outside) != 1:
            problems.append(f"its ring has {len(outside)} bonds to the background, expected one")
        return problems + self._repetitions(record, molecule, ring)

    def _graph_problems(
        self, record: GraphRecord, molecule: Chem.Mol, rationale: set[int]
    ) -> list[str]:
        """Return in what the graph differs from the molecule, or its masks from the rationale."""
        whole = Chem.AddHs(molecule) if self._params.hydrogens else molecule
        atom_of_node = record.meta["smiles_atom"].astype(int)
        if sorted(atom_of_node) != list(range(whole.GetNumAtoms())):
            return ["its nodes are not the atoms of its SMILES"]
        problems = []
        symbols = [self._params.atoms[i] for i in record.x.argmax(axis=1)]
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
        marked = set(map(tuple, ends[:, record.edge_mask].T.tolist()))
        if marked != {e for e in bonds if rationale >= set(e)} or len(marked) != 2 * 8:
            problems.append("edge_mask is not the eight bonds of the di-halo ring")
        return problems

    def _halogen_problems(self, molecule: Chem.Mol, halogen: str) -> list[str]:
        counts = Counter(atom.GetSymbol() for atom in molecule.GetAtoms())
        for other in _HALOGENS:
            decoy = self._params.decoys and other in self._params.halogens
            expected = 2 if other == halogen or decoy else 0
            if counts[other] != expected:
                return [f"{counts[other]} {other}, expected {expected}"]
        bearing = {
            neighbour.GetIdx()
            for atom in molecule.GetAtoms()
            if atom.GetSymbol() in _HALOGENS
            for neighbour in atom.GetNeighbors()
        }
        crowded = [r for r in molecule.GetRingInfo().AtomRings() if len(bearing & set(r)) > 1]
        return [] if len(crowded) == 1 else [f"{len(crowded)} rings with two halogens, not one"]

    def _repetitions(self, record: GraphRecord, molecule: Chem.Mol, ring: set[int]) -> list[str]:
        """Return whether the molecule or its background has been met before."""
        problems = []
        graph, split = record.meta["graph_id"], record.meta["split"]
        canonical = Chem.MolToSmiles(molecule, isomericSmiles=False)  # graphs are without stereo
        first = self._graph_of_molecule.setdefault(canonical, graph)
        if first != graph:
            problems.append(f"the same molecule as graph {first}")
        home = (record.group, split)
        known = self._home_of_background.setdefault(_background(molecule, ring), home)
        if known != home:
            problems.append(
                f"its background is also in group {known[0]}, split {known[1]}; "
                f"here group {home[0]}, split {home[1]}"
            )
        return problems


def _dihalo_rings(molecule: Chem.Mol) -> list[tuple[set[int], set[int], tuple[str, str]]]:
    """Return carbons, halogens and class of each unfused benzene ring with two like halogens."""
    halogens_of_ring: dict[frozenset[int], dict[int, int]] = {}
    for halogen, *ring in molecule.GetSubstructMatches(_HALOGEN_ON_BENZENE, uniquify=False):
        halogens_of_ring.setdefault(frozenset(ring), {})[ring[0]] = halogen
    rings = []
    info = molecule.GetRingInfo()
    for ring_atoms, bearing in halogens_of_ring.items():
        order = next(r for r in info.AtomRings() if set(r) == ring_atoms)
        symbols = {molecule.GetAtomWithIdx(h).GetSymbol() for h in bearing.values()}
        unfused = all(info.NumAtomRings(a) == 1 for a in ring_atoms)
        if len(bearing) != 2 or len(symbols) != 1 or not unfused:
            continue
        ((one, other),) = combinations([order.index(a) for a in bearing], 2)
        distance = min(abs(one - other), 6 - abs(one - other))
        name = symbols.pop(), _POSITION[distance]
        rings.append((set(ring_atoms), set(bearing.values()), name))
    return rings


def _background(molecule: Chem.Mol, ring: set[int]) -> str:
    """Return the canonical SMILES of the molecule without the ring and without halogens."""
    editable = Chem.RWMol(molecule)
    halogens = {a.GetIdx() for a in molecule.GetAtoms() if a.GetSymbol() in _HALOGENS}
    for atom in sorted(ring | halogens, reverse=True):
        editable.RemoveAtom(atom)
    # Sanitising gives the free valences their hydrogens back.
    background = editable.GetMol()
    Chem.SanitizeMol(background)
    return Chem.MolToSmiles(background, isomericSmiles=False)
