import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphxai_data.errors import InputError
from graphxai_data.graphs.summary import Statistics
from graphxai_data.recipe import EXPECTABLE, Expectation, Recipe, Splits, find, shipped_names

Write = Callable[..., Path]


@pytest.mark.parametrize("name", shipped_names())
def test_shipped_recipes_load_and_name_their_own_file(name: str) -> None:
    recipe = Recipe.load(name)
    assert recipe.name == name
    assert recipe.summary


def _leaves(table: dict, prefix: str = "") -> list[str]:
    keys = []
    for key, value in table.items():
        keys += _leaves(value, f"{prefix}{key}.") if isinstance(value, dict) else [prefix + key]
    return keys


@pytest.mark.parametrize("name", shipped_names())
def test_every_number_is_tagged_paper_or_ours_once(name: str) -> None:
    table = tomllib.loads(find(name).read_text(encoding="utf-8"))
    origin = table.pop("origin")
    for key in ("name", "version", "generator", "summary", "notes", "sources"):
        table.pop(key, None)
    assert sorted(origin["paper"] + origin["ours"]) == sorted(_leaves(table))


def test_a_recipe_is_the_same_after_to_dict_and_from_dict() -> None:
    recipe = Recipe.load("ba2motif")
    again = Recipe.from_dict(recipe.to_dict())
    assert again == recipe
    assert again.sha256 == recipe.sha256


def test_the_digest_ignores_comments_and_claims_but_no_parameter(recipe_file: Write) -> None:
    original = Recipe.load("ba2motif").sha256
    assert Recipe.load(recipe_file(("[params]", "# a comment\n[params]"))).sha256 == original
    assert Recipe.load(recipe_file(("claimed_p1 = true", "claimed_p1 = false"))).sha256 == original
    for old, new in [
        ("graphs = 1000", "graphs = 1001"),
        ("version = 1", "version = 2"),
        ("train = 0.7\nvalid = 0.2", "train = 0.6\nvalid = 0.3"),
        ('["house", "cycle"]', '["cycle", "house"]'),
    ]:
        assert Recipe.load(recipe_file((old, new))).sha256 != original


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("graphs = 1000", "graph = 1000", "unknown key 'params.graph'; did you mean 'graphs'?"),
        ("graphs = 1000\n", "", "missing key 'params.graphs' (a whole number); add it"),
        ("graphs = 1000", 'graphs = "many"', "params.graphs: expected a whole number, got 'many'"),
        ("graphs = 1000", "graphs = true", "params.graphs: expected a whole number, got True"),
        (
            "graphs = 1000",
            "graphs = 0",
            "params.graphs: expected a whole number from 1 to 100000000, got 0",
        ),
        ("graphs = 1000", "graphs = -5", "expected a whole number from 1 to 100000000, got -5"),
        ("graphs = 1000", f"graphs = {10**30}", "graphs: expected a whole number from 1 to 1"),
        ("= 18.7", "= nan", "params.base_nodes_mean: expected a finite number, got nan"),
        ("= 18.7", "= 1e300", "base_nodes_mean must be from base_nodes_min = 10 to 70 above"),
        (
            "base_nodes_min = 10",
            "base_nodes_min = 1",
            "expected a whole number from 2 to 100, got 1",
        ),
        ('"cycle"]', '"star"]', "params.motifs: expected 2 different names of house, cycle"),
        ('features = "degree"', 'features = "colours"', "expected one of 'degree', 'colour'"),
        ("train = 0.7", "train = 0.8", "splits: train + valid + test must be 1, got 1.1"),
        (
            "train = 0.7",
            "train = -0.3",
            "splits.train: expected a finite number of at least 0, got -0.3",
        ),
        ("[splits]", "[split]", "unknown key 'split'; did you mean 'splits'?"),
        ('generator = "ba2motif"', 'generator = "ba3motif"', "did you mean 'ba2motif'?"),
        (
            "nodes_mean = {",
            "node_mean = {",
            "unknown key 'expected.node_mean'; did you mean 'nodes_mean'?",
        ),
        ('p1 = "report"', 'p1 = "demand"', "rings.p1: expected one of 'require', 'report'"),
        ('name = "ba2motif"', 'name = "../up"', "name '../up' must be 1 to 64 of a-z"),
        ("[params]", "[params", "not valid TOML"),
        ("graphs = 1000", f"graphs = 1{'0' * 5000}", "not valid TOML"),
        ("= 18.7", f"= 1{'0' * 400}", "base_nodes_mean: expected a finite number"),
        ('"cycle"]', '"house"]', "k23, got ['house', 'house']"),
        (
            "tolerance = 0.65",
            "tolerance = -1.0",
            "expected.nodes_mean.tolerance: expected a finite number of at least 0, got -1.0",
        ),
        (
            "[splits]",
            '[sources]\nzinc = "x"\n[splits]',
            "unknown key 'sources.zinc'; it takes none",
        ),
    ],
)
def test_a_wrong_recipe_is_refused_with_the_file_the_key_and_the_remedy(
    recipe_file: Write, old: str, new: str, message: str
) -> None:
    path = recipe_file((old, new))
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        Recipe.load(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(("name", "key"), [("benzene", "molecules"), ("dihalo", "zinc")])
def test_a_missing_source_is_refused_with_the_usual_one(name: str, key: str) -> None:
    recipe = Recipe.load(name)
    table = recipe.to_dict()
    del table["sources"]
    with pytest.raises(InputError) as error:
        Recipe.from_dict(table, "mine.toml")
    assert str(error.value) == (
        f"mine.toml: missing key 'sources.{key}', which generator '{recipe.generator}' reads; "
        f'add to [sources]: {key} = "{recipe.sources[key]}"'
    )


def test_an_unknown_dataset_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InputError, match="unknown dataset 'ba3motif'; did you mean 'ba2motif'"):
        Recipe.load("ba3motif")


def test_files_that_are_not_recipes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such recipe file"):
        Recipe.load(tmp_path / "none.toml")
    with pytest.raises(InputError, match="no such recipe file"):
        Recipe.load("a" * 3000 + ".toml")
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not valid TOML"):
        Recipe.load(binary)
    deep = tmp_path / "deep.toml"
    deep.write_text("a = " + "[" * 5000)
    with pytest.raises(InputError, match="not valid TOML"):
        Recipe.load(deep)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["name", "version", "generator", "params", "splits", "graphs", "x"]
                ),
                inner,
                max_size=4,
            )
        ),
    ).filter(lambda value: isinstance(value, dict))
)
def test_whatever_a_recipe_contains_the_only_error_is_input_error(table: dict) -> None:
    with pytest.raises(InputError):
        Recipe.from_dict(table)


def test_expectations_name_statistics_that_exist() -> None:
    statistics = Statistics(graphs=1).to_dict()
    assert set(EXPECTABLE) <= statistics.keys()


@pytest.mark.parametrize("make", [lambda: Splits(-0.5, 1.0, 0.5), lambda: Expectation(1.0, -1.0)])
def test_bounds_hold_for_direct_calls(make: Callable[[], object]) -> None:
    with pytest.raises(InputError, match="expected a finite number of at least 0, got -"):
        make()
