"""Types and contributions of atoms against RDKit's own table, hand sums, and descriptions."""

import doctest
import gzip
import tomllib
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdkit import Chem, rdBase
from rdkit.Chem import rdMolDescriptors

from graphxai_data.errors import CheckFailedError
from graphxai_data.files.shipped import shipped
from graphxai_data.generators import crippen_types
from graphxai_data.generators.crippen_descriptions import Molecule
from graphxai_data.generators.crippen_types import (
    ELEMENTS,
    atom_types,
    contributions,
    types_of,
    units_of,
)

TABLE = Path(crippen_types.__file__).with_name("crippen.toml")
# Together they have atoms of all types.
SMILES = [
    "C", "CC", "CC(C)C", "CC(C)(C)C", "CO", "COC", "CC(O)C", "CC(C)(C)O", "CC=O", "C=C", "C=C=C",
    "CC#N", "CC#C", "Cc1ccccc1", "Cn1cccc1", "CCc1ccccc1", "CC(C)c1ccccc1", "CC(C)(C)c1ccccc1",
    "CP(C)c1ccccc1", "Fc1ccccc1", "Clc1ccccc1", "Brc1ccccc1", "Ic1ccccc1", "c1ccc2ccccc2c1",
    "c1ccc(-c2ccccc2)cc1", "CNc1ccccc1", "COc1ccccc1", "CSc1ccccc1", "O=c1cc[nH]cc1", "C=Cc1ccccc1",
    "C[Si](C)(C)C", "C=C(n1cccc1)n1cccc1", "O", "OO", "CS", "CON", "CC(=O)O", "CN", "CNC",
    "Nc1ccccc1", "CN(C)C", "CN(C)c1ccccc1", "CC=N", "CC=NC", "C[NH3+]", "c1ccncc1", "C[n+]1ccccc1",
    "C[N+](C)(C)C", "CC[N+]#N", "CC#[N+]C", "[N-]=[N+]=NC", "C[N-]S(C)(=O)=O", "N", "c1ccoc1",
    "CN=O", "C[N+](=O)[O-]", "CS(C)=O", "CS(=O)(=O)[O-]", "CC(=O)[O-]", "CC[O-]", "C=O", "O=C=O",
    "O=Cc1ccccc1", "CC(=O)c1ccccc1", "NC(=O)N", "COC(=O)N", "CN=C=O", "C#CO", "O=P(C)(C)C", "CF",
    "CCl", "CBr", "CI", "[F-]", "[Na+]", "[Na]", "CP", "C[S-]", "CSC", "c1ccsc1", "B", "[Fe]",
    "[Zn]", "CB(O)O", "FS(F)(F)(F)(F)F", "[Mg+2]", "C[Se]C", "OC=C", "OS(C)(=O)=O", "CC(=S)N",
    "C1=CC=CN=N1", "c1ccn(C(=O)c2nnn[nH]2)c1", "c1cc[nH]c1", "OC(=N)C", "On1cccc1", "OP(C)C",
    "ClCl", "II", "O=CN", "O=COC", "O=C(c1ccccc1)n1cccc1", "OC(C)=O", "OSC", "OS", "S",
    "CC(C)=C(C)C", "C=C1C=CC=CC1=C", "N=c1cc[nH]cc1", "S=c1cc[nH]cc1", "O=C1C=CC(=O)C=C1",
    "C=C(c1ccccc1)c1ccccc1", "CN=NC", "N#N", "NN", "COc1ccc(S(=O)(=O)N2CCC(C(=O)NCCO)CC2)cc1Br",
]  # fmt: skip
KINDS = {1.0: "single", 2.0: "double", 3.0: "triple", 1.5: "aromatic"}


@pytest.fixture(scope="module")
def molecules() -> list[Chem.Mol]:
    """Molecules with atoms of all types, and every 400th of the pool."""
    pool = gzip.decompress((shipped("data") / "sources" / "moses-100k.smi.gz").read_bytes())
    with rdBase.BlockLogs():
        return [Chem.MolFromSmiles(text) for text in (*SMILES, *pool.decode().split()[::400])]


def rdkit_types(molecule: Chem.Mol) -> tuple[Chem.Mol, list[float], list[str]]:
    """Return the molecule with hydrogens, and contribution and type of each atom by RDKit."""
    whole = Chem.AddHs(molecule)
    names = [""] * whole.GetNumAtoms()
    rows = rdMolDescriptors._CalcCrippenContribs(whole, True, [0] * len(names), names)
    return whole, [logp for logp, _ in rows], names


@pytest.mark.parametrize(
    ("smiles", "total", "parts"),
    [
        ("C", "0.6361", {"C1": 1, "H1": 4}),
        ("CCO", "-0.0014", {"C1": 1, "C3": 1, "H1": 5, "O2": 1, "H2": 1}),
        ("c1ccccc1", "1.6866", {"C18": 6, "H1": 6}),
        ("Cc1ccccc1", "1.99502", {"C8": 1, "C21": 1, "C18": 5, "H1": 8}),
        ("CC(=O)O", "0.0909", {"C1": 1, "C5": 1, "O9": 1, "O2": 1, "H1": 3, "H4": 1}),
        ("c1ccncc1", "1.0816", {"C18": 5, "N11": 1, "H1": 5}),
        ("c1cc[nH]c1", "1.0147", {"C18": 4, "N11": 1, "H1": 4, "H3": 1}),
        ("Clc1ccccc1", "2.3400", {"C15": 1, "Cl": 1, "C18": 5, "H1": 5}),
        ("Nc1ccccc1", "1.2688", {"C22": 1, "C18": 5, "N3": 1, "H1": 5, "H3": 2}),
        ("CS(C)=O", "-0.0053", {"C3": 2, "S2": 1, "O6": 1, "H1": 6}),
    ],
)
def test_sums_are_those_that_one_computes_by_hand(
    smiles: str, total: str, parts: dict[str, int]
) -> None:
    """Types and sums were written down by hand from the published table."""
    molecule = Chem.MolFromSmiles(smiles)
    heavy, hydrogens = types_of(molecule)
    names = [kind.name for kind in [*heavy.values(), *(kind for _, kind in hydrogens)]]
    assert {name: names.count(name) for name in names} == parts
    assert Decimal(int(contributions(molecule).sum())).scaleb(-5) == Decimal(total)


def test_the_table_has_the_published_types_and_no_number_is_a_float() -> None:
    def refuse(text: str) -> float:
        raise AssertionError(f"{text} is read as a float")

    table = tomllib.loads(TABLE.read_text(encoding="utf-8"), parse_float=refuse)
    rows = [row for part in table.values() for row in part]
    assert len({row["name"] for row in rows}) == len(rows) == 72
    kinds = {kind.name: kind for part in atom_types().values() for kind in part}
    for row in rows:
        assert type(row["logp"]) is str
        assert Decimal(kinds[row["name"]].units) == Decimal(row["logp"]) * 10**5
        assert all(Chem.MolFromSmarts(pattern) is not None for pattern in row["smarts"])
        assert type(kinds[row["name"]].units) is int


@given(st.integers(-(10**8), 10**8))
def test_decimals_of_five_places_are_read_exactly(units: int) -> None:
    assert units_of(f"{Decimal(units).scaleb(-5):f}") == units


@pytest.mark.parametrize("text", ["", "1e3", "0.123456", "nan", "Infinity", "1,5", " 1", "１"])
def test_other_text_is_no_contribution(text: str) -> None:
    with pytest.raises(ValueError, match="at most five decimals"):
        units_of(text)


def test_types_and_contributions_are_those_of_rdkit(molecules: list[Chem.Mol]) -> None:
    seen = set()
    for molecule in molecules:
        whole, values, names = rdkit_types(molecule)
        heavy, hydrogens = types_of(molecule)
        count = molecule.GetNumAtoms()
        carriers = [a.GetNeighbors()[0].GetIdx() for a in list(whole.GetAtoms())[count:]]
        assert [heavy[atom].name for atom in range(count)] == names[:count]
        expected = sorted(zip(carriers, names[count:], strict=True))
        assert sorted((carrier, kind.name) for carrier, kind in hydrogens) == expected
        units = np.rint(np.array(values) * 10**5).astype(np.int64)
        with_hydrogens = units[:count].copy()
        np.add.at(with_hydrogens, carriers, units[count:])
        assert contributions(molecule).tolist() == with_hydrogens.tolist()
        seen.update(names)
    assert seen == {kind.name for part in atom_types().values() for kind in part}


def test_descriptions_give_the_types_of_rdkit(molecules: list[Chem.Mol]) -> None:
    seen = set()
    for molecule in molecules:
        atoms = list(molecule.GetAtoms())
        if any(a.GetFormalCharge() or a.GetSymbol() not in ELEMENTS for a in atoms):
            continue
        bonds = {}
        for bond in molecule.GetBonds():
            ends = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
            bonds[ends] = bonds[ends[::-1]] = KINDS[bond.GetBondTypeAsDouble()]
        elements = [atom.GetSymbol() for atom in atoms]
        described = Molecule(elements, [a.GetTotalNumHs() for a in atoms], bonds).types()
        whole, _, names = rdkit_types(molecule)
        of_hydrogens = [""] * len(atoms)
        for atom in list(whole.GetAtoms())[len(atoms) :]:
            of_hydrogens[atom.GetNeighbors()[0].GetIdx()] = names[atom.GetIdx()]
        expected = list(zip(names[: len(atoms)], of_hydrogens, strict=True))
        assert described == expected, Chem.MolToSmiles(molecule)
        seen.update(name for pair in described for name in pair)
    ions_and_metals = {"N10", "N12", "N13", "N14", "O7", "O12", "Hal", "Me1", "Me2", "C27"}
    known = {kind.name for part in atom_types().values() for kind in part}
    assert seen - {""} == known - ions_and_metals


@given(st.data())
def test_the_order_of_atoms_changes_nothing(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(SMILES))
    molecule = Chem.MolFromSmiles(text)
    order = data.draw(st.permutations(range(molecule.GetNumAtoms())))
    moved = Chem.RenumberAtoms(molecule, order)
    assert contributions(moved).tolist() == contributions(molecule)[list(order)].tolist()
    written = Chem.MolFromSmiles(Chem.MolToSmiles(moved, canonical=False))
    assert contributions(written).sum() == contributions(molecule).sum()


def test_an_element_without_a_type_is_refused_by_name() -> None:
    with pytest.raises(
        CheckFailedError, match=r"\[U\]: an atom has no type of Wildman and Crippen"
    ):
        contributions(Chem.MolFromSmiles("[U]"))


def test_examples() -> None:
    result = doctest.testmod(crippen_types)
    assert result.attempted > 0
    assert result.failed == 0
