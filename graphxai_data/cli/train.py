"""The command `train`."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import click

from graphxai_data.cli.console import (
    config_option,
    json_option,
    parse_seeds,
    print_table,
    progress_bar,
    training_options,
)
from graphxai_data.errors import InputError
from graphxai_data.progress import Progress

MODEL_NAMES = "bcos-gin, bcos-gine, gin, gine, gsat, deepsets"
SECONDS_BETWEEN_LINES = 5
# Columns of the table, where all trainings have them: split and key of a score, and header.
_COLUMNS = (
    ("valid", "loss", "valid loss"), ("valid", "f1", "valid F1"), ("valid", "mae", "valid MAE"),
    ("test", "accuracy", "test accuracy"), ("test", "f1", "test F1"),
    ("test", "roc_auc", "test ROC AUC"), ("test", "weighted_accuracy", "weighted"),
    ("test", "mae", "test MAE"), ("test", "rmse", "test RMSE"), ("test", "r2", "test R²"),
)  # fmt: skip

# Everything heavier than click is imported inside the commands: --help has to be quick.


@click.command()
@click.argument("name")
@click.option("--model", default="bcos-gin", help=f"One of {MODEL_NAMES}.")
@click.option(
    "--members",
    type=int,
    default=1,
    help="Train so many models and join them to one ensemble, whose logits and contribution maps "
    "are means. It is also named by its model, as bcos-gine-x5.",
)
@config_option
@click.option("--seed", "seeds", default="0", help="Seed of the training; 0-4 for five trainings.")
@training_options
@click.option("--force", is_flag=True, help="Discard an earlier training in the same folder.")
@json_option
def train(
    name: str,
    model: str,
    members: int,
    config: str,
    seeds: str,
    data_seed: int,
    root: str | Path,
    out: Path,
    as_json: bool,
    **options: Any,
) -> None:
    """Train a reference model on dataset NAME (see `list`), which is built first if it is missing.

    Keeps the weights that are best on validation graphs, and scores them on test graphs at the end.
    An interrupted training resumes after its last whole epoch, with the same result. A finished
    training is kept. If nodes have two classes, the last row is a rule that looks at their degree
    only: what a model has to beat. If labels are numbers, it is the mean of the training labels.
    """
    # `options` has the arguments of the function `train` that are passed on unchanged.
    from graphxai_data.datasets.in_memory import GraphXAIDataset
    from graphxai_data.training.floors import DEGREE_FLOOR, MEAN_FLOOR, degree_floor, mean_floor
    from graphxai_data.training.train import run_folder
    from graphxai_data.training.train import train as run_train

    model, numbers, results = ensemble_name(model, members), parse_seeds(seeds), []
    dataset = GraphXAIDataset(root, name, data_seed)
    for seed in numbers:
        title = f"{model} on {dataset.name}, seed {seed}"
        with progress_bar(title, "epochs", SECONDS_BETWEEN_LINES) as show:
            options["progress"] = partial(_titled, show, title)
            _, card = run_train(dataset, model, config, seed, out, **options)
        folder = run_folder(out, model, dataset.name, seed)
        results.append({"seed": seed, "folder": str(folder), "scores": card.scores, **card.run})
    floors = {DEGREE_FLOOR: degree_floor(dataset), MEAN_FLOOR: mean_floor(dataset)}
    known = {rule: floor for rule, floor in floors.items() if floor is not None}
    if as_json:
        named = {rule.removesuffix(" (no model)"): floor for rule, floor in known.items()}
        extra = {"floors": named} if named else {}
        click.echo(json.dumps([result | extra for result in results], indent=2))
    else:
        _show_trainings(results, known)


def ensemble_name(model: str, members: int) -> str:
    """Return the name of an ensemble of so many models; that of one model is its own."""
    from graphxai_data.nn.zoo import ModelName

    name = ModelName.parse(model)
    if members == 1 or members == name.members:
        return model
    if name.members > 1:
        raise InputError(
            f"--members {members}: model '{model}' has {name.members}; leave one of them out"
        )
    return str(ModelName.parse(f"{model}-x{members}"))


def _show_trainings(
    results: list[dict[str, Any]], floors: dict[str, dict[str, dict[str, float]]]
) -> None:
    from graphxai_data.metrics import mean_and_deviation, plus_minus

    shown = [
        (split, key, header)
        for split, key, header in _COLUMNS
        if all(key in result["scores"][split] for result in results)
    ]
    headers = ["seed", "epochs", "best", *(header for _, _, header in shown)]
    columns = [(split, key) for split, key, _ in shown]
    rows = []
    for result in results:
        scores = [f"{result['scores'][split][key]:.4f}" for split, key in columns]
        rows.append([*(str(result[k]) for k in ("seed", "epochs", "best_epoch")), *scores])
    if len(results) > 1:
        by_seed = [[r["scores"][split][key] for r in results] for split, key in columns]
        cells = [plus_minus(*mean_and_deviation(values), digits=4) for values in by_seed]
        rows.append(["all", "", "", *cells])
    for rule, floor in floors.items():
        values = [floor[split].get(key) for split, key in columns]
        cells = ["" if value is None else f"{value:.4f}" for value in values]
        rows.append([rule, "", "", *cells])
    print_table(headers, rows)
    for result in results:
        click.echo(result["folder"])


def _titled(show: Progress, title: str, done: int, total: int, scores: str) -> None:
    show(done, total, f"{title}: {scores}")
