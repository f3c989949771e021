"""The command `train`."""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graphxai_data.cli.console import (
    config_option,
    json_option,
    parse_seeds,
    print_table,
    progress_bar,
    training_options,
)

if TYPE_CHECKING:
    from graphxai_data.nn.zoo import Training
    from graphxai_data.training.state import Epoch
    from graphxai_data.training.train import Progress as TrainingProgress

MODEL_NAMES = "bcos-gin, bcos-gine, gin, gine, gsat, deepsets"
SECONDS_BETWEEN_LINES = 5

# Everything heavier than click is imported inside the commands: --help has to be quick.


@click.command()
@click.argument("name")
@click.option("--model", default="bcos-gin", show_default=True, help=f"One of {MODEL_NAMES}.")
@config_option
@click.option(
    "--seed", "seeds", default="0", show_default=True, help="Of the training; 0-4 for five of them."
)
@training_options
@click.option("--force", is_flag=True, help="Discard an earlier training in the same place.")
@json_option
def train(
    name: str,
    model: str,
    config: str,
    seeds: str,
    changes: dict[str, Any],
    data_seed: int,
    root: str | Path,
    out: Path,
    device: str,
    force: bool,
    as_json: bool,
) -> None:
    """Train a reference model on dataset NAME (see `list`), which is built first if need be.

    Keeps the weights that are best on validation, and measures them on test graphs at the end. A
    training that was stopped goes on after its last whole epoch, with the same result; one that is
    finished is kept.
    """
    from graphxai_data.datasets.in_memory import GraphXAIDataset
    from graphxai_data.training.train import run_folder
    from graphxai_data.training.train import train as run_train

    numbers = parse_seeds(seeds)
    dataset = GraphXAIDataset(root, name, data_seed)
    results = []
    for seed in numbers:
        with _training_progress(f"{model} on {dataset.name}, seed {seed}") as progress:
            _, card = run_train(
                dataset,
                model,
                config,
                seed,
                out,
                changes=changes,
                device=device,
                force=force,
                progress=progress,
            )
        folder = run_folder(out, model, dataset.name, seed)
        results.append({"seed": seed, "folder": str(folder), "scores": card.scores, **card.run})
    if as_json:
        click.echo(json.dumps(results, indent=2))
    else:
        _show_trainings(results)


def _show_trainings(results: list[dict[str, Any]]) -> None:
    from graphxai_data.metrics import mean_and_deviation, plus_minus

    headers = ["seed", "epochs", "best", "valid loss", "valid F1", "test accuracy", "test F1"]
    columns = [("valid", "loss"), ("valid", "f1"), ("test", "accuracy"), ("test", "f1")]
    for key, header in (("roc_auc", "test ROC AUC"), ("weighted_accuracy", "weighted")):
        if all(key in result["scores"]["test"] for result in results):
            columns.append(("test", key))
            headers.append(header)
    rows = []
    for result in results:
        scores = [f"{result['scores'][split][key]:.4f}" for split, key in columns]
        rows.append([*(str(result[k]) for k in ("seed", "epochs", "best_epoch")), *scores])
    if len(results) > 1:
        values = [[r["scores"][split][key] for r in results] for split, key in columns]
        cells = [plus_minus(*mean_and_deviation(v), digits=4) for v in values]
        rows.append(["all", "", "", *cells])
    print_table(headers, rows)
    for result in results:
        click.echo(result["folder"])


@contextmanager
def _training_progress(title: str) -> Iterator["TrainingProgress"]:
    """A bar on a terminal; elsewhere a line an epoch, at most one every few seconds."""
    with progress_bar(title, "epochs") as bar:
        last = time.monotonic()

        def show(history: "list[Epoch]", settings: "Training") -> None:
            nonlocal last
            from graphxai_data.training.train import best_epoch

            epoch, done = history[-1], len(history)
            best = best_epoch(settings, history) + 1
            scores = (
                f"loss {epoch.train_loss:.4f}, valid loss {epoch.valid['loss']:.4f}, "
                f"accuracy {epoch.valid['accuracy']:.4f}, best epoch {best}"
            )
            bar(done, settings.epochs, f"{title}: {scores}")
            if not sys.stderr.isatty() and time.monotonic() - last > SECONDS_BETWEEN_LINES:
                last = time.monotonic()
                recent = [e.seconds for e in history[-5:]]
                left = (settings.epochs - done) * sum(recent) / len(recent)
                place = f"epoch {done} of {settings.epochs}"
                click.echo(f"{title}: {place}, {scores}, at most {left:.0f} s left", err=True)

        yield show
