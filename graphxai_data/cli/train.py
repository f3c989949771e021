"""The command `train`, and what `evaluate` has in common with it."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graphxai_data.cli.console import Place, json_option, print_table, progress_bar, root_option
from graphxai_data.errors import InputError

if TYPE_CHECKING:
    from graphxai_data.nn.zoo import Training
    from graphxai_data.training.state import Epoch
    from graphxai_data.training.train import Progress as TrainingProgress

MODEL_NAMES = "bcos-gin, bcos-gine, gin, gine, gsat, deepsets"
_MOST_SEEDS = 1000
SECONDS_BETWEEN_LINES = 5

# Everything heavier than click is imported inside the commands: --help has to be quick.

config_option = click.option(
    "--config", default="default", show_default=True, help="default, or paper: as it was published."
)


def training_options(command: Callable[..., None]) -> Callable[..., None]:
    """What `train` and `evaluate` have in common."""
    for option in reversed(
        (
            click.option(
                "--set",
                "changes",
                metavar="KEY=VALUE",
                multiple=True,
                help="Another value for a setting, such as b=2.5 or epochs=20; may be given more "
                "than once.",
            ),
            click.option(
                "--data-seed", type=int, default=0, show_default=True, help="Which build to use."
            ),
            root_option,
            click.option(
                "--out",
                type=Place(urls=False),
                default=Path("runs"),
                show_default=True,
                help="Folder of all trainings.",
            ),
            click.option(
                "--device", default="auto", show_default=True, help="auto, cpu, cuda, cuda:1, …"
            ),
            click.option("--threads", type=int, help="CPU threads.  [default: all cores]"),
        )
    ):
        command = option(command)
    return command


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
    changes: tuple[str, ...],
    data_seed: int,
    root: str | Path,
    out: Path,
    device: str,
    threads: int | None,
    force: bool,
    as_json: bool,
) -> None:
    """Train a reference model on dataset NAME (see `list`), which is built first if need be.

    Keeps the weights that are best on validation, and measures them on test graphs at the end. A
    training that was stopped goes on after its last whole epoch, with the same result; one that is
    finished is kept.
    """
    import torch

    from graphxai_data.datasets.in_memory import GraphXAIDataset
    from graphxai_data.errors import whole_number
    from graphxai_data.training.train import run_folder
    from graphxai_data.training.train import train as run_train

    if threads is not None:
        torch.set_num_threads(whole_number("--threads", threads, 1, 4096))
    numbers = parse_seeds(seeds)
    values = dict(map(parse_setting, changes))
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
                changes=values,
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


def parse_seeds(text: str, option: str = "--seed") -> list[int]:
    """Seeds from "3", "0-4" or "0,2,5"."""
    seeds: list[int] = []
    try:
        for part in text.split(","):
            first, dash, last = part.partition("-")
            new = range(int(first), int(last if dash else first) + 1)
            if not new or len(seeds) + (new[-1] - new[0]) >= _MOST_SEEDS:
                raise ValueError
            seeds += new
    except ValueError:
        seeds = []
    if not seeds:
        raise InputError(
            f"{option}: expected a number, or up to {_MOST_SEEDS} as in 0-4 or 0,2,5; got '{text}'"
        )
    return list(dict.fromkeys(seeds))


def parse_setting(text: str) -> tuple[str, Any]:
    """Key and value of "b=2.5"; a word needs no quotes."""
    import tomllib

    key, equals, value = text.partition("=")
    if not (key and equals and value):
        raise InputError(f"--set: expected KEY=VALUE, got '{text}'")
    try:
        parsed: Any = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        parsed = value
    return key.strip(), parsed
