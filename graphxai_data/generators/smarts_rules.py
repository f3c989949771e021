"""Rules that look for substructures without a model: elements, aromatic atoms, the definition."""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from graphxai_data.generators.base import Rule
from graphxai_data.generators.dihalo_molecules import BONDS
from graphxai_data.generators.smarts_pattern import Pattern
from graphxai_data.generators.smarts_rule import Expression, TooManyWaysError
from graphxai_data.generators.smarts_search import GraphFacts, find_all, graph_facts
from graphxai_data.graphs.union import Graphs

Scores = npt.NDArray[np.float64]

# Bonds that an uncharged atom usually has; rules do not see hydrogens.
_VALENCE = {
    "B": 3, "C": 4, "N": 3, "O": 2, "F": 1, "Si": 4, "P": 3, "S": 2, "Cl": 1, "Se": 2, "Br": 1,
    "I": 1,
}  # fmt: skip
_ORDER = {"single": 1.0, "double": 2.0, "triple": 3.0, "aromatic": 1.5}


def smarts_rules(
    atoms: Sequence[str], patterns: Mapping[str, Pattern], rule: Expression
) -> tuple[Rule, ...]:
    """Return the rules of a dataset that can say something; the last one repeats its definition.

    Args:
        atoms: the elements that node features stand for.
        patterns: the substructures by name.
        rule: what the classes are.
    """
    named = frozenset[str]().union(*(pattern.elements for pattern in patterns.values()))
    others = frozenset(atoms) - {"C"}
    rules = []
    if others:
        rules.append(
            Rule(
                "heteroatoms", "atoms that are not carbon", partial(heteroatoms, atoms=tuple(atoms))
            )
        )
    if named & others:
        rules.append(
            Rule(
                "named-heteroatoms",
                "atoms that are not carbon, of an element in the recipe's SMARTS",
                partial(heteroatoms, atoms=tuple(atoms), among=named),
            )
        )
    return (
        *rules,
        Rule("aromatic-atoms", "atoms with an aromatic bond", aromatic_atoms),
        Rule(
            "substructures",
            "atoms of the substructures that settle the rule, those of one way first; hydrogens by "
            "usual valences",
            partial(substructures, atoms=tuple(atoms), patterns=dict(patterns), rule=rule),
            is_definition=True,
        ),
    )


def heteroatoms(
    graphs: Graphs, atoms: Sequence[str], among: frozenset[str] | None = None
) -> Scores:
    """Return [N] one for atoms other than carbon, of these elements or of all, else zero."""
    is_marked = [a != "C" and (among is None or a in among) for a in atoms]
    return np.array(is_marked, np.float64)[graphs.x.astype(np.int64)]


def aromatic_atoms(graphs: Graphs) -> Scores:
    """Return [N] one for atoms with an aromatic bond, else zero."""
    scores = np.zeros(len(graphs.x))
    scores[graphs.edges[0, np.asarray(graphs.edge_attr) == BONDS.index("aromatic")]] = 1
    return scores


def substructures(
    graphs: Graphs, atoms: Sequence[str], patterns: Mapping[str, Pattern], rule: Expression
) -> Scores:
    """Return [N] above zero for atoms in a minimal way to settle the rule, else zero.

    Atoms of the first way have one, those of the second a half, and so on: the top k are then one
    way, not atoms of several.
    """
    scores = np.zeros(len(graphs.x))
    edge_ptr = np.searchsorted(graphs.edges[0], graphs.node_ptr)
    kinds = np.asarray(BONDS)[np.asarray(graphs.edge_attr, np.int64)].tolist()
    elements = np.asarray(atoms)[graphs.x.astype(np.int64)].tolist()
    for i, (first, last) in enumerate(zip(graphs.node_ptr[:-1], graphs.node_ptr[1:], strict=True)):
        edges = slice(int(edge_ptr[i]), int(edge_ptr[i + 1]))
        facts = _facts(elements[first:last], graphs.edges[:, edges] - first, kinds[edges])
        matches = {
            name: [sum(1 << atom for atom in match) for match in find_all(pattern, facts)]
            for name, pattern in patterns.items()
        }
        present = [name for name, of_name in matches.items() if of_name]
        try:
            ways = rule.ways(matches, rule.holds(present))
        except TooManyWaysError:
            continue
        for atom in range(int(last - first)):
            numbers = (number for number, way in enumerate(ways, start=1) if way >> atom & 1)
            scores[first + atom] = 1 / next(numbers, np.inf)
    return scores


def _facts(elements: list[str], edges: npt.NDArray[np.int64], kinds: list[str]) -> GraphFacts:
    """Return the facts of a graph whose atoms have no charge, and usual numbers of hydrogens."""
    used = np.zeros(len(elements))
    np.add.at(used, edges[0], [_ORDER[kind] for kind in kinds])
    hydrogens = [
        max(0, int(_VALENCE.get(element, 0) - bonds))
        for element, bonds in zip(elements, used.tolist(), strict=True)
    ]
    return graph_facts(elements, hydrogens, [0] * len(elements), edges, kinds)
