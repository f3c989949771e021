"""Conformance of generators: what any author can run on a class of their own.

    from graphxai_data.testing import check_generator

    def test_my_generator():
        check_generator(MyGenerator)

The shipped generators pass the same checks.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from graphxai_data.errors import InputError, whole_number
from graphxai_data.files.plugins import PluginError
from graphxai_data.files.toml import read_toml
from graphxai_data.generators import GENERATORS, PLUGINS
from graphxai_data.generators.base import Generator, check_class
from graphxai_data.recipe import Recipe, find, plugin_recipes, shipped_names
from graphxai_data.seeds import MAX_GRAPHS
from graphxai_data.testing.checks import Conformance, GeneratorCheck

__all__ = ["Conformance", "check_generator"]

# The name of a class that is checked without being registered.
_UNNAMED = "generator-being-checked"


def check_generator(
    cls: type[Generator],
    recipe: Recipe | str | Path | Mapping[str, Any] | None = None,
    *,
    graphs: int = 60,
    seed: int = 0,
    sources: Mapping[str, str | Path] | None = None,
    slowest: float = 1.0,
) -> Conformance:
    """Check that a generator keeps the promises that builds rely on.

    The checks: graphs follow plan and invariants; a graph is the same again, alone, in any order
    and shard size, and in another process; another seed gives other graphs; global random states
    are untouched; stored graphs are read back bit for bit; node numbers do not give the rationale
    away; the prover accepts the graphs and finds planted damage; it is fast enough.

    Args:
        cls: the class; it need not be registered or installed.
        recipe: with the numbers to check; by default the recipes that come with the class, or, if
            all of its params but `graphs` have defaults, those defaults.
        graphs: how many graphs to make.
        seed: of the graphs.
        sources: files or ids to use instead of the recipe's.
        slowest: the fewest graphs per second that are accepted.

    Returns:
        What was checked, of the last recipe. A warning names damage that no graph could have.

    Raises:
        CheckFailedError: names every promise that is broken.
        InputError: the class is not complete, or a recipe is needed.
    """
    check_class(cls)
    whole_number("graphs", graphs, 4, MAX_GRAPHS)
    with _named(cls) as name:
        recipes = _recipes(cls, name, recipe)
        for each in recipes:
            result = GeneratorCheck(each, graphs, seed, sources, slowest).run()
    return result


@contextmanager
def _named(cls: type[Generator]) -> Iterator[str]:
    """Yield the name that a class is known by; it is registered for a while if it has none."""
    if name := _name_of(cls):
        yield name
        return
    PLUGINS.registered[_UNNAMED] = cls
    try:
        yield _UNNAMED
    finally:
        del PLUGINS.registered[_UNNAMED]


def _name_of(cls: type[Generator]) -> str | None:
    """Return the name of a shipped, installed or registered class."""
    for name, class_name in GENERATORS.items():
        if (cls.__module__, cls.__name__) == (f"graphxai_data.generators.{name}", class_name):
            return name
    for name in PLUGINS.names():
        try:
            if PLUGINS.load(name) is cls:
                return name
        except PluginError:
            if PLUGINS.offers(name, cls):  # not unique
                raise
    return None


def _recipes(cls: type[Generator], name: str, given: Any) -> list[Recipe]:
    if given is not None:
        if isinstance(given, Recipe):
            table = given.to_dict()
        else:
            table = dict(given) if isinstance(given, Mapping) else read_toml(find(given))
        return [Recipe.from_dict(table | {"generator": name})]
    shipped = [find(known) for known in shipped_names()]
    paths = [*shipped, *(path for entries in plugin_recipes().values() for path, _ in entries)]
    if own := [path for path in paths if read_toml(path).get("generator") == name]:
        return [Recipe.load(path) for path in own]
    missing = [
        field.name
        for field in dataclasses.fields(cls.Params)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    if missing != ["graphs"] or cls.sources:
        raise InputError(f"{cls.__name__}: no recipe comes with it; pass recipe=PATH or a table")
    splits = {"train": 0.8, "valid": 0.1, "test": 0.1}
    table = {"name": "checked", "version": 1, "generator": name, "params": {"graphs": 1000}}
    return [Recipe.from_dict(table | {"splits": splits}, cls.__name__)]
