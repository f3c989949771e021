"""Recipe: everything that determines a dataset but the seed, from one TOML file, validated."""

import dataclasses
import hashlib
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from graphxai_data.errors import InputError, nearest
from graphxai_data.files.shipped import shipped
from graphxai_data.files.toml import parse_table, read_toml, shown_path
from graphxai_data.generators import generator_module

# Statistics that a recipe may hold a build to, in its table [expected].
EXPECTABLE = ("nodes_mean", "edges_mean", "rationale_nodes_mean")

# What decides the bytes of a build. The rest (summary, expectations, claims) is said *about* them,
# and may be corrected without making every existing build a stranger.
_DIGESTED = ("name", "version", "generator", "params", "sources", "splits")


@dataclass(frozen=True)
class Splits:
    """Graphs in each split: fractions that sum to 1, or whole numbers that sum to all graphs."""

    train: float
    valid: float
    test: float

    def __post_init__(self) -> None:
        shares = self.train, self.valid, self.test
        if min(shares) < 0:
            raise ValueError(f"shares must not be negative, got {shares}")
        whole = self.total > 1 and all(share % 1 == 0 for share in shares)
        if abs(self.total - 1) > 1e-9 and not whole:
            raise ValueError(
                f"train + valid + test must be 1, got {self.total:g}; correct one of them, "
                "or give whole numbers of graphs"
            )

    @property
    def total(self) -> float:
        """1, or the number of graphs."""
        return self.train + self.valid + self.test

    @property
    def fractions(self) -> tuple[float, float, float]:
        """Fractions in the order of the split ids stored in shards: train 0, valid 1, test 2."""
        if abs(self.total - 1) <= 1e-9:
            return self.train, self.valid, self.test
        return self.train / self.total, self.valid / self.total, self.test / self.total


@dataclass(frozen=True)
class Expectation:
    """A statistic that a build is held to; the tolerance is for the recipe's number of graphs."""

    value: float
    tolerance: float

    def __post_init__(self) -> None:
        if self.tolerance < 0:
            raise ValueError(f"tolerance must not be negative, got {self.tolerance}")


@dataclass(frozen=True)
class Rings:
    """What is claimed of the RINGS principles, and whether a failed check stops a build."""

    p1: Literal["require", "report"] = "report"
    p2: Literal["require", "report"] = "report"
    claimed_p1: bool | None = None
    claimed_p2: bool | None = None


@dataclass(frozen=True)
class Origin:
    """Which numbers come from the paper and which are this project's choice, as dotted keys."""

    paper: tuple[str, ...] = ()
    ours: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recipe:
    """One dataset, ready to be built.

    Attributes:
        params: the generator's own `Params`, already validated.
        summary: one line.
        notes: what else users should know; it stands in the data card.
        sources: raw inputs by the name the generator knows them under.
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
        if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", self.name):
            raise ValueError(
                f"name {self.name!r} must be 1 to 64 of a-z, 0-9, '-', '_': it names a folder"
            )
        for key in self.expected:
            if key not in EXPECTABLE:
                raise ValueError(f"unknown key 'expected.{key}'; {nearest(key, EXPECTABLE)}")

    @classmethod
    def load(cls, name_or_path: str | Path) -> "Recipe":
        """The recipe of a shipped dataset, or of a user's own TOML file."""
        path = find(name_or_path)
        return cls.from_dict(read_toml(path), where=shown_path(path))

    @classmethod
    def from_dict(cls, table: dict[str, Any], where: str = "recipe") -> "Recipe":
        """A recipe from parsed TOML or from the `recipe` entry of a manifest."""
        recipe = parse_table(cls, table, where)
        generator = generator_module(recipe.generator, where)
        if set(recipe.sources) != set(generator.SOURCES):
            needs = ", ".join(generator.SOURCES) or "no sources"
            raise InputError(f"{where}: sources: generator '{recipe.generator}' needs {needs}")
        params = parse_table(generator.Params, recipe.params, where, "params")
        total = recipe.splits.total
        if total > 1 + 1e-9 and total != params.graphs:
            raise InputError(
                f"{where}: splits: train + valid + test are {total:g} graphs, but params.graphs is "
                f"{params.graphs}; make them agree"
            )
        return dataclasses.replace(recipe, params=params)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as stored in a manifest; `from_dict` gives the same recipe back."""
        plain: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(self)))
        plain["rings"] = {k: v for k, v in plain["rings"].items() if v is not None}
        return plain

    @property
    def sha256(self) -> str:
        """Digest of the values that decide the data; comments and layout do not count."""
        decisive = {key: value for key, value in self.to_dict().items() if key in _DIGESTED}
        return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()


def find(name_or_path: str | Path) -> Path:
    """Path of the recipe file that a dataset name or a path means."""
    text = str(name_or_path)
    if text.endswith(".toml") or "/" in text or isinstance(name_or_path, Path):
        path = Path(name_or_path)
        try:
            there = path.is_file()
        except OSError:  # a name that no file system takes
            there = False
        if not there:
            raise InputError(f"{path}: no such recipe file; check the path")
        return path
    names = shipped_names()
    if text not in names:
        raise InputError(
            f"unknown dataset '{text}'; {nearest(text, names)} "
            "(`graphxai-data list` shows all; your own recipe is given as a path ending in .toml)"
        )
    return shipped("recipes") / f"{text}.toml"


def shipped_names() -> list[str]:
    """Names of the datasets that come with the package."""
    return sorted(path.stem for path in shipped("recipes").glob("*.toml"))
