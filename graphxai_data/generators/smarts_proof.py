"""Proof of `smarts`: substructures found in the stored arrays, rules evaluated by other means.

The generator lets RDKit search the SMILES and derives ways from the form of the rule. Here, our own
matcher searches the arrays, Python's parser reads the rule, and all subsets of the substructures
are tried: a subset settles the rule if it has the same truth whatever is not in the subset.
"""

import ast
from collections.abc import Mapping
from itertools import combinations, product
from typing import Any

from rdkit import Chem
from rdkit.Chem.Scaffolds import MurckoScaffold

from graphxai_data.generators.base import Prover
from graphxai_data.generators.smarts_pattern import parse_smarts
from graphxai_data.generators.smarts_search import find_all, graph_facts
from graphxai_data.graphs.record import GraphRecord

_BONDS = ("single", "double", "triple", "aromatic")
Atoms = frozenset[int]


class SmartsProver(Prover):
    """Checks label and alternatives of a graph, that it is its molecule, and that none repeats."""

    def __init__(self, params: Any) -> None:
        self._atoms = params.atoms
        self._patterns = {name: parse_smarts(s) for name, s in params.substructures.items()}
        self._rule = ast.parse(params.rule.strip(), mode="eval").body
        self._graph_of_molecule: dict[str, int] = {}
        self._group_of_scaffold: dict[str, int] = {}
        self._scaffold_of_group: dict[int, str] = {}

    def problems(self, record: GraphRecord) -> list[str]:
        """Return what contradicts the claims about a graph; empty when all is proven."""
        molecule: Chem.Mol | None = Chem.MolFromSmiles(record.meta["smiles"])
        if molecule is None:
            return ["its SMILES does not parse"]
        problems = self._differences(record, molecule)
        return problems or [*self._rationale(record), *self._repetitions(record, molecule)]

    def _rationale(self, record: GraphRecord) -> list[str]:
        """Return whether label or alternatives are not those of the arrays."""
        facts = graph_facts(
            [self._atoms[i] for i in record.x.argmax(axis=1).tolist()],
            record.meta["hydrogens"].tolist(),
            record.meta["charge"].tolist(),
            record.edge_index,
            [_BONDS[i] for i in _kinds(record)],
        )
        matches = {name: find_all(pattern, facts) for name, pattern in self._patterns.items()}
        label = truth(self._rule, {name: bool(of_name) for name, of_name in matches.items()})
        if record.y != int(bool(label)):
            return [f"its class is {record.y}, the rule is {label}"]
        expected = minimal_ways(self._rule, matches)
        stored = [frozenset(mask.nonzero()[0].tolist()) for mask in record.alternatives]
        if len(stored) != len(expected) or set(stored) != expected:
            return [f"it has {len(stored)} alternatives, not the {len(expected)} of the rule"]
        inside = {
            (a, b)
            for a, b in zip(*record.edge_index.tolist(), strict=True)
            if any({a, b} <= way for way in expected)
        }
        marked = set(zip(*record.edge_index[:, record.edge_mask].tolist(), strict=True))
        union = set().union(*expected)
        problems = [] if set(record.rationale.nonzero()[0].tolist()) == union else ["node_mask"]
        problems += [] if marked == inside else ["edge_mask"]
        return [f"{name} is not that of its alternatives" for name in problems]

    def _differences(self, record: GraphRecord, molecule: Chem.Mol) -> list[str]:
        """Return in what the arrays differ from the molecule of the SMILES."""
        atom_of_node = record.meta["smiles_atom"].tolist()
        if sorted(atom_of_node) != list(range(molecule.GetNumAtoms())):
            return ["its nodes are not the atoms of its SMILES"]
        atoms = [molecule.GetAtomWithIdx(atom) for atom in atom_of_node]
        problems = []
        if [self._atoms[i] for i in record.x.argmax(axis=1)] != [a.GetSymbol() for a in atoms]:
            problems.append("a node feature is not its element")
        if record.meta["hydrogens"].tolist() != [atom.GetTotalNumHs() for atom in atoms]:
            problems.append("its hydrogens are not those of its SMILES")
        if record.meta["charge"].tolist() != [atom.GetFormalCharge() for atom in atoms]:
            problems.append("its charges are not those of its SMILES")
        bonds = {}
        for bond in molecule.GetBonds():
            pair = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
            bonds[pair] = bonds[pair[::-1]] = str(bond.GetBondType()).lower()
        ends = [(atom_of_node[a], atom_of_node[b]) for a, b in record.edge_index.T.tolist()]
        if dict(zip(ends, [_BONDS[i] for i in _kinds(record)], strict=True)) != bonds:
            problems.append("its edges are not the bonds of its SMILES")
        return problems

    def _repetitions(self, record: GraphRecord, molecule: Chem.Mol) -> list[str]:
        """Return whether the molecule was met before, or its scaffold in another group."""
        graph, problems = record.meta["graph_id"], []
        flat = Chem.MolToSmiles(molecule, isomericSmiles=False)
        if (other := self._graph_of_molecule.setdefault(flat, graph)) != graph:
            problems.append(f"the same molecule as graph {other}")
        scaffold = MurckoScaffold.MurckoScaffoldSmiles(mol=molecule, includeChirality=False)
        group = self._group_of_scaffold.setdefault(scaffold, record.group)
        same = self._scaffold_of_group.setdefault(record.group, scaffold) == scaffold
        if group != record.group or not same:
            problems.append("its group is not its Murcko scaffold")
        return problems


def truth(rule: ast.expr, values: Mapping[str, bool | None]) -> bool | None:
    """Return the truth of a rule; None if names whose value is None could decide it."""
    if isinstance(rule, ast.Name):
        return values[rule.id]
    if isinstance(rule, ast.UnaryOp) and isinstance(rule.op, ast.Not):
        inner = truth(rule.operand, values)
        return None if inner is None else not inner
    if not isinstance(rule, ast.BoolOp):
        raise ValueError(f"a rule has and, or, not and names, not {ast.dump(rule)}")
    of_parts = [truth(part, values) for part in rule.values]
    decisive = isinstance(rule.op, ast.Or)  # one true part settles an or, one false part an and
    if decisive in of_parts:
        return decisive
    return None if None in of_parts else not decisive


def minimal_ways(rule: ast.expr, matches: Mapping[str, set[Atoms]]) -> set[Atoms]:
    """Return the minimal sets of atoms that settle the rule; none if nothing has to be seen."""
    present = [name for name, of_name in matches.items() if of_name]
    ways: set[Atoms] = set()
    for size in range(len(present) + 1):
        for seen in combinations(present, size):
            # What is absent is known; what is present but not seen may be either.
            values = {name: None if name in present else False for name in matches}
            if truth(rule, {**values, **dict.fromkeys(seen, True)}) is None:
                continue
            for choice in product(*(matches[name] for name in seen)):
                ways.add(frozenset().union(*choice))
    return {way for way in ways if way and not any(other < way for other in ways)}


def _kinds(record: GraphRecord) -> list[int]:
    """Return the bond type [m] of every edge."""
    return [] if record.edge_attr is None else record.edge_attr.argmax(axis=1).tolist()
