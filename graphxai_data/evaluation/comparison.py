"""Explainers compared over several trained models of a dataset: the paper's central table.

Models are trained where they are not yet, one for each seed. What was measured of a model is kept
beside it, so that a comparison that was stopped goes on where it was.
"""

import dataclasses
import json
import math
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from graphxai_data import __version__
from graphxai_data.building import engine as engines
from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.errors import InputError, known_name, whole_number
from graphxai_data.evaluation.study import Row, Study, groups, without_nan
from graphxai_data.evaluation.workers import measure_models
from graphxai_data.explain.variants import VARIANTS, Variant, chosen_variants, variants_for
from graphxai_data.files.disk import explained_disk_errors
from graphxai_data.metrics import mean_and_deviation
from graphxai_data.nn.zoo import MODELS, Settings, make_model
from graphxai_data.seeds import MAX_SEED
from graphxai_data.training.checkpoint import Shape
from graphxai_data.training.loss import check_evidence_cost
from graphxai_data.training.train import device_of, run_folder, train

# What is being done, how much of it is done, how much there is, and seconds left in all, or nan.
Report = Callable[[str, int, int, float], None]
_NOT_AVERAGED = ("seed", "graphs", "timed_threads")


@dataclass(frozen=True)
class Comparison:
    """The rows of a comparison: one for each model, explainer and seed.

    Attributes:
        dataset: its name.
        content_sha256: of its build.
        split: whose graphs were explained.
        conditions: device, threads and versions of this run; times have those they were taken with.
        rows: each with "model", "explainer", "seed", and what was measured.
        curves: of fidelity over sparsity, by "model/explainer/seed", if faithfulness was asked for.
    """

    dataset: str
    content_sha256: str
    split: str
    conditions: dict[str, Any]
    rows: list[Row]
    curves: dict[str, dict[str, list[float]]]

    def frame(self) -> pd.DataFrame:
        """A line for each model, explainer and seed."""
        return pd.DataFrame(self.rows)

    def summary(self) -> list[Row]:
        """For each model and explainer: mean, deviation and count over seeds, and the paper's."""
        return summary_of(self.dataset, self.rows)

    def to_json(self) -> str:
        """Everything, for machines; what was not measured is null."""
        whole = dataclasses.asdict(self) | {"summary": self.summary()}
        return json.dumps(without_nan(whole), indent=2, allow_nan=False)

    def to_csv(self) -> str:
        """A line for each model, explainer and seed."""
        return self.frame().to_csv(index=False, lineterminator="\n")


def summary_of(dataset: str, rows: Sequence[Row]) -> list[Row]:
    """For each explainer and model: mean, deviation and count over seeds, and the paper's."""
    found = []
    in_order = sorted(rows, key=_place)
    for (model, explainer), group in groupby(in_order, lambda r: (r["model"], r["explainer"])):
        of_seeds = list(group)
        row: Row = {"model": model, "explainer": explainer, "seeds": len(of_seeds)}
        for key in dict.fromkeys(key for r in of_seeds for key in r):
            values = [r.get(key) for r in of_seeds]
            if key in _NOT_AVERAGED or isinstance(values[0], str):
                continue
            row[key], row[f"{key}_std"] = mean_and_deviation(values)
        row["paper"] = paper_figures(dataset, explainer)
        found.append(row)
    return found


def _place(row: Row) -> tuple[int, str, str, int]:
    """Where a row stands in a table."""
    order = [variant.name for variant in VARIANTS]
    explainer = row["explainer"]
    place = order.index(explainer) if explainer in order else len(order)  # somebody else's
    return place, explainer, row["model"], row["seed"]


def compare(
    dataset: GraphXAIDataset,
    models: Sequence[str] | None = None,
    explainers: Sequence[str] = ("all",),
    seeds: Sequence[int] = (0, 1, 2, 3, 4),
    out: str | Path = "runs",
    configuration: str = "default",
    *,
    changes: Mapping[str, Any] | None = None,
    split: str = "test",
    timing: bool = True,
    faithfulness: bool = False,
    device: str = "auto",
    force: bool = False,
    save_scores: Path | None = None,
    engine: str = "serial",
    jobs: int | None = None,
    told: Report | None = None,
) -> Comparison:
    """Compare explainers on the graphs of one split, over models of several seeds.

    Args:
        dataset: all of it.
        models: names in the zoo; B-cos, its ReLU twin and GSAT if None. Those that are not trained
            yet in `out` are trained.
        explainers: names of rows, or "all".
        seeds: of the trainings, and of explainers that draw at random.
        out: folder of all trainings.
        configuration: of the trainings.
        changes: settings that differ from the configuration's.
        split: which graphs are explained.
        timing: measure how long an explanation takes.
        faithfulness: measure fidelity, its curves, and accuracy after retraining.
        device: "auto" is CUDA where there is one, else the CPU.
        force: measure anew what is known already. Models are kept.
        save_scores: folder for an explanation file of each row.
        engine: "serial" is this process; "processes", "dask" or the address of a Dask scheduler:
            each model is trained and measured on a worker, with the same result but for times.
        jobs: worker processes, all cores by default.
        told: called with what is being done, how much of it is done, how much there is, and the
            seconds that the whole will take, a guess.
    """
    seeds = checked_seeds(seeds)
    recipe = dataset.manifest.load_recipe()
    plan = _planned(dataset, models, explainers, configuration, changes, faithfulness)
    floor = [v for v in chosen_variants(explainers) if v in variants_for(None, recipe)]
    if save_scores is not None:
        with explained_disk_errors(save_scores, "--save-scores"):
            save_scores.mkdir(parents=True, exist_ok=True)
    engines.check_engine(engine)
    here = engine == "serial"
    of_each = [1 + len(groups(v)) if here else 1 for v in plan.values()]
    steps = _Steps(told, len(seeds) * sum(of_each))
    study = Study(
        dataset, split, timing=timing, faithfulness=faithfulness, save_scores=save_scores,
        told=steps.told if told else None,
    )  # fmt: skip
    rows: list[Row] = []
    devices = set()
    if not here:
        for found in measure_models(
            dataset, {name: [v.name for v in variants] for name, variants in plan.items()}, seeds,
            out, engine=engine, jobs=jobs, save_scores=save_scores, configuration=configuration,
            changes=dict(changes or {}), split=split, timing=timing, faithfulness=faithfulness,
            force=force, device=device,
        ):  # fmt: skip
            rows += found.rows
            study.curves |= found.curves
            devices.add(found.device)
            steps.told(found.task, 1, 1)
    for name, variants in plan.items() if here else ():
        for seed in seeds:
            model, card = train(
                dataset, name, configuration, seed, out,
                changes=changes, device=device, progress=steps.trained(name, seed),
            )  # fmt: skip
            folder = run_folder(out, name, dataset.name, seed)
            rows += study.of_model(variants, name, model, card, folder, force)
    if not faithfulness:  # else they are among the rows of each model
        rows += [row for seed in seeds for row in study.of_no_model(floor, seed)]
    rows.sort(key=_place)
    conditions = {
        "device": ", ".join(sorted(devices)) or device_of(device).type,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "graphxai_data": __version__,
    }
    digest = dataset.manifest.content_sha256
    return Comparison(dataset.name, digest, split, conditions, rows, study.curves)


def sweep(
    dataset: GraphXAIDataset,
    model: str,
    key: str,
    values: Sequence[Any],
    seeds: Sequence[int] = (0, 1, 2, 3, 4),
    out: str | Path = "runs",
    configuration: str = "default",
    *,
    changes: Mapping[str, Any] | None = None,
    explainer: str = "bcos",
    split: str = "test",
    device: str = "auto",
    force: bool = False,
    engine: str = "serial",
    jobs: int | None = None,
    told: Report | None = None,
) -> pd.DataFrame:
    """Accuracy and quality of explanations over the values of one setting, such as B.

    Each value is trained in a folder of its own, `<out>/<key>-<value>`; other arguments as for
    `compare`. A line for each value and seed.
    """
    if len(chosen_variants(explainer)) != 1:
        names = ", ".join(variant.name for variant in chosen_variants(explainer))
        raise InputError(f"explainer: expected one row, got '{explainer}', which is {names}")
    values = list(dict.fromkeys(values))  # 1 and 1.0 are the same value
    for value in values:  # all of them, before anything is trained
        _planned(dataset, (model,), explainer, configuration, {**(changes or {}), key: value})
    parts = []
    for value in values:
        found = compare(
            dataset, (model,), (explainer,), seeds, Path(out) / f"{key}-{value}", configuration,
            changes={**(changes or {}), key: value}, split=split, timing=False, device=device,
            force=force, engine=engine, jobs=jobs, told=told,
        )  # fmt: skip
        parts.append(found.frame().assign(**{key: value}))
    return pd.concat(parts, ignore_index=True)


def checked_seeds(seeds: Sequence[int]) -> list[int]:
    """Each seed once, or an `InputError` for what is none."""
    numbers = [whole_number("seed", seed, 0, MAX_SEED) for seed in seeds]
    if not numbers:
        raise InputError("seeds: expected at least one, got none")
    return list(dict.fromkeys(numbers))


def _planned(
    dataset: GraphXAIDataset,
    models: Sequence[str] | None,
    explainers: Sequence[str],
    configuration: str,
    changes: Mapping[str, Any] | None,
    faithfulness: bool = False,
) -> dict[str, list[Variant]]:
    """The rows of each model; an `InputError` for what would have none, before any training."""
    names = usual_models(dataset) if models is None else models
    names = [names] if isinstance(names, str) else list(dict.fromkeys(names))
    wanted, recipe = chosen_variants(explainers), dataset.manifest.load_recipe()
    floor = [v for v in variants_for(None, recipe) if v in wanted]
    plan = {}
    for name in names:
        known_name("model", name, MODELS)
        settings = Settings.named(name, recipe.generator, configuration, changes)
        shape = dataclasses.asdict(Shape.of(dataset))
        with torch.device("meta"):  # only to see what it is
            model = make_model(name, settings.architecture, **shape)
        check_evidence_cost(model, name, settings.training.evidence_cost)
        plan[name] = [v for v in variants_for(model, recipe) if v in wanted]
        # What is high or low depends on the model: of the floor and the ceiling, too.
        plan[name] += floor if faithfulness else []
    everything = "all" in ([explainers] if isinstance(explainers, str) else explainers)
    possible = [variant for variants in plan.values() for variant in variants] + floor
    for variant in wanted:
        if variant not in possible and not everything:
            raise InputError(
                f"explainer '{variant.name}' is not for '{dataset.name}' with "
                f"{', '.join(names)}: {variant.what}"
            )
    if models is None:  # nothing is trained that nobody asked for
        return {name: variants for name, variants in plan.items() if variants}
    for name, variants in plan.items():
        if not variants:
            raise InputError(f"model '{name}': none of the explainers asked for is for it")
    return plan


class _Steps:
    """Progress of a whole comparison: which step of how many, and about how long it will take."""

    def __init__(self, told: Report | None, steps: int) -> None:
        self._told, self._steps = told, steps
        self._doing, self._done, self._begin = "", -1, time.monotonic()

    def told(self, what: str, done: int, total: int) -> None:
        """Pass progress of a step on."""
        if what != self._doing:
            self._doing, self._done = what, self._done + 1
        share = self._done + done / max(total, 1)
        seconds = math.nan
        if share > 0:  # steps differ, so this is a rough guess at first
            seconds = (time.monotonic() - self._begin) * max(self._steps - share, 0) / share
        if self._told:
            place = f"{min(self._done + 1, self._steps)}/{self._steps}"
            self._told(f"{place} {what}", done, total, seconds)

    def trained(self, model: str, seed: int) -> Any:
        """Progress of a training as that of a step."""
        what = f"training {model}, seed {seed}"
        return lambda done, total, _: self.told(what, done, total)


def usual_models(dataset: GraphXAIDataset) -> tuple[str, ...]:
    """The three that the paper compares, with edge features where the dataset has some."""
    edges = "e" if dataset.num_edge_features else ""
    return f"bcos-gin{edges}", f"gin{edges}", "gsat"


def paper_figures(dataset: str, explainer: str) -> dict[str, float]:
    """What the paper says of an explainer on a dataset; nothing for rows that it does not have."""
    rows = {variant.name: variant.paper for variant in VARIANTS}
    tables = [t for t in _paper()["explanations"].values() if dataset in t["datasets"]]
    return dict(tables[0].get(rows.get(explainer), {})) if tables else {}


def paper_predictions(dataset: str, model: str) -> float:
    """The paper's F1 of a model on a dataset."""
    kind = "bcos" if model.startswith("bcos") else "gsat" if model == "gsat" else "twin"
    return float(_paper()["predictions"][dataset][kind])


def paper_sweep(dataset: str) -> dict[str, list[float]]:
    """The paper's values of B, and for each a score of predictions and, if any, of explanations."""
    table = _paper()["sweep"]["b"]
    return {"b": table["values"], **table[dataset]}


@cache
def _paper() -> dict[str, Any]:
    text = (resources.files("graphxai_data.evaluation") / "paper.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
