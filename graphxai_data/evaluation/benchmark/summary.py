"""What the results of the big table say: means with intervals, tests, and average ranks."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from graphxai_data.errors import InputError
from graphxai_data.evaluation.benchmark.plan import FEWEST_SEEDS
from graphxai_data.evaluation.benchmark.store import Cell, Store
from graphxai_data.evaluation.statistics import (
    Interval,
    PairResult,
    Ranks,
    average_ranks,
    compare_all,
    interval,
)
from graphxai_data.explain.variants import VARIANTS
from graphxai_data.metrics import Floats

# Explainers that differ in one choice only, such as how scores of edges become scores of nodes.
# The rank of a method is that of the choice that is best in the mean over all datasets.
_SUFFIXES = ("-contrast", "-abs", "-mean", "-max", "-sum", "-features", "-folded")


@dataclass(frozen=True)
class Line:
    """One explainer of one model on one dataset or pair."""

    explainer: str
    model: str
    jaccard: Floats  # [s, g]; nan where a graph was not explained
    auroc: Floats  # [s, g]
    both: Floats | None  # [s, g] Jaccard@k on the build of a pair that has both causes
    sufficient: Floats | None  # [s, g] Jaccard@k with the smallest parts that decide the label
    ms_per_graph: float
    accuracy: float

    @property
    def name(self) -> str:
        """The explainer and its model."""
        return f"{self.explainer} of {self.model}"

    @property
    def label(self) -> str:
        """The explainer, and whether its model is an ensemble."""
        members = self.model.rpartition("-x")[2] if "-x" in self.model else ""
        return f"{self.explainer} ×{members}" if members else self.explainer

    @property
    def method(self) -> str:
        """The explainer without the choices that give it several rows."""
        name = self.explainer
        if name == "bcos-input-x-gradient":
            return name
        for suffix in _SUFFIXES:
            name = name.removesuffix(suffix)
        return self.label.replace(self.explainer, name)

    @cached_property
    def interval(self) -> Interval:
        """Jaccard@k with its interval."""
        return interval(self.jaccard)

    @cached_property
    def auroc_interval(self) -> Interval:
        """AUROC with its interval."""
        return interval(self.auroc)


@dataclass(frozen=True)
class Floor:
    """A rule that looks at no model, on the same graphs: mean Jaccard@k and AUROC."""

    name: str
    jaccard: float
    auroc: float
    both: float  # nan if it is no pair


@dataclass(frozen=True)
class Summary:
    """The results of one dataset or pair."""

    name: str
    lines: list[Line]
    floors: list[Floor]
    models: dict[str, dict[str, float]]  # accuracy and interventions, by model
    seeds: int  # that all models have
    graphs: int
    bounds: dict[str, float]  # for a pair: what rules can reach that look at no model

    @cached_property
    def best(self) -> Line:
        """The explainer with the highest mean Jaccard@k."""
        return max(self.lines, key=lambda line: line.interval.mean)

    @cached_property
    def tests(self) -> list[PairResult]:
        """The best explainer against every other, corrected by Holm's method."""
        return compare_all({line.name: line.jaccard for line in self.lines}, self.best.name)

    @cached_property
    def as_good(self) -> set[str]:
        """Names of the best and of those that do not differ from it significantly."""
        return {self.best.name, *(test.second for test in self.tests if test.adjusted >= 0.05)}


def summarise(store: Store, name: str, seeds: Sequence[int] | None = None) -> Summary:
    """Return the results of a dataset or pair, of the seeds that all models have.

    An `InputError` if these are fewer than three: there is no interval over trainings then.
    """
    content = store.read(name)
    by_model: dict[str, dict[int, dict[str, Cell]]] = {}
    for cell in content.get("cells", []):
        halves = by_model.setdefault(cell["model"], {}).setdefault(cell["seed"], {})
        halves[cell["half"]] = cell
    expected = {"a", "b"} if any(cell["half"] for cell in content.get("cells", [])) else {""}
    whole = {
        model: {seed for seed, halves in by_seed.items() if halves.keys() == expected}
        for model, by_seed in by_model.items()
    }
    common = set.intersection(*whole.values()) if whole else set()
    common &= common if seeds is None else set(seeds)
    if len(common) < FEWEST_SEEDS:
        raise InputError(
            f"{store.path(name)}: {len(common)} seeds have all models, expected at least "
            f"{FEWEST_SEEDS} for an interval; `graphxai-data evaluate --all` completes it"
        )
    lines, models = [], {}
    count = max((len(ids) for ids in content.get("graph_id", {}).values()), default=0)
    for model, by_seed in by_model.items():
        cells = [cell for seed in sorted(common) for cell in by_seed[seed].values()]
        models[model] = {"accuracy": _mean(cells, "accuracy")}
        if "interventions" in cells[0]:
            models[model]["agrees"] = float(np.mean([c["interventions"]["agrees"] for c in cells]))
        explainers = sorted(set.intersection(*(set(cell["rows"]) for cell in cells)), key=_order)
        selected = {seed: by_seed[seed] for seed in sorted(common)}
        for explainer in explainers:
            lines.append(_line(explainer, model, selected, count, models[model]["accuracy"]))
    floors = [_floor(rule, values) for rule, values in content.get("floors", {}).items()]
    bounds = content.get("bounds", {})
    return Summary(name, lines, floors, models, len(common), count, bounds)


def rank_methods(summaries: Sequence[Summary], least: int = 3) -> tuple[list[str], Ranks]:
    """Return methods that all datasets have, and their average ranks by mean Jaccard@k.

    A method with several rows is represented by the row that is best in the mean over all datasets.
    """
    scores: dict[str, dict[str, list[float]]] = {}
    for summary in summaries:
        for line in summary.lines:
            rows = scores.setdefault(line.method, {})
            rows.setdefault(line.label, []).append(line.interval.mean)
    complete: dict[str, list[float]] = {}
    for method, rows in scores.items():
        whole = [values for values in rows.values() if len(values) == len(summaries)]
        if whole:
            complete[method] = max(whole, key=lambda values: float(np.mean(values)))
    if len(complete) < 2 or len(summaries) < least:
        raise InputError(
            f"ranks: expected at least 2 methods on at least {least} datasets, got "
            f"{len(complete)} on {len(summaries)}"
        )
    names = list(complete)
    return names, average_ranks(np.array([complete[name] for name in names]).T)


def _line(
    explainer: str, model: str, whole: Mapping[int, dict[str, Cell]], count: int, accuracy: float
) -> Line:
    def matrix(key: str) -> Floats:
        """Return [s, g], the mean over the halves of a pair."""
        per_seed = [
            np.mean([_padded(cell["rows"][explainer][key], count) for cell in halves.values()], 0)
            for halves in whole.values()
        ]
        return np.stack(per_seed)

    rows = [cell["rows"][explainer] for halves in whole.values() for cell in halves.values()]
    both = matrix("both_jaccard") if "both_jaccard" in rows[0] else None
    sufficient = matrix("sufficient") if "sufficient" in rows[0] else None
    cost = float(np.median([row["ms_per_graph"] for row in rows]))
    return Line(
        explainer, model, matrix("jaccard"), matrix("auroc"), both, sufficient, cost, accuracy
    )


def _floor(rule: str, values: Mapping[str, Any]) -> Floor:
    """Return a floor; on a pair the mean of both halves."""
    own = [half for key, half in values.items() if not key.startswith("both_")]
    both = [half for key, half in values.items() if key.startswith("both_")]

    def mean(halves: list[Any], key: str) -> float:
        return float(np.mean([np.mean(half[key]) for half in halves])) if halves else math.nan

    return Floor(rule, mean(own, "jaccard"), mean(own, "auroc"), mean(both, "jaccard"))


def _padded(values: Sequence[float], count: int) -> Floats:
    """Return the values of the first graphs, and nan for the others."""
    row = np.full(count, np.nan)
    row[: len(values)] = values
    return row


def _mean(cells: Sequence[Cell], key: str) -> float:
    return float(np.mean([cell[key] for cell in cells]))


def _order(explainer: str) -> tuple[int, str]:
    names = [variant.name for variant in VARIANTS]
    return (names.index(explainer) if explainer in names else len(names)), explainer
