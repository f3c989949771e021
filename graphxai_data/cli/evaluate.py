"""The command `evaluate`."""

import json
import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graphxai_data.cli.console import (
    config_option,
    jobs_option,
    json_option,
    parse_seeds,
    parse_setting,
    print_table,
    progress_bar,
    training_options,
)
from graphxai_data.cli.train import MODEL_NAMES, SECONDS_BETWEEN_LINES
from graphxai_data.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from graphxai_data.datasets.in_memory import GraphXAIDataset
    from graphxai_data.evaluation.comparison import Report

EXPLAINER_NAMES = (
    "bcos, bcos-contrast, bcos-folded, bcos-input-x-gradient, integrated-gradients, "
    "integrated-gradients-contrast, integrated-gradients-abs, gnn-explainer-mean, "
    "gnn-explainer-max, gnn-explainer-sum, gnn-explainer-features, saliency, input-x-gradient, "
    "gsat-mean, gsat-max, gsat-sum, random, degree, feature-norm, intensity, halogen-closeness, "
    "oracle"
)

# Everything heavier than click is imported inside the commands: --help has to be quick.


@click.command()
@click.argument("name")
@click.option(
    "--model",
    "models",
    multiple=True,
    help=f"One of {MODEL_NAMES}; may be given more than once.  [default: B-cos, its ReLU twin "
    "and GSAT]",
)
@click.option(
    "--explainer",
    "explainers",
    multiple=True,
    default=("all",),
    show_default=True,
    help=f"A row of the table: {EXPLAINER_NAMES}; gnn-explainer or gsat for all of theirs; may be "
    "given more than once.",
)
@click.option("--seeds", default="0-4", show_default=True, help="Of the trainings, as 0-4 or 0,2.")
@config_option
@click.option("--split", default="test", show_default=True, help="Whose graphs are explained.")
@click.option(
    "--scores",
    "files",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Score this explanation file instead of our explainers, beside floor and ceiling; may be "
    "given more than once. With a --model, and one of --seeds, it has to explain that very model.",
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
@training_options
@click.option(
    "--engine",
    default="serial",
    show_default=True,
    help="serial, or a worker for each model and seed: processes, dask, or the address of a Dask "
    "scheduler (tcp://host:port), whose workers have to see --root.",
)
@jobs_option
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
    changes: dict[str, Any],
    data_seed: int,
    root: str | Path,
    out: Path,
    device: str,
    engine: str,
    jobs: int | None,
    force: bool,
    as_csv: bool,
    as_json: bool,
) -> None:
    """Compare explainers on dataset NAME, over models of several seeds.

    Models that are not trained yet are trained first. A comparison that was stopped goes on where
    it was; what is measured of a model is kept beside it.
    """
    from graphxai_data.datasets.in_memory import GraphXAIDataset
    from graphxai_data.evaluation.comparison import compare
    from graphxai_data.evaluation.comparison import sweep as run_sweep

    if as_csv and as_json:
        raise InputError("--csv and --json: expected one of them")
    given = _given_options()
    numbers = parse_seeds(seeds, "--seeds")
    dataset = GraphXAIDataset(root, name, data_seed)
    if files:
        _refuse(given, "--scores", "explainers", "sweep", "faithfulness", "save_scores", "changes",
                "engine", "jobs")  # fmt: skip
        model = _checkpoint(models, numbers, out, dataset.name) if models else None
        frame = _scores_of_files(dataset, files, model, split, force)
        _show_frame(frame, ["explainer"], as_csv, as_json)
        return
    with _study_progress() as told:
        if sweep is not None:
            _refuse(given, "--sweep", "faithfulness", "save_scores")
            key, swept = _parse_sweep(sweep)
            if len(models) != 1 or len(explainers) != 1:
                raise InputError("--sweep: give one --model and one --explainer with it")
            frame = run_sweep(
                dataset, models[0], key, swept, numbers, out, config, changes=changes,
                explainer=explainers[0], split=split, device=device, force=force,
                engine=engine, jobs=jobs, told=told,
            )  # fmt: skip
            _show_frame(frame, [key], as_csv, as_json)
            return
        found = compare(
            dataset, models or None, explainers, numbers, out, config, changes=changes, split=split,
            timing=not no_timing, faithfulness=faithfulness, device=device, force=force,
            save_scores=save_scores, engine=engine, jobs=jobs, told=told,
        )  # fmt: skip
    if as_json or as_csv:
        click.echo(found.to_json() if as_json else found.to_csv(), nl=as_json)
        return
    from graphxai_data.evaluation import tables as tables

    device_used, threads_used = found.conditions["device"], found.conditions["threads"]
    click.echo(
        f"{dataset.name}, {split} graphs; mean ± standard deviation over seeds {seeds}; "
        f"milliseconds on {device_used}, threads: {threads_used}"
    )
    print_table(tables.HEADERS, tables.table_rows(found), wrap=False)
    if faithfulness:
        print_table(tables.FAITHFULNESS_HEADERS, tables.faithfulness_rows(found), wrap=False)


def _scores_of_files(
    dataset: "GraphXAIDataset",
    files: tuple[Path, ...],
    model: Path | None,
    split: str,
    force: bool,
) -> "pd.DataFrame":
    from graphxai_data.evaluation.evaluate import evaluate as run_evaluate
    from graphxai_data.explain.files import ScoreFile
    from graphxai_data.explain.variants import variants_for

    explainers: dict[str, Any] = {
        variant.name: variant.name for variant in variants_for(None, dataset.manifest.load_recipe())
    }
    theirs: dict[str, Any] = {}
    for path in files:
        file = ScoreFile.load(path)
        taken = file.explainer in explainers or file.explainer in theirs
        theirs[f"{file.explainer} ({path})" if taken else file.explainer] = file
    return run_evaluate(dataset, theirs | explainers, model, split=split, force=force)


def _checkpoint(models: tuple[str, ...], seeds: list[int], out: Path, dataset: str) -> Path:
    """Folder of the one trained model that is meant: by its path, or by name and seed."""
    from graphxai_data.training.train import run_folder

    if len(models) == 1 and Path(models[0]).is_dir():
        return Path(models[0])
    if len(models) != 1 or len(seeds) != 1:
        raise InputError("--scores: they explain one model; give one --model and one of --seeds")
    return run_folder(out, models[0], dataset, seeds[0])


def _given_options() -> set[str]:
    """Names of the options that were written on the command line."""
    context = click.get_current_context()
    return {
        name
        for name in context.params
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
    }


def _refuse(given: set[str], beside: str, *names: str) -> None:
    written = {"explainers": "--explainer", "changes": "--set"}
    for name in names:
        if name in given:
            option = written.get(name, f"--{name.replace('_', '-')}")
            raise InputError(f"{option} means nothing beside {beside}; leave one of them out")


def _show_frame(frame: "pd.DataFrame", by: list[str], as_csv: bool, as_json: bool) -> None:
    """Means and deviations over what a value of the first column has several lines of."""
    flat = frame.reset_index() if frame.index.name else frame
    if as_csv:
        click.echo(flat.to_csv(index=False, lineterminator="\n"), nl=False)
        return
    if as_json:
        click.echo(json.dumps(json.loads(flat.to_json(orient="records")), indent=2))
        return
    from graphxai_data.metrics import mean_and_deviation, plus_minus

    wanted = ("accuracy", "f1", "jaccard", "auroc", "auroc_average", "worst_class_jaccard")
    columns = [column for column in wanted if column in flat]
    rows = []
    for value, lines in flat.groupby(by[0], sort=False)[columns]:
        cells = (plus_minus(*mean_and_deviation(lines[column])) for column in columns)
        rows.append([str(value), *cells])
    print_table([*by, *columns], rows, wrap=False)


@contextmanager
def _study_progress() -> Iterator["Report"]:
    """A bar on a terminal; elsewhere a line whenever something else is being done."""
    with progress_bar("Comparing explainers", "done") as bar:
        doing, last = "", time.monotonic()

        def told(what: str, done: int, total: int, seconds: float) -> None:
            nonlocal doing, last
            left = "" if math.isnan(seconds) else f", about {math.ceil(seconds / 60)} min left"
            bar(done, total, what + left)
            late = time.monotonic() - last > SECONDS_BETWEEN_LINES
            if not sys.stderr.isatty() and (what != doing or late):
                doing, last = what, time.monotonic()
                click.echo(f"{what}: {done} of {total}{left}", err=True)

        yield told


def _parse_sweep(text: str) -> tuple[str, list[Any]]:
    key, equals, listed = text.partition("=")
    values = listed.split(",")
    if not (key and equals and all(values)):
        raise InputError(f"--sweep: expected KEY=V1,V2,…, got '{text}'")
    return key, [parse_setting(f"{key}={value}")[1] for value in values]
