"""A background has one split in all recipes of Di-Halo-Benzene that can share them."""

from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem

from graphxai_data.building.build import build
from graphxai_data.building.plan import make_plan, read_sources
from graphxai_data.errors import InputError
from graphxai_data.graphs.record import Plan
from graphxai_data.recipe import Recipe
from graphxai_data.sources import find_sources

FAMILY = [
    "dihalo", "dihalo-heavy", "dihalo-decoy", "dihalo-pair-a", "dihalo-pair-b", "dihalo-pair-both",
]  # fmt: skip
GRAPHS = 540


def _plan(name: str, seed: int, graphs: int = GRAPHS) -> Plan:
    recipe = Recipe.load(name)
    sources = find_sources(recipe)
    return read_sources(make_plan(recipe, seed, graphs, sources), recipe, sources, seed)[0]


@pytest.mark.parametrize("seed", [0, 11])
def test_no_test_background_is_a_training_background_of_another_recipe(seed: int) -> None:
    split_of: dict[str, int] = {}
    group_of: dict[str, int] = {}
    for name in FAMILY:
        plan = _plan(name, seed)
        backgrounds = [Chem.MolFromSmiles(background.smiles) for background in plan.raw]
        flat = [Chem.MolToSmiles(molecule, isomericSmiles=False) for molecule in backgrounds]
        assert len(set(flat)) == GRAPHS
        for smiles, split, group in zip(
            flat, plan.split.tolist(), plan.group.tolist(), strict=True
        ):
            assert split_of.setdefault(smiles, split) == split
            assert group_of.setdefault(smiles, group) == group
    assert len(split_of) > GRAPHS  # not all of them use the same backgrounds


@pytest.mark.parametrize("name", FAMILY[1:])
def test_splits_have_their_shares(name: str) -> None:
    plan = _plan(name, 0)
    shares = np.bincount(plan.split, minlength=3) / GRAPHS
    # Each of the 81 combinations of a pair is divided on its own: few graphs each to round.
    np.testing.assert_allclose(shares, [0.8, 0.1, 0.1], atol=0.06 if "pair" in name else 1e-9)
    if name in ("dihalo-heavy", "dihalo-decoy"):
        np.testing.assert_array_equal(plan.split, _plan("dihalo", 0).split)


def test_heavy_has_the_groups_of_dihalo() -> None:
    one, other = _plan("dihalo", 3), _plan("dihalo-heavy", 3)
    assert one.raw == other.raw
    np.testing.assert_array_equal(one.group, other.group)
    np.testing.assert_array_equal(one.split, other.split)


def test_the_plan_is_the_same_after_a_larger_one() -> None:
    # The pool is kept in memory, and parsed further by the larger plan.
    recipe = Recipe.load("dihalo-decoy")
    sources = find_sources(recipe)
    results = []
    for graphs in (36, 90, 36):
        plan = make_plan(recipe, 21, graphs, sources)
        results.append((plan.group.tolist(), read_sources(plan, recipe, sources, 21)[1]))
    assert results[0] == results[2]


def test_a_pool_with_too_few_molecules_says_how_many_and_why(tmp_path: Path) -> None:
    fitting = [f"Oc1ccc(C{'C' * i}c2ccc(OCCCCC)cc2)cc1" for i in range(6)]
    pool = tmp_path / "mine.smi"
    pool.write_text("\n".join([*fitting, "c1ccccc1" + "C" * 20, "CCO"]))
    message = (
        r"6 usable backgrounds, 9 needed: 3 more "
        r"\(rejected: 1 has .*, 1 has .*\)"
    )
    with pytest.raises(InputError, match=message) as caught:
        build("dihalo-decoy", root=tmp_path, graphs=9, sources={"zinc": pool})
    assert "1 has no two benzene rings with room for halogens" in str(caught.value)


def test_molecules_of_another_split_are_named_as_that(tmp_path: Path) -> None:
    chains = [("C" * i, "C" * j) for i in range(1, 11) for j in range(5, 14)]
    others = [f"{i}NC(=O)c1ccc(OC)c(C(=O)N{j})c1" for i, j in chains]
    fitting = [f"Oc1ccc(C{i}c2ccc(O{j})cc2)cc1" for i, j in chains]
    pool = tmp_path / "mine.smi"
    pool.write_text("\n".join([*others, *fitting]))
    with pytest.raises(InputError, match="90 needed: .* is in another split of the family"):
        build("dihalo-decoy", root=tmp_path, graphs=90, sources={"zinc": pool})
