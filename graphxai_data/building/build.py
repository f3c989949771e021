"""Build: from a recipe and a seed to verified HDF5 shards.

recipe -> plan (class, group and split of every graph) -> shards, made by any engine -> survey of
the written files -> RINGS principles and floors of explanations -> manifest and cards -> final
name. Nothing imports torch.
"""

import logging
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from graphxai_data.building import engine as engines
from graphxai_data.building import finish
from graphxai_data.building.cards import write_cards
from graphxai_data.building.plan import make_plan, read_sources
from graphxai_data.building.staging import (
    ORDER_NAME,
    Order,
    difference,
    is_whole_shard,
    make_order,
    open_staging,
    refuse_foreign,
)
from graphxai_data.building.survey import problems_of_graphs, require_no_problems
from graphxai_data.building.verify import verify
from graphxai_data.errors import CheckFailedError, GraphXAIDataError
from graphxai_data.files import disk
from graphxai_data.files.plugins import blamed
from graphxai_data.files.store import StoreError
from graphxai_data.files.urls import is_url, local_path
from graphxai_data.graphs.record import Plan
from graphxai_data.graphs.shards import shard_bytes
from graphxai_data.manifest import EXTRAS, RINGS_NAME, Manifest, load_recipe, shard_names
from graphxai_data.progress import Progress, no_progress
from graphxai_data.recipe import Recipe
from graphxai_data.remote import RemoteBuild

log = logging.getLogger(__name__)


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
    """Build a dataset into `<root>/<dataset>/seed-<seed>/`, or keep an identical build.

    Only recipe, seed, graphs and sources decide the result. An interrupted build continues at its
    first missing shard.

    Args:
        name: a shipped dataset, the path of a recipe file, or a recipe.
        seed: any whole number from 0.
        root: folder of all builds, or its URL: then the build is made in the cache and published.
        jobs: worker processes, all cores by default.
        engine: "serial", "processes", "dask", or the address of a Dask scheduler.
        graphs: number of graphs instead of the recipe's; classes and splits keep their proportions.
        shard_size: graphs per shard.
        rings: run the quick check of the RINGS principles and write `rings.json`.
        sources: files, or ids of `data/sources.toml`, to use instead of the recipe's raw inputs.
        progress: called with (graphs done, graphs in total, what is being done).
        replace_existing: build again; an existing build is deleted once the new one is complete.
        wait: wait for another process that builds the same folder instead of raising an error.

    Raises:
        InputError: the arguments do not describe a build that can be made here.
        CheckFailedError: the graphs break an invariant, or a build of full size fails a principle
            that its recipe requires; nothing is published.
        DamagedError: an existing build in the folder is damaged.
    """
    progress = progress or no_progress
    order = make_order(load_recipe(name, root, seed), seed, graphs, shard_size, sources)
    recipe = order.recipe
    engines.check_engine(engine)
    jobs = engines.check_jobs(jobs)
    if is_url(root):
        remote = RemoteBuild.at(root, recipe.name, order.seed)
        build_in_cache = partial(
            build, recipe, seed, remote.root, jobs, engine, graphs, shard_size, rings, sources,
            progress, wait=wait,
        )  # fmt: skip
        return _build_at_url(remote, order, build_in_cache, replace_existing)

    folder = local_path(root) / recipe.name / f"seed-{order.seed}"
    with disk.explained_disk_errors(folder):
        refuse_foreign(folder)
        # Before the lock is taken: this must also work on a read-only disk.
        if folder.exists() and not replace_existing:
            return finish.keep_existing(folder, order, rings)

    plan = make_plan(recipe, order.seed, order.graphs, order.sources)
    plan, rejected = read_sources(plan, recipe, order.sources, order.seed)
    with disk.explained_disk_errors(folder), disk.folder_lock(folder, wait):
        disk.finish_replacing(folder)
        if folder.exists() and not replace_existing:
            return finish.keep_existing(folder, order, rings)
        staging = open_staging(folder, order)
        make_shards(staging, order, plan, engine, jobs, progress)
        manifest = finish.manifest_of(staging, order, plan, rejected)
        measurement = finish.measure_principles(staging, manifest, order) if rings else None
        floors = finish.measure_explanations(staging, manifest)
        finish.draw_classes(staging, order)
        manifest.save(staging)
        # Before the cards, which list every file of the folder.
        (staging / ORDER_NAME).unlink(missing_ok=True)
        write_cards(staging, manifest, recipe, measurement, floors)
        disk.publish(staging, folder)
        return manifest


def _build_at_url(
    remote: RemoteBuild,
    order: Order,
    build_in_cache: Callable[..., Manifest],
    replace_existing: bool,
) -> Manifest:
    """Build in the cache and publish the result, or keep an identical published build."""
    with remote.named():
        if remote.exists() and not replace_existing:
            was_measured = (remote.fetch() / RINGS_NAME).exists()
            manifest = build_in_cache(replace_existing=False)
            if not was_measured:
                try:
                    remote.publish(manifest, EXTRAS)
                except StoreError as error:  # the store may be read-only
                    log.warning("the measurement was not published: %s", error)
            return manifest
        # Fail before hours of work if the store cannot be written.
        remote.store.probe()
        replace_cached = replace_existing or not _can_continue(remote.folder, order)
        manifest = build_in_cache(replace_existing=replace_cached)
        remote.publish(manifest, replace_existing=replace_existing)
        return manifest


def _can_continue(folder: Path, order: Order) -> bool:
    """Return whether a folder of the cache is missing or has an undamaged build of this order."""
    if not folder.exists():
        return True
    try:
        return difference(Manifest.load(folder), order) is None and not verify(folder)
    except GraphXAIDataError as error:
        log.info("the build in the cache is made again: %s", error)
        return False


class ShardTask(NamedTuple):
    """What a worker needs to make one shard; `plan` has only the graphs of the shard."""

    name: str
    recipe: Recipe
    seed: int
    plan: Plan


def make_shards(
    staging: Path, order: Order, plan: Plan, engine: str, jobs: int, progress: Progress
) -> None:
    """Write all shards that an earlier run has not left in `staging`."""
    size = order.shard_size
    missing = [
        ShardTask(name, order.recipe, order.seed, plan.cut(i * size, size))
        for i, name in enumerate(shard_names(-(-order.graphs // size)))
        if not is_whole_shard(staging / name, order)
    ]
    done = order.graphs - sum(len(task.plan.index) for task in missing)
    what = f"building {order.recipe.name}"
    progress(done, order.graphs, what)
    jobs = min(jobs, max(len(missing), 1))
    plugin = order.recipe.plugin
    results = engines.run(make_shard, missing, engine=engine, jobs=jobs, plugin=plugin)
    try:
        for name, graphs, content in results:
            disk.write_atomically(staging / name, content)
            done += graphs
            progress(done, order.graphs, what)
    except CheckFailedError:
        # The code has to change before it can go on, so what it made so far is of no use.
        shutil.rmtree(staging)
        raise


def make_shard(task: ShardTask) -> tuple[str, int, bytes]:
    """Return name, number of graphs and file content of one shard; runs on any worker."""
    recipe = task.recipe
    with blamed(recipe.plugin):
        columns = recipe.generator_object.generate(task.plan, task.seed)
        require_no_problems(problems_of_graphs(recipe, columns), recipe.name)
        identity = recipe.identity(task.seed)
        content = shard_bytes(columns, recipe.schema, recipe.meaning, **identity)
    return task.name, len(task.plan.index), content
