"""Three rings with two halogens each: everything but the likeness of a pair is exchangeable."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from rdkit import Chem

from graphxai_data.generators.dihalo_decoys import aromatic_places, decoy_sites, may_gain_stereo
from graphxai_data.generators.dihalo_proof import DiHaloProver
from graphxai_data.generators.molecule_pool import Background
from graphxai_data.graphs.record import GraphRecord
from graphxai_data.graphs.shards import ShardReader
from graphxai_data.recipe import Recipe
from tests.conftest import SharedBuilds

HALOGENS = ("F", "Cl", "Br", "I")


@pytest.fixture(scope="module")
def records(builds: SharedBuilds) -> list[GraphRecord]:
    return list(ShardReader(builds.folder("dihalo-decoy", 500) / "shard-00000.h5"))


def _rings(molecule: Chem.Mol) -> list[tuple[list[int], list[str], int, int]]:
    """Return atoms, halogens, their distance and other neighbours of rings with halogens."""
    rings = []
    for ring in molecule.GetRingInfo().AtomRings():
        neighbours = [n for a in ring for n in molecule.GetAtomWithIdx(a).GetNeighbors()]
        halogens = [n for n in neighbours if n.GetSymbol() in HALOGENS]
        outside = {n.GetIdx() for n in neighbours} - {*ring, *(h.GetIdx() for h in halogens)}
        if halogens:
            ends = [h.GetIdx() for h in halogens]
            distance = int(Chem.GetDistanceMatrix(molecule)[ends[0], ends[-1]]) - 2
            symbols = sorted(h.GetSymbol() for h in halogens)
            rings.append(([*ring, *ends], symbols, distance, len(outside)))
    return rings


def test_three_benzene_rings_have_two_halogens_each_and_one_pair_is_alike(
    records: list[GraphRecord],
) -> None:
    for record in records:
        molecule = Chem.MolFromSmiles(record.meta["smiles"])
        rings = _rings(molecule)
        assert [len(symbols) for _, symbols, _, _ in rings] == [2, 2, 2]
        counts = Counter(symbol for _, symbols, _, _ in rings for symbol in symbols)
        assert counts == {"F": 2, "Cl": 2, "Br": 2}
        assert counts.total() == sum(a.GetSymbol() in HALOGENS for a in molecule.GetAtoms())
        like = [atoms for atoms, (one, other), _, _ in rings if one == other]
        truth = record.meta["smiles_atom"][record.node_mask]
        assert [sorted(atoms) for atoms in like] == [sorted(truth.tolist())]
        for atoms, _, _, _ in rings:
            assert all(molecule.GetAtomWithIdx(a).GetIsAromatic() for a in atoms[:6])


def test_the_like_pair_is_on_each_ring_equally_often_and_positions_are_alike(
    records: list[GraphRecord],
) -> None:
    grafted_is_like, positions = 0, {True: Counter[int](), False: Counter[int]()}
    for record in records:
        for _, (one, other), distance, outside in _rings(Chem.MolFromSmiles(record.meta["smiles"])):
            grafted_is_like += outside == 1 and one == other
            positions[one == other][distance] += 1
    count = len(records)
    assert abs(grafted_is_like / count - 1 / 3) < 4 * np.sqrt(2 / 9 / count)
    for counts in positions.values():
        assert set(counts) == {1, 2, 3}
        expected = counts.total() / 3
        chi_square = sum((n - expected) ** 2 / expected for n in counts.values())
        assert chi_square < 13.8  # 99.9 % quantile with 2 degrees of freedom


def test_no_graft_makes_a_stereo_centre(records: list[GraphRecord]) -> None:
    for record in records[:200]:
        molecule = Chem.MolFromSmiles(record.meta["smiles"])
        (grafted,) = (atoms for atoms, _, _, outside in _rings(molecule) if outside == 1)
        halogens = [a.GetIdx() for a in molecule.GetAtoms() if a.GetSymbol() in HALOGENS]
        editable = Chem.RWMol(molecule)
        for atom in sorted({*grafted, *halogens}, reverse=True):
            editable.RemoveAtom(atom)
        background = Chem.MolFromSmiles(Chem.MolToSmiles(editable))
        centres = [
            len(Chem.FindMolChiralCenters(m, includeUnassigned=True, useLegacyImplementation=True))
            for m in (molecule, background)
        ]
        assert centres[0] == centres[1]


def _background(smiles: str) -> tuple[Chem.Mol, Background]:
    molecule = Chem.MolFromSmiles(smiles)
    hydrogens = tuple(a.GetTotalNumHs() * (a.GetSymbol() == "C") for a in molecule.GetAtoms())
    return molecule, Background(smiles, hydrogens)


@pytest.mark.parametrize(
    ("smiles", "gains"),
    [
        ("NC(c1ccccc1)c1ccccc1", True),
        ("OC1Cc2ccccc2C1", True),
        ("CC(=Cc1ccccc1)c1ccccc1", False),
        ("C=C(c1ccccc1)c1ccccc1", False),
        ("ON=C(c1ccccc1)c1ccccc1", True),
        ("CC(O)c1ccccc1", False),
        ("Cc1ccccc1", False),
    ],
)
def test_branches_that_a_graft_would_tell_apart_are_noticed(smiles: str, gains: bool) -> None:
    assert may_gain_stereo(*_background(smiles)) is gains


@pytest.mark.parametrize(
    ("smiles", "choices"),
    [
        ("c1ccccc1CCc1ccccc1", 0),  # one of two phenyls would stay: it looks like a graft
        ("c1ccccc1CCc1ccc(O)cc1", 1),
        ("Oc1ccc(CCc2ccc(O)cc2)cc1", 1),
        ("Oc1ccc(CCc2cc(O)cc(O)c2)cc1", 0),  # only meta is left on the second
        ("Oc1ccc(CCc2c[nH]c3ccccc23)cc1", 1),
        ("Oc1ccc(CCc2ccc3ccccc3c2)cc1", 0),  # naphthalene
        ("O=c1c2ccccc2[nH]c2ccccc12", 0),  # acridone
        ("Oc1ccc(CCC2CCCCC2)cc1", 0),
    ],
)
def test_sites_leave_all_positions_on_two_rings(smiles: str, choices: int) -> None:
    assert len(decoy_sites(*_background(smiles))) == choices


def test_a_phenyl_that_is_used_carries_the_graft() -> None:
    molecule, background = _background("c1ccccc1CCc1ccc(O)cc1")
    (sites,) = decoy_sites(molecule, background)
    assert set(sites.attachments) == {0, 1, 2, 3, 4}
    assert set(sites.attachments) < set(aromatic_places(molecule, background))


@pytest.mark.parametrize(
    ("smiles", "problem"),
    [
        # As it should be: like pair on the second ring, unlike ones on the grafted and the last.
        ("Oc1c(-c2cc(F)c(Br)cc2)cc(CCc2cc(Cl)c(Cl)c(O)c2)c(F)c1Br", None),
        ("Oc1c(-c2cc(F)c(F)cc2)cc(CCc2cc(Cl)c(Cl)c(O)c2)c(F)c1Br", "2 di-halo rings"),
        ("OC(F)c1c(Br)c(-c2cc(F)c(Br)cc2)cc(CCc2cc(Cl)c(Cl)c(O)c2)c1", "not two each on three"),
        ("Oc1c(F)cc(CCc2cc(Cl)c(Cl)c(CCc3cc(F)c(Br)cc3)c2)cc1Br", "attached at an aromatic atom"),
        ("Oc1c(F)c(-c2cc(F)c(Br)cc2)cc(CCc2cc(Cl)c(Cl)c(O)c2)c1Br", "no room for halogens"),
        ("NC(c1cc(F)c(O)c(Br)c1-c1cc(Cl)c(Cl)cc1)c1cc(F)c(O)c(Br)c1", "stereo elements"),
    ],
)
def test_the_proof_notices_decoys_that_are_not_as_claimed(
    smiles: str, problem: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The arrays would be wrong as well: only the claims about the molecule are looked at.
    monkeypatch.setattr(DiHaloProver, "graph_problems", lambda *_: [])
    record = GraphRecord(
        x=np.zeros((1, 8), np.float32),
        edge_index=np.zeros((2, 0), np.int64),
        y=0,
        node_mask=None,
        edge_mask=None,
        meta={"smiles": smiles, "graph_id": 0, "split": 0},
    )
    prover = DiHaloProver(Recipe.load("dihalo-decoy").params)
    problems = prover.problems(record)
    assert any(problem in text for text in problems) if problem else problems == []


def test_the_proof_notices_a_decoy_ring_as_the_rationale(records: list[GraphRecord]) -> None:
    record = records[0]
    molecule = Chem.MolFromSmiles(record.meta["smiles"])
    unlike = next(atoms for atoms, (one, other), _, _ in _rings(molecule) if one != other)
    mask = np.isin(record.meta["smiles_atom"], unlike)
    source, target = record.edge_index
    changed = replace(record, node_mask=mask, edge_mask=mask[source] & mask[target])
    prover = DiHaloProver(Recipe.load("dihalo-decoy").params)
    assert "node_mask is not the di-halo ring" in prover.problems(changed)
