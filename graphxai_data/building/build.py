"""Build: from a recipe and a seed to verified HDF5 shards; the whole way on one page.

recipe -> plan (class, group and split of every graph) -> shards, made anywhere -> survey of what
was written -> RINGS principles -> manifest -> the folder gets its name. Nothing here imports torch.
"""

import logging
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from graphxai_data.building import engine as engines
from graphxai_data.building.at_url import build_at_url
from graphxai_data.building.cards import write_cards
from graphxai_data.building.finish import check_and_write
from graphxai_data.building.plan import make_plan, read_sources
from graphxai_data.building.staging import (
    ORDER_NAME,
    Order,
    is_made,
    keep_if_same,
    open_staging,
    refuse_foreign,
)
from graphxai_data.building.survey import survey
from graphxai_data.errors import CheckFailedError, whole_number
from graphxai_data.files.disk import (
    explained_disk_errors,
    finish_replacing,
    folder_lock,
    publish,
    write_atomically,
)
from graphxai_data.files.urls import is_url, local_path
from graphxai_data.generators import generator_module
from graphxai_data.graphs.invariants import check_columns
from graphxai_data.graphs.record import Plan
from graphxai_data.graphs.shards import SCHEMA_VERSION, ShardReader, shard_bytes
from graphxai_data.manifest import (
    PICTURE_NAME,
    RINGS_NAME,
    Manifest,
    SourceRecord,
    shard_names,
    software_versions,
)
from graphxai_data.recipe import Recipe
from graphxai_data.remote import RemoteBuild
from graphxai_data.rings.measure import measure_shards, required_failures
from graphxai_data.rings.plot import write_measurement
from graphxai_data.seeds import MAX_GRAPHS, MAX_SEED
from graphxai_data.sources import find_sources

log = logging.getLogger(__name__)

Progress = Callable[[int, int], None]


def build(
    name: str | Path | Recipe,
    seed: int = 0,
    root: str | Path = "data",
    jobs: int | None = None,
    engine: str = "processes",
    graphs: int | None = None,
    shard_size: int = 1000,
    rings: bool = True,
    sources: Mapping[str, str | Path] | None = None,
    progress: Progress | None = None,
    replace_existing: bool = False,
    wait: bool = False,
) -> Manifest:
    """Build a dataset into `<root>/<dataset>/seed-<seed>/`, or keep it if it is there and whole.

    The result depends on recipe, seed, graphs and sources alone. A build that was killed goes on at
    its first missing shard.

    Args:
        name: a shipped dataset, the path of a recipe file, or a recipe.
        seed: any whole number from 0.
        root: folder of all builds, or its URL: then the build is made in the cache and published.
        jobs: worker processes, all cores by default.
        engine: "serial", "processes", "dask", or the address of a Dask scheduler.
        graphs: how many graphs instead of the recipe's number, classes and splits in proportion.
        shard_size: graphs a shard.
        rings: measure the RINGS principles quickly, into `rings.json`.
        sources: files, or ids of `data/sources.toml`, to use instead of the recipe's raw inputs.
        progress: called with (graphs done, graphs in all).
        replace_existing: build anew; what is there is taken away when the new build is whole.
        wait: if another process is building the same, wait for it instead of giving up.

    Raises:
        InputError: what was asked for cannot be built.
        CheckFailedError: the graphs break an invariant, or a principle that the recipe requires
            fails in a build of its full size; nothing is published.
        DamagedError: an earlier build in that folder is no longer whole.
    """
    recipe = name if isinstance(name, Recipe) else Recipe.load(name)
    order = Order(
        recipe,
        find_sources(recipe, sources),
        whole_number("seed", seed, 0, MAX_SEED),
        whole_number("graphs", recipe.params.graphs if graphs is None else graphs, 1, MAX_GRAPHS),
        whole_number("shard_size", shard_size, 1, 10**6),
    )
    engines.check_engine(engine)
    jobs = engines.check_jobs(jobs)
    if is_url(root):
        there = RemoteBuild.at(root, recipe.name, order.seed)
        return build_at_url(
            there,
            order,
            lambda anew: build(
                recipe, seed, there.root, jobs, engine, graphs, shard_size, rings, sources,
                progress, replace_existing=anew, wait=wait,
            ),
            replace_existing,
        )  # fmt: skip
    folder = local_path(root) / recipe.name / f"seed-{order.seed}"
    tick = progress or (lambda done, total: None)
    with explained_disk_errors(folder):
        refuse_foreign(folder)
        if folder.exists() and not replace_existing:
            # Also where nothing can be written, not even a lock.
            return _kept(folder, order, rings)

    plan = make_plan(recipe, order.seed, order.graphs, order.sources)
    plan, rejected = read_sources(plan, recipe, order.sources, order.seed)
    with explained_disk_errors(folder), folder_lock(folder, wait):
        finish_replacing(folder)
        if folder.exists() and not replace_existing:
            return _kept(folder, order, rings)
        staging = open_staging(folder, order)
        missing = [t for t in _tasks(order, plan) if not is_made(staging / t.name, order)]
        done = order.graphs - sum(task.graphs for task in missing)
        tick(done, order.graphs)
        jobs = min(jobs, max(len(missing), 1))
        for made in engines.run(make_shard, missing, engine=engine, jobs=jobs):
            write_atomically(staging / made.name, made.content)
            done += made.graphs
            tick(done, order.graphs)

        shards = ((staging / task.name, task.graphs, None) for task in _tasks(order, plan))
        found = survey(
            shards, recipe, order.seed, plan, usual_sources=order.usual_sources, check_graphs=False
        )
        if found.problems:
            shutil.rmtree(staging)
            raise _check_failed(recipe, found.problems)
        manifest = Manifest(
            schema_version=SCHEMA_VERSION,
            dataset=recipe.name,
            seed=order.seed,
            graphs=order.graphs,
            shard_size=order.shard_size,
            content_sha256=found.content_sha256,
            recipe_sha256=recipe.sha256,
            recipe=recipe.to_dict(),
            statistics=found.statistics,
            shards=tuple(found.shards),
            sources={
                name: SourceRecord(source.id, source.path.name, source.sha256, rejected[name])
                for name, source in order.sources.items()
            },
            versions=software_versions(),
        )
        measured = None
        if rings:
            measured = measure_shards(staging, manifest, recipe)
            if failures := _broken_promises(required_failures(measured, recipe), order):
                shutil.rmtree(staging)
                raise _check_failed(recipe, failures)
            write_measurement(staging, measured)
        _draw_classes(order, staging)
        manifest.save(staging)
        (staging / ORDER_NAME).unlink(missing_ok=True)
        write_cards(staging, manifest, recipe, measured)
        publish(staging, folder)
        return manifest


def _kept(folder: Path, order: Order, rings: bool) -> Manifest:
    """What is there already; its principles are measured now if they were not before."""
    manifest = keep_if_same(folder, order)
    if rings and not (folder / RINGS_NAME).exists() and os.access(folder, os.W_OK):
        _, failures = check_and_write(folder, "quick")
        if broken := _broken_promises(failures, order):
            raise CheckFailedError(f"{folder}: {'; '.join(broken)}")
    return manifest


def _broken_promises(failures: list[str], order: Order) -> list[str]:
    """Principles that are required but fail; fewer graphs than the recipe's promise nothing."""
    if failures and order.graphs < order.recipe.params.graphs:
        log.warning("%s; let pass, since these are fewer graphs than the recipe's", failures[0])
        return []
    return failures


class ShardTask(NamedTuple):
    """What a worker needs to make one shard; `plan` is cut to its graphs."""

    name: str
    recipe: Recipe
    seed: int
    plan: Plan

    @property
    def graphs(self) -> int:
        """Number of graphs in the shard."""
        return len(self.plan.index)


class MadeShard(NamedTuple):
    """A finished shard on its way to the disk."""

    name: str
    graphs: int
    content: bytes


def make_shard(task: ShardTask) -> MadeShard:
    """Draw the graphs of a shard, check them, and return the file; runs on any worker."""
    generator, params = generator_module(task.recipe.generator), task.recipe.params
    columns = generator.generate(params, task.plan, task.seed)
    schema = generator.schema(params)
    problems = check_columns(columns, schema) or generator.check(params, columns)
    if problems:
        raise _check_failed(task.recipe, problems)
    content = shard_bytes(
        columns,
        schema,
        dataset=task.recipe.name,
        recipe_sha256=task.recipe.sha256,
        seed=task.seed,
    )
    return MadeShard(task.name, task.graphs, content)


def _tasks(order: Order, plan: Plan) -> Iterator[ShardTask]:
    for i, name in enumerate(shard_names(-(-order.graphs // order.shard_size))):
        part = plan.cut(i * order.shard_size, order.shard_size)
        yield ShardTask(name, order.recipe, order.seed, part)


def _draw_classes(order: Order, folder: Path) -> None:
    """Draw one graph of each class into the folder, where there is a way to draw them."""
    generator = generator_module(order.recipe.generator)
    if not hasattr(generator, "picture"):
        return
    records = (r for path in sorted(folder.glob("shard-*.h5")) for r in ShardReader(path))
    picture = generator.picture(order.recipe.params, records, order.sources)
    write_atomically(folder / PICTURE_NAME, picture.encode())


def _check_failed(recipe: Recipe, problems: list[str]) -> CheckFailedError:
    more = f" (and {len(problems) - 3} more)" if len(problems) > 3 else ""
    return CheckFailedError(f"{recipe.name}: nothing published; " + "; ".join(problems[:3]) + more)
