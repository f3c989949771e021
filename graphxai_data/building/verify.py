"""Verify: check that a build is undamaged, reproducible, and right about its ground truth."""

import logging
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from graphxai_data.building.plan import make_plan, read_sources
from graphxai_data.building.survey import Survey, survey
from graphxai_data.errors import CheckFailedError, DamagedError, InputError
from graphxai_data.files.plugins import blamed, checked_texts, described
from graphxai_data.files.raw import Source
from graphxai_data.files.urls import is_url, local_path
from graphxai_data.generators.base import Prover
from graphxai_data.graphs.digest import widened
from graphxai_data.graphs.record import GraphRecord, Plan
from graphxai_data.graphs.shards import ShardReader
from graphxai_data.manifest import FLOORS_NAME, RINGS_NAME, Manifest, reference_digest
from graphxai_data.recipe import Recipe
from graphxai_data.remote import verified
from graphxai_data.rings.floors import Floors
from graphxai_data.rings.verdict import Measurement
from graphxai_data.seeds import rng_for, spread
from graphxai_data.sources import find_source, refuse_unknown_sources, registry

log = logging.getLogger(__name__)

# Part of the message about a source that is not on this machine; a report looks for it.
WITHOUT_SOURCE = "without the file it was made from"

_MANY_GRAPHS = 1_000_000  # a plan of so many takes little time and memory


def verify(
    folder: str | Path, full: bool = False, sources: Mapping[str, str | Path] | None = None
) -> list[str]:
    """Return the problems of a build; an empty list if there are none.

    Checks the manifest, every digest, the invariants of every graph, the plan of classes, groups
    and splits, and the statistics. An independent method proves labels and masks of a random
    sample of graphs (10,000, for some datasets 2,000).

    Args:
        folder: a build folder, or its URL.
        full: prove every graph, draw every graph again from its seed, and compare.
        sources: the files that the build was made from, if they are not the shipped ones. Needed
            for `full`, and if classes come from a source.

    Raises:
        InputError: the folder is not a build.
        PluginError: the plug-in that made the build is not installed.
    """
    if is_url(folder):
        return verified(folder, lambda copy: verify(copy, full, sources))
    folder = local_path(folder)
    try:
        manifest = Manifest.load(folder)
    except DamagedError as error:
        return [str(error)]
    try:
        problems = _problems(folder, manifest, full, sources)
    except CheckFailedError as error:  # the plug-in itself does not work
        if manifest.plugin_difference is None:
            raise
        problems = [str(error)]
    if problems and (difference := manifest.plugin_difference):
        # The files may be whole, and only the plug-in another one.
        more = f" (and {len(problems) - 1} more)" if problems[1:] else ""
        return [f"{folder}: {difference}; found with this one: {problems[0]}{more}"]
    return problems


def _problems(
    folder: Path, manifest: Manifest, full: bool, sources: Mapping[str, str | Path] | None
) -> list[str]:
    """Return the problems of a build whose manifest is valid."""
    recipe = manifest.load_recipe()
    refuse_unknown_sources(recipe, sources or {})
    if problems := _problems_of_files(folder, manifest):
        return problems

    raw: dict[str, Source] = {}
    missing: list[str] = []
    plans_from_sources = recipe.generator_object.plans_from_sources
    if full or plans_from_sources:
        raw, missing = sources_of(folder, manifest, recipe, sources or {})
    plan = None
    if not (missing and plans_from_sources):
        plan = make_plan(recipe, manifest.seed, manifest.graphs, raw)
    shards = [(folder / entry.name, entry.graphs, entry.file_sha256) for entry in manifest.shards]
    result = survey(
        shards,
        recipe,
        manifest.seed,
        plan,
        meaning=manifest.meaning,
        usual_sources=manifest.has_usual_sources,
    )
    unlisted = set(folder.glob("shard-*.h5")) - {path for path, _, _ in shards}
    problems = result.problems
    problems += [f"{path}: not listed in manifest.json" for path in sorted(unlisted)]
    if problems:
        return problems
    problems += _problems_of_manifest(folder, manifest, result)
    if plan is not None:
        problems += _disproved(folder, manifest, recipe, raw, full)
    if plan is not None and full and not missing:
        problems += _not_reproduced(folder, manifest, recipe, plan, raw)
    return problems + missing


def _problems_of_files(folder: Path, manifest: Manifest) -> list[str]:
    """Return missing shards, a wrong folder name, or an impossible number of graphs."""
    paths = [folder / entry.name for entry in manifest.shards]
    problems = [
        f"{path}: no such shard; build the dataset again" for path in paths if not path.is_file()
    ]
    named_seed = re.fullmatch(r"seed-(\d+)", folder.resolve().name)
    if named_seed and int(named_seed.group(1)) != manifest.seed:
        problems.append(f"{folder}: is named {folder.name}, but holds seed {manifest.seed}")
    if not problems:
        # A graph takes at least one byte: do not plan billions of graphs that a manifest claims.
        most = max(_MANY_GRAPHS, sum(path.stat().st_size for path in paths))
        if manifest.graphs > most:
            problems.append(
                f"{folder}: manifest.json claims {manifest.graphs} graphs, more than fit"
            )
    return problems


def _problems_of_manifest(folder: Path, manifest: Manifest, result: Survey) -> list[str]:
    """Return where manifest, reference digest or measurements disagree with the shards."""
    problems = []
    for key in ("content_sha256", "statistics"):
        if getattr(result, key) != getattr(manifest, key):
            problems.append(f"{folder}: {key} in manifest.json is not that of the shards")
    if tuple(result.shards) != manifest.shards:
        problems.append(f"{folder}: the list of shards in manifest.json is not that of the files")
    reference = reference_digest(manifest)
    if reference not in (None, result.content_sha256):
        problems.append(
            f"{folder}: content digest {result.content_sha256}, "
            f"but the reference build has {reference} (data/digests.toml)"
        )
    try:
        measured = {RINGS_NAME: Measurement.load(folder), FLOORS_NAME: Floors.load(folder)}
    except DamagedError as error:
        return [*problems, str(error)]
    for name, result_on_disk in measured.items():
        if result_on_disk and result_on_disk.content_sha256 != manifest.content_sha256:
            problems.append(
                f"{folder}: {name} was measured on other graphs; run `graphxai-data rings` on it"
            )
    return problems


def sources_of(
    folder: Path, manifest: Manifest, recipe: Recipe, given: Mapping[str, str | Path]
) -> tuple[dict[str, Source], list[str]]:
    """Return the files that a build was made from, and a problem for each that is not here."""
    what = "proven" if recipe.generator_object.plans_from_sources else "drawn again"
    known = registry()
    sources: dict[str, Source] = {}
    problems = []
    for name, record in manifest.sources.items():
        if name in given:
            sources[name] = find_source(recipe, name, given[name])
        elif record.id in known:
            try:
                sources[name] = find_source(recipe, name, record.id)
            except InputError as error:  # neither shipped nor downloadable
                log.info("%s: %s", name, error)
        if name not in sources or sources[name].sha256 != record.sha256:
            problems.append(
                f"{folder}: cannot be {what} {WITHOUT_SOURCE}; pass "
                f"--source {name}=PATH ({record.file}, SHA-256 {record.sha256})"
            )
    return sources, problems


def _disproved(
    folder: Path, manifest: Manifest, recipe: Recipe, sources: dict[str, Source], full: bool
) -> Iterator[str]:
    """Yield graphs whose label or mask an independent method does not confirm."""
    with blamed(recipe.plugin):
        prover = recipe.generator_object.prover(sources)
        if prover is None and recipe.generator_object.has_prover:
            raise CheckFailedError("prover returned None; return an object, or leave it out")
    if prover is None:
        return
    count = manifest.graphs if full else min(recipe.generator_object.proof_sample, manifest.graphs)
    sample = spread(count, manifest.graphs, rng_for(manifest.seed, "verify/sample"))
    first = 0
    for entry in manifest.shards:
        in_shard = sample[(sample >= first) & (sample < first + entry.graphs)] - first
        if len(in_shard):
            shard = ShardReader(folder / entry.name)
            for i in in_shard.tolist():
                for problem in proven(prover, shard[i], recipe):
                    yield f"{shard.path}: graph {first + i}: {problem}"
        first += entry.graphs


def proven(prover: Prover, record: GraphRecord, recipe: Recipe) -> list[str]:
    """Return the problems that a prover has with a graph; an error of its own names the graph."""
    where = f"the prover fails on graph {record.meta['graph_id']}"
    with blamed(recipe.plugin):
        try:
            problems = prover.problems(record)
        except Exception as error:
            if recipe.plugin is None:
                raise
            raise CheckFailedError(f"{where}: {described(error)}") from error
        return checked_texts(problems, f"{where}: problems")


def _not_reproduced(
    folder: Path, manifest: Manifest, recipe: Recipe, plan: Plan, sources: dict[str, Source]
) -> Iterator[str]:
    """Yield shards that differ from what recipe and seed give."""
    plan, _ = read_sources(plan, recipe, sources, manifest.seed)
    first = 0
    for entry in manifest.shards:
        part = plan.cut(first, entry.graphs)
        with blamed(recipe.plugin):
            again = recipe.generator_object.generate(part, manifest.seed)
        stored = widened(ShardReader(folder / entry.name).columns)
        for name, array in stored.items():
            if not np.array_equal(array, again[name]):
                yield f"{folder / entry.name}: '{name}' is not what recipe and seed give"
        first += entry.graphs
