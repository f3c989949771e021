"""Is a build what its recipe, seed and plan say? One pass over its shards, in order."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from graphxai_data.errors import DamagedError
from graphxai_data.generators import generator_module
from graphxai_data.graphs.columns import Columns
from graphxai_data.graphs.digest import ArrayDigest, widened
from graphxai_data.graphs.invariants import Findings, check_columns
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
    usual_sources: bool = True,
    check_graphs: bool = True,
) -> Survey:
    """Read every shard once: digests, statistics, invariants, and agreement with the plan.

    Args:
        shards: path, number of graphs and, where known, SHA-256 of each file, in order.
        recipe: what they were built from.
        seed: what they were built from.
        plan: of all graphs in them; None, where the source it would come from is not here.
        usual_sources: whether they were made from the recipe's own sources.
        check_graphs: check the invariants of every graph; not needed where they have just been.
    """
    found = Survey()
    digest, statistics = ArrayDigest(), Statistics()
    first = 0
    for path, graphs, file_sha256 in shards:
        try:
            shard = ShardReader(path, file_sha256)
            shard.check()
            part = plan.cut(first, graphs) if plan else None
            problems = _problems_of_shard(shard, recipe, seed, part, first)
            if check_graphs and not problems:
                problems = check_columns(shard.columns, shard.schema) or generator_module(
                    recipe.generator
                ).check(recipe.params, shard.columns)
            found.problems += [f"{path}: {problem}" for problem in problems]
            if not found.problems:
                found.shards.append(shard_entry(shard))
                digest.update(widened(shard.columns))
                statistics.update(shard.columns)
        except DamagedError as error:
            found.problems.append(str(error))
        first += graphs
    if plan is not None:
        found.problems += _torn_groups(plan)
    if not found.problems:
        found.content_sha256 = digest.hexdigest()
        found.statistics = statistics.to_dict()
        found.problems += check_expected(recipe, found.statistics, statistics.graphs, usual_sources)
    return found


def shard_entry(shard: ShardReader) -> ShardEntry:
    """What a manifest says of a shard."""
    return ShardEntry(
        shard.path.name, shard.sha256, len(shard), shard.file_sha256, shard.file_crc32
    )


def _problems_of_shard(
    shard: ShardReader, recipe: Recipe, seed: int, plan: Plan | None, first: int
) -> list[str]:
    """What of a shard is not as its place in the build demands."""
    identity = {"dataset": recipe.name, "recipe_sha256": recipe.sha256, "seed": seed}
    problems = [
        f"{key} {shard.identity[key]}, expected {value}"
        for key, value in identity.items()
        if shard.identity[key] != value
    ]
    if shard.schema != generator_module(recipe.generator).schema(recipe.params):
        problems.append("its features or classes are not the recipe's")
    if problems or plan is None:
        return problems
    return _differences_from_plan(shard.columns, plan, first)


def check_expected(
    recipe: Recipe, statistics: dict[str, Any], graphs: int, usual_sources: bool
) -> list[str]:
    """Statistics outside their recipe's tolerance, which widens for fewer graphs as noise does.

    Of graphs made from other sources than the recipe's, only the rationale's size is known; of some
    graphs of a fixed set nothing is.
    """
    given = getattr(generator_module(recipe.generator), "GIVEN", False)
    if given and graphs != recipe.params.graphs:
        return []
    widening = math.sqrt(max(1.0, recipe.params.graphs / graphs))
    problems = []
    for name, expected in recipe.expected.items():
        if not usual_sources and name != "rationale_nodes_mean":
            continue
        value = statistics[name]
        tolerance = expected.tolerance * widening
        if abs(value - expected.value) > tolerance:
            problems.append(
                f"{name} is {value:.3f}, the recipe expects {expected.value} ± {tolerance:.3g}"
            )
    return problems


def _differences_from_plan(columns: Columns, plan: Plan, first: int) -> list[str]:
    if not np.array_equal(columns["graph_id"], plan.index):
        return [f"does not hold graphs {first} to {first + len(plan.index) - 1}: a swapped shard?"]
    findings = Findings(columns)
    findings.require(columns["y"] == plan.label, "its class is not what the plan gave it")
    findings.require(columns["group"] == plan.group, "its group is not the plan's")
    findings.require(columns["split"] == plan.split, "its split is not the plan's")
    return findings.problems


def _torn_groups(plan: Plan) -> list[str]:
    homes = np.unique(plan.group * 4 + plan.split) // 4
    torn = homes[1:][homes[1:] == homes[:-1]]
    return [f"group {int(torn[0])} has graphs in two splits"] if len(torn) else []
