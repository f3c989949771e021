"""check_generator passes the shipped generators and finds what is wrong with others."""

import random
from pathlib import Path
from typing import Any

import pytest

from graphxai_data import Generator, Recipe, register
from graphxai_data.errors import CheckFailedError, InputError
from graphxai_data.generators import PLUGINS, generator_class
from graphxai_data.testing import check_generator
from tests.generators.test_molhiv import published_files
from tests.generators.test_molhiv import written as written_molhiv
from tests.generators.test_nci1 import tu_files
from tests.generators.test_nci1 import written as written_nci1
from tests.generators.test_pattern_published import published
from tests.generators.test_pattern_published import written as written_pattern
from tests.generators.toy import RECIPE, Toy
from tests.generators.toy_forms import PAIRS, SUMS, RedPairs, Sums
from tests.testing import wrong


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("ba2motif", {}),
        ("ba2motif_balanced", {"recipe": "ba2motif-balanced"}),
        ("ba2motif_pair", {"recipe": "ba2motif-pair-a"}),
        ("ba2motif_pair", {"recipe": "ba2motif-pair-both"}),
        ("dihalo", {}),
        ("dihalo_pair", {}),
        ("pattern", {"graphs": 210}),  # each of the hundred patterns at least twice
        ("mnist75sp", {"recipe": "mnist75sp-r23", "graphs": 30}),
        ("mnist75sp_pair", {"recipe": "mnist75sp-pair-a", "graphs": 30}),
        ("mnist75sp_pair", {"recipe": "mnist75sp-pair-both", "graphs": 30}),
        ("spmotif", {"recipe": "spmotif-90"}),
        ("smarts", {"recipe": "fluoride-carbonyl"}),
        ("smarts", {"recipe": "binding-10"}),  # negatives have rationales, and positives null ones
        ("crippen", {"recipe": "crippen"}),
        ("crippen", {"recipe": "crippen-binary"}),
    ],
)
def test_the_shipped_generators_conform(name: str, options: dict[str, Any]) -> None:
    result = check_generator(generator_class(name), **options)
    assert "same in another process" in result.checks
    assert result.untested == ()
    assert result.graphs_per_second > 10


def test_the_toy_conforms_without_being_registered() -> None:
    result = check_generator(Toy, RECIPE)
    assert len(result.checks) == 12
    assert PLUGINS.names() == []


@pytest.mark.parametrize("name", ["nci1", "molhiv", "pattern_published"])
def test_the_published_datasets_conform(name: str, tmp_path: Path) -> None:
    sources = {
        "nci1": lambda: {"nci1": written_nci1(tmp_path, tu_files())},
        "molhiv": lambda: {"molhiv": written_molhiv(tmp_path, published_files())},
        "pattern_published": lambda: {"pattern": written_pattern(tmp_path, published())},
    }[name]()
    graphs = 14 if name == "pattern_published" else 60
    assert check_generator(generator_class(name), graphs=graphs, sources=sources).checks


@pytest.mark.parametrize(
    ("cls", "sentence"),
    [
        (wrong.DrawsGlobally, "a global random state was changed"),
        (wrong.KnowsItsNeighbours, "is another when it is made with other graphs, or alone"),
        (wrong.ForgetsTheSeed, "'split' is not what the plan says"),
        (wrong.ForgetsTheSeed, "another seed gives the same graphs"),
        (wrong.NotShuffled, "node numbers give the rationale away"),
        (wrong.HashOrder, "another process makes other graphs"),
        (wrong.BlindlyProven, "the prover finds a wrong class in 0 of 30 graphs only"),
        (wrong.ProvenWithoutMasks, "the prover finds a wrong mask in 0 of 30 graphs only"),
        (wrong.Refused, "the prover refuses graph 0: I do not like it"),
    ],
)
def test_what_is_wrong_is_found(cls: type[Generator], sentence: str) -> None:
    state = random.getstate()
    try:
        with pytest.raises(CheckFailedError) as caught:
            check_generator(cls, RECIPE)
    finally:
        random.setstate(state)
    assert sentence in str(caught.value)
    assert "(registered by a script): toy: " in str(caught.value)


@pytest.mark.parametrize(("cls", "recipe"), [(RedPairs, PAIRS), (Sums, SUMS)])
def test_null_rationales_alternatives_weights_and_numbers_conform(
    cls: type[Generator], recipe: dict[str, Any]
) -> None:
    assert "damage" in check_generator(cls, recipe).checks


@pytest.mark.parametrize(
    ("cls", "recipe", "damage"),
    [
        (wrong.ProvenWithoutTheOthers, PAIRS, "a missing alternative"),
        (wrong.ProvenWithoutNull, PAIRS, "a rationale of a null graph"),
        (wrong.ProvenWithoutWeights, SUMS, "a wrong weight"),
        (wrong.ProvenWithoutSums, SUMS, "a wrong number"),
    ],
)
def test_a_prover_that_misses_a_form_of_the_rationale_is_found(
    cls: type[Generator], recipe: dict[str, Any], damage: str
) -> None:
    with pytest.raises(CheckFailedError, match=f"the prover finds {damage} in 0 of") as caught:
        check_generator(cls, recipe)
    assert str(caught.value).count("the prover") == 1


def test_damage_that_no_graph_can_have_is_named() -> None:
    with pytest.warns(UserWarning, match="pairs-of-red: not tested .* a missing alternative:"):
        result = check_generator(wrong.SinglePairs, PAIRS)
    assert result.untested == ("a missing alternative",)
    assert "damage" in result.checks


def test_a_slow_generator_is_refused_if_asked() -> None:
    with pytest.raises(CheckFailedError, match="s per graph, expected at least 1e"):
        check_generator(Toy, RECIPE, slowest=1e9)


def test_a_class_without_recipe_needs_one_or_defaults() -> None:
    with pytest.raises(InputError, match="Toy: no recipe comes with it; pass recipe=PATH"):
        check_generator(Toy)
    assert check_generator(wrong.WithDefaults).dataset == "checked"


def test_no_prover_is_no_failure() -> None:
    checks = check_generator(wrong.Unproven, RECIPE).checks
    assert "stored" in checks
    assert not {"proof", "damage"} & set(checks)


def test_a_recipe_is_checked_with_the_given_class() -> None:
    register("toy", Toy)
    try:
        recipe = Recipe.from_dict(RECIPE)
        with pytest.raises(CheckFailedError, match="node numbers give the rationale away"):
            check_generator(wrong.NotShuffled, recipe)
    finally:
        PLUGINS.registered.clear()


def test_speed_is_measured_over_all_graphs_and_can_be_ignored() -> None:
    with pytest.raises(CheckFailedError, match="graphs per second, expected at least 100"):
        check_generator(wrong.Sleepy, RECIPE, graphs=20, slowest=100)
    assert check_generator(wrong.Sleepy, RECIPE, graphs=4, slowest=0).checks
    with pytest.raises(InputError, match="graphs: expected a whole number from 4"):
        check_generator(Toy, RECIPE, graphs=3)
