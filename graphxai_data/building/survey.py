"""Survey: one pass over the shards of a build that checks them against recipe, seed and plan."""

import math
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from graphxai_data.errors import CheckFailedError, DamagedError
from graphxai_data.files.plugins import blamed, checked_texts
from graphxai_data.graphs.columns import Columns, names_problem
from graphxai_data.graphs.digest import ArrayDigest, widened
from graphxai_data.graphs.invariants import Findings, check_columns
from graphxai_data.graphs.meaning import Meaning
from graphxai_data.graphs.record import Plan
from graphxai_data.graphs.shards import ShardReader
from graphxai_data.graphs.summary import Statistics
from graphxai_data.manifest import ShardEntry
from graphxai_data.recipe import Recipe


@dataclass
class Survey:
    """What one pass over the shards of a build found."""

    content_sha256: str = ""
    statistics: dict[str, Any] = field(default_factory=dict)
    shards: list[ShardEntry] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def survey(
    shards: Iterable[tuple[Path, int, str | None]],
    recipe: Recipe,
    seed: int,
    plan: Plan | None,
    *,
    meaning: Meaning | None,
    usual_sources: bool = True,
    check_graphs: bool = True,
) -> Survey:
    """Read every shard once: digests, statistics, invariants, and agreement with the plan.

    A shard is given as path, number of graphs and, where known, SHA-256 of the file. The plan is
    None if it depends on a source that is not available. The shards have to say what `meaning`
    says, which is None in manifests of older versions. Right after a build, the invariants of
    every graph need not be checked again (`check_graphs`).
    """
    result = Survey()
    digest, statistics = ArrayDigest(), Statistics()
    first = 0
    for path, graphs, file_sha256 in shards:
        try:
            shard = ShardReader(path, file_sha256)
            shard.check()
            part = plan.cut(first, graphs) if plan else None
            problems = _problems_of_shard(shard, recipe, seed, part, first)
            if check_graphs and not problems:
                problems = problems_of_graphs(recipe, shard.columns)
            if shard.described != (meaning.attributes(shard.schema) if meaning else {}):
                problems.append("its names of classes, features or fields are not the manifest's")
            result.problems += [f"{path}: {problem}" for problem in problems]
            if not result.problems:
                result.shards.append(shard_entry(shard))
                digest.update(widened(shard.columns))
                statistics.update(shard.columns)
        except DamagedError as error:
            result.problems.append(str(error))
        first += graphs
    if plan is not None:
        result.problems += _split_groups(plan)
    if not result.problems:
        result.content_sha256 = digest.hexdigest()
        result.statistics = statistics.to_dict()
        result.problems += check_expected(
            recipe, result.statistics, statistics.graphs, usual_sources
        )
    return result


def problems_of_graphs(recipe: Recipe, columns: Columns) -> list[str]:
    """Return the graphs that break an invariant of all datasets, or else one of their own."""
    if problem := names_problem(columns, recipe.schema):
        return [problem]
    if problems := check_columns(columns, recipe.schema):
        return problems
    with blamed(recipe.plugin):
        return checked_texts(recipe.generator_object.check(columns), "check")


def require_no_problems(problems: list[str], dataset: str, staging: Path | None = None) -> None:
    """Delete `staging` and raise `CheckFailedError` if there are problems."""
    if not problems:
        return
    if staging:
        shutil.rmtree(staging)
    more = f" (and {len(problems) - 3} more)" if len(problems) > 3 else ""
    raise CheckFailedError(f"{dataset}: nothing published; {'; '.join(problems[:3])}{more}")


def shard_entry(shard: ShardReader) -> ShardEntry:
    """Return the entry of a shard in the manifest."""
    return ShardEntry(
        shard.path.name, shard.sha256, len(shard), shard.file_sha256, shard.file_crc32
    )


def _problems_of_shard(
    shard: ShardReader, recipe: Recipe, seed: int, plan: Plan | None, first: int
) -> list[str]:
    """Return where a shard disagrees with the recipe, the seed, or its part of the plan."""
    problems = [
        f"{key} {shard.identity[key]}, expected {value}"
        for key, value in recipe.identity(seed).items()
        if shard.identity[key] != value
    ]
    if shard.schema != recipe.schema:
        problems.append("its features or classes are not the recipe's")
    if problems or plan is None:
        return problems
    return _differences_from_plan(shard.columns, plan, first)


def tolerances(recipe: Recipe, graphs: int, usual_sources: bool) -> dict[str, float]:
    """Return the tolerances of the statistics that are checked: wider for fewer graphs.

    With sources other than the recipe's, only the size of the rationale is expected. A part of a
    fixed set of graphs has no expectations.
    """
    if recipe.generator_object.is_published and graphs != recipe.params.graphs:
        return {}
    widening = math.sqrt(max(1.0, recipe.params.graphs / graphs))
    return {
        name: expected.tolerance * widening
        for name, expected in recipe.expected.items()
        if usual_sources or name == "rationale_nodes_mean"
    }


def check_expected(
    recipe: Recipe, statistics: dict[str, Any], graphs: int, usual_sources: bool
) -> list[str]:
    """Return a sentence about each statistic outside the tolerance that is applied to it."""
    problems = []
    for name, tolerance in tolerances(recipe, graphs, usual_sources).items():
        value, expected = statistics[name], recipe.expected[name]
        if abs(value - expected.value) > tolerance:
            problems.append(
                f"{name} is {value:.3f}, the recipe expects {expected.value} ± {tolerance:.3g}"
            )
    return problems


def _differences_from_plan(columns: Columns, plan: Plan, first: int) -> list[str]:
    if not np.array_equal(columns["graph_id"], plan.index):
        return [f"does not hold graphs {first} to {first + len(plan.index) - 1}: a swapped shard?"]
    findings = Findings(columns)
    if columns["y"].dtype.kind != "f":  # a number is not planned
        findings.require(columns["y"] == plan.label, "its class is not the plan's")
    findings.require(columns["group"] == plan.group, "its group is not the plan's")
    findings.require(columns["split"] == plan.split, "its split is not the plan's")
    return findings.problems


def _split_groups(plan: Plan) -> list[str]:
    """Return a sentence about the first group with graphs in more than one split."""
    groups = np.unique(plan.group * 4 + plan.split) // 4
    repeated = groups[1:][groups[1:] == groups[:-1]]
    return [f"group {int(repeated[0])} has graphs in two splits"] if len(repeated) else []
