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

from graphxai_data.generators.pool_proof import PoolProver, bonds_of
from graphxai_data.generators.smarts_pattern import parse_smarts
from graphxai_data.generators.smarts_search import find_all, graph_facts
from graphxai_data.graphs.record import GraphRecord

Atoms = frozenset[int]


class SmartsProver(PoolProver):
    """Checks label and alternatives of a graph, that it is its molecule, and that none repeats."""

    def __init__(self, params: Any) -> None:
        super().__init__(params)
        self._patterns = {name: parse_smarts(s) for name, s in params.substructures.items()}
        self._rule = ast.parse(params.rule.strip(), mode="eval").body

    def claims(self, record: GraphRecord, molecule: Chem.Mol) -> list[str]:
        """Return whether label or alternatives are not those of the arrays."""
        facts = graph_facts(
            self.elements(record),
            record.meta["hydrogens"].tolist(),
            record.meta["charge"].tolist(),
            record.edge_index,
            list(bonds_of(record).values()),
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
