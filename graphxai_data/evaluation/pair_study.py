"""Compare explainers on a pair of causes, over models of several seeds for each half.

Models that are not trained yet are trained. Measurements are saved next to each model, in
`pair.json`, so a comparison that was stopped goes on where it was.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import nn

from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.errors import InputError
from graphxai_data.evaluation.comparison import check_seeds, plan_rows, sort_key
from graphxai_data.evaluation.evaluate import Row
from graphxai_data.evaluation.floors import floor_names, floor_scores
from graphxai_data.evaluation.interventions import Interventions
from graphxai_data.evaluation.pairs import HALVES, Pair, PairTruth
from graphxai_data.evaluation.saved_rows import SavedRows, without_nan
from graphxai_data.evaluation.score_sources import variant_scores
from graphxai_data.evaluation.study import group_by_run
from graphxai_data.evaluation.truth import Scores
from graphxai_data.explain.variants import Variant, select_variants
from graphxai_data.metrics import Floats, mean_and_deviation
from graphxai_data.progress import Progress, no_progress
from graphxai_data.training.checkpoint import Card
from graphxai_data.training.train import device_of, run_folder, train

RESULTS = "pair.json"
# The row of `pair.json` that is about the model itself.
_MODEL = "model"


@dataclass(frozen=True)
class PairComparison:
    """The results of `compare_pair`.

    Attributes:
        pair: names of the builds.
        content_sha256: digests of the builds, by half.
        bounds: what rules that look neither at the model nor at labels can reach in the mean over
            the pair; on `both`, what any rule can reach that looks at no model.
        rows: one per half, model, explainer and seed.
        models: one per half, model and seed: accuracy and interventions.
    """

    pair: dict[str, str]
    content_sha256: dict[str, str]
    bounds: dict[str, float]
    rows: list[Row]
    models: list[Row]

    def summary(self) -> list[Row]:
        """Return a row per explainer and model: means over the halves, then over seeds."""
        groups: dict[tuple[str, str], dict[int, dict[str, Row]]] = {}
        for row in self.rows:
            by_seed = groups.setdefault((row["model"], row["explainer"]), {})
            by_seed.setdefault(row["seed"], {})[row["half"]] = row
        summary = []
        for (model, explainer), by_seed in groups.items():
            result: Row = {"model": model, "explainer": explainer, "seeds": len(by_seed)}
            for half in HALVES:
                values = [halves[half]["own"] for halves in by_seed.values() if half in halves]
                result[f"own_{half}"], result[f"own_{half}_std"] = mean_and_deviation(values)
            for title, key in _MEANS.items():
                values = [_mean_of_halves(halves, key) for halves in by_seed.values()]
                result[title], result[f"{title}_std"] = mean_and_deviation(values)
            summary.append(result)
        return summary

    def to_json(self) -> str:
        """Return everything as JSON; what was not measured is null."""
        whole = asdict(self) | {"summary": self.summary()}
        return json.dumps(without_nan(whole), indent=2, allow_nan=False)


# Columns of the summary, and the values of both halves that they are means of.
_MEANS = {
    "jaccard": "own", "other": "other", "auroc": "auroc",
    "both_jaccard": "both_own", "both_other": "both_other",
}  # fmt: skip


def _mean_of_halves(halves: Mapping[str, Row], key: str) -> float:
    values = [row.get(key, math.nan) for row in halves.values()]
    return sum(values) / len(values) if len(values) == len(HALVES) else math.nan


def compare_pair(
    pair: Pair,
    models: Sequence[str] | None = None,
    explainers: Sequence[str] = ("all",),
    seeds: Sequence[int] = (0, 1, 2, 3, 4),
    out: str | Path = "runs",
    configuration: str = "default",
    *,
    changes: Mapping[str, Any] | None = None,
    split: str = "test",
    device: str = "auto",
    force: bool = False,
    progress: Progress | None = None,
) -> PairComparison:
    """Compare explainers on a pair; arguments as for `compare`, models are trained on each half."""
    progress = progress or no_progress
    study = _PairStudy(pair, Path(out), configuration, dict(changes or {}), split, device, force)
    seeds = check_seeds(seeds)
    plan, floor = plan_rows(pair.a, models, explainers, configuration, changes)
    if "all" in explainers:  # the strongest floors of each build
        for build in (build for build in (pair.b, pair.both) if build is not None):
            rows = select_variants("all", None, floor_names(build, ("all",)))
            floor += [v for v in rows if v.is_floor and v not in floor]
    tasks = [(half, model, seed) for half in HALVES for model in plan for seed in seeds]
    measured: list[Row] = []
    about: list[Row] = []
    for i, (half, model, seed) in enumerate(tasks):

        def report(_: int, __: int, what: str, i: int = i) -> None:
            progress(i, len(tasks), what)

        own, facts = study.run(half, model, seed, plan[model], report)
        measured += own
        about.append(facts)
    for seed in seeds:
        measured += study.floors(floor, seed)
    named = {"a": pair.a, "b": pair.b} | ({"both": pair.both} if pair.both else {})
    return PairComparison(
        {half: build.name for half, build in named.items()},
        {half: build.manifest.content_sha256 for half, build in named.items()},
        {half: study.truths[half].bound for half in named if half != "b"},
        sorted(measured, key=lambda row: (sort_key(row), row["half"])),
        about,
    )


@dataclass
class _PairStudy:
    """Trains models of both halves and measures them; arguments as for `compare_pair`."""

    pair: Pair
    out: Path
    configuration: str
    changes: dict[str, Any]
    split: str
    device: str
    force: bool
    _floors: dict[str, dict[str, Scores]] = field(default_factory=dict)  # by build

    @cached_property
    def truths(self) -> dict[str, PairTruth]:
        """The graphs that are explained, by half."""
        builds = {"a": self.pair.a, "b": self.pair.b, "both": self.pair.both}
        return {h: PairTruth.of(build, self.split) for h, build in builds.items() if build}

    @cached_property
    def interventions(self) -> dict[str, Interventions]:
        """The test graphs of each half with one cause changed."""
        return {
            half: Interventions.of(build, self._part(half))
            for half, build in self.pair.halves.items()
        }

    def _part(self, half: str) -> GraphXAIDataset:
        part = self.truths[half].truth.part
        if not isinstance(part, GraphXAIDataset):
            raise InputError("pair: expected builds")
        return part

    def run(
        self, half: str, name: str, seed: int, variants: Sequence[Variant], progress: Progress
    ) -> tuple[list[Row], Row]:
        """Return the rows of one model, and what is known about the model itself."""
        dataset = self.pair.halves[half]
        progress(0, 1, f"training {name} on {dataset.name}, seed {seed}")
        model, card = train(
            dataset, name, self.configuration, seed, self.out, changes=self.changes,
            device=self.device, progress=lambda done, total, _: progress(
                0, 1, f"training {name} on {dataset.name}, seed {seed}: epoch {done} of {total}"
            ),
        )  # fmt: skip
        model = model.to(device_of(self.device))
        path = run_folder(self.out, name, dataset.name, seed) / RESULTS
        saved = SavedRows(path, dataset, card, self.split, self.force)
        identity = {"half": half, "model": name, "seed": seed}
        rows = []
        for group in group_by_run(list(variants)):
            progress(0, 1, f"{group[0].name} of {name} on {dataset.name}, seed {seed}")
            self._measure_missing(saved, group, model, card, half)
            rows += [
                identity | {"explainer": v.name} | _asked_for(saved.row(v), self.pair)
                for v in group
            ]
        facts = self._about(saved, model, half)
        scores = card.scores.get(self.split, {})
        facts |= {key: scores[key] for key in ("accuracy", "f1") if key in scores}
        return rows, identity | facts

    def _measure_missing(
        self, saved: SavedRows, group: list[Variant], model: nn.Module, card: Card, half: str
    ) -> None:
        """Complete the saved rows of the explainers that are read from one run."""
        both = self._both_digest()
        if all("own" in row and row.get("both") == both for row in map(saved.row, group)):
            return
        for build, prefix in ((half, ""), ("both", "both_")):
            if build not in self.truths:
                continue
            known = self.truths[build]
            scores = variant_scores(group, model, known.truth.part, seed=card.seed)
            for variant in group:
                values = known.measure(variant.name, scores[variant.name].nodes, half)
                saved.row(variant).update({f"{prefix}{k}": v for k, v in values.items()})
        for variant in group:
            saved.row(variant)["both"] = both
        saved.write({variant.name: saved.row(variant) for variant in group})

    def _both_digest(self) -> str:
        return "" if self.pair.both is None else self.pair.both.manifest.content_sha256

    def _about(self, saved: SavedRows, model: nn.Module, half: str) -> Row:
        """Return the interventions on a model, measured if they are not saved."""
        row = saved.rows.setdefault(_MODEL, {})
        if "agrees" not in row:
            row |= self.interventions[half].measure(model)
            saved.write({_MODEL: row})
        return dict(row)

    def floors(self, variants: Sequence[Variant], seed: int) -> Iterator[Row]:
        """Yield the rows of explainers that look at no model, for both halves."""
        for half in HALVES:
            by_name: dict[str, Row] = {v.name: {} for v in variants}
            for build, prefix in ((half, ""), ("both", "both_")):
                if build not in self.truths:
                    continue
                for name, nodes in self._scores_without_model(variants, build, half, seed):
                    values = self.truths[build].measure(name, nodes, half)
                    by_name[name] |= {f"{prefix}{key}": value for key, value in values.items()}
            for name, row in by_name.items():
                yield {"half": half, "model": "-", "explainer": name, "seed": seed} | row

    def _scores_without_model(
        self, variants: Sequence[Variant], build: str, half: str, seed: int
    ) -> Iterator[tuple[str, Floats]]:
        known = self.truths[build]
        if build not in self._floors:  # rules are the same for every seed, and `both` for each half
            floors = [variant for variant in variants if variant.is_floor]
            self._floors[build] = floor_scores(floors, known.truth.part) if floors else {}
        for name, scores in self._floors[build].items():
            yield name, scores.nodes
        for variant in (v for v in variants if not v.is_floor):
            if variant.method == "oracle":  # masks of `both` have both causes
                yield variant.name, known.mask(half).astype(float)
            else:
                run = variant_scores([variant], None, known.truth.part, seed=seed)
                yield variant.name, run[variant.name].nodes


def _asked_for(row: Row, pair: Pair) -> Row:
    """Leave out what is saved about `both` where the pair has none."""
    return {
        key: value
        for key, value in row.items()
        if key != "both" and (pair.both is not None or not key.startswith("both_"))
    }
