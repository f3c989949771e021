from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from graphxai_data import GraphXAIDataset, Pattern, build
from graphxai_data.building.plan import make_plan
from graphxai_data.building.verify import verify
from graphxai_data.errors import InputError
from graphxai_data.generators.pattern import PatternGenerator
from graphxai_data.generators.pattern_proof import PatternProver
from graphxai_data.graphs.invariants import check_columns
from graphxai_data.graphs.shards import ShardReader
from graphxai_data.recipe import Recipe
from graphxai_data.rings import check as check_rings
from graphxai_data.training.train import train

PARAMS = Recipe.load("pattern").params


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("builds")
    build("pattern", root=root, graphs=280, shard_size=100, engine="serial")
    return root


def test_every_pattern_has_its_share_of_every_split() -> None:
    recipe = Recipe.load("pattern")
    plan = make_plan(recipe, 0, recipe.params.graphs)
    counts = np.zeros((100, 3), int)
    np.add.at(counts, (plan.index % 100, plan.split), 1)
    assert (counts == [100, 20, 20]).all()


@pytest.mark.parametrize("graphs", [100, 300, 500, 20_000])
def test_any_number_of_graphs_has_its_splits_in_proportion(graphs: int) -> None:
    plan = make_plan(Recipe.load("pattern"), 0, graphs)
    expected = np.array([5, 1, 1]) / 7 * graphs
    assert np.abs(np.bincount(plan.split, minlength=3) - expected).max() < 1


def test_the_expected_number_of_edges_is_that_of_the_parameters() -> None:
    """Summed over all sizes, where the recipe's comment has a formula."""
    sizes = np.arange(PARAMS.size_min, PARAMS.size_max + 1)
    pairs = (sizes * (sizes - 1)).mean()  # ordered pairs of nodes in a block, or in a pattern
    between = np.multiply.outer(sizes, sizes).mean()  # of a node in one and a node in another
    blocks = PARAMS.communities
    expected = blocks * PARAMS.inside * pairs + PARAMS.pattern_inside * pairs
    expected += blocks * (blocks - 1) * PARAMS.across * between
    expected += 2 * blocks * PARAMS.pattern_across * between
    assert Recipe.load("pattern").expected["edges_mean"].value == pytest.approx(expected, abs=0.05)


def test_sizes_and_edges_are_distributed_as_published() -> None:
    recipe = Recipe.load("pattern")
    plan = make_plan(recipe, 0, 600)
    columns = recipe.generator_object.generate(plan, 0)
    owner = np.repeat(np.arange(600), np.diff(columns["node_ptr"]))
    source, target = (
        columns["edge_index"]
        + columns["node_ptr"][:-1][np.repeat(np.arange(600), np.diff(columns["edge_ptr"]))]
    )
    inside = columns["node_y"] == 1
    background = np.bincount(owner[~inside])
    pattern = np.bincount(owner[inside])
    assert abs(background.mean() - 5 * 19.5) < 4 * np.sqrt(5 * 74.9 / 600)
    assert (pattern >= 5).all()
    assert (pattern <= 34).all()
    # Between pattern and background, half of all pairs are joined.
    crossing = (inside[source] & ~inside[target]).sum()
    assert crossing / (pattern * background).sum() == pytest.approx(0.5, abs=0.005)
    # In the background between 0.35 (across blocks) and 0.5 (within, about a fifth of pairs).
    joined = (~inside[source] & ~inside[target]).sum() / (background * (background - 1)).sum()
    assert 0.36 < joined < 0.42
    kinds = np.bincount(columns["x"][~inside], minlength=3) / (~inside).sum()
    assert kinds == pytest.approx([1 / 3] * 3, abs=0.01)


def test_a_graph_depends_only_on_its_row_of_the_plan_and_patterns_are_shared(root: Path) -> None:
    folder = root / "pattern" / "seed-0"
    assert verify(folder, full=True) == []
    recipe = Recipe.load("pattern")
    plan = make_plan(recipe, 0, 280)
    alone = recipe.generator_object.generate(plan.cut(137, 1), 0)
    record = ShardReader(folder / "shard-00001.h5")[37]
    assert np.array_equal(alone["edge_index"], record.edge_index)
    assert np.array_equal(alone["node_y"], record.node_y)
    prover = PatternProver(recipe.params, {})
    records = [r for p in sorted(folder.glob("shard-*.h5")) for r in ShardReader(p)]
    assert [problem for r in records for problem in prover.problems(r)] == []
    wrong = records[137]
    flipped = wrong.node_y.copy()
    flipped[np.flatnonzero(flipped)[0]] = 0
    assert "are not the pattern of graph 37" in prover.problems(replace(wrong, node_y=flipped))[0]


def test_probabilities_of_0_and_1() -> None:
    params = replace(PARAMS, inside=1.0, across=0.0, pattern_inside=1.0, pattern_across=0.0)
    recipe = replace(Recipe.load("pattern"), params=params)
    columns = recipe.generator_object.generate(make_plan(recipe, 0, 10), 0)
    assert check_columns(columns, recipe.schema) == []
    assert recipe.generator_object.check(columns) == []
    # Blocks and pattern are complete and not joined: degrees are sizes minus one.
    for i in range(10):
        first, last = columns["edge_ptr"][i : i + 2]
        nodes = columns["node_ptr"][i + 1] - columns["node_ptr"][i]
        degree = np.bincount(columns["edge_index"][0, first:last], minlength=nodes)
        sizes, counts = np.unique(degree + 1, return_counts=True)
        assert (counts % sizes == 0).all()
        assert (counts // sizes).sum() == 6


def test_wrong_sizes_are_found() -> None:
    recipe = Recipe.load("pattern")
    columns = recipe.generator_object.generate(make_plan(recipe, 0, 5), 0)
    none = columns | {"node_y": np.zeros_like(columns["node_y"])}
    assert "the pattern does not have 5 to 34 nodes" in recipe.generator_object.check(none)[0]
    beyond = columns | {"node_y": columns["node_y"] + 1}
    assert "the class of a node does not exist" in check_columns(beyond, recipe.schema)[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"across": 1.5}, "across: expected a finite number from 0 to 1, got 1.5"),
        ({"size_max": 3}, "size_max must be from size_min = 5"),
        ({"communities": 0}, "communities: expected a whole number from 1 to 100, got 0"),
        ({"kinds": 300}, "kinds: expected a whole number from 1 to 256, got 300"),
        ({"graphs": 0}, "graphs: expected a whole number from 1"),
    ],
)
def test_impossible_numbers_are_refused(change: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PatternGenerator.Params(**{**PARAMS.__dict__, **change})


def test_classes_of_nodes_are_loaded_and_learned(root: Path, tmp_path: Path) -> None:
    dataset = GraphXAIDataset(root, "pattern")
    assert dataset.task == "node"
    assert dataset.num_classes == 2
    assert dataset[3].y.shape == (dataset[3].num_nodes,)
    assert dataset[3].y.dtype == torch.int64
    test = Pattern(root, split="test")
    assert len(test) == len(dataset.get_idx_split()["test"]) == 40
    for name in ("bcos-gin", "gin", "gsat"):
        changes = {"epochs": 1, "hidden": 4}
        model, card = train(dataset, name, out=tmp_path, changes=changes)
        assert card.shape.level == "node"
        assert set(card.scores["test"]) == {
            "loss",
            "accuracy",
            "f1",
            "roc_auc",
            "weighted_accuracy",
        }
        data = dataset[0]
        assert model(data.x, data.edge_index).shape == (data.num_nodes, 2)
    rings = (root / "pattern" / "seed-0" / "rings.json").read_text()
    assert "nodes have classes, graphs have none" in rings
    measurement = check_rings(GraphXAIDataset(root, "pattern")[:50])
    assert measurement.p1 == measurement.p2 == "inconclusive"
    assert "nodes have classes, graphs have none" in measurement.principles["p1"].reason
    with pytest.raises(InputError, match="no rationale is known"):
        dataset[0].to_explanation()


def test_the_card_says_that_classes_are_of_nodes(root: Path) -> None:
    card = (root / "pattern" / "seed-0" / "README.md").read_text()
    assert "Nodes have classes, so nodes are counted." in card
    assert "| graphs | 200 | 40 | 40 | 280 |" in card
    assert "none is known: no explanation can be scored here" in card
