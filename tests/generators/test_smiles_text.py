from rdkit import Chem

from graphxai_data.files.shipped import shipped
from graphxai_data.generators.molecule_pool import read_molecules
from graphxai_data.generators.smiles_text import atoms_of, free_ring_closure, insert_branches

POOL = read_molecules(shipped("data") / "sources" / "zinc-clean-leads.smi.gz")
TRICKY = ["C=1CCCCC=1", "C%12CCCC%12", "[nH]1cccc1", "C1CC1C2CC2", "CC(C)(C)Br", "c1ccc2ccccc2c1"]


def test_atoms_are_counted_as_rdkit_counts_them() -> None:
    for smiles in [*POOL[::500], *TRICKY]:
        molecule = Chem.MolFromSmiles(smiles)
        symbols = [atom.GetSymbol().lower() for atom in molecule.GetAtoms()]
        written = [text.strip("[]H+-@").lower() for text in atoms_of(smiles)]
        assert written == symbols, smiles


def test_a_branch_in_the_text_is_a_bond_in_the_molecule() -> None:
    # Against RDKit's own editing: the same graft by text and by adding atoms and a bond.
    compared = 0
    for smiles in [*POOL[::2000], *TRICKY]:
        background = Chem.MolFromSmiles(smiles)
        for atom in background.GetAtoms():
            if atom.GetSymbol() != "C" or atom.GetTotalNumHs() == 0:
                continue
            closure = free_ring_closure(smiles)
            ring = f"c{closure}c(Cl)cccc{closure}"
            text, first = insert_branches(smiles, {atom.GetIdx(): f"-{ring}"})
            both = Chem.RWMol(Chem.CombineMols(background, Chem.MolFromSmiles("c1c(Cl)cccc1")))
            start = background.GetNumAtoms()
            both.AddBond(atom.GetIdx(), start, Chem.BondType.SINGLE)
            Chem.SanitizeMol(both)
            grafted = Chem.MolFromSmiles(text)
            assert Chem.MolToSmiles(grafted) == Chem.MolToSmiles(both)
            bond = grafted.GetBondBetweenAtoms(atom.GetIdx(), first[atom.GetIdx()])
            assert bond is not None
            compared += 1
    assert compared > 300


def test_the_first_atom_of_each_branch_is_returned() -> None:
    text, first = insert_branches("CCCC", {0: "F", 2: "-c1ccccc1", 3: "Br"})
    assert text == "C(F)CC(-c1ccccc1)C(Br)"
    atoms = atoms_of(text)
    assert [atoms[first[i]] for i in (0, 2, 3)] == ["F", "c", "Br"]
    assert first == {0: 1, 2: 4, 3: 11}


def test_a_free_ring_closure_is_always_found() -> None:
    assert free_ring_closure("CC") == "1"
    assert free_ring_closure("C1CC1") == "2"
    assert free_ring_closure("123456789") == "%10"
    assert free_ring_closure("123456789%10") == "%11"
