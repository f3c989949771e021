"""Verify: is a build whole, is it what its recipe and seed give, and is its ground truth true?"""

import logging
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from graphxai_data.building.plan import make_plan, plans_from_sources, read_sources
from graphxai_data.building.survey import survey
from graphxai_data.errors import DamagedError, InputError
from graphxai_data.files.raw import Source
from graphxai_data.files.urls import is_url, local_path
from graphxai_data.generators import generator_module
from graphxai_data.graphs.digest import widened
from graphxai_data.graphs.record import Plan
from graphxai_data.graphs.shards import ShardReader
from graphxai_data.manifest import Manifest, reference_digest
from graphxai_data.recipe import Recipe
from graphxai_data.remote import verified
from graphxai_data.rings.verdict import Measurement
from graphxai_data.seeds import rng_for, spread
from graphxai_data.sources import find_source, refuse_unknown_sources, registry

log = logging.getLogger(__name__)

_SURELY_PLANNED = 1_000_000


def verify(
    folder: str | Path, full: bool = False, sources: Mapping[str, str | Path] | None = None
) -> list[str]:
    """Problems of a build, empty when it is whole.

    Always: manifest, every digest, the invariants of every graph, the plan of classes, groups and
    splits, the statistics, and the independent proof of 10,000 graphs (2,000 of some), a random
    sample where there are more.

    Args:
        folder: a build folder, or its URL.
        full: prove every graph, and draw every graph again from its seed and compare.
        sources: the files that the build was made from, where they are not the shipped ones.
            Needed for `full`, and where classes come from a source.

    Raises:
        InputError: the folder is not a build at all.
    """
    if is_url(folder):
        return verified(folder, lambda copy: verify(copy, full, sources))
    folder = local_path(folder)
    try:
        manifest = Manifest.load(folder)
    except DamagedError as error:
        return [str(error)]
    recipe = manifest.load_recipe()
    refuse_unknown_sources(recipe, sources or {})
    shards = [(folder / entry.name, entry.graphs, entry.file_sha256) for entry in manifest.shards]
    problems = [
        f"{path}: no such shard; build the dataset again"
        for path, _, _ in shards
        if not path.is_file()
    ]
    named_seed = re.fullmatch(r"seed-(\d+)", folder.resolve().name)
    if named_seed and int(named_seed.group(1)) != manifest.seed:
        problems.append(f"{folder}: is named {folder.name}, but holds seed {manifest.seed}")
    if not problems and manifest.graphs > max(_SURELY_PLANNED, _bytes_of(shards)):
        # No build has more graphs than bytes; what a manifest claims beyond that is not planned.
        problems.append(f"{folder}: manifest.json claims {manifest.graphs} graphs, more than fit")
    if problems:
        return problems

    planned_from_sources = plans_from_sources(recipe)
    raw: dict[str, Source] = {}
    missing: list[str] = []
    if full or planned_from_sources:
        raw, missing = _sources_of(folder, manifest, recipe, sources or {})
    plan = None
    if not (missing and planned_from_sources):
        plan = make_plan(recipe, manifest.seed, manifest.graphs, raw)
    found = survey(shards, recipe, manifest.seed, plan, usual_sources=manifest.has_usual_sources)
    problems = found.problems
    strays = set(folder.glob("shard-*.h5")) - {path for path, _, _ in shards}
    problems += [f"{path}: not listed in manifest.json" for path in sorted(strays)]
    if problems:
        return problems
    for key in ("content_sha256", "statistics"):
        if getattr(found, key) != getattr(manifest, key):
            problems.append(f"{folder}: {key} in manifest.json is not that of the shards")
    if tuple(found.shards) != manifest.shards:
        problems.append(f"{folder}: the list of shards in manifest.json is not that of the files")
    reference = reference_digest(manifest)
    if reference not in (None, found.content_sha256):
        problems.append(
            f"{folder}: content digest {found.content_sha256}, "
            f"but the reference build has {reference} (data/digests.toml)"
        )
    problems += _other_measurement(folder, manifest)
    if plan is not None:
        problems += _disproved(folder, manifest, recipe, raw, full)
    if plan is not None and full and not missing:
        problems += _not_reproduced(folder, manifest, recipe, plan, raw)
    problems += missing
    return problems


def _bytes_of(shards: list[tuple[Path, int, str]]) -> int:
    return sum(path.stat().st_size for path, _, _ in shards)


def _other_measurement(folder: Path, manifest: Manifest) -> list[str]:
    """Whether `rings.json` is not about this build."""
    try:
        measured = Measurement.load(folder)
    except DamagedError as error:
        return [str(error)]
    if measured is None or measured.content_sha256 == manifest.content_sha256:
        return []
    return [f"{folder}: rings.json was measured on other graphs; `graphxai-data rings` mends it"]


def _sources_of(
    folder: Path, manifest: Manifest, recipe: Recipe, chosen: Mapping[str, str | Path]
) -> tuple[dict[str, Source], list[str]]:
    """The very files that a build was made from, or why they are not here."""
    what = "proven" if plans_from_sources(recipe) else "drawn again"
    known = registry()
    sources: dict[str, Source] = {}
    problems = []
    for name, made_from in manifest.sources.items():
        if name in chosen:
            sources[name] = find_source(recipe, name, chosen[name])
        elif made_from.id in known:
            try:
                sources[name] = find_source(recipe, name, made_from.id)
            except InputError as error:  # neither shipped, nor to be had from here
                log.info("%s: %s", name, error)
        if name not in sources or sources[name].sha256 != made_from.sha256:
            problems.append(
                f"{folder}: cannot be {what} without the file it was made from; pass "
                f"--source {name}=PATH ({made_from.file}, SHA-256 {made_from.sha256})"
            )
    return sources, problems


def _disproved(
    folder: Path, manifest: Manifest, recipe: Recipe, sources: dict[str, Source], full: bool
) -> Iterator[str]:
    """Graphs whose label or mask an independent method does not confirm."""
    prover = generator_module(recipe.generator).Prover(recipe.params, sources)
    count = manifest.graphs if full else min(prover.sample, manifest.graphs)
    chosen = spread(count, manifest.graphs, rng_for(manifest.seed, "verify/sample"))
    first = 0
    for entry in manifest.shards:
        inside = chosen[(chosen >= first) & (chosen < first + entry.graphs)] - first
        if len(inside):
            shard = ShardReader(folder / entry.name)
            for i in inside.tolist():
                for problem in prover.problems(shard[i]):
                    yield f"{shard.path}: graph {first + i}: {problem}"
        first += entry.graphs


def _not_reproduced(
    folder: Path,
    manifest: Manifest,
    recipe: Recipe,
    plan: Plan,
    sources: dict[str, Source],
) -> Iterator[str]:
    """Shards that recipe and seed do not give again."""
    plan, _ = read_sources(plan, recipe, sources, manifest.seed)
    first = 0
    for entry in manifest.shards:
        part = plan.cut(first, entry.graphs)
        again = generator_module(recipe.generator).generate(recipe.params, part, manifest.seed)
        stored = widened(ShardReader(folder / entry.name).columns)
        for name, array in stored.items():
            if not np.array_equal(array, again[name]):
                yield f"{folder / entry.name}: '{name}' is not what recipe and seed give"
        first += entry.graphs
