"""Invariants: of graphs, whatever the dataset, and of a whole build; all vectorised."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from graphxai_data.columns import Columns, global_edges, graph_of_edge, graph_of_node, pack
from graphxai_data.digest import ArrayDigest, widened
from graphxai_data.errors import DamagedError
from graphxai_data.findings import Findings
from graphxai_data.generators import generator_module
from graphxai_data.manifest import ShardEntry
from graphxai_data.recipe import Recipe
from graphxai_data.record import Feature, GraphRecord, Plan, Schema
from graphxai_data.shards import ShardReader
from graphxai_data.statistics import Statistics


def check_record(record: GraphRecord, schema: Schema) -> list[str]:
    """Problems of a single record."""
    columns = pack([record], schema, np.zeros(1, np.int64), np.zeros(1, np.uint8))
    return check_columns(columns, schema)


def check_columns(columns: Columns, schema: Schema) -> list[str]:
    """Problems of graphs that hold for no dataset: every graph here is simple and undirected."""
    findings = Findings(columns)
    graphs = len(columns["y"])
    sizes = np.diff(columns["node_ptr"].astype(np.int64))
    findings.require(sizes > 0, "has no nodes")

    owner = graph_of_edge(columns)
    ends = columns["edge_index"].astype(np.int64)
    in_range = (ends[0] < sizes[owner]) & (ends[1] < sizes[owner]) & (ends >= 0).all(axis=0)
    findings.require(_all_per_graph(in_range, owner, graphs), "an edge ends outside the graph")
    if findings.problems:
        return findings.problems  # the rest would index with these

    source, target = global_edges(columns)
    total = max(len(columns["x"]), 1)
    code, reverse = source * total + target, target * total + source
    rising = np.diff(code, prepend=-1) > 0
    findings.require(_all_per_graph(rising, owner, graphs), "edges are not sorted and distinct")
    findings.require(_all_per_graph(source != target, owner, graphs), "has a self-loop")
    back = np.searchsorted(code, reverse).clip(max=max(len(code) - 1, 0))
    mutual = code[back] == reverse
    findings.require(_all_per_graph(mutual, owner, graphs), "an edge lacks its reverse")
    if "edge_attr" in columns:
        attributes = _as_matrix(columns["edge_attr"])
        alike = (attributes == attributes[back]).all(axis=1)
        findings.require(
            _all_per_graph(alike, owner, graphs), "an edge and its reverse have other features"
        )

    mask = columns["node_mask"].astype(bool)
    inside = np.bincount(graph_of_node(columns)[mask], minlength=graphs)
    findings.require((inside > 0) & (inside < sizes), "the rationale is empty or the whole graph")
    findings.require(
        _all_per_graph(columns["edge_mask"] == (mask[source] & mask[target]), owner, graphs),
        "edge_mask is not the set of edges inside the rationale",
    )
    label = columns["y"].astype(np.int64)
    findings.require((label >= 0) & (label < schema.num_classes), "its class does not exist")
    findings.require(columns["split"].astype(np.int64) <= 2, "its split does not exist")
    for name, feature, row_owner in (
        ("x", schema.node_features, graph_of_node(columns)),
        ("edge_attr", schema.edge_features, owner),
    ):
        if feature is not None:
            valid = _valid_rows(columns[name], feature)
            findings.require(_all_per_graph(valid, row_owner, graphs), f"{name} is not valid")
    return findings.problems


@dataclass
class Survey:
    """What one pass over the shards of a build, in order, found."""

    content_sha256: str = ""
    statistics: dict[str, Any] = field(default_factory=dict)
    shards: list[ShardEntry] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def survey(
    shards: Iterable[tuple[Path, str | None]], recipe: Recipe, seed: int, plan: Plan
) -> Survey:
    """Read every shard once: digests, statistics, invariants, and agreement with the plan.

    Args:
        shards: path and, where known, SHA-256 of each file, in order.
        recipe: what they were built from.
        seed: what they were built from.
        plan: of all graphs in them.
    """
    found = Survey()
    digest, statistics = ArrayDigest(), Statistics()
    generator = generator_module(recipe.generator)
    identity = {"dataset": recipe.name, "recipe_sha256": recipe.sha256, "seed": seed}
    first = 0
    for path, file_sha256 in shards:
        try:
            shard = ShardReader(path, file_sha256)
            shard.check()
            digest.update(widened(shard.columns))
        except DamagedError as error:
            found.problems.append(str(error))
            continue
        found.shards.append(ShardEntry(path.name, shard.sha256, len(shard), shard.file_sha256))
        problems = [
            f"{key} {shard.identity[key]}, expected {value}"
            for key, value in identity.items()
            if shard.identity[key] != value
        ]
        if shard.schema != generator.schema(recipe.params):
            problems.append("its features or classes are not the recipe's")
        elif not problems:
            problems += _differences_from_plan(shard.columns, plan, first)
            problems += check_columns(shard.columns, shard.schema)
            problems = problems or generator.check(recipe.params, shard.columns)
        found.problems += [f"{path}: {problem}" for problem in problems]
        statistics.update(shard.columns)
        first += len(shard)
    if first != len(plan.label):
        found.problems.append(f"{first} graphs in the shards, expected {len(plan.label)}")
    if statistics.graphs:
        found.content_sha256 = digest.hexdigest()
        found.statistics = statistics.to_dict()
        found.problems += check_expected(recipe, found.statistics, statistics.graphs)
    found.problems += _torn_groups(plan)
    return found


def check_expected(recipe: Recipe, statistics: dict[str, Any], graphs: int) -> list[str]:
    """Statistics outside their recipe's tolerance, which widens for fewer graphs as noise does."""
    widening = math.sqrt(max(1.0, recipe.params.graphs / graphs))
    problems = []
    for name, expected in recipe.expected.items():
        value = statistics[name]
        tolerance = expected.tolerance * widening
        if abs(value - expected.value) > tolerance:
            problems.append(
                f"{name} is {value:.3f}, the recipe expects {expected.value} ± {tolerance:.3g}"
            )
    return problems


def _differences_from_plan(columns: Columns, plan: Plan, first: int) -> list[str]:
    span = slice(first, first + len(columns["y"]))
    if not np.array_equal(columns["graph_id"], np.arange(span.start, span.stop)):
        return [f"does not hold graphs {span.start} to {span.stop - 1}: a swapped shard?"]
    if span.stop > len(plan.index):
        return ["holds more graphs than the build"]
    findings = Findings(columns)
    findings.require(columns["y"] == plan.label[span], "its class is not what the plan gave it")
    findings.require(columns["group"] == plan.group[span], "its group is not the plan's")
    findings.require(columns["split"] == plan.split[span], "its split is not the plan's")
    return findings.problems


def _torn_groups(plan: Plan) -> list[str]:
    homes = np.unique(plan.group * 4 + plan.split) // 4
    torn = homes[1:][homes[1:] == homes[:-1]]
    return [f"group {int(torn[0])} has graphs in two splits"] if len(torn) else []


def _all_per_graph(
    holds: npt.NDArray[np.bool_], owner: npt.NDArray[np.int64], graphs: int
) -> npt.NDArray[np.bool_]:
    """[g] whether `holds` is true for all rows of a graph."""
    result: npt.NDArray[np.bool_] = np.bincount(owner[~holds], minlength=graphs) == 0
    return result


def _as_matrix(stored: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return stored if stored.ndim == 2 else stored[:, None]


def _valid_rows(stored: npt.NDArray[Any], feature: Feature) -> npt.NDArray[np.bool_]:
    rows = _as_matrix(stored)
    valid = rows < feature.width if feature.encoding == "onehot" else np.isfinite(rows)
    return np.asarray(valid.all(axis=1))
