"""The commands about models: `train` and `evaluate`."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graphxai_data.console import json_option, print_table, progress_bar, root_option
from graphxai_data.errors import InputError

if TYPE_CHECKING:
    from graphxai_data.dataset import GraphXAIDataset
    from graphxai_data.nn.zoo import Training
    from graphxai_data.study import Told
    from graphxai_data.train import Progress as TrainingProgress
    from graphxai_data.training_state import Epoch

_MODEL_NAMES = "bcos-gin, bcos-gine, gin, gine, gsat, deepsets"
_MOST_SEEDS = 1000
_SECONDS_BETWEEN_LINES = 5

# Everything heavier than click is imported inside the commands: --help has to be quick.

_config_option = click.option(
    "--config", default="default", show_default=True, help="default, or paper: as it was published."
)


def _training_options(command: Callable[..., None]) -> Callable[..., None]:
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
                type=click.Path(path_type=Path),
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
@click.option("--model", default="bcos-gin", show_default=True, help=f"One of {_MODEL_NAMES}.")
@_config_option
@click.option(
    "--seed", "seeds", default="0", show_default=True, help="Of the training; 0-4 for five of them."
)
@_training_options
@click.option("--force", is_flag=True, help="Discard an earlier training in the same place.")
@json_option
def train(
    name: str,
    model: str,
    config: str,
    seeds: str,
    changes: tuple[str, ...],
    data_seed: int,
    root: Path,
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

    from graphxai_data.dataset import GraphXAIDataset
    from graphxai_data.errors import whole_number
    from graphxai_data.train import run_folder
    from graphxai_data.train import train as run_train

    if threads is not None:
        torch.set_num_threads(whole_number("--threads", threads, 1, 4096))
    numbers = _parse_seeds(seeds)
    values = dict(map(_parse_setting, changes))
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
    import statistics

    headers = ("seed", "epochs", "best", "valid loss", "valid F1", "test accuracy", "test F1")
    columns = [("valid", "loss"), ("valid", "f1"), ("test", "accuracy"), ("test", "f1")]
    rows = []
    for result in results:
        scores = [f"{result['scores'][split][key]:.4f}" for split, key in columns]
        rows.append([*(str(result[k]) for k in ("seed", "epochs", "best_epoch")), *scores])
    if len(results) > 1:
        values = [[r["scores"][split][key] for r in results] for split, key in columns]
        cells = [f"{statistics.mean(v):.4f} ± {statistics.stdev(v):.4f}" for v in values]
        rows.append(["all", "", "", *cells])
    print_table(headers, rows)
    for result in results:
        click.echo(result["folder"])


@click.command()
@click.argument("name")
@click.option(
    "--model",
    "models",
    multiple=True,
    help=f"One of {_MODEL_NAMES}; may be given more than once.  [default: B-cos, its ReLU twin "
    "and GSAT]",
)
@click.option(
    "--explainer",
    "explainers",
    multiple=True,
    default=("all",),
    show_default=True,
    help="A row of the table, such as bcos, integrated-gradients, gsat-mean, or gsat for all its "
    "rules; may be given more than once.",
)
@click.option("--seeds", default="0-4", show_default=True, help="Of the trainings, as 0-4 or 0,2.")
@_config_option
@click.option("--split", default="test", show_default=True, help="Whose graphs are explained.")
@click.option(
    "--scores",
    "files",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Score this explanation file instead of our explainers, beside floor and ceiling; may be "
    "given more than once.",
)
@click.option(
    "--sweep",
    metavar="KEY=V1,V2,…",
    help="One setting in several values, such as b=1,1.5,2,2.5,3, with the one --model and "
    "--explainer given.",
)
@click.option("--faithfulness", is_flag=True, help="Fidelity, and accuracy after retraining, too.")
@click.option("--no-timing", is_flag=True, help="Do not measure how long explanations take.")
@click.option(
    "--save-scores",
    type=click.Path(path_type=Path),
    help="Write an explanation file for each row into this folder.",
)
@_training_options
@click.option("--force", is_flag=True, help="Measure anew what is known already.")
@click.option("--csv", "as_csv", is_flag=True, help="A line for each explainer, model and seed.")
@json_option
def evaluate(
    name: str,
    models: tuple[str, ...],
    explainers: tuple[str, ...],
    seeds: str,
    config: str,
    split: str,
    files: tuple[Path, ...],
    sweep: str | None,
    faithfulness: bool,
    no_timing: bool,
    save_scores: Path | None,
    changes: tuple[str, ...],
    data_seed: int,
    root: Path,
    out: Path,
    device: str,
    threads: int | None,
    force: bool,
    as_csv: bool,
    as_json: bool,
) -> None:
    """Compare explainers on dataset NAME, over models of several seeds.

    Models that are not trained yet are trained first. A comparison that was stopped goes on where
    it was; what is measured of a model is kept beside it.
    """
    import torch

    from graphxai_data.comparison import compare
    from graphxai_data.dataset import GraphXAIDataset
    from graphxai_data.errors import whole_number

    if as_csv and as_json:
        raise InputError("--csv and --json: expected one of them")
    if threads is not None:
        torch.set_num_threads(whole_number("--threads", threads, 1, 4096))
    numbers, values = _parse_seeds(seeds, "--seeds"), dict(map(_parse_setting, changes))
    dataset = GraphXAIDataset(root, name, data_seed)
    if files:
        _evaluate_files(dataset, files, split, as_csv, as_json)
        return
    with _study_progress() as told:
        if sweep is not None:
            _evaluate_sweep(
                dataset, sweep, models, explainers, numbers, out, config, values, device, told,
                as_csv, as_json,
            )  # fmt: skip
            return
        found = compare(
            dataset, models or None, explainers, numbers, out, config, changes=values, split=split,
            timing=not no_timing, faithfulness=faithfulness, device=device, force=force,
            save_scores=save_scores, told=told,
        )  # fmt: skip
    if as_json or as_csv:
        click.echo(found.to_json() if as_json else found.to_csv(), nl=as_json)
        return
    from graphxai_data.report import comparison_table as tables

    print_table(tables.HEADERS, tables.table_rows(found))
    if faithfulness:
        print_table(tables.FAITHFULNESS_HEADERS, tables.faithfulness_rows(found))


def _evaluate_files(
    dataset: "GraphXAIDataset", files: tuple[Path, ...], split: str, as_csv: bool, as_json: bool
) -> None:
    from graphxai_data.evaluate import evaluate as run_evaluate
    from graphxai_data.explain.variants import variants_for

    floor = variants_for(None, dataset.manifest.load_recipe())
    explainers = {str(path): path for path in files} | {v.name: v.name for v in floor}
    found = run_evaluate(dataset, explainers, split=split)
    if as_csv or as_json:
        text = (
            found.to_csv(lineterminator="\n") if as_csv else found.to_json(orient="index", indent=2)
        )
        click.echo(text, nl=as_json)
        return
    columns = ["jaccard", "auroc", "auroc_average", "precision", "worst_class_jaccard"]
    rows = [[str(i), *(f"{row[c]:.3f}" for c in columns)] for i, row in found.iterrows()]
    print_table(["explainer", *columns], rows)


def _evaluate_sweep(
    dataset: "GraphXAIDataset",
    text: str,
    models: tuple[str, ...],
    explainers: tuple[str, ...],
    seeds: list[int],
    out: Path,
    config: str,
    changes: dict[str, Any],
    device: str,
    told: "Told",
    as_csv: bool,
    as_json: bool,
) -> None:
    from graphxai_data.comparison import sweep

    key, equals, listed = text.partition("=")
    if not (key and equals and listed):
        raise InputError(f"--sweep: expected KEY=V1,V2,…, got '{text}'")
    if len(models) != 1 or len(explainers) != 1 or explainers == ("all",):
        raise InputError("--sweep: give one --model and one --explainer with it")
    values = [_parse_setting(f"{key}={value}")[1] for value in listed.split(",")]
    found = sweep(
        dataset, models[0], key, values, seeds, out, config, changes=changes,
        explainer=explainers[0], device=device, told=told,
    )  # fmt: skip
    if as_csv or as_json:
        text = (
            found.to_csv(index=False, lineterminator="\n")
            if as_csv
            else found.to_json(orient="records", indent=2)
        )
        click.echo(text, nl=as_json)
        return
    columns = ["accuracy", "f1", "jaccard", "auroc"]
    grouped = found.groupby(key)[columns]
    mean, deviation = grouped.mean(), grouped.std()
    cells = mean.map("{:.3f}".format) + deviation.map(" ± {:.3f}".format)
    rows = [[str(value), *cells.loc[value]] for value in cells.index]
    print_table([key, *columns], rows)


@contextmanager
def _study_progress() -> Iterator["Told"]:
    """A bar on a terminal; elsewhere a line whenever something else is being done."""
    with progress_bar("Comparing explainers", "done") as bar:
        doing, last = "", time.monotonic()

        def told(what: str, done: int, total: int) -> None:
            nonlocal doing, last
            bar(done, total, what)
            late = time.monotonic() - last > _SECONDS_BETWEEN_LINES
            if not sys.stderr.isatty() and (what != doing or late):
                doing, last = what, time.monotonic()
                click.echo(f"{what}: {done} of {total}", err=True)

        yield told


@contextmanager
def _training_progress(title: str) -> Iterator["TrainingProgress"]:
    """A bar on a terminal; elsewhere a line an epoch, at most one every few seconds."""
    with progress_bar(title, "epochs") as bar:
        last = time.monotonic()

        def show(history: "list[Epoch]", settings: "Training") -> None:
            nonlocal last
            from graphxai_data.train import best_epoch

            epoch, done = history[-1], len(history)
            best = best_epoch(settings, history) + 1
            scores = (
                f"loss {epoch.train_loss:.4f}, valid loss {epoch.valid['loss']:.4f}, "
                f"accuracy {epoch.valid['accuracy']:.4f}, best epoch {best}"
            )
            bar(done, settings.epochs, f"{title}: {scores}")
            if not sys.stderr.isatty() and time.monotonic() - last > _SECONDS_BETWEEN_LINES:
                last = time.monotonic()
                recent = [e.seconds for e in history[-5:]]
                left = (settings.epochs - done) * sum(recent) / len(recent)
                place = f"epoch {done} of {settings.epochs}"
                click.echo(f"{title}: {place}, {scores}, at most {left:.0f} s left", err=True)

        yield show


def _parse_seeds(text: str, option: str = "--seed") -> list[int]:
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


def _parse_setting(text: str) -> tuple[str, Any]:
    import tomllib

    key, equals, value = text.partition("=")
    if not (key and equals and value):
        raise InputError(f"--set: expected KEY=VALUE, got '{text}'")
    try:
        parsed: Any = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        parsed = value  # a word needs no quotes
    return key.strip(), parsed
