"""Order: what is to be built; and what of it is there already, finished or not."""

import hashlib
import json
import logging
import shutil
from dataclasses import dataclass
from pathlib import Path

from graphxai_data.building.verify import verify
from graphxai_data.errors import DamagedError, InputError
from graphxai_data.files.disk import sweep, write_atomically
from graphxai_data.files.raw import Source
from graphxai_data.generators import generator_module
from graphxai_data.graphs.shards import SCHEMA_VERSION, ShardReader
from graphxai_data.manifest import MANIFEST_NAME, Manifest, software_versions
from graphxai_data.recipe import Recipe
from graphxai_data.sources import registry

log = logging.getLogger(__name__)

ORDER_NAME = "order.json"


@dataclass(frozen=True)
class Order:
    """What is to be built. Two orders that are equal may share finished shards."""

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
        """All that decides the bytes of the shards."""
        return json.dumps(
            {
                "schema_version": SCHEMA_VERSION,
                "recipe_sha256": self.recipe.sha256,
                "seed": self.seed,
                "graphs": self.graphs,
                "shard_size": self.shard_size,
                "sources": {name: source.sha256 for name, source in self.sources.items()},
                "versions": software_versions(),
            }
        )


def open_staging(folder: Path, order: Order) -> Path:
    """The folder under its temporary name: an earlier one of the same order, or a new one.

    The name tells the order, so that an unfinished build of something else is left alone.
    """
    digest = hashlib.sha256(order.to_json().encode()).hexdigest()
    staging = folder.with_name(f".{folder.name}.{digest[:16]}.partial")
    order_file = staging / ORDER_NAME
    # The order is taken out before the cards are written, which name every file of a build.
    finished = (staging / MANIFEST_NAME).is_file() and not order_file.exists()
    if finished or _is_order(order_file, order):
        log.info("going on with the unfinished build in %s", staging)
        sweep(staging)
        return staging
    if staging.exists():
        shutil.rmtree(staging)
    staging.mkdir(parents=True)
    write_atomically(order_file, order.to_json().encode())
    return staging


def _is_order(path: Path, order: Order) -> bool:
    return path.is_file() and path.read_bytes() == order.to_json().encode()


def is_made(path: Path, order: Order) -> bool:
    """Whether an earlier run left this shard, and left it whole: every byte as it was written."""
    if not path.exists():
        return False
    recipe = order.recipe
    try:
        shard = ShardReader(path)
        shard.check()
        shard.check_bytes(
            generator_module(recipe.generator).schema(recipe.params),
            dataset=recipe.name,
            recipe_sha256=recipe.sha256,
            seed=order.seed,
        )
    except DamagedError as error:
        log.warning("made again: %s", error)
        return False
    return True


def refuse_foreign(folder: Path) -> None:
    """An `InputError` if a folder is there that no build has made."""
    if folder.exists() and not (folder / MANIFEST_NAME).is_file():
        raise InputError(
            f"{folder}: exists but is not a graphxai-data build (no {MANIFEST_NAME} in it); "
            "move it away or choose another --root"
        )


def difference(manifest: Manifest, order: Order) -> str | None:
    """How a build is another than the one asked for; None if it is that one."""
    wanted = {
        "recipe_sha256": order.recipe.sha256,
        "seed": order.seed,
        "graphs": order.graphs,
    }
    for key, value in wanted.items():
        if getattr(manifest, key) != value:
            return f"another build ({key} {getattr(manifest, key)}, asked for {value})"
    for name, source in order.sources.items():
        if name not in manifest.sources or manifest.sources[name].sha256 != source.sha256:
            return f"a build from another file for source '{name}'"
    return None


def keep_if_same(folder: Path, order: Order) -> Manifest:
    """The manifest of the build that is there already, if it is the one asked for and whole."""
    manifest = Manifest.load(folder)
    if other := difference(manifest, order):
        raise InputError(f"{folder}: holds {other}; remove it or choose another --root")
    # The id of a known source; of a user's own file, where it lies.
    known = registry()
    sources = {n: s.id if s.id in known else s.path for n, s in order.sources.items()}
    problems = verify(folder, sources=sources)
    if problems:
        more = f" (and {len(problems) - 1} more; `verify` lists all)" if problems[1:] else ""
        raise DamagedError(problems[0] + more)
    log.info("%s is there already and whole", folder)
    return manifest
