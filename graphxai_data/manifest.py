"""Manifest: the provenance of one build, as `manifest.json` in its folder."""

import json
import platform
import re
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

from graphxai_data import __version__
from graphxai_data.errors import DamagedError, GraphXAIDataError, InputError
from graphxai_data.files.disk import write_atomically
from graphxai_data.files.plugins import Origin, PluginError, is_name
from graphxai_data.files.shipped import shipped
from graphxai_data.files.toml import Between, parse_table, read_toml
from graphxai_data.files.urls import is_url, local_path
from graphxai_data.generators import PLUGINS, plugin_origin
from graphxai_data.graphs.meaning import Meaning
from graphxai_data.graphs.shards import SCHEMA_VERSION, wrong_version
from graphxai_data.graphs.summary import Summary
from graphxai_data.recipe import Recipe
from graphxai_data.seeds import MAX_SEED

MANIFEST_NAME = "manifest.json"
RINGS_NAME = "rings.json"
FLOORS_NAME = "floors.json"
PLOT_NAME = "rings.svg"
PICTURE_NAME = "classes.svg"
# Small files that a build may have besides manifest and shards.
EXTRAS = ("README.md", "croissant.json", RINGS_NAME, PLOT_NAME, FLOORS_NAME, PICTURE_NAME)


@dataclass(frozen=True)
class ShardEntry:
    """One shard; its bytes, unlike its arrays, may differ between versions of HDF5."""

    name: str
    sha256: str  # of the arrays
    graphs: int
    file_sha256: str
    file_crc32: int  # for a quick check whenever the dataset is loaded


@dataclass(frozen=True)
class SourceRecord:
    """A raw input: id, file name, SHA-256, and number of rejected entries by reason."""

    id: str
    file: str
    sha256: str
    rejected: dict[str, int]


@dataclass(frozen=True)
class PluginRecord:
    """The package that the generator came from; both empty if a script registered it."""

    package: str
    version: str

    def __post_init__(self) -> None:
        package = re.fullmatch(r"[A-Za-z0-9][\w.-]*|", self.package, re.ASCII)
        if not (package and re.fullmatch(r"[\w.+!-]*", self.version, re.ASCII)):
            raise ValueError(f"{self.package!r} {self.version!r} is no package and its version")

    @classmethod
    def of(cls, plugin: Origin | None) -> "PluginRecord | None":
        """Return the record of a plug-in; None if the generator is shipped."""
        return None if plugin is None else cls(plugin.package, plugin.version)


@dataclass(frozen=True)
class Manifest:
    """What was built, from what and with what.

    Attributes:
        content_sha256: digest of all graphs, independent of shard size and machine.
        recipe: the whole recipe, so that the build can be repeated from the sources.
        sources: raw inputs by name.
        versions: of the software. No time stamp is stored, so that equal builds are equal.
        plugin: where the generator comes from, if it is not shipped.
        meaning: names of classes, features and fields; None in builds of older versions.
    """

    schema_version: int
    dataset: str
    seed: Annotated[int, Between(0, MAX_SEED)]
    graphs: int
    shard_size: int
    content_sha256: str
    recipe_sha256: str
    recipe: dict[str, Any]
    statistics: dict[str, Any]
    shards: tuple[ShardEntry, ...]
    sources: dict[str, SourceRecord]
    versions: dict[str, str]
    plugin: PluginRecord | None = None
    meaning: Meaning | None = None

    @classmethod
    def load(cls, folder: str | Path) -> "Manifest":
        """Return the manifest of a build folder.

        Raises:
            InputError: the folder is not a build.
            DamagedError: its manifest is damaged or of another version.
            PluginError: its generator is of a plug-in that is not here, or here in another version.
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
        schema_version = plain.get("schema_version") if isinstance(plain, dict) else None
        if schema_version != SCHEMA_VERSION:
            raise wrong_version(path, schema_version)
        try:
            manifest = parse_table(cls, plain, str(path))
        except InputError as error:
            raise DamagedError(f"{error}; {_REBUILD}") from None
        try:
            parse_table(Summary, manifest.statistics, str(path), "statistics")
            manifest._require_plugin(folder)
            recipe = manifest.load_recipe(f"{path}: recipe")
        except GraphXAIDataError as error:
            if manifest.plugin is not None and isinstance(error, PluginError):
                raise
            raise manifest._error(str(error)) from None
        if problem := manifest._contradiction(recipe):
            raise manifest._error(f"{path}: {problem}")
        return manifest

    def _error(self, problem: str) -> GraphXAIDataError:
        """Return the error about a manifest that this version of its generator does not accept."""
        if self.plugin is None:
            return DamagedError(f"{problem}; {_REBUILD}")
        changed = f"{self.made_by} has changed since it made the build, or manifest.json was edited"
        return PluginError(f"{self.plugin_difference or changed}; {problem}")

    def _contradiction(self, recipe: Recipe) -> str | None:
        """Return where the manifest contradicts itself or its recipe, or None."""
        classes = recipe.schema.num_classes
        if not set(self.statistics["class_splits"]) <= {str(i) for i in range(classes)}:
            return "counts classes that do not exist"
        if (self.plugin is None) != (recipe.plugin is None):
            return "does not say which plug-in made it"
        if set(self.sources) != set(recipe.sources):
            return "does not name the recipe's sources"
        if tuple(entry.name for entry in self.shards) != shard_names(len(self.shards)):
            return "does not list its shards by number"
        counts = [entry.graphs for entry in self.shards]
        if min(counts, default=0) < 1 or sum(counts) != self.graphs:
            return f"counts {self.graphs} graphs, its shards {sum(counts)}"
        if (recipe.sha256, recipe.name) != (self.recipe_sha256, self.dataset):
            return "its recipe_sha256 or dataset is not that of its recipe"
        problem = self.meaning and self.meaning.problem(recipe.schema)
        return f"meaning: {problem}" if problem else None

    @property
    def has_rationale(self) -> bool:
        """Whether it is known which nodes and edges make the classes."""
        return self.statistics["rationale_nodes_mean"] is not None

    @property
    def has_usual_sources(self) -> bool:
        """Whether the build was made from the sources that its recipe names."""
        ids = {name: source.id for name, source in self.sources.items()}
        return bool(ids == self.recipe.get("sources", {}))

    def load_recipe(self, where: str = "recipe") -> Recipe:
        """Return the recipe that the dataset was built from."""
        return Recipe.from_dict(self.recipe, where)

    def _require_plugin(self, folder: str | Path) -> None:
        """Raise a `PluginError` unless the generator's package is here, in whatever version."""
        plugin, name = self.plugin, str(self.recipe.get("generator"))
        if plugin is None:
            return
        built = f"{folder}: built by {self.made_by}"
        register = f"; in Python, call graphxai_data.register('{name}', …) first"
        missing = f", which is not installed: pip install {plugin.package}"
        with suppress(PackageNotFoundError):
            missing = (
                f"; {plugin.package} {version(plugin.package or ' ')} is installed, but does not "
                f"offer it: pip install {plugin.package}=={plugin.version}"
            )
        try:
            here = plugin_origin(name)
        except PluginError as error:
            is_known = name in PLUGINS.names()  # but not unique
            step = f"; {error}" if is_known else missing if plugin.package else register
            raise PluginError(built + step) from None
        if here is None or here.package != plugin.package:
            here_words = "shipped" if here is None else here.words
            raise PluginError(
                f"{built}; the one of this name here is another ({here_words}): remove that, or "
                "delete the build"
            )

    @property
    def made_by(self) -> Origin | None:
        """The plug-in that made the build; None if its generator is shipped."""
        if self.plugin is None:
            return None
        name = str(self.recipe.get("generator"))
        if not is_name(name):
            name = "?"  # an edited manifest
        return Origin("generator", name, self.plugin.package, self.plugin.version)

    @property
    def plugin_difference(self) -> str | None:
        """A sentence about the plug-in if another version of it made the build, else None."""
        here, made_by = plugin_origin(str(self.recipe.get("generator"))), self.plugin
        if here is None or made_by is None or made_by.version == here.version:
            return None
        return (
            f"built by {here.package} {made_by.version}, here is {here.version}: "
            f"pip install {here.package}=={made_by.version} to check it"
        )

    def save(self, folder: Path) -> None:
        """Write `manifest.json` atomically."""
        write_atomically(folder / MANIFEST_NAME, (self.to_json() + "\n").encode())

    def to_json(self) -> str:
        """Return the text of `manifest.json`."""
        plain = asdict(self)
        for key in ("plugin", "meaning"):  # older versions do not know the keys
            if plain[key] is None:
                del plain[key]
        return json.dumps(plain, indent=2)


def load_recipe(name: str | Path | Recipe, root: str | Path, seed: int) -> Recipe:
    """Return a recipe; an error about an unknown dataset that is built names the missing plug-in.

    Raises:
        PluginError: there is such a build, made by a plug-in that is not here.
        InputError: the recipe is unknown or wrong.
    """
    try:
        return Recipe.load(name)
    except InputError:
        usable = is_name(str(name)) and not is_url(root)
        folder = local_path(root) / str(name) if usable else None
        if folder is not None and (folder / f"seed-{seed}").is_dir():
            Manifest.load(folder / f"seed-{seed}")
        raise


_REBUILD = "delete the build folder and build again"


def shard_names(count: int) -> tuple[str, ...]:
    """Return the file names of the shards of a build."""
    return tuple(f"shard-{i:05d}.h5" for i in range(count))


def software_versions(plugin: Origin | None = None) -> dict[str, str]:
    """Return the versions of Python, this package and the libraries that touch the data."""
    libraries = ("numpy", "scipy", "h5py", "networkx", "numba", "rdkit", "scikit-image")
    return {
        "graphxai-data": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in libraries},
        **({plugin.package: plugin.version} if plugin and plugin.package else {}),
    }


def reference_digest(manifest: Manifest) -> str | None:
    """Return the digest that `data/digests.toml` has for this recipe, seed and size, or None."""
    entry = read_toml(shipped("data") / "digests.toml").get(manifest.dataset, {})
    keys = ("recipe_sha256", "seed", "graphs")
    if any(entry.get(key) != getattr(manifest, key) for key in keys):
        return None
    return str(entry["content_sha256"]) if manifest.has_usual_sources else None


def reference_verdict(manifest: Manifest) -> str:
    """Return in words how a build compares with its digest in `data/digests.toml`."""
    reference = reference_digest(manifest)
    if reference is None and not manifest.has_usual_sources:
        return "not compared: made from other sources than the recipe's"
    if reference is None:
        return "none pinned for this recipe, seed and number of graphs"
    if reference == manifest.content_sha256:
        return "matches data/digests.toml"
    return f"DIFFERS from data/digests.toml ({reference})"
