"""Compare explainers over several trained models of a dataset: the paper's central table.

Models that are not trained yet are trained, one per seed. Measurements are saved next to each
model, so a comparison that was stopped goes on where it was.
"""

import dataclasses
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from graphxai_data import __version__
from graphxai_data.building import engine as engines
from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.errors import InputError, whole_number
from graphxai_data.evaluation.evaluate import Row
from graphxai_data.evaluation.floors import floor_names
from graphxai_data.evaluation.own_metrics import check_names
from graphxai_data.evaluation.saved_rows import without_nan
from graphxai_data.evaluation.study import ModelTask, Options, Study
from graphxai_data.evaluation.workers import run_tasks
from graphxai_data.explain.variants import (
    FLOORS,
    VARIANTS,
    Variant,
    check_contrast,
    select_variants,
    variants_for,
)
from graphxai_data.files.disk import explained_disk_errors
from graphxai_data.metrics import mean_and_deviation
from graphxai_data.nn.zoo import ModelName, Settings, make_model
from graphxai_data.progress import Progress, no_progress
from graphxai_data.seeds import MAX_SEED
from graphxai_data.training.checkpoint import Shape
from graphxai_data.training.loss import check_evidence_cost
from graphxai_data.training.train import device_of

_PAPER = tomllib.loads(Path(__file__).with_name("paper.toml").read_text(encoding="utf-8"))
_NOT_AVERAGED = ("seed", "graphs", "null_graphs", "unranked_graphs", "timed_threads")


@dataclass(frozen=True)
class Comparison:
    """The results of a comparison; `content_sha256` is that of the dataset's build."""

    dataset: str
    content_sha256: str
    split: str
    conditions: dict[str, Any]  # device, threads and versions; times have their own in the rows
    rows: list[Row]  # one per model, explainer and seed
    curves: dict[str, dict[str, list[float]]]  # of fidelity, by "model/explainer/seed"
    metrics: dict[str, str] = field(default_factory=dict)  # columns of plug-ins: package, version

    def frame(self) -> pd.DataFrame:
        """Return the rows as a table."""
        return pd.DataFrame(self.rows)

    def summary(self) -> list[Row]:
        """Return `summarise` of the rows."""
        return summarise(self.dataset, self.rows)

    def to_json(self) -> str:
        """Return everything as JSON; what was not measured is null."""
        whole = dataclasses.asdict(self) | {"summary": self.summary()}
        return json.dumps(without_nan(whole), indent=2, allow_nan=False)

    def to_csv(self) -> str:
        """Return the rows as CSV."""
        return self.frame().to_csv(index=False, lineterminator="\n")


def summarise(dataset: str, rows: Sequence[Row]) -> list[Row]:
    """Return a row per explainer and model: mean, deviation and number of seeds, paper's values."""
    summary = []
    in_order = sorted(rows, key=sort_key)
    for (model, explainer), group in groupby(in_order, lambda r: (r["model"], r["explainer"])):
        seeds = list(group)
        row: Row = {"model": model, "explainer": explainer, "seeds": len(seeds)}
        for key in dict.fromkeys(key for r in seeds for key in r):
            values = [r.get(key) for r in seeds]
            if key not in _NOT_AVERAGED and not isinstance(values[0], str):
                row[key], row[f"{key}_std"] = mean_and_deviation(values)
        row["paper"] = paper_figures(dataset, explainer)
        summary.append(row)
    return summary


def sort_key(row: Row) -> tuple[float, str, str, int]:
    """Built-in explainers in their order, floors after them, then the ceiling, then plug-ins."""
    order = [variant.name for variant in (*VARIANTS[:-1], *FLOORS, VARIANTS[-1])]
    explainer = row["explainer"]
    place = float(order.index(explainer)) if explainer in order else len(order)
    if explainer not in order and row["model"] == "-" and "plugin" not in row:  # its own rule
        place = order.index("feature-norm") + 0.5
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
    metrics: Sequence[str] = (),
    progress: Progress | None = None,
) -> Comparison:
    """Compare explainers on the graphs of one split, over models of several seeds.

    Args:
        dataset: with all splits.
        models: names in the zoo; B-cos, its ReLU twin and GSAT if None. Models that are not
            trained yet in `out` are trained.
        explainers: names of rows, or "all"; plug-ins by their names.
        seeds: of the trainings, and of explainers that draw at random.
        out: folder of all trainings.
        configuration: of the trainings.
        changes: settings that differ from the configuration's.
        split: whose graphs are explained.
        timing: measure how long an explanation takes.
        faithfulness: measure fidelity, its curves, and accuracy after retraining.
        device: "auto" is CUDA if available, else the CPU.
        force: measure again what was measured before. Models are kept.
        save_scores: folder for an explanation file per row.
        engine: "serial" is this process; "processes", "dask" or the address of a Dask scheduler:
            each model is trained and measured on a worker, with the same result except times.
        jobs: worker processes, all cores by default.
        metrics: names of plug-ins, each for a column.
        progress: called with the steps done, all steps, and what is being done.
    """
    progress = progress or no_progress
    options = Options(
        split, timing, faithfulness, device, force, save_scores, engine, jobs, check_names(metrics)
    )
    seeds = check_seeds(seeds)
    plan, floor = plan_rows(dataset, models, explainers, configuration, changes, faithfulness)
    tasks = [
        ModelTask(model, seed, tuple(plan[model]), Path(out), configuration, dict(changes or {}))
        for model in plan
        for seed in seeds
    ]
    engines.check_engine(engine)
    if not tasks:
        device_of(device)  # refused if unknown, even where nothing runs on it
    study = Study(dataset, options)
    if save_scores is not None:
        with explained_disk_errors(save_scores, "--save-scores"):
            save_scores.mkdir(parents=True, exist_ok=True)
    measurements = list(run_tasks(study, tasks, progress))
    rows = [row for measurement in measurements for row in measurement.rows]
    if not faithfulness:  # otherwise every model has its own rows of them
        rows += [row for seed in seeds for row in study.measure_without_model(floor, seed)]
    # Explainers that look at no model run on the CPU.
    devices = {measurement.device for measurement in measurements} or {"cpu"}
    conditions = {"device": ", ".join(sorted(devices)), **run_conditions()}
    curves = {key: curve for m in measurements for key, curve in m.curves.items()}
    return Comparison(
        dataset.name, dataset.manifest.content_sha256, split, conditions,
        sorted(rows, key=sort_key), curves, {metric.name: metric.by for metric in study.metrics},
    )  # fmt: skip


def run_conditions() -> dict[str, Any]:
    """Return the number of threads and the versions, which results depend on."""
    return {
        "threads": torch.get_num_threads(), "torch": torch.__version__,
        "graphxai_data": __version__,
    }  # fmt: skip


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
    progress: Progress | None = None,
    **options: Any,
) -> pd.DataFrame:
    """Measure accuracy and explanations over the values of one setting, such as B.

    Each value is trained in a folder of its own, `<out>/<key>-<value>`. Other arguments, among them
    `split`, `device`, `force`, `engine`, `jobs` and `metrics`, are those of `compare`.

    Returns:
        A row per value and seed.
    """
    progress = progress or no_progress
    rows = select_variants([explainer], dataset.manifest.load_recipe())
    if len(rows) != 1:
        names = ", ".join(variant.name for variant in rows)
        raise InputError(f"explainer: expected one row, got '{explainer}', which is {names}")
    if key in check_names(options.get("metrics", ())):
        raise InputError(f"metric '{key}': the setting has a column of this name; choose another")
    values = list(dict.fromkeys(values))  # 1 and 1.0 are the same value
    settings = [{**(changes or {}), key: value} for value in values]
    for setting in settings:  # refuse a bad value before anything is trained
        plan_rows(dataset, (model,), explainer, configuration, setting)
    parts = []
    for i, (value, setting) in enumerate(zip(values, settings, strict=True)):

        def report(done: int, total: int, what: str, i: int = i, value: Any = value) -> None:
            progress(i * total + done, len(values) * total, f"{key} = {value}: {what}")

        comparison = compare(
            dataset, (model,), (explainer,), seeds, Path(out) / f"{key}-{value}", configuration,
            changes=setting, progress=report, timing=False, **options,
        )  # fmt: skip
        parts.append(comparison.frame().assign(**{key: value}))
    return pd.concat(parts, ignore_index=True)


def check_seeds(seeds: Sequence[int]) -> list[int]:
    """Return every seed once; an `InputError` for what is not a seed."""
    numbers = [whole_number("seed", seed, 0, MAX_SEED) for seed in seeds]
    if not numbers:
        raise InputError("seeds: expected at least one, got none")
    return list(dict.fromkeys(numbers))


def plan_rows(
    dataset: GraphXAIDataset,
    models: Sequence[str] | None,
    explainers: Sequence[str],
    configuration: str,
    changes: Mapping[str, Any] | None,
    faithfulness: bool = False,
) -> tuple[dict[str, list[Variant]], list[Variant]]:
    """Return the explainers of each model, and those that look at no model: floor and ceiling.

    A model without explainers, or an explainer without models, is an `InputError`.
    """
    if not isinstance(dataset, GraphXAIDataset):
        raise InputError(
            f"dataset: models are trained on a GraphXAIDataset, got {type(dataset).__name__}; "
            "`evaluate` scores explainers on other graphs"
        )
    names = usual_models(dataset) if models is None else models
    names = [names] if isinstance(names, str) else list(dict.fromkeys(names))
    recipe = dataset.manifest.load_recipe()
    asked = [explainers] if isinstance(explainers, str) else list(explainers)
    selected = select_variants(asked, recipe, floor_names(dataset, asked))
    rows = [*VARIANTS, *(variant for variant in selected if variant.origin or variant.is_floor)]
    floor = [v for v in variants_for(None, recipe, rows) if v in selected]
    plan = {}
    for name in names:
        ModelName.parse(name)
        shape, label = dataclasses.asdict(Shape.of(dataset)), recipe.schema.label
        settings = Settings.named(name, recipe.generator, configuration, changes, label)
        with torch.device("meta"):  # no weights: only the model's kind is needed
            model = make_model(name, settings.architecture, **shape)
        check_evidence_cost(model, name, settings.training.evidence_cost)
        plan[name] = [v for v in variants_for(model, recipe, rows) if v in selected]
        # Faithfulness depends on the model, also that of floor and ceiling.
        plan[name] += floor if faithfulness else []
    possible = [variant for variants in plan.values() for variant in variants] + floor
    for variant in selected:
        if variant not in possible and "all" not in asked:
            check_contrast(variant, recipe)
            raise InputError(
                f"explainer '{variant.name}' is not for '{dataset.name}' with "
                f"{', '.join(names)}: {variant.what}"
            )
    if models is None:  # only models that the explainers need are trained
        plan = {name: variants for name, variants in plan.items() if variants}
    for name, variants in plan.items():
        if not variants:
            raise InputError(
                f"model '{name}': none of the explainers asked for is for it; leave the model out"
            )
    return plan, floor


def usual_models(dataset: GraphXAIDataset) -> tuple[str, ...]:
    """Return the three models that the paper compares; B-cos and ReLU use edge features, if any."""
    edges = "e" if dataset.num_edge_features else ""
    return f"bcos-gin{edges}", f"gin{edges}", "gsat"


def paper_figures(dataset: str, explainer: str) -> dict[str, float]:
    """Return the paper's figures of an explainer on a dataset; empty for rows it does not have."""
    rows = {variant.name: variant.paper for variant in VARIANTS}
    tables = [t for t in _PAPER["explanations"].values() if dataset in t["datasets"]]
    return dict(tables[0].get(rows.get(explainer), {})) if tables else {}


def paper_predictions(dataset: str, model: str) -> float:
    """Return the paper's F1 of a model on a dataset."""
    kind = "bcos" if model.startswith("bcos") else "gsat" if model == "gsat" else "twin"
    return float(_PAPER["predictions"][dataset][kind])


def paper_sweep(dataset: str) -> dict[str, list[float]]:
    """Return the paper's values of B, with the scores of predictions and, if any, explanations."""
    table = _PAPER["sweep"]["b"]
    return {"b": table["values"], **table[dataset]}
