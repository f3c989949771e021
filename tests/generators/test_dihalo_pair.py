"""Two di-halo rings per molecule: same graphs for both causes, and what an intervention changes."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from rdkit import Chem

from graphxai_data.building.plan import make_plan, read_sources
from graphxai_data.errors import InputError
from graphxai_data.generators.dihalo_pair_proof import DiHaloPairProver
from graphxai_data.graphs.columns import Columns, graph_of_rows, unpack
from graphxai_data.graphs.invariants import check_columns
from graphxai_data.graphs.record import GraphRecord, Plan
from graphxai_data.recipe import Recipe
from graphxai_data.sources import find_sources

RECIPES = ["dihalo-pair-a", "dihalo-pair-b", "dihalo-pair-both"]
GRAPHS = 162


def _planned(name: str, seed: int = 0) -> tuple[Recipe, Plan]:
    recipe = Recipe.load(name)
    sources = find_sources(recipe)
    return recipe, read_sources(make_plan(recipe, seed, GRAPHS, sources), recipe, sources, seed)[0]


def _columns(name: str, seed: int = 0) -> Columns:
    recipe, plan = _planned(name, seed)
    return recipe.generator_object.generate(plan, seed)


def _records(name: str, seed: int = 0) -> list[GraphRecord]:
    columns = _columns(name, seed)
    return [unpack(columns, Recipe.load(name).schema, i) for i in range(GRAPHS)]


@pytest.mark.parametrize("name", RECIPES)
def test_invariants_and_proof_hold_for_a_seed_that_is_not_the_reference(name: str) -> None:
    recipe = Recipe.load(name)
    columns = _columns(name, 5)
    assert check_columns(columns, recipe.schema) == []
    assert recipe.generator_object.check(columns) == []
    prover = DiHaloPairProver(recipe.params)
    for i in range(GRAPHS):
        assert prover.problems(unpack(columns, recipe.schema, i)) == []


def test_both_halves_are_the_same_graphs_bit_for_bit() -> None:
    one, other = _columns("dihalo-pair-a"), _columns("dihalo-pair-b")
    truth = {"y", "node_mask", "edge_mask"}
    assert one.keys() == other.keys()
    for name in one.keys() - truth:
        assert one[name].tobytes() == other[name].tobytes(), name
    for name in truth:
        assert (one[name] != other[name]).any()
    assert not (one["node_mask"] & other["node_mask"]).any()
    np.testing.assert_array_equal(one["node_mask"] | other["node_mask"], one["cause"] > 0)


def test_classes_are_independent_and_in_both_the_same() -> None:
    classes = _columns("dihalo-pair-a")["cause_y"]
    counts = np.zeros((9, 9), int)
    np.add.at(counts, tuple(classes.T), 1)
    assert (counts == 2).all()
    both = _columns("dihalo-pair-both")
    np.testing.assert_array_equal(both["cause_y"][:, 0], both["cause_y"][:, 1])
    np.testing.assert_array_equal(both["cause_y"][:, 0], both["y"])
    a = _columns("dihalo-pair-a")
    np.testing.assert_array_equal(both["group"], a["group"])
    np.testing.assert_array_equal(both["split"], a["split"])


def test_the_rings_are_told_apart_by_the_oxygen() -> None:
    for record in _records("dihalo-pair-a"):
        molecule = Chem.MolFromSmiles(record.meta["smiles"])
        for number, symbol in ((1, "C"), (2, "O")):
            atoms = set(record.meta["smiles_atom"][record.meta["cause"] == number].tolist())
            assert len(atoms) == 8
            neighbours = {n for a in atoms for n in molecule.GetAtomWithIdx(a).GetNeighbors()}
            outside = [n for n in neighbours if n.GetIdx() not in atoms]
            assert [n.GetSymbol() for n in outside] == [symbol]


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("changed", ["a", "b"])
def test_an_intervention_changes_one_ring_and_nothing_else(name: str, changed: Any) -> None:
    recipe, plan = _planned(name)
    generator = recipe.generator_object
    before, after = generator.generate(plan, 0), generator.intervene(plan, 0, changed)
    row = "ab".index(changed)
    assert (before["cause_y"][:, row] != after["cause_y"][:, row]).all()
    np.testing.assert_array_equal(before["cause_y"][:, 1 - row], after["cause_y"][:, 1 - row])
    for array in ("node_ptr", "edge_ptr", "group", "split", "graph_id", "smiles_atom"):
        np.testing.assert_array_equal(before[array], after[array])
    np.testing.assert_array_equal(before["cause"] == 1 + row, after["cause"] == 1 + row)
    # Outside the ring and its hydrogens, elements and bonds are those that were there.
    edges = before["edge_index"] + before["node_ptr"][graph_of_rows(before["edge_ptr"])]
    edges_after = after["edge_index"] + after["node_ptr"][graph_of_rows(after["edge_ptr"])]
    in_ring = before["cause"] == 1 + row
    hydrogen = before["x"] == recipe.params.atoms.index("H")
    touched = in_ring.copy()
    for ends in (edges, edges_after):
        touched[ends[1][in_ring[ends[0]] & hydrogen[ends[1]]]] = True
    kept = ~touched
    np.testing.assert_array_equal(before["x"][kept], after["x"][kept])
    bonds = [
        set(zip(*e[:, kept[e].all(axis=0)], c["edge_attr"][kept[e].all(axis=0)], strict=True))
        for e, c in ((edges, before), (edges_after, after))
    ]
    assert bonds[0] == bonds[1]
    assert (before["x"][in_ring] != after["x"][in_ring]).any()


def test_an_intervention_is_a_proven_molecule_of_the_pair() -> None:
    recipe, plan = _planned("dihalo-pair-a")
    columns = recipe.generator_object.intervene(plan, 0, "b")
    assert recipe.generator_object.check(columns) == []
    prover = DiHaloPairProver(recipe.params)
    for i in range(0, GRAPHS, 4):
        assert prover.problems(unpack(columns, recipe.schema, i)) == []
    before = recipe.generator_object.generate(plan, 0)
    np.testing.assert_array_equal(before["y"], columns["y"])  # the class is that of A


def test_the_proof_notices_what_is_wrong() -> None:
    recipe = Recipe.load("dihalo-pair-a")
    record, other = _records("dihalo-pair-a")[40:42]
    cause = record.meta["cause"]

    def swapped(**meta: Any) -> GraphRecord:
        return replace(record, meta={**record.meta, **meta})

    source, target = record.edge_index
    mask_b = cause == 2
    changes = {
        "label": replace(record, y=(record.y + 1) % 9),
        "mask": replace(record, node_mask=mask_b, edge_mask=mask_b[source] & mask_b[target]),
        "causes": swapped(cause=np.where(cause > 0, 3 - cause, 0).astype(np.uint8)),
        "classes": swapped(cause_y=(record.meta["cause_y"] + 1) % 9),
        "another molecule": swapped(smiles=other.meta["smiles"]),
        "no oxygen": swapped(smiles="Cc1cc(-c2cc(Cl)c(Cl)cc2)cc(-c2cc(F)c(F)cc2)c1"),
        "a third ring": swapped(smiles="c1(Oc2cc(F)c(F)cc2)cc(-c2cc(F)c(F)cc2)cc(-c2cc(Cl)ccc2)c1"),
        "no molecule": swapped(smiles="C1CC"),
    }
    assert DiHaloPairProver(recipe.params).problems(record) == []
    for what, changed in changes.items():
        assert DiHaloPairProver(recipe.params).problems(changed), what


@pytest.mark.parametrize(
    ("array", "sentence"),
    [
        ("y", "the label is not its cause's class"),
        ("cause_y", "the rationale does not have two of the class's halogen"),
        ("node_mask", "the rationale is not the cause"),
        ("cause", "is not attached at"),
    ],
)
def test_check_notices_what_is_wrong(array: str, sentence: str) -> None:
    columns = _columns("dihalo-pair-a")
    changed = columns[array].copy()
    if array == "cause":
        changed[changed > 0] = 3 - changed[changed > 0]
    elif array == "node_mask":
        changed[:10] = ~changed[:10]
    else:
        changed[4] = (changed[4] + 3) % 9
    problems = Recipe.load("dihalo-pair-a").generator_object.check(columns | {array: changed})
    assert any(sentence in problem for problem in problems), problems


def test_a_recipe_without_oxygen_is_refused(recipe_file: Any) -> None:
    with pytest.raises(InputError, match="atoms must hold O, which ring B is bonded through"):
        Recipe.load(recipe_file(('"N", "O", "F"', '"N", "F"'), name="dihalo-pair-a"))
