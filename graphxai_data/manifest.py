"""Manifest: the provenance of one build, as `manifest.json` in its folder."""

import json
import platform
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from graphxai_data import __version__
from graphxai_data.errors import DamagedError, InputError, whole_number
from graphxai_data.files.disk import write_atomically
from graphxai_data.files.shipped import shipped
from graphxai_data.files.toml import parse_table, read_toml
from graphxai_data.files.urls import local_path
from graphxai_data.generators import generator_module
from graphxai_data.graphs.shards import SCHEMA_VERSION
from graphxai_data.graphs.summary import Summary
from graphxai_data.recipe import Recipe
from graphxai_data.seeds import MAX_SEED

MANIFEST_NAME = "manifest.json"
RINGS_NAME = "rings.json"
PLOT_NAME = "rings.svg"
PICTURE_NAME = "classes.svg"
# What a build may have besides manifest and shards: small, and read again whenever it is needed.
EXTRAS = ("README.md", "croissant.json", RINGS_NAME, PLOT_NAME, PICTURE_NAME)


@dataclass(frozen=True)
class ShardEntry:
    """One shard.

    Attributes:
        name: of the file.
        sha256: digest of the arrays, the same wherever they are built.
        graphs: how many it holds.
        file_sha256: of the file's bytes, to notice damage; other versions of HDF5 may write others.
        file_crc32: the same for a quick look, whenever the dataset is loaded.
    """

    name: str
    sha256: str
    graphs: int
    file_sha256: str
    file_crc32: int


@dataclass(frozen=True)
class SourceRecord:
    """A raw input: its id, file name and SHA-256, and what of it was rejected for which reason."""

    id: str
    file: str
    sha256: str
    rejected: dict[str, int]


@dataclass(frozen=True)
class Manifest:
    """What was built, from what, with what, and how to recognise it.

    Attributes:
        content_sha256: digest of all graphs, independent of shard size and of who built them.
        recipe: the whole recipe, so that with the sources the build can be repeated.
        sources: raw inputs by name, with their digests.
        versions: the software that made the build; no clock time, so that equal builds are equal.
    """

    schema_version: int
    dataset: str
    seed: int
    graphs: int
    shard_size: int
    content_sha256: str
    recipe_sha256: str
    recipe: dict[str, Any]
    statistics: dict[str, Any]
    shards: tuple[ShardEntry, ...]
    sources: dict[str, SourceRecord]
    versions: dict[str, str]

    @classmethod
    def load(cls, folder: str | Path) -> "Manifest":
        """The manifest of a build folder.

        Raises:
            InputError: the folder is not a build.
            DamagedError: its manifest cannot be used.
        """
        path = local_path(folder) / MANIFEST_NAME
        try:
            plain = json.loads(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            raise InputError(
                f"{folder}: not a graphxai-data build (no {MANIFEST_NAME} in it); "
                "give the folder that `graphxai-data build` printed, such as data/ba2motif/seed-0"
            ) from None
        except (ValueError, RecursionError) as error:
            raise DamagedError(f"{path}: not valid JSON ({error}); {_REBUILD}") from None
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror}") from None
        found = plain.get("schema_version") if isinstance(plain, dict) else None
        if found != SCHEMA_VERSION:
            raise DamagedError(
                f"{path}: schema version {found!r}, expected {SCHEMA_VERSION}; "
                "build the dataset again with this version of graphxai-data"
            )
        try:
            manifest = parse_table(cls, plain, str(path))
            parse_table(Summary, manifest.statistics, str(path), "statistics")
            recipe = manifest.load_recipe(f"{path}: recipe")
            whole_number(f"{path}: seed", manifest.seed, 0, MAX_SEED)
        except InputError as error:
            raise DamagedError(f"{error}; {_REBUILD}") from None
        classes = generator_module(recipe.generator).schema(recipe.params).num_classes
        if not set(manifest.statistics["class_splits"]) <= {str(i) for i in range(classes)}:
            raise DamagedError(f"{path}: counts classes that do not exist; {_REBUILD}")
        if set(manifest.sources) != set(recipe.sources):
            raise DamagedError(f"{path}: does not name the recipe's sources; {_REBUILD}")
        if tuple(entry.name for entry in manifest.shards) != shard_names(len(manifest.shards)):
            raise DamagedError(f"{path}: does not list its shards by number; {_REBUILD}")
        counts = [entry.graphs for entry in manifest.shards]
        if min(counts, default=0) < 1 or sum(counts) != manifest.graphs:
            raise DamagedError(
                f"{path}: counts {manifest.graphs} graphs, its shards {sum(counts)}; {_REBUILD}"
            )
        if (recipe.sha256, recipe.name) != (manifest.recipe_sha256, manifest.dataset):
            raise DamagedError(f"{path}: does not agree with itself about its recipe; {_REBUILD}")
        return manifest

    @property
    def has_usual_sources(self) -> bool:
        """Whether it was built from the sources that its recipe names."""
        used = {name: source.id for name, source in self.sources.items()}
        return bool(used == self.recipe.get("sources", {}))

    def load_recipe(self, where: str = "recipe") -> Recipe:
        """The recipe that the dataset was built from."""
        return Recipe.from_dict(self.recipe, where)

    def save(self, folder: Path) -> None:
        """Write `manifest.json`, whole or not at all."""
        write_atomically(folder / MANIFEST_NAME, (self.to_json() + "\n").encode())

    def to_json(self) -> str:
        """The text of `manifest.json`."""
        return json.dumps(asdict(self), indent=2)


_REBUILD = "delete the build folder and build again"


def shard_names(count: int) -> tuple[str, ...]:
    """File names of the shards of a build."""
    return tuple(f"shard-{i:05d}.h5" for i in range(count))


def software_versions() -> dict[str, str]:
    """What made a build: Python, this package and the libraries that touch the data."""
    libraries = ("numpy", "scipy", "h5py", "networkx", "numba", "rdkit", "scikit-image")
    return {
        "graphxai-data": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in libraries},
    }


def reference_digest(manifest: Manifest) -> str | None:
    """The digest that `data/digests.toml` pins for this very build, if it does."""
    entry = read_toml(shipped("data") / "digests.toml").get(manifest.dataset, {})
    for key in ("recipe_sha256", "seed", "graphs"):
        if entry.get(key) != getattr(manifest, key):
            return None
    if not manifest.has_usual_sources:
        return None
    return str(entry["content_sha256"])


def reference_verdict(manifest: Manifest) -> str:
    """How a build compares with the one that `data/digests.toml` pins, in words."""
    reference = reference_digest(manifest)
    if reference is None and not manifest.has_usual_sources:
        return "not compared: made from other sources than the recipe's"
    if reference is None:
        return "none pinned for this recipe, seed and number of graphs"
    if reference == manifest.content_sha256:
        return "matches data/digests.toml"
    return f"DIFFERS from data/digests.toml ({reference})"
