"""Staging: the order of a build, and the temporary folder in which its shards are collected."""

import hashlib
import json
import logging
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from graphxai_data.errors import DamagedError, InputError, whole_number
from graphxai_data.files.disk import sweep, write_atomically
from graphxai_data.files.raw import Source
from graphxai_data.generators import code_digest
from graphxai_data.graphs.shards import SCHEMA_VERSION, ShardReader
from graphxai_data.manifest import MANIFEST_NAME, Manifest, software_versions
from graphxai_data.recipe import Recipe
from graphxai_data.seeds import MAX_GRAPHS, MAX_SEED
from graphxai_data.sources import find_sources

log = logging.getLogger(__name__)

ORDER_NAME = "order.json"


@dataclass(frozen=True)
class Order:
    """What to build. Builds of equal orders can share finished shards."""

    recipe: Recipe
    sources: dict[str, Source]
    seed: int
    graphs: int
    shard_size: int

    @property
    def usual_sources(self) -> bool:
        """Whether the sources are those that the recipe names."""
        return {name: source.id for name, source in self.sources.items()} == self.recipe.sources

    def to_json(self) -> str:
        """Return everything that decides the bytes of the shards."""
        # A plug-in that is being written changes without a new version.
        code = {} if self.recipe.plugin is None else {"code": code_digest(self.recipe.generator)}
        return json.dumps(
            code
            | {
                "schema_version": SCHEMA_VERSION,
                "recipe_sha256": self.recipe.sha256,
                "seed": self.seed,
                "graphs": self.graphs,
                "shard_size": self.shard_size,
                "sources": {name: source.sha256 for name, source in self.sources.items()},
                "versions": software_versions(self.recipe.plugin),
            }
        )


def make_order(
    name: str | Path | Recipe,
    seed: int,
    graphs: int | None,
    shard_size: int,
    sources: Mapping[str, str | Path] | None,
) -> Order:
    """Return the order of a build, its arguments checked and its sources found."""
    recipe = name if isinstance(name, Recipe) else Recipe.load(name)
    return Order(
        recipe,
        find_sources(recipe, sources),
        whole_number("seed", seed, 0, MAX_SEED),
        whole_number("graphs", recipe.params.graphs if graphs is None else graphs, 1, MAX_GRAPHS),
        whole_number("shard_size", shard_size, 1, 10**6),
    )


def open_staging(folder: Path, order: Order) -> Path:
    """Return the temporary folder of an order, with the shards of an interrupted run if any.

    Its name contains a digest of the order: unfinished builds of other orders are left alone.
    """
    content = order.to_json().encode()
    digest = hashlib.sha256(content).hexdigest()
    staging = folder.with_name(f".{folder.name}.{digest[:16]}.partial")
    order_file = staging / ORDER_NAME
    # The order file is deleted between manifest and cards, see `build`.
    has_manifest = (staging / MANIFEST_NAME).is_file() and not order_file.exists()
    if has_manifest or (order_file.is_file() and order_file.read_bytes() == content):
        log.info("continuing the unfinished build in %s", staging)
        sweep(staging)
        return staging
    if staging.exists():
        shutil.rmtree(staging)
    staging.mkdir(parents=True)
    write_atomically(order_file, content)
    return staging


def is_whole_shard(path: Path, order: Order) -> bool:
    """Return whether an earlier run has left this shard, every byte as it was written."""
    if not path.exists():
        return False
    recipe = order.recipe
    try:
        shard = ShardReader(path)
        shard.check()
        shard.check_bytes(recipe.schema, recipe.meaning, **recipe.identity(order.seed))
    except DamagedError as error:
        log.warning("this shard is made again: %s", error)
        return False
    return True


def refuse_foreign(folder: Path) -> None:
    """Raise `InputError` if a folder exists that is not a build."""
    if folder.exists() and not (folder / MANIFEST_NAME).is_file():
        raise InputError(
            f"{folder}: exists but is not a graphxai-data build (no {MANIFEST_NAME} in it); "
            "move it away or choose another --root"
        )


def difference(manifest: Manifest, order: Order) -> str | None:
    """Return how an existing build differs from an order, or None if it is the same."""
    expected = {"recipe_sha256": order.recipe.sha256, "seed": order.seed, "graphs": order.graphs}
    for key, value in expected.items():
        if getattr(manifest, key) != value:
            return f"another build ({key} {getattr(manifest, key)}, asked for {value})"
    for name, source in order.sources.items():
        if name not in manifest.sources or manifest.sources[name].sha256 != source.sha256:
            return f"a build from another file for source '{name}'"
    return None
