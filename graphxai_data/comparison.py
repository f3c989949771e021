"""Explainers compared over several trained models of a dataset: the paper's central table.

Models are trained where they are not yet, one for each seed. What was measured of a model is kept
beside it, so that a comparison that was stopped goes on where it was.
"""

import dataclasses
import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from graphxai_data import __version__
from graphxai_data.dataset import GraphXAIDataset
from graphxai_data.errors import InputError, whole_number
from graphxai_data.explain.variants import VARIANTS, chosen_variants, kind_of_name
from graphxai_data.nn.zoo import MODELS
from graphxai_data.seeds import MAX_SEED
from graphxai_data.study import Row, Study, Told, without_nan
from graphxai_data.train import device_of, run_folder, train
from graphxai_data.typed_table import nearest


@dataclass(frozen=True)
class Comparison:
    """The rows of a comparison: one for each model, explainer and seed.

    Attributes:
        dataset: its name.
        content_sha256: of its build.
        generator: of its recipe, by which the paper's figures are found.
        conditions: device, threads and versions.
        rows: each with "model", "explainer", "seed", and what was measured.
        curves: of fidelity over sparsity, by "model/explainer/seed", if faithfulness was asked for.
    """

    dataset: str
    content_sha256: str
    generator: str
    conditions: dict[str, Any]
    rows: list[Row]
    curves: dict[str, dict[str, list[float]]]

    def frame(self) -> pd.DataFrame:
        """A line for each model, explainer and seed."""
        return pd.DataFrame(self.rows)

    def summary(self) -> list[Row]:
        """For each model and explainer: mean, deviation and count over seeds, and the paper's."""
        found = []
        for (model, explainer), rows in groupby(self.rows, lambda r: (r["model"], r["explainer"])):
            of_seeds = list(rows)
            row: Row = {"model": model, "explainer": explainer, "seeds": len(of_seeds)}
            for key in dict.fromkeys(key for r in of_seeds for key in r):
                values = [r.get(key, math.nan) for r in of_seeds]
                if key == "seed" or isinstance(values[0], str):
                    continue
                row[key] = float(np.mean(values))
                row[f"{key}_std"] = float(np.std(values, ddof=1)) if len(values) > 1 else math.nan
            row["paper"] = paper_figures(self.generator, explainer)
            found.append(row)
        return found

    def to_json(self) -> str:
        """Everything, for machines; what was not measured is null."""
        whole = dataclasses.asdict(self) | {"summary": self.summary()}
        return json.dumps(without_nan(whole), indent=2, allow_nan=False)

    def to_csv(self) -> str:
        """A line for each model, explainer and seed."""
        return self.frame().to_csv(index=False, lineterminator="\n")


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
    told: Told | None = None,
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
        told: called with what is being done, how much of it is done, and how much there is.
    """
    wanted = chosen_variants(tuple(explainers))
    names = usual_models(dataset) if models is None else tuple(dict.fromkeys(models))
    for name in names:
        if name not in MODELS:
            raise InputError(f"unknown model '{name}'; {nearest(name, MODELS)}")
    if not seeds:
        raise InputError("seeds: expected at least one, got none")
    kinds = {kind_of_name(name) for name in names} | {"none"}
    if "all" not in explainers:
        for variant in wanted:
            if variant.kind not in kinds:
                raise InputError(
                    f"explainer '{variant.name}' is not for any of the models here "
                    f"({', '.join(names)}); choose another model or explainer"
                )
        if models is None:  # nothing is trained that nobody asked for
            needed = {variant.kind for variant in wanted}
            names = tuple(name for name in names if kind_of_name(name) in needed)
    study = Study(dataset, split, wanted, timing, faithfulness, save_scores, told)
    rows: list[Row] = []
    for name in names:
        for seed in seeds:
            whole_number("seed", seed, 0, MAX_SEED)
            model, card = train(
                dataset, name, configuration, seed, out,
                changes=changes, device=device,
                progress=_trained(told, f"training {name}, seed {seed}"),
            )  # fmt: skip
            folder = run_folder(out, name, dataset.name, seed)
            rows += study.of_model(name, model, card, folder, force)
    rows += [row for seed in seeds for row in study.of_no_model(seed)]
    order = [variant.name for variant in VARIANTS]
    rows.sort(key=lambda r: (order.index(r["explainer"]), r["model"], r["seed"]))
    conditions = {
        "device": device_of(device).type,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "graphxai_data": __version__,
    }
    recipe = dataset.manifest.load_recipe()
    return Comparison(
        dataset.name, dataset.manifest.content_sha256, recipe.generator, conditions, rows,
        study.curves,
    )  # fmt: skip


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
    device: str = "auto",
    told: Told | None = None,
) -> pd.DataFrame:
    """Accuracy and quality of explanations over the values of one setting, such as B.

    Each value is trained in a folder of its own, `<out>/<key>-<value>`; other arguments as for
    `compare`. A line for each value and seed.
    """
    parts = []
    for value in values:
        found = compare(
            dataset, (model,), (explainer,), seeds, Path(out) / f"{key}-{value}", configuration,
            changes={**(changes or {}), key: value}, timing=False, device=device, told=told,
        )  # fmt: skip
        parts.append(found.frame().assign(**{key: value}))
    return pd.concat(parts, ignore_index=True)


def usual_models(dataset: GraphXAIDataset) -> tuple[str, ...]:
    """The three that the paper compares, with edge features where the dataset has some."""
    edges = "e" if dataset.num_edge_features else ""
    return f"bcos-gin{edges}", f"gin{edges}", "gsat"


def paper_figures(generator: str, explainer: str) -> dict[str, float]:
    """What the paper says of an explainer on a dataset; nothing for rows that it does not have."""
    text = (resources.files("graphxai_data") / "paper.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)["explanations"].get(generator, {})
    rows = {variant.name: variant.paper for variant in VARIANTS}
    return dict(table.get(rows.get(explainer), {}))


def _trained(told: Told | None, what: str) -> Any:
    if told is None:
        return None
    return lambda history, settings: told(what, len(history), settings.epochs)
