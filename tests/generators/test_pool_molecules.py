"""Molecules of a pool as graphs: which are selected, in which split, and as which arrays."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem.Scaffolds import MurckoScaffold

from graphxai_data.errors import CheckFailedError, InputError
from graphxai_data.files.raw import Source
from graphxai_data.files.shipped import shipped
from graphxai_data.generators.molecule_pool import read_molecules
from graphxai_data.generators.pool_molecules import PoolMoleculeGenerator, PoolParams
from graphxai_data.generators.pool_selection import (
    REPEATED,
    UNPAIRED,
    Judgement,
    Selection,
    select_molecules,
)
from graphxai_data.graphs.columns import unpack
from graphxai_data.graphs.invariants import check_columns
from graphxai_data.graphs.record import Plan
from graphxai_data.graphs.schema import Schema
from graphxai_data.seeds import rng_for

POOL = Source("moses-100k", shipped("data") / "sources" / "moses-100k.smi.gz", "")
ATOMS = ("C", "N", "O", "F", "Cl", "Br", "S")


class Oxygens(PoolMoleculeGenerator):
    """Class: whether there is more than one oxygen; weights: how many neighbours an atom has."""

    Params = PoolParams

    def schema(self) -> Schema:
        return self.pool_schema(2, has_weights=True)

    def judge(self, molecule: Chem.Mol) -> Judgement | str:
        if any(atom.GetSymbol() == "S" for atom in molecule.GetAtoms()):
            return "has sulphur"
        oxygens = [atom.GetSymbol() for atom in molecule.GetAtoms()].count("O")
        return Judgement(int(oxygens > 1), [atom.GetDegree() for atom in molecule.GetAtoms()])

    def truth_columns(self, truth: Any, atoms: int) -> dict[str, Any]:
        assert len(truth) == atoms
        return {"node_weight": np.array(truth, np.float32)}


def _generator(graphs: int = 200, **changes: Any) -> Oxygens:
    params = {"atoms": ATOMS, "min_heavy_atoms": 10, "max_heavy_atoms": 40, **changes}
    generator = Oxygens(PoolParams(graphs, **params))
    generator.name = "oxygens"
    return generator


def _plan(generator: Oxygens, graphs: int, source: Source = POOL, seed: int = 0) -> Plan:
    sources = {"molecules": source}
    draws = rng_for(seed, "oxygens/splits")
    planned = generator.plan_from_sources((0.8, 0.1, 0.1), graphs, sources, draws)
    raw, _ = generator.read(sources, planned[1], seed)
    return Plan(np.arange(graphs), *planned, raw)


def _pool(folder: Path, *smiles: str) -> Source:
    path = folder / "pool.smi"
    path.write_text("\n".join(smiles))
    return Source("pool", path, "")


def _select(source: Source, graphs: int, seed: int = 0) -> Selection:
    generator = _generator(min_heavy_atoms=1)
    return select_molecules(
        source.path,
        read_molecules(source.path),
        rng_for(seed, "test"),
        graphs,
        [["few"], ["many"]],
        generator.usable,
        generator.judge,
    )


@pytest.fixture(scope="module")
def plan() -> Plan:
    return _plan(_generator(), 400)


def test_classes_take_turns_and_partners_have_the_same_size(plan: Plan) -> None:
    assert plan.label.tolist() == [0, 1] * 200
    molecules = [Chem.MolFromSmiles(smiles) for smiles, _ in plan.raw]
    atoms = [molecule.GetNumAtoms() for molecule in molecules]
    assert atoms[::2] == atoms[1::2]
    oxygens = [sum(a.GetAtomicNum() == 8 for a in molecule.GetAtoms()) for molecule in molecules]
    assert [count > 1 for count in oxygens] == plan.label.astype(bool).tolist()
    assert len({Chem.MolToSmiles(m, isomericSmiles=False) for m in molecules}) == 400


def test_splits_are_disjoint_in_scaffolds_and_balanced_in_classes_and_sizes() -> None:
    plan = _plan(_generator(), 2000)
    molecules = [Chem.MolFromSmiles(smiles) for smiles, _ in plan.raw]
    scaffolds = [MurckoScaffold.MurckoScaffoldSmiles(mol=m) for m in molecules]
    flat = [Chem.MolToSmiles(Chem.MolFromSmiles(s), isomericSmiles=False) for s in scaffolds]
    split_of: dict[str, int] = {}
    assert all(split_of.setdefault(s, k) == k for s, k in zip(flat, plan.split, strict=True))
    atoms = np.array([m.GetNumAtoms() for m in molecules])
    for split, share in enumerate((0.8, 0.1, 0.1)):
        inside = plan.split == split
        assert abs(inside.mean() - share) < 0.01
        assert abs(plan.label[inside].mean() - 0.5) < 0.03
        # How often one is right who knows the most frequent class of every size in the split.
        table = Counter(zip(atoms[inside], plan.label[inside], strict=True))
        right = sum(max(table[size, 0], table[size, 1]) for size in set(atoms[inside]))
        assert right / inside.sum() < 0.55


def test_fewer_graphs_are_the_first_of_more(plan: Plan) -> None:
    fewer = _plan(_generator(), 101)
    assert list(fewer.raw) == list(plan.raw)[:101]
    assert fewer.label.tolist() == plan.label.tolist()[:101]


def test_another_seed_selects_other_molecules(plan: Plan) -> None:
    other = _plan(_generator(), 400, seed=1)
    assert len({s for s, _ in plan.raw} & {s for s, _ in other.raw}) < 40


def test_arrays_are_those_of_the_smiles(plan: Plan) -> None:
    generator = _generator()
    columns = generator.generate(plan.cut(0, 30), 0)
    assert check_columns(columns, generator.schema()) == []
    for i in range(30):
        record = unpack(columns, generator.schema(), i)
        molecule = Chem.MolFromSmiles(record.meta["smiles"])
        atoms = [molecule.GetAtomWithIdx(int(a)) for a in record.meta["smiles_atom"]]
        assert [ATOMS[k] for k in record.x.argmax(axis=1)] == [a.GetSymbol() for a in atoms]
        assert record.meta["hydrogens"].tolist() == [a.GetTotalNumHs() for a in atoms]
        assert record.node_weight.tolist() == [a.GetDegree() for a in atoms]
        assert record.node_weight.tolist() == np.bincount(record.edge_index[0]).tolist()
    assert (columns["smiles_atom"][:400] != np.sort(columns["smiles_atom"][:400])).any()


def test_charges_and_hydrogens_are_stored(tmp_path: Path) -> None:
    """By hand: nitrobenzene and glycine as a zwitterion."""
    source = _pool(tmp_path, "[O-][N+](=O)c1ccccc1", "[NH3+]CC(=O)[O-]")
    generator = _generator(min_heavy_atoms=1)
    raw = [(s, [1] * Chem.MolFromSmiles(s).GetNumAtoms()) for s in source.path.read_text().split()]
    zero = np.zeros(2, np.int64)
    columns = generator.generate(Plan(np.arange(2), zero, zero, zero.astype(np.uint8), raw), 0)
    expected = [[-1, 1, 0, 0, 0, 0, 0, 0, 0], [1, 0, 0, 0, -1]]
    hydrogens = [[0, 0, 0, 0, 1, 1, 1, 1, 1], [3, 2, 0, 0, 0]]
    for i in range(2):
        meta = unpack(columns, generator.schema(), i).meta
        order = np.argsort(meta["smiles_atom"])
        assert meta["charge"][order].tolist() == expected[i]
        assert meta["hydrogens"][order].tolist() == hydrogens[i]


def test_reasons_against_molecules_are_counted(tmp_path: Path) -> None:
    source = _pool(
        tmp_path, "CCO", "OCO", "C(C)O", "OCCS", "CC.O", "CCI", "not", "OCCCCO", "[2H]CCO", "C" * 90
    )
    selection = _select(source, 2)
    assert sorted(smiles for smiles, _ in selection.molecules) == ["CCO", "OCO"] or (
        sorted(smiles for smiles, _ in selection.molecules) == ["C(C)O", "OCO"]
    )
    # Counts depend on how far the walk came: all of the pool, if it was in vain.
    with pytest.raises(InputError) as error:
        _select(source, 4)
    message = str(error.value)
    assert "4 graphs needed, 2 possible" in message
    assert "the pool has 2 'few', 2 'many'" in message
    for reason in (
        "has an element that the recipe does not list (1)",
        "SMILES does not parse (1)",
        "has sulphur (1)",
        "more than one fragment (1)",
        "has more than 40 heavy atoms (1)",
    ):
        assert reason in message
    assert "--graphs 2 or fewer" in message


def test_the_same_molecule_is_selected_once(tmp_path: Path) -> None:
    """Stereo isomers are the same graph."""
    source = _pool(tmp_path, "C[C@H](O)F", "C[C@@H](O)F", "CC(O)O", "CC(O)F", "OC(O)C", "OCCO")
    selection = _select(source, 2)
    assert len(selection.molecules) == 2
    with pytest.raises(InputError, match="2 possible"):
        _select(source, 4)
    assert sum(selection.rejected.values()) + 2 <= 6
    assert set(selection.rejected) <= {REPEATED, UNPAIRED}


def test_molecules_without_rings_are_one_scaffold(tmp_path: Path) -> None:
    source = _pool(tmp_path, "CCO", "OCO", "CCCO", "OCCO", "OC1CC1", "C1CO1", "OC1CO1", "OC1CC1O")
    selection = _select(source, 6)
    rings = ["1" in smiles for smiles, _ in selection.molecules]
    acyclic = {g for g, ring in zip(selection.scaffold.tolist(), rings, strict=True) if not ring}
    assert len(acyclic) == 1
    assert len(set(selection.scaffold.tolist())) > 1


def test_a_pool_of_one_scaffold_cannot_be_split(tmp_path: Path) -> None:
    chains = [("C" * n + "O", "O" + "C" * (n - 1) + "O") for n in range(2, 22)]
    source = _pool(tmp_path, *[smiles for pair in chains for smiles in pair])
    generator = _generator(min_heavy_atoms=1)
    with pytest.raises(InputError, match="40 molecules have 1 scaffolds"):
        _plan(generator, 40, source)


def test_another_pool_than_the_plans_is_noticed(tmp_path: Path, plan: Plan) -> None:
    with pytest.raises(CheckFailedError, match="not those of the plan"):
        _generator().read({"molecules": POOL}, plan.group[::-1].copy(), 0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"atoms": ()}, "atoms: expected at least one element"),
        ({"atoms": ("C", "H")}, "'H', which is no element heavier than H"),
        ({"atoms": ("C", "Xx")}, "'Xx', which is no element"),
        ({"min_heavy_atoms": 30, "max_heavy_atoms": 20}, "min_heavy_atoms is 30, more than"),
        ({"max_heavy_atoms": 256}, "from 1 to 255"),
    ],
)
def test_wrong_params_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _generator(**changes)
