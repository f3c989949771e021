"""The rows of "all", on a small build of every generator whose rationale can be scored."""

import pytest

from graphxai_data import GraphXAIDataset, evaluate
from graphxai_data.evaluation.floors import floor_names
from graphxai_data.recipe import Recipe
from tests.conftest import SharedBuilds, offline_names

BOUNDS = {"random", "degree", "oracle"}


def _names() -> list[str]:
    """Return one recipe per generator, and per rule of `smarts` with other substructures."""
    scored: dict[str, str] = {}
    for name in offline_names():
        recipe = Recipe.load(name)
        if recipe.schema.has_rationale and recipe.schema.task == "graph":
            key = name if name in ("rings-max", "binding-10") else recipe.generator
            scored.setdefault(key, name)
    return [*scored.values()]


@pytest.mark.parametrize("name", _names())
def test_all_is_scored_without_rules_that_rank_nothing(name: str, builds: SharedBuilds) -> None:
    dataset = GraphXAIDataset.from_folder(builds.folder(name, 500))
    table = evaluate(dataset, ["all"])
    own = {rule.name for rule in Recipe.load(name).generator_object.rules()}
    measured = set(floor_names(dataset, ["all"]).measured)
    assert table.index.is_unique
    assert own & set(table.index) == own & measured
    assert set(table.index) >= BOUNDS
    assert table.constant.max() < 1


def test_a_rule_that_says_nothing_about_benzene_is_no_row(builds: SharedBuilds) -> None:
    dataset = GraphXAIDataset.from_folder(builds.folder("benzene", 500))
    rows = set(evaluate(dataset, ["all"]).index)
    assert {"aromatic-atoms", "substructures"} <= rows
    assert "named-heteroatoms" not in rows  # benzene has only carbon
