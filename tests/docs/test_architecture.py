"""docs/architecture.md names files, functions and layers that exist, and every subpackage."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT

PACKAGE = CHECKOUT / "graphxai_data"
TEXT = (CHECKOUT / "docs" / "architecture.md").read_text(encoding="utf-8")


def names_in(path: Path) -> set[str]:
    """Return the functions, classes and `Class.method`s that a module defines."""
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{m.name}" for m in node.body if isinstance(m, ast.FunctionDef)}
    return names


def contract_layers() -> list[str]:
    """Return the layers of the import contract, the highest first; " : " joins siblings."""
    settings = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
    layers: list[str] = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    return layers


def test_every_file_that_the_page_names_exists() -> None:
    names = re.findall(r"`([\w/]+\.(?:py|toml))`", TEXT)
    assert len(names) > 30
    for name in names:
        assert (PACKAGE / name).is_file() or (CHECKOUT / name).is_file(), name


@pytest.mark.parametrize(
    ("file", "function"), re.findall(r"\| `([\w/]+\.py)` \| `([\w.]+)` \|", TEXT)
)
def test_every_step_of_the_walk_is_where_the_page_says(file: str, function: str) -> None:
    assert function in names_in(PACKAGE / file)


def test_the_page_draws_the_layers_of_the_import_contract() -> None:
    order = [name for layer in contract_layers() for name in layer.split(" : ")]
    drawn = re.findall(r'^ +\w+\["<b>(.*?)</b>', TEXT, re.MULTILINE)
    listed = [name.strip().rstrip("/") for group in drawn for name in group.split(",")]
    shims = {"build", "train", "evaluate", "comparison"}
    assert sorted(listed) == sorted(set(order) - shims)
    lowest = {"metrics", "seeds", "errors", "progress", "lazy"}
    assert [n for n in listed if n not in lowest] == [n for n in order if n not in lowest | shims]
    subpackages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert {name for name in order if (PACKAGE / name).is_dir()} == subpackages


def test_the_page_lists_what_a_generator_may_import() -> None:
    layers = contract_layers()
    below = layers[layers.index("generators") + 1 :]
    allowed = {name for layer in below for name in layer.split(" : ")}
    sentence = re.search(r"A module in `generators/` may import (.*?)\. It", TEXT, re.DOTALL)
    assert sentence
    assert {name.rstrip("/") for name in re.findall(r"`([\w/]+)`", sentence[1])} == allowed
