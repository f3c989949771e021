"""Builds of crippen: labels, weights, features, splits, the prover, checks and rules."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem import Crippen
from rdkit.Chem.Scaffolds import MurckoScaffold

from graphxai_data.building.plan import make_plan, read_sources
from graphxai_data.building.survey import problems_of_graphs
from graphxai_data.errors import InputError
from graphxai_data.files.raw import Source
from graphxai_data.generators.crippen import CrippenGenerator
from graphxai_data.generators.crippen_rules import crippen_rules
from graphxai_data.graphs.columns import Columns, unpack
from graphxai_data.graphs.record import GraphRecord
from graphxai_data.graphs.union import Graphs
from graphxai_data.recipe import Recipe
from graphxai_data.sources import find_sources

NAMES = ["crippen", "crippen-binary"]
GRAPHS = 300
THRESHOLD = Decimal("2.55275")


@lru_cache(maxsize=2)
def made(name: str) -> tuple[Recipe, Columns, list[GraphRecord]]:
    """Return a recipe and its first graphs, as arrays and as records, which stay as they are."""
    recipe = Recipe.load(name)
    sources = find_sources(recipe)
    plan = make_plan(recipe, 0, GRAPHS, sources)
    plan, _ = read_sources(plan, recipe, sources, 0)
    columns = recipe.generator_object.generate(plan, 0)
    return recipe, columns, [unpack(columns, recipe.schema, i) for i in range(GRAPHS)]


def exact(number: float) -> Decimal:
    """Return a stored number as the decimal of five places that it stands for."""
    return Decimal(round(float(number) * 10**5)).scaleb(-5)


@pytest.mark.parametrize("name", NAMES)
def test_graphs_pass_all_checks_and_are_proven(name: str) -> None:
    recipe, columns, records = made(name)
    assert problems_of_graphs(recipe, columns) == []
    prover = recipe.generator_object.prover({})
    assert [prover.problems(record) for record in records] == [[]] * GRAPHS


@pytest.mark.parametrize("name", NAMES)
def test_the_label_is_the_logp_of_rdkit(name: str) -> None:
    for record in made(name)[2]:
        logp = Crippen.MolLogP(Chem.MolFromSmiles(record.meta["smiles"]))
        if name == "crippen":
            assert record.y == pytest.approx(logp, abs=1e-5)
            assert record.y == np.float32(record.y)
        else:
            assert record.y == (logp > float(THRESHOLD))


@pytest.mark.parametrize("name", NAMES)
def test_weights_rounded_to_five_decimals_sum_to_the_label_exactly(name: str) -> None:
    for record in made(name)[2]:
        total = sum(map(exact, record.node_weight.tolist()), Decimal(0))
        if name == "crippen":
            assert total == exact(record.y)
        else:
            assert (total > THRESHOLD) == record.y


def test_weights_are_signed_and_masks_are_the_positive_ones() -> None:
    _, columns, _ = made("crippen")
    weight = columns["node_weight"]
    assert weight.dtype == np.float32
    assert 0.6 < (weight > 0).mean() < 0.8  # 71 % in the whole pool
    assert (weight < 0).mean() > 0.2
    np.testing.assert_array_equal(columns["node_mask"], weight > 0)


def test_nodes_show_elements_and_hydrogens() -> None:
    recipe, _, records = made("crippen")
    assert recipe.schema.node_features.widths == (7, 5)
    for record in records[:50]:
        molecule = Chem.MolFromSmiles(record.meta["smiles"])
        atoms = [molecule.GetAtomWithIdx(int(i)) for i in record.meta["smiles_atom"]]
        elements = [recipe.params.atoms[i] for i in record.x[:, :7].argmax(axis=1)]
        assert elements == [atom.GetSymbol() for atom in atoms]
        assert record.x[:, 7:].argmax(axis=1).tolist() == [a.GetTotalNumHs() for a in atoms]
        assert record.x.sum() == 2 * len(atoms)


@pytest.mark.parametrize("name", NAMES)
def test_no_scaffold_is_in_two_splits(name: str) -> None:
    splits: dict[str, set[int]] = {}
    for record in made(name)[2]:
        scaffold = MurckoScaffold.MurckoScaffoldSmiles(record.meta["smiles"])
        splits.setdefault(scaffold, set()).add(record.meta["split"])
    assert len(splits) > GRAPHS / 2
    assert all(len(split) == 1 for split in splits.values())


def test_classes_are_equally_frequent_among_molecules_of_one_size() -> None:
    records = made("crippen-binary")[2]
    sizes = [Counter(r.num_nodes for r in records if r.y == label) for label in (0, 1)]
    assert sizes[0] == sizes[1]


def _with(**changes: Any) -> Callable[[GraphRecord], GraphRecord]:
    return lambda record: replace(
        record, **{name: change(getattr(record, name)) for name, change in changes.items()}
    )


def _moved(features: np.ndarray) -> np.ndarray:
    """Return features with the first row's one-hot values moved by one."""
    changed = features.copy()
    changed[0] = np.roll(changed[0], 1)
    return changed


def _raised(weight: np.ndarray) -> np.ndarray:
    changed = weight.copy()
    changed[0] += np.float32(1e-4)
    return changed


def _flipped(mask: np.ndarray) -> np.ndarray:
    changed = mask.copy()
    changed[0] = not changed[0]
    return changed


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (_with(y=lambda y: y + 1e-4), "but its contributions sum to"),
        (_with(node_weight=_raised), "node_weight is not RDKit's contribution"),
        (_with(node_mask=_flipped), "node_mask is not the atoms with a positive contribution"),
        (_with(edge_mask=_flipped), "edge_mask is not the bonds between such atoms"),
        (_with(x=_moved), "a node feature is not its"),
        (_with(edge_attr=_moved), "its edges are not the bonds of its SMILES"),
        (_with(meta=lambda m: m | {"hydrogens": m["hydrogens"] + 1}), "its hydrogens are not"),
        (_with(meta=lambda m: m | {"charge": m["charge"] + 1}), "its charges are not"),
        (_with(meta=lambda meta: meta | {"smiles": "CC"}), "its nodes are not the atoms"),
        (_with(meta=lambda meta: meta | {"smiles": "C1"}), "its SMILES does not parse"),
    ],
)
def test_the_prover_finds_damage(
    damage: Callable[[GraphRecord], GraphRecord], problem: str
) -> None:
    recipe, _, records = made("crippen")
    prover = recipe.generator_object.prover({})
    problems = prover.problems(damage(records[0]))
    assert any(problem in text for text in problems), problems


def test_the_prover_finds_a_wrong_class_and_a_repeated_molecule() -> None:
    recipe, _, records = made("crippen-binary")
    prover = recipe.generator_object.prover({})
    wrong = prover.problems(replace(records[0], y=1 - records[0].y))
    assert "contributions sum to" in wrong[0]
    again = replace(records[0], meta=records[0].meta | {"graph_id": 7})
    assert prover.problems(again) == ["the same molecule as graph 0"]


def test_the_prover_finds_scaffolds_in_two_groups_and_groups_of_two_scaffolds() -> None:
    recipe, _, records = made("crippen")
    prover = recipe.generator_object.prover({})
    first, other = records[0], next(r for r in records if r.group != records[0].group)
    assert prover.problems(first) == []
    wrong = ["its group is not its Murcko scaffold"]
    assert prover.problems(replace(first, group=other.group)) == wrong
    assert prover.problems(replace(other, group=first.group)) == wrong


@pytest.mark.parametrize(
    ("name", "column", "problem"),
    [
        ("crippen", "y", "graph 0: its label is not the sum of its weights"),
        ("crippen", "node_weight", "graph 0: its label is not the sum of its weights"),
        ("crippen", "hydrogens", "graph 0: x does not have the number of hydrogens"),
        ("crippen", "charge", "graph 0: has a charge"),
        ("crippen-binary", "y", "graph 0: its class is not that of its weights' sum"),
    ],
)
def test_checks_of_all_graphs_at_once_find_damage(name: str, column: str, problem: str) -> None:
    recipe, columns, _ = made(name)
    changed = columns[column].copy()
    changed[0] = 1 - changed[0] if column == "y" else changed[0] + 1
    assert problem in recipe.generator_object.check({**columns, column: changed})


@pytest.mark.parametrize(
    ("smiles", "reason"),
    [
        ("C[N+](=O)[O-]", "has a charge"),
        ("C[CH2]", "has an unpaired electron"),
        ("C[SH5]", "more than 4 hydrogens"),
    ],
)
def test_molecules_that_graphs_cannot_show_are_left_out(smiles: str, reason: str) -> None:
    generator = CrippenGenerator(Recipe.load("crippen").params)
    judged = generator.judge(Chem.MolFromSmiles(smiles))
    assert isinstance(judged, str)
    assert reason in judged


def test_a_pool_of_your_own_works_and_says_what_it_left_out(tmp_path: Path) -> None:
    pool = tmp_path / "my.smi"
    pool.write_text("CCO\nc1ccccc1\nCC(=O)O\nCC(=O)[O-]\nOCC\nC[SiH3]\n")
    recipe = Recipe.load("crippen")
    params = replace(recipe.params, graphs=3, min_heavy_atoms=1)
    recipe = replace(recipe, params=params)
    sources = {"molecules": Source("mine", pool, "")}
    with pytest.raises(InputError) as error:
        make_plan(recipe, 0, 4, sources)
    assert "4 graphs needed, the pool has 3 usable molecules (rejected: " in str(error.value)
    assert "has a charge, which features do not show (1)" in str(error.value)
    plan, rejected = read_sources(make_plan(recipe, 0, 3, sources), recipe, sources, 0)
    columns = recipe.generator_object.generate(plan, 0)
    assert sorted(map(exact, columns["y"])) == [
        Decimal("-0.0014"), Decimal("0.0909"), Decimal("1.6866")
    ]  # fmt: skip
    assert sum(rejected["molecules"].values()) <= 3


@pytest.mark.parametrize("text", ["median", "2.552751", "1e0", "", "nan"])
def test_a_threshold_that_is_no_decimal_is_refused(
    text: str, recipe_file: Callable[..., Path]
) -> None:
    path = recipe_file(('2.55275"\n\n[sources]', f'{text}"\n\n[sources]'), name="crippen-binary")
    with pytest.raises(
        InputError, match=r"my.toml: params.threshold: .*at most five decimals"
    ) as error:
        Recipe.load(path)
    assert "\n" not in str(error.value)


def test_a_threshold_without_quotes_is_refused(recipe_file: Callable[..., Path]) -> None:
    path = recipe_file(('"2.55275"\n\n[sources]', "2.55275\n\n[sources]"), name="crippen-binary")
    with pytest.raises(InputError, match=r"params.threshold: .* got 2.55275; write it in quotes"):
        Recipe.load(path)


def test_a_threshold_above_all_molecules_is_named(tmp_path: Path) -> None:
    pool = tmp_path / "my.smi"
    pool.write_text("CCCCCCCCCCCCCCCCCCCCO\nCCCCCCCCCCCCCCCCCCCCN\n")
    sources = {"molecules": Source("mine", pool, "")}
    recipe = Recipe.load("crippen-binary")
    recipe = replace(recipe, params=replace(recipe.params, threshold="99"))
    with pytest.raises(InputError) as error:
        make_plan(recipe, 0, 2, sources)
    assert "no usable molecule is 'logP above 99'" in str(error.value)
    assert "correct params.threshold, or give another pool" in str(error.value)


def test_elements_that_cannot_be_proven_are_refused(recipe_file: Callable[..., Path]) -> None:
    path = recipe_file(('"Br"]', '"Br", "Si"]'), name="crippen")
    with pytest.raises(InputError, match="params.atoms: expected different elements of C, N, O"):
        Recipe.load(path)


def test_rules_rank_atoms_by_element_hydrogens_and_neighbours() -> None:
    """Ethanol and chloromethylamine, C-C-O and Cl-C-N, with scores that were written by hand."""
    atoms = ("C", "N", "O", "Cl")
    x = np.array([[0, 3], [0, 2], [2, 1], [3, 0], [0, 2], [1, 2]], np.uint8)
    edges = np.array([[0, 1, 1, 2, 3, 4, 4, 5], [1, 0, 2, 1, 4, 3, 5, 4]])
    graphs = Graphs(x, edges, None, np.array([0, 3, 6]))
    scores = {rule.name: rule.score(graphs).tolist() for rule in crippen_rules(atoms)}
    assert scores == {
        "lipophilic-elements": [1, 1, 0, 1, 1, 0],
        "lipophilic-surroundings": [1, 0.75, 0, 1, 0.75, 0],
        "hydrogens-on-carbon": [3, 2, -1, -1, 2, -1],
    }


def test_no_rule_is_the_definition_and_elements_alone_do_well() -> None:
    recipe, columns, _ = made("crippen")
    rules = recipe.generator_object.rules()
    assert not any(rule.is_definition for rule in rules)
    edges = columns["edge_index"] + np.repeat(
        columns["node_ptr"][:-1], np.diff(columns["edge_ptr"])
    )
    graphs = Graphs(columns["x"], edges, columns["edge_attr"], columns["node_ptr"])
    raised = columns["node_weight"] > 0
    by_element = rules[0].score(graphs) > 0
    assert 0.8 < (by_element == raised).mean() < 0.95  # a floor, not the truth
