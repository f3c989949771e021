"""Build: from a recipe and a seed to verified HDF5 shards.

recipe -> plan (class, group and split of every graph) -> shards, made by any engine -> survey of
the written files -> RINGS principles -> manifest and cards -> final name. Nothing imports torch.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from graphxai_data.building import engine as engines
from graphxai_data.building.at_url import build_at_url
from graphxai_data.building.finish import (
    draw_classes,
    keep_existing,
    manifest_of,
    measure_principles,
    write_manifest_and_cards,
)
from graphxai_data.building.plan import make_plan, read_sources
from graphxai_data.building.staging import (
    Order,
    is_whole_shard,
    make_order,
    open_staging,
    refuse_foreign,
)
from graphxai_data.building.survey import problems_of_graphs, require_no_problems
from graphxai_data.files.disk import (
    explained_disk_errors,
    finish_replacing,
    folder_lock,
    publish,
    write_atomically,
)
from graphxai_data.files.urls import is_url, local_path
from graphxai_data.generators import generator_module
from graphxai_data.graphs.record import Plan
from graphxai_data.graphs.shards import shard_bytes
from graphxai_data.manifest import Manifest, shard_names
from graphxai_data.progress import Progress, no_progress
from graphxai_data.recipe import Recipe
from graphxai_data.remote import RemoteBuild


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
    progress: Progress = no_progress,
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
    order = make_order(name, seed, graphs, shard_size, sources)
    recipe = order.recipe
    engines.check_engine(engine)
    jobs = engines.check_jobs(jobs)
    if is_url(root):
        remote = RemoteBuild.at(root, recipe.name, order.seed)
        build_in_cache = partial(
            build, recipe, seed, remote.root, jobs, engine, graphs, shard_size, rings, sources,
            progress, wait=wait,
        )  # fmt: skip
        return build_at_url(remote, order, build_in_cache, replace_existing)

    folder = local_path(root) / recipe.name / f"seed-{order.seed}"
    with explained_disk_errors(folder):
        refuse_foreign(folder)
        # Before the lock is taken: this must also work on a read-only disk.
        if folder.exists() and not replace_existing:
            return keep_existing(folder, order, rings)

    plan = make_plan(recipe, order.seed, order.graphs, order.sources)
    plan, rejected = read_sources(plan, recipe, order.sources, order.seed)
    with explained_disk_errors(folder), folder_lock(folder, wait):
        finish_replacing(folder)
        if folder.exists() and not replace_existing:
            return keep_existing(folder, order, rings)
        staging = open_staging(folder, order)
        make_shards(staging, order, plan, engine, jobs, progress)
        manifest = manifest_of(staging, order, plan, rejected)
        measurement = measure_principles(staging, manifest, order) if rings else None
        draw_classes(staging, order)
        write_manifest_and_cards(staging, manifest, recipe, measurement)
        publish(staging, folder)
        return manifest


class ShardTask(NamedTuple):
    """What a worker needs to make one shard; `plan` has only the graphs of the shard."""

    name: str
    recipe: Recipe
    seed: int
    plan: Plan

    @property
    def graphs(self) -> int:
        """Number of graphs in the shard."""
        return len(self.plan.index)


def make_shards(
    staging: Path, order: Order, plan: Plan, engine: str, jobs: int, progress: Progress
) -> None:
    """Write all shards that an earlier run has not left in `staging`."""
    missing = [t for t in _tasks(order, plan) if not is_whole_shard(staging / t.name, order)]
    done = order.graphs - sum(task.graphs for task in missing)
    what = f"building {order.recipe.name}"
    progress(done, order.graphs, what)
    jobs = min(jobs, max(len(missing), 1))
    for name, graphs, content in engines.run(make_shard, missing, engine=engine, jobs=jobs):
        write_atomically(staging / name, content)
        done += graphs
        progress(done, order.graphs, what)


def make_shard(task: ShardTask) -> tuple[str, int, bytes]:
    """Draw and check the graphs of one shard; runs on any worker.

    Returns:
        Name of the shard, number of graphs, and content of the file.
    """
    recipe, seed = task.recipe, task.seed
    generator = generator_module(recipe.generator)
    columns = generator.generate(recipe.params, task.plan, seed)
    schema = generator.schema(recipe.params)
    require_no_problems(problems_of_graphs(recipe, columns), recipe.name)
    content = shard_bytes(
        columns, schema, dataset=recipe.name, recipe_sha256=recipe.sha256, seed=seed
    )
    return task.name, task.graphs, content


def _tasks(order: Order, plan: Plan) -> Iterator[ShardTask]:
    for i, name in enumerate(shard_names(-(-order.graphs // order.shard_size))):
        part = plan.cut(i * order.shard_size, order.shard_size)
        yield ShardTask(name, order.recipe, order.seed, part)
