"""Recipe: everything but the seed that determines a dataset, read from a TOML file and checked."""

import dataclasses
import hashlib
import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from graphxai_data.errors import InputError, nearest
from graphxai_data.files.plugins import Origin as PluginOrigin
from graphxai_data.files.plugins import PluginError, blamed, is_name
from graphxai_data.files.shipped import shipped
from graphxai_data.files.toml import Between, Checked, parse_table, read_toml, shown_path
from graphxai_data.generators import (
    GENERATORS,
    PLUGINS,
    generator_class,
    make_generator,
    plugin_origin,
)

if TYPE_CHECKING:  # listing datasets needs no NumPy
    from graphxai_data.generators.base import Generator
    from graphxai_data.graphs.meaning import Meaning
    from graphxai_data.graphs.schema import Schema

# Statistics that a recipe may expect of a build, in its table [expected].
EXPECTABLE = ("nodes_mean", "edges_mean", "rationale_nodes_mean")

# Keys that decide the bytes of a build. The others (summary, expectations, claims) describe it, and
# can be corrected without invalidating existing builds.
_DIGESTED = ("name", "version", "generator", "params", "sources", "splits")


@dataclass(frozen=True)
class Splits(Checked):
    """Share of each split: fractions that sum to 1, or numbers of graphs that sum to all graphs.

    `like` names another recipe whose groups are divided in the same way, for the same seed and
    number of graphs: a test molecule of one is nowhere a training molecule of the other.
    """

    train: Annotated[float, Between(0)]
    valid: Annotated[float, Between(0)]
    test: Annotated[float, Between(0)]
    like: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        shares = self.train, self.valid, self.test
        whole = self.total > 1 and all(share % 1 == 0 for share in shares)
        if abs(self.total - 1) > 1e-9 and not whole:
            raise ValueError(
                f"train + valid + test must be 1, got {self.total:g}; correct one of them, "
                "or give whole numbers of graphs"
            )

    @property
    def total(self) -> float:
        """The sum of the shares: 1, or the number of graphs."""
        return self.train + self.valid + self.test

    @property
    def fractions(self) -> tuple[float, float, float]:
        """Fractions in the order of the split ids stored in shards: train 0, valid 1, test 2."""
        total = 1.0 if abs(self.total - 1) <= 1e-9 else self.total
        return self.train / total, self.valid / total, self.test / total


@dataclass(frozen=True)
class Expectation(Checked):
    """Expected value of a statistic; the tolerance is for the recipe's number of graphs."""

    value: float
    tolerance: Annotated[float, Between(0)]


@dataclass(frozen=True)
class Rings:
    """What the paper claims about the RINGS principles, and whether a failure stops a build."""

    p1: Literal["require", "report"] = "report"
    p2: Literal["require", "report"] = "report"
    claimed_p1: bool | None = None
    claimed_p2: bool | None = None


@dataclass(frozen=True)
class Origin:
    """Dotted keys of the numbers from the paper, and of those that this project chose."""

    paper: tuple[str, ...] = ()
    ours: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recipe:
    """The recipe of one dataset.

    Attributes:
        params: an instance of the generator's own `Params`.
        summary: one line.
        notes: what else users should know, for the data card.
        sources: ids of raw inputs, by the name that the generator gives them.
    """

    name: str
    version: int
    generator: str
    params: Any
    splits: Splits
    summary: str = ""
    notes: str = ""
    sources: dict[str, str] = field(default_factory=dict)
    expected: dict[str, Expectation] = field(default_factory=dict)
    rings: Rings = field(default_factory=Rings)
    origin: Origin = field(default_factory=Origin)

    def __post_init__(self) -> None:
        if not is_name(self.name):
            raise ValueError(
                f"name {self.name!r} must be 1 to 64 of a-z, 0-9, '-', '_': it names a folder"
            )
        for key in self.expected:
            if key not in EXPECTABLE:
                raise ValueError(f"unknown key 'expected.{key}'; {nearest(key, EXPECTABLE)}")

    @classmethod
    def load(cls, name_or_path: "str | Path | Recipe") -> "Recipe":
        """Return the recipe of a shipped dataset, of a plug-in, or of a TOML file.

        A recipe is returned as it is.
        """
        if isinstance(name_or_path, Recipe):
            return name_or_path
        path = find(name_or_path)
        return cls.from_dict(read_toml(path), where=shown_path(path))

    @classmethod
    def from_dict(cls, table: dict[str, Any], where: str = "recipe") -> "Recipe":
        """Return a recipe from parsed TOML or from the `recipe` entry of a manifest."""
        recipe = parse_table(cls, table, where)
        try:
            generator = generator_class(recipe.generator)
        except PluginError as error:
            raise PluginError(f"{where}: {error}") from error
        for key in recipe.sources:
            if key not in generator.sources:
                end = nearest(key, generator.sources) if generator.sources else "it takes none"
                raise InputError(f"{where}: unknown key 'sources.{key}'; {end}")
        if set(recipe.sources) != set(generator.sources):
            raise InputError(f"{where}: {_missing_sources(recipe, generator.sources)}")
        if recipe.generator not in GENERATORS and recipe.name in shipped_names():
            raise InputError(f"{where}: name '{recipe.name}' is that of a shipped dataset")
        with blamed(plugin_origin(recipe.generator), keep=InputError):
            params = parse_table(generator.Params, recipe.params, where, "params")
        total = recipe.splits.total
        if total > 1 + 1e-9 and total != params.graphs:
            raise InputError(
                f"{where}: splits: train + valid + test are {total:g} graphs, but params.graphs is "
                f"{params.graphs}; make them agree"
            )
        return dataclasses.replace(recipe, params=params)

    @property
    def generator_object(self) -> "Generator":
        """The generator with the recipe's params."""
        known: Generator | None = self.__dict__.get("_generator_object")
        if known is None or type(known) is not generator_class(self.generator):
            # At first, or if a cell of a notebook has registered another class since.
            known = make_generator(self.generator, self.params)
            self.__dict__["_generator_object"] = known
        return known

    @property
    def plugin(self) -> PluginOrigin | None:
        """The plug-in that the generator comes from; None if it is shipped."""
        return plugin_origin(self.generator)

    @property
    def schema(self) -> "Schema":
        """What all graphs of the dataset have in common."""
        return self.generator_object.schema()

    @property
    def class_names(self) -> list[str]:
        """The names of the classes."""
        return self.generator_object.class_names()

    @property
    def meaning(self) -> "Meaning":
        """The names of classes, features and fields that a build states."""
        return self.generator_object.meaning()

    def identity(self, seed: int) -> dict[str, Any]:
        """Return the file attributes of every shard of a build."""
        return {"dataset": self.name, "recipe_sha256": self.sha256, "seed": seed}

    def to_dict(self) -> dict[str, Any]:
        """Return the recipe as plain data; `from_dict` reverses this."""
        plain: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(self)))
        # Keys without a value are left out: a new optional key keeps the digests of recipes.
        for table in ("params", "rings", "splits"):
            plain[table] = {k: v for k, v in plain[table].items() if v is not None}
        return plain

    @property
    def sha256(self) -> str:
        """Digest of the values that decide the data, without comments and layout."""
        digested = {key: value for key, value in self.to_dict().items() if key in _DIGESTED}
        return hashlib.sha256(json.dumps(digested, sort_keys=True).encode()).hexdigest()


def find(name_or_path: str | Path) -> Path:
    """Return the path of a recipe file, given the name of a dataset or a path."""
    text = str(name_or_path)
    if text.endswith(".toml") or "/" in text or isinstance(name_or_path, Path):
        path = Path(name_or_path)
        exists = False
        with suppress(OSError):  # a name that the file system does not accept
            exists = path.is_file()
        if not exists:
            raise InputError(f"{path}: no such recipe file; check the path")
        return path
    if text in shipped_names():
        return shipped("recipes") / f"{text}.toml"
    from_plugins = plugin_recipes().get(text, [])
    if not from_plugins:
        names = (*shipped_names(), *plugin_recipes())
        if {f"{text}-a", f"{text}-b"} <= set(names):
            raise InputError(
                f"'{text}' is a pair of datasets, '{text}-a' and '{text}-b': give one of them; "
                "`evaluate` and `Pair.load` take the pair"
            )
        end = nearest(text, (*names, *_pairs(names)))
        if text in PLUGINS.names():
            end = f"{PLUGINS.origin(text)} is here, but no recipe of this name in its package"
        raise InputError(
            f"unknown dataset '{text}'; {end} "
            "(`graphxai-data list` shows all; your own recipe is given as a path ending in .toml)"
        )
    path = from_plugins[0][0]
    if len(from_plugins) > 1:
        packages = " and ".join(entry[1] for entry in from_plugins)
        raise InputError(
            f"dataset '{text}' is offered by packages {packages}; uninstall one, or give the path "
            f"of a recipe, such as {path}"
        )
    return path


def _missing_sources(recipe: Recipe, needed: Iterable[str]) -> str:
    """Return which keys of [sources] are missing, and what shipped recipes have there."""
    missing = [key for key in needed if key not in recipe.sources]
    tables = (read_toml(find(name)) for name in shipped_names())
    of_generator = (table["sources"] for table in tables if table["generator"] == recipe.generator)
    usual: dict[str, str] = next(of_generator, {})
    lines = " and ".join(f'{key} = "{usual.get(key, "ID")}"' for key in missing)
    keys = " and ".join(f"'sources.{key}'" for key in missing)
    return (
        f"missing key {keys}, which generator '{recipe.generator}' reads; add to [sources]: {lines}"
    )


def _pairs(names: Iterable[str]) -> list[str]:
    """Return the names of pairs, of which each half has a recipe."""
    stems = {name.removesuffix("-a") for name in names if name.endswith("-a")}
    return sorted(stem for stem in stems if f"{stem}-b" in set(names))


def shipped_names() -> list[str]:
    """Return the names of the datasets that come with the package."""
    return sorted(path.stem for path in shipped("recipes").glob("*.toml"))


def plugin_recipes() -> dict[str, list[tuple[Path, str]]]:
    """Return path and package of the recipes of plug-ins, by the name of the dataset.

    They lie in `recipes/` inside the package that holds the generator. Packages are not imported.
    """
    recipes: dict[str, list[tuple[Path, str]]] = {}
    for folder, package in plugin_folders():
        for path in sorted((folder / "recipes").glob("*.toml")):
            recipes.setdefault(path.stem, []).append((path, package))
    return dict(sorted(recipes.items()))


def plugin_folders() -> list[tuple[Path, str]]:
    """Return folder and package of every plug-in with generators, without importing it."""
    folders = []
    for package, modules in PLUGINS.modules().items():
        for name in sorted({module.partition(".")[0] for module in modules}):
            spec = find_spec(name)
            for place in (spec.submodule_search_locations if spec else None) or ():
                folders.append((Path(place), package))
    return folders
