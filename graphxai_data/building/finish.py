"""Finish: manifest, RINGS measurement, picture and cards of a build whose shards are complete."""

import logging
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import numpy as np

from graphxai_data.building.cards import write_cards
from graphxai_data.building.staging import Order, difference
from graphxai_data.building.survey import require_no_problems, survey
from graphxai_data.building.verify import verify
from graphxai_data.errors import CheckFailedError, DamagedError, InputError
from graphxai_data.files.disk import explained_disk_errors, write_atomically
from graphxai_data.files.plugins import blamed
from graphxai_data.generators.base import Generator
from graphxai_data.graphs.record import Plan
from graphxai_data.graphs.schema import Schema
from graphxai_data.graphs.shards import SCHEMA_VERSION, ShardReader
from graphxai_data.manifest import (
    FLOORS_NAME,
    PICTURE_NAME,
    Manifest,
    PluginRecord,
    SourceRecord,
    shard_names,
    software_versions,
)
from graphxai_data.metrics import count_true
from graphxai_data.progress import Progress, no_progress
from graphxai_data.rings.floors import Floors, measure_floors
from graphxai_data.rings.measure import measure_shards, required_failures
from graphxai_data.rings.plot import write_measurement
from graphxai_data.rings.verdict import Measurement
from graphxai_data.sources import registry

log = logging.getLogger(__name__)


def manifest_of(
    staging: Path, order: Order, plan: Plan, rejected: dict[str, dict[str, int]]
) -> Manifest:
    """Return the manifest of the shards in `staging`, after checking them against the plan."""
    recipe, size = order.recipe, order.shard_size
    meaning = recipe.meaning
    shards = (
        (staging / name, min(size, order.graphs - i * size), None)
        for i, name in enumerate(shard_names(-(-order.graphs // size)))
    )
    result = survey(
        shards,
        recipe,
        order.seed,
        plan,
        meaning=meaning,
        usual_sources=order.usual_sources,
        check_graphs=False,
    )
    require_no_problems(result.problems, recipe.name, staging)
    return Manifest(
        schema_version=SCHEMA_VERSION,
        dataset=recipe.name,
        seed=order.seed,
        graphs=order.graphs,
        shard_size=size,
        content_sha256=result.content_sha256,
        recipe_sha256=recipe.sha256,
        recipe=recipe.to_dict(),
        statistics=result.statistics,
        shards=tuple(result.shards),
        sources={
            name: SourceRecord(source.id, source.path.name, source.sha256, rejected[name])
            for name, source in order.sources.items()
        },
        versions=software_versions(recipe.plugin),
        plugin=PluginRecord.of(recipe.plugin),
        meaning=meaning,
    )


def measure_principles(staging: Path, manifest: Manifest, order: Order) -> Measurement:
    """Run the quick RINGS check and write its result into `staging`."""
    measurement = measure_shards(staging, manifest)
    failures = _failures_at_full_size(required_failures(measurement, order.recipe), order)
    require_no_problems(failures, order.recipe.name, staging)
    write_measurement(staging, measurement)
    return measurement


def measure_explanations(staging: Path, manifest: Manifest) -> Floors | None:
    """Measure and write the floors of explanations; None if the build has no rationale."""
    if not manifest.has_rationale:
        return None
    floors = measure_floors(staging, manifest)
    floors.save(staging)
    return floors


def draw_classes(staging: Path, order: Order) -> None:
    """Draw one graph of each class, if the generator can draw its graphs.

    Where the label is a number, those with the lowest, the middle and the highest one are drawn.
    """
    recipe = order.recipe
    if type(recipe.generator_object).picture is Generator.picture:
        return
    paths = [staging / name for name in shard_names(-(-order.graphs // order.shard_size))]
    places = (divmod(i, order.shard_size) for i in _drawn(paths, recipe.schema))
    records = [ShardReader(paths[shard])[i] for shard, i in places]
    with blamed(recipe.plugin):
        picture: Any = recipe.generator_object.picture(records, order.sources)
        if not isinstance(picture, str | None):
            raise CheckFailedError(f"picture returned {type(picture).__name__}, expected an SVG")
    if picture is not None:
        write_atomically(staging / PICTURE_NAME, picture.encode())


def _drawn(paths: Iterable[Path], schema: Schema) -> list[int]:
    """Return the positions of the graphs to draw, in the order of their labels.

    The first graph of each class is drawn, preferably one whose rationale is not null.
    """
    labels, nulls = [], []
    for path in paths:
        columns = ShardReader(path, mapped=True).columns
        labels.append(columns["y"].copy())
        null = np.zeros(len(labels[-1]), bool)
        if schema.has_null:
            null = count_true(columns["node_mask"], columns["node_ptr"]) == 0
        nulls.append(null)
    label = np.concatenate(labels)
    if schema.label == "number":
        order = np.argsort(label, kind="stable").tolist()
        return list(dict.fromkeys((order[0], order[len(order) // 2], order[-1])))
    order = np.lexsort((np.concatenate(nulls), label))
    _, first = np.unique(label[order], return_index=True)
    positions: list[int] = order[first].tolist()
    return positions


def keep_existing(folder: Path, order: Order, rings: bool) -> Manifest:
    """Return the manifest of an existing build if it is the ordered one and undamaged.

    RINGS principles and floors are measured now if `rings` is true and they were not measured
    before.
    """
    manifest = Manifest.load(folder)
    if other := difference(manifest, order):
        raise InputError(f"{folder}: holds {other}; remove it or choose another --root")
    known = registry()
    sources = {n: s.id if s.id in known else s.path for n, s in order.sources.items()}
    if problems := verify(folder, sources=sources):
        more = f" (and {len(problems) - 1} more; `verify` lists all)" if problems[1:] else ""
        raise DamagedError(problems[0] + more)
    log.info("%s exists already and is undamaged", folder)
    if manifest.plugin_difference:
        log.warning(
            "%s is kept: %s, or delete it to build it again", folder, manifest.plugin_difference
        )
    if rings and os.access(folder, os.W_OK):
        failures = _measure_missing(folder, manifest)
        if failures := _failures_at_full_size(failures, order):
            raise CheckFailedError(f"{folder}: {'; '.join(failures)}")
    return manifest


def _measure_missing(folder: Path, manifest: Manifest) -> list[str]:
    """Measure what an existing build lacks, and return required principles that fail.

    A measurement that exists is kept: it may be a full one, which takes hours.
    """
    measurement = Measurement.load(folder)
    if measurement is None:
        return check_and_write(folder, "quick")[1]
    if manifest.has_rationale and not (folder / FLOORS_NAME).exists():
        with explained_disk_errors(folder):
            floors = measure_explanations(folder, manifest)
            write_cards(folder, manifest, manifest.load_recipe(), measurement, floors)
    return []


def _failures_at_full_size(failures: list[str], order: Order) -> list[str]:
    """Return the failures of required principles, or none for a build of fewer graphs."""
    if failures and order.graphs < order.recipe.params.graphs:
        log.warning("%s; ignored because the build has fewer graphs than its recipe", failures[0])
        return []
    return failures


def check_and_write(
    folder: Path,
    depth: Literal["quick", "full"],
    seed: int = 0,
    progress: Progress = no_progress,
    **options: Any,
) -> tuple[Measurement, list[str]]:
    """Measure the RINGS principles and the floors of a build, and write results and cards.

    Returns:
        The measurement, and a sentence about each required principle that fails.
    """
    manifest = Manifest.load(folder)
    recipe = manifest.load_recipe()
    if depth == "full":
        options |= {"progress": progress, "resume": folder / ".rings.partial.json"}
    measurement = measure_shards(folder, manifest, depth, seed, **options)
    with explained_disk_errors(folder):
        write_measurement(folder, measurement)
        floors = measure_explanations(folder, manifest)
        write_cards(folder, manifest, recipe, measurement, floors)
    return measurement, required_failures(measurement, recipe)
