"""The reference pages list every option, key, array and column that exists, and no other."""

import dataclasses
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
import pytest
import torch
from torch_geometric.data import Data

import graphxai_data
from graphxai_data import BA2Motif, GraphXAIDataset
from graphxai_data.cli import main
from graphxai_data.evaluation.evaluate import evaluate
from graphxai_data.explain.variants import select_variants
from graphxai_data.generators import GENERATORS, generator_class
from graphxai_data.graphs.columns import USUAL
from graphxai_data.graphs.meaning import ATTRIBUTES, MAX_NAMES, Meaning, Value
from graphxai_data.graphs.summary import Summary
from graphxai_data.manifest import Manifest, ShardEntry, SourceRecord
from graphxai_data.recipe import EXPECTABLE, Recipe, Rings
from graphxai_data.rings.floors import Floor, Floors
from graphxai_data.rings.modes import MODES
from graphxai_data.rings.verdict import Measurement
from tests.conftest import CHECKOUT, SharedBuilds

DOCS = CHECKOUT / "docs"


def section(page: str, heading: str) -> str:
    """Return the text under a heading, up to the next heading of the same or a higher level."""
    text = (DOCS / page).read_text(encoding="utf-8")
    start = re.search(rf"^(#+) {re.escape(heading)}\n", text, re.M)
    assert start, f"{page} has no heading '{heading}'"
    level = len(start[1])
    rest = text[start.end() :]
    end = re.search(rf"^#{{1,{level}}} ", rest, re.M)
    return rest[: end.start()] if end else rest


def first_cells(text: str) -> set[str]:
    """Return all names in backquotes in the first column of tables."""
    rows = re.findall(r"^\| (`.*?) \|", text, re.M)
    return {name for row in rows for name in re.findall(r"`(.*?)`", row)}


def test_every_command_is_in_the_reference_and_no_other() -> None:
    text = (DOCS / "cli.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^## (\w+)$", text, re.M)) == set(main.commands)


@pytest.mark.parametrize("name", sorted(main.commands))
def test_every_option_is_in_the_reference_and_no_other(name: str) -> None:
    options = {
        text
        for parameter in main.commands[name].params
        if isinstance(parameter, click.Option)
        for text in parameter.opts
    }
    assert first_cells(section("cli.md", name)) == options


def keys_of(cls: type[Any], prefix: str = "") -> Iterable[str]:
    """Yield the fields of a dataclass; those of a nested one as "field.key"."""
    for field in dataclasses.fields(cls):
        if dataclasses.is_dataclass(field.type) and isinstance(field.type, type):
            yield from keys_of(field.type, f"{field.name}.")
        else:
            yield prefix + field.name


@pytest.mark.parametrize("name", sorted(GENERATORS))
def test_every_key_of_a_generator_is_in_the_reference_and_no_other(name: str) -> None:
    # These three share a section.
    published = ("nci1", "molhiv", "pattern_published")
    names = published if name in published else (name,)
    keys = {key for name in names for key in keys_of(generator_class(name).Params)}
    assert first_cells(section("recipes.md", ", ".join(names))) == keys


def test_every_key_of_a_recipe_is_in_the_reference_and_no_other() -> None:
    text = section("recipes.md", "Keys of every recipe")
    keys = first_cells(text[: text.index("### ")])
    assert {key.strip("[]") for key in keys} == {f.name for f in dataclasses.fields(Recipe)}
    assert first_cells(section("recipes.md", "expected")) == set(EXPECTABLE)
    assert first_cells(section("recipes.md", "rings")) == set(keys_of(Rings))
    for name in GENERATORS:
        assert f"`{name}`" in text
        for source in generator_class(name).sources:
            assert f"`{source}`" in (DOCS / "recipes.md").read_text(encoding="utf-8")


def test_every_array_of_a_shard_is_in_the_reference() -> None:
    arrays = set(USUAL)
    for path in (CHECKOUT / "recipes").glob("*.toml"):
        recipe = Recipe.load(path)
        for extra in recipe.schema.extras:
            arrays |= {extra.name} | ({f"{extra.name}_ptr"} if extra.level == "text" else set())
    assert first_cells(section("shards.md", "Arrays")) == arrays


def test_every_attribute_of_an_array_is_in_the_reference() -> None:
    assert first_cells(section("shards.md", "Names")) == set(ATTRIBUTES)
    assert f"{MAX_NAMES:,} columns" in section("shards.md", "Names")
    keys = section("shards.md", "manifest.json")
    for key in (*keys_of(Meaning), *keys_of(Value)):
        assert f"`{key}`" in keys


def test_every_key_of_manifest_and_rings_is_in_the_reference(built_root: Path) -> None:
    folder = built_root / "ba2motif" / "seed-0"
    assert first_cells(section("shards.md", "manifest.json")) == set(keys_of(Manifest))
    text = section("shards.md", "manifest.json")
    for cls in (Summary, ShardEntry, SourceRecord):
        for key in keys_of(cls):
            assert f"`{key.split('.')[0]}`" in text
    rings = json.loads((folder / "rings.json").read_text())
    text = section("shards.md", "rings.json")
    assert first_cells(text) == set(rings)
    assert set(rings) == {field.name for field in dataclasses.fields(Measurement)} - {
        "principles"
    } | {"p1", "p2"}
    for key in rings["comparisons"][0]:
        assert f"`{key}`" in text


def test_every_mode_of_rings_is_in_the_table() -> None:
    modes = re.findall(
        r"^\| `(\w+)` \| .* \| (?:quick, )?full \|$", (DOCS / "rings.md").read_text(), re.M
    )
    assert modes == list(MODES)


def test_every_column_and_row_of_an_evaluation_is_defined(built_root: Path) -> None:
    table = evaluate(
        BA2Motif(built_root), ["bcos"], "bcos-gin-ba2motif", timing=True, faithfulness=True
    )
    text = (DOCS / "metrics.md").read_text(encoding="utf-8")
    defined = first_cells(text)
    missing = [c for c in table.columns if c not in defined and not c.endswith("_probability")]
    assert not missing
    assert set(row_names(section("metrics.md", "The rows"))) == {
        v.name for v in select_variants("all")
    }


def test_every_column_of_rationales_is_defined(builds: SharedBuilds) -> None:
    mask = torch.tensor([True, False, False, False])
    edge_index, null = torch.tensor([[0, 1], [1, 0]]), torch.zeros(4)
    explained = Data(torch.eye(4), edge_index, alternatives=mask[None])
    weighted = Data(torch.eye(4), edge_index, node_weight=mask.float() - 0.5)
    defined = first_cells(section("metrics.md", "Against the ground truth"))
    molecules = GraphXAIDataset.from_folder(builds.folder("dihalo", 500))
    columns = set(evaluate(molecules, ["oracle"]).columns)
    for graphs in ([explained, Data(torch.eye(4), edge_index, node_mask=null)], [weighted]):
        columns |= set(evaluate(graphs, ["oracle"]).columns)
    assert {"jaccard_sufficient", "jaccard_union", "null_outliers", "spearman"} <= columns
    assert columns == defined


def test_every_key_of_floors_is_in_the_reference() -> None:
    text = section("floors.md", "floors.json")
    assert first_cells(text) == {field.name for field in dataclasses.fields(Floors)}
    for field in dataclasses.fields(Floor):
        assert f"`{field.name}`" in text


def row_names(text: str) -> Iterable[str]:
    """Yield the names of rows; `-max` after `gnn-explainer-mean` means `gnn-explainer-max`."""
    for row in re.findall(r"^\| (`.*?) \|", text, re.M):
        first, *others = re.findall(r"`(.*?)`", row)
        yield first
        for name in others:
            yield first.removesuffix("-mean") + name if name.startswith("-") else name


def test_the_citation_is_valid_and_names_this_version() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML comes with mkdocs")
    cff = yaml.safe_load((CHECKOUT / "CITATION.cff").read_text(encoding="utf-8"))
    # The keys that the Citation File Format 1.2.0 requires, and those that this file uses.
    assert {"cff-version", "message", "title", "authors"} <= set(cff)
    allowed = {"cff-version", "message", "title", "authors", "type", "license", "version",
             "abstract", "keywords", "references", "preferred-citation"}  # fmt: skip
    assert set(cff) <= allowed
    assert (cff["cff-version"], cff["type"], cff["license"]) == ("1.2.0", "software", "MIT")
    assert cff["version"] == graphxai_data.__version__
    for reference in [cff, *cff["references"]]:
        assert reference["title"]
        for author in reference["authors"]:
            assert set(author) in ({"name"}, {"family-names", "given-names"})
    assert all(reference["type"] == "article" for reference in cff["references"])
