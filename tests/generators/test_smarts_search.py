"""Our own SMARTS parser and matcher against RDKit's, on molecules of the shipped pool."""

from functools import lru_cache

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rdkit import Chem, rdBase

from graphxai_data.files.shipped import shipped
from graphxai_data.generators.molecule_pool import read_molecules
from graphxai_data.generators.smarts_pattern import parse_smarts
from graphxai_data.generators.smarts_search import (
    GraphFacts,
    find_all,
    graph_facts,
    relevant_rings,
)
from graphxai_data.recipe import Recipe, shipped_names

# Fused, bridged and spiro rings, charges, triple bonds: what the pool has little of.
OTHERS = (
    "C1CC2CCC1CC2", "C1C2CC3CC1CC(C2)C3", "C1CCC2(CC1)CCCC2", "C1CC2CC12", "[O-][N+](=O)c1ccccc1",
    "C[N+](C)(C)CC(=O)[O-]", "N#CC#C", "c1ccc2c(c1)[nH]c1ccccc12", "O=C1CCCCCN1", "FC(Cl)(Br)I",
    "C1CC1C1CC1", "S(=O)(=O)(N)c1ccc(cc1)P", "B(O)(O)c1ccccc1", "C1=CC2=CC=CC=CC2=C1",
)  # fmt: skip
SMARTS = sorted({
    smarts
    for name in shipped_names()
    for smarts in getattr(Recipe.load(name).params, "substructures", {}).values()
})  # fmt: skip
MORE_SMARTS = [
    "[R1]", "[R2]", "[R3]", "[r5]", "[r6]", "[k6]", "[k7,k8]", "[r]", "[!R]", "[R]@[R]", "[*]~[*]",
    "*!@*", "C-C", "cc", "c-c", "c:n", "C#[N,C]", "[C,N,O;!R]-!@[#6;R1]", "[+]", "[-]", "[!+0]",
    "[N+1](=O)[O-]", "*~1~*~*~*~*~*~*1", "[!#6;!H0]", "[CH3]", "[CX4H2,CX4H3]", "a!:a", "C%12CC%12",
    "[A;R]-,=[A]", "[c&H1]", "C(C)(C)C", "[#7,#8;D1]", "[!C&!c&!H0]", "*=,#*", "[ND1H2]",
]  # fmt: skip


@lru_cache(maxsize=1)
def _molecules() -> list[tuple[Chem.Mol, GraphFacts]]:
    pool = read_molecules(shipped("data") / "sources" / "moses-100k.smi.gz")[::1400]
    return [(molecule, _facts(molecule)) for molecule in map(Chem.MolFromSmiles, (*pool, *OTHERS))]


def _facts(molecule: Chem.Mol) -> GraphFacts:
    atoms, bonds = molecule.GetAtoms(), list(molecule.GetBonds())
    ends = [(b.GetBeginAtomIdx(), b.GetEndAtomIdx()) for b in bonds]
    both = np.array([*ends, *((b, a) for a, b in ends)], int).reshape(-1, 2).T
    return graph_facts(
        [a.GetSymbol() for a in atoms],
        [a.GetTotalNumHs() for a in atoms],
        [a.GetFormalCharge() for a in atoms],
        both,
        [str(b.GetBondType()).lower() for b in bonds] * 2,
    )


def _require_same(smarts: str) -> int:
    """Return how many matches there are, after comparing each molecule's with RDKit's."""
    theirs, ours, total = Chem.MolFromSmarts(smarts), parse_smarts(smarts), 0
    for molecule, facts in _molecules():
        expected = set(map(frozenset, molecule.GetSubstructMatches(theirs, maxMatches=100_000)))
        assert find_all(ours, facts) == expected, Chem.MolToSmiles(molecule)
        total += len(expected)
    return total


@pytest.mark.parametrize("smarts", [*SMARTS, *MORE_SMARTS])
def test_matches_are_those_of_rdkit(smarts: str) -> None:
    assert _require_same(smarts) > 0


primitives = st.sampled_from([
    "C", "c", "N", "n", "O", "#6", "#7", "#8", "*", "A", "a", "D1", "D2", "D3", "X2", "X3", "X4",
    "H0", "H1", "H2", "R", "R0", "R1", "r5", "r6", "k6", "+0", "+", "S", "F",
])  # fmt: skip
properties = st.lists(
    st.tuples(st.sampled_from(["", "!"]), primitives).map("".join), min_size=1, max_size=2
).map("&".join)
brackets = st.lists(
    st.lists(properties, min_size=1, max_size=2).map(",".join), min_size=1, max_size=2
).map(lambda clauses: f"[{';'.join(clauses)}]")
any_bond = st.sampled_from(["", "-", "=", ":", "~", "@", "!@", "-!@", "-,=", "!-", "=,:;@"])
chains = st.tuples(
    brackets, st.lists(st.tuples(any_bond, brackets), max_size=3), st.booleans()
).map(lambda parts: _branched(*parts))


def _branched(first: str, rest: list[tuple[str, str]], branch: bool) -> str:
    texts = [bond + atom for bond, atom in rest]
    if branch and len(texts) > 1:
        texts[0] = f"({texts[0]})"
    return first + "".join(texts)


@given(smarts=chains)
@settings(max_examples=60, deadline=None)
def test_matches_of_random_patterns_are_those_of_rdkit(smarts: str) -> None:
    _require_same(smarts)


@pytest.mark.parametrize(
    ("smarts", "message"),
    [
        ("", "has no atoms"),
        ("[C", "not closed"),
        ("C1CC", "not closed"),
        ("C(C", "not closed"),
        ("C.C", "fragments are not supported"),
        ("[13C]", "no property of an atom"),
        ("C/C=C/C", "stereochemistry is not supported"),
        ("[C@H](F)Cl", "stereochemistry is not supported"),
        ("[H]", "hydrogens are no nodes"),
        ("[$(CC)]", "recursive SMARTS are not supported"),
        ("[#118]", "not known here"),
        ("[Xe]", "no property|no element"),
        ("-C", "begins with a bond"),
        ("C11", "contradicts itself"),
        ("C-1CC=1", "contradicts itself"),
        ("C!C", "bond '!' is not known"),
        ("[C,]", "nothing on one side"),
    ],
)
def test_what_is_not_known_is_named(smarts: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_smarts(smarts)


@given(text=st.text("CcN[]()=#12;,!&DHR$@.%", max_size=12))
@settings(max_examples=300, deadline=None)
def test_whatever_we_read_rdkit_reads_too(text: str) -> None:
    """A parser that accepts what is no SMARTS would prove nothing."""
    try:
        parse_smarts(text)
    except ValueError:
        return
    with rdBase.BlockLogs():
        assert Chem.MolFromSmarts(text) is not None


@pytest.mark.parametrize(
    ("smiles", "sizes"),
    [
        ("CCC", []),
        ("C1CC1CC1CCC1", [3, 4]),
        ("c1ccc2ccccc2c1", [6, 6]),
        ("C1CC2CCC1CC2", [6, 6, 6]),  # three rings of equal right, two of which make a basis
        ("C12C3C4C1C5C2C3C45", [4] * 6),  # cubane has six faces, five of which make a basis
        ("C1CC2CC12", [3, 4]),
    ],
)
def test_rings_are_all_that_are_no_sums_of_shorter_ones(smiles: str, sizes: list[int]) -> None:
    molecule = Chem.MolFromSmiles(smiles)
    graph = nx.Graph([(b.GetBeginAtomIdx(), b.GetEndAtomIdx()) for b in molecule.GetBonds()])
    assert sorted(map(len, relevant_rings(graph))) == sizes
