"""Names of rules that look at no model, as rows of tables."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data

from graphxai_data.errors import InputError
from graphxai_data.explain import METHODS, explain
from graphxai_data.explain.variants import (
    FLOORS,
    RULES_OF_DATASETS,
    VARIANTS,
    FloorNames,
    select_variants,
)
from graphxai_data.recipe import Recipe, shipped_names
from graphxai_data.rings.rules import GENERAL


def test_reserved_names_are_those_of_the_shipped_rules() -> None:
    rules: dict[str, set[str]] = {}
    for name in shipped_names():
        recipe = Recipe.load(name)
        for rule in recipe.generator_object.rules():
            rules.setdefault(rule.name, set()).add(recipe.generator)
    assert {name: set(generators) for name, generators in RULES_OF_DATASETS.items()} == rules


def test_floors_are_the_measured_rules_and_all_has_the_strongest() -> None:
    measured = FloorNames(["degree", "two-core", "like-pair"], ["two-core"])
    recipe = Recipe.load("dihalo")
    names = [v.name for v in select_variants(["floors"], recipe, measured)]
    assert names == ["degree", "like-pair", "two-core"]
    names = [v.name for v in select_variants(["all"], recipe, measured)]
    assert set(names) == {v.name for v in VARIANTS} | {"like-pair", "two-core"}
    assert len({v.name for v in (*VARIANTS, *FLOORS)}) == len(VARIANTS) + len(FLOORS)
    assert {v.name for v in FLOORS if v.knows_labels} == {
        v.name for v in FLOORS if v.name.startswith("wl-log-odds")
    }
    assert [v.name for v in select_variants("two-core")] == ["two-core"]
    with pytest.raises(InputError, match="unknown explainer 'tow-core'; did you mean 'two-core'"):
        select_variants(["tow-core"])


def test_rules_for_all_datasets_are_methods_of_explain() -> None:
    ends = [[0, 1, 1, 2, 2, 0, 2, 3], [1, 0, 2, 1, 0, 2, 3, 2]]
    path = Data(x=torch.ones(4, 1), edge_index=torch.tensor(ends))
    batch = Batch.from_data_list([path, path])
    assert {rule.name for rule in GENERAL} <= set(METHODS)
    for rule in GENERAL:
        assert len(explain(None, batch, method=rule.name).node_scores) == 8
    two_core = explain(None, batch, method="two-core").node_scores
    assert two_core.tolist() == [1, 1, 1, 0] * 2
    # One direction of an edge is enough, and order does not matter.
    half = path.clone()
    half.edge_index = torch.tensor([[3, 0, 2, 1], [2, 1, 0, 2]])
    scores = explain(None, half, method="closeness").node_scores
    assert np.allclose(scores, explain(None, path, method="closeness").node_scores)
