"""The command `evaluate`."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graphxai_data.cli.benchmark import RESULTS, evaluate_all
from graphxai_data.cli.console import (
    config_option,
    jobs_option,
    json_option,
    parse_seeds,
    parse_setting,
    print_table,
    progress_bar,
    seeds_text,
    training_options,
)
from graphxai_data.cli.train import MODEL_NAMES, SECONDS_BETWEEN_LINES
from graphxai_data.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from graphxai_data.datasets.in_memory import GraphXAIDataset

EXPLAINER_NAMES = (
    "bcos, bcos-contrast, bcos-folded, bcos-input-x-gradient, integrated-gradients, "
    "integrated-gradients-contrast, integrated-gradients-abs, gnn-explainer-mean, "
    "gnn-explainer-max, gnn-explainer-sum, gnn-explainer-features, saliency, input-x-gradient, "
    "gsat-mean, gsat-max, gsat-sum, random, degree, feature-norm, oracle"
)
# Shown if the table has them.
_COLUMNS = (
    "accuracy", "f1", "mae", "rmse", "r2", "jaccard", "auroc", "auroc_average",
    "worst_class_jaccard", "jaccard_union", "auroc_union", "null_outliers", "spearman",
    "auroc_positive", "auroc_negative", "sign_accuracy", "rmse_scaled",
)  # fmt: skip

# Everything heavier than click is imported inside the commands: --help has to be quick.


@click.command()
@click.argument("name", required=False)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Fill the big table: every dataset whose floors are low, or NAME of them, with five "
    "trainings of every model, intervals and tests. What is in --results is kept.",
)
@click.option(
    "--results",
    type=click.Path(path_type=Path),
    default=RESULTS,
    show_default=True,
    help="Folder of the big table's results, with --all.",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    help=f"One of {MODEL_NAMES}. Can be repeated.  [default: B-cos, its ReLU twin and GSAT]",
)
@click.option(
    "--explainer",
    "explainers",
    multiple=True,
    default=("all",),
    help=f"A row of the table: {EXPLAINER_NAMES}; gnn-explainer or gsat for all of their rows; "
    "floors for all rules that look at no model, or one by its name in floors.json; or the name "
    "of a plug-in, which 'all' leaves out. Can be repeated.",
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    help="A further column: the name of a plug-in. Can be repeated.",
)
@click.option("--seeds", default="0-4", help="Seeds of the trainings, as 0-4 or 0,2.")
@config_option
@click.option("--split", default="test", help="Split whose graphs are explained.")
@click.option(
    "--scores",
    "files",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Score this explanation file instead of the built-in explainers, next to floor and "
    "ceiling. With a --model and one of --seeds, it has to explain exactly that model. "
    "Can be repeated.",
)
@click.option(
    "--sweep",
    metavar="KEY=V1,V2,…",
    help="Compare several values of one setting, such as b=1,1.5,2,2.5,3, with one --model and "
    "one --explainer.",
)
@click.option(
    "--faithfulness", is_flag=True, help="Also measure fidelity, and accuracy after retraining."
)
@click.option("--no-timing", is_flag=True, help="Do not measure how long explanations take.")
@click.option(
    "--save-scores",
    type=click.Path(path_type=Path),
    help="Write an explanation file per row into this folder.",
)
@training_options
@click.option(
    "--engine",
    default="serial",
    help="serial, or one worker per model and seed: processes, dask, or the address of a Dask "
    "scheduler (tcp://host:port) whose workers can read --root.",
)
@jobs_option
@click.option("--force", is_flag=True, help="Measure again what was measured before.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV: a line per row and seed.")
@json_option
def evaluate(
    name: str | None,
    everything: bool,
    results: Path,
    models: tuple[str, ...],
    explainers: tuple[str, ...],
    seeds: str,
    config: str,
    files: tuple[Path, ...],
    sweep: str | None,
    no_timing: bool,
    data_seed: int,
    root: str | Path,
    out: Path,
    as_csv: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Compare explainers on dataset NAME, over models of several seeds.

    NAME may be a pair such as dihalo-pair: then models are trained on both halves, and every
    explainer is scored on the cause of its model and on the other one.

    Models that are not trained yet are trained first. Measurements are saved next to each model, so
    a comparison that was stopped goes on where it was.

    With --all, NAME is optional: a row of the big table.
    """
    # `options` has the arguments of `compare` that are passed on unchanged.
    from graphxai_data.cli.pairs import evaluate_pair, is_pair
    from graphxai_data.datasets.in_memory import GraphXAIDataset
    from graphxai_data.evaluation import tables
    from graphxai_data.evaluation.comparison import compare
    from graphxai_data.evaluation.comparison import sweep as run_sweep

    if as_csv and as_json:
        raise InputError("--csv and --json: expected one of them")
    seed_numbers = parse_seeds(seeds, "--seeds")
    if everything:
        _refuse_with("--all", "models", "explainers", "metrics", "config", "split", "files",
                     "sweep", "faithfulness", "no_timing", "save_scores", "changes", "device",
                     "threads", "as_csv")  # fmt: skip
        kept = {key: options[key] for key in ("engine", "jobs", "force")}
        evaluate_all(name, seed_numbers, root, data_seed, out, results, as_json, **kept)
        return
    _refuse_without("--all", "results")
    if name is None:
        raise click.MissingParameter(param_hint="'NAME'", param_type="argument")
    if is_pair(name):
        _refuse_with("pairs", "files", "sweep", "faithfulness", "save_scores", "engine", "jobs",
                     "metrics", "as_csv", "no_timing")  # fmt: skip
        kept = {key: options[key] for key in ("split", "force", "changes", "device")}
        evaluate_pair(
            name, root, data_seed, (models or None, explainers, seed_numbers, out, config),
            seeds, as_json, **kept,
        )  # fmt: skip
        return
    dataset = GraphXAIDataset(root, name, data_seed)
    if files:
        _refuse_with("--scores", "explainers", "sweep", "faithfulness", "save_scores", "changes",
                     "device", "engine", "jobs")  # fmt: skip
        model = _model_folder(models, seed_numbers, out, dataset.name) if models else None
        kept = {key: options[key] for key in ("split", "force", "metrics")}
        frame = _evaluate_files(dataset, files, model, **kept)
        _print_frame(frame.reset_index(), "explainer", options["metrics"], as_csv, as_json)
        return
    with progress_bar("Comparing explainers", "steps", SECONDS_BETWEEN_LINES) as progress:
        if sweep is not None:
            _refuse_with("--sweep", "faithfulness", "save_scores")
            key, values = _parse_sweep(sweep)
            if len(models) != 1 or len(explainers) != 1:
                raise InputError("--sweep: give one --model and one --explainer with it")
            frame = run_sweep(
                dataset, models[0], key, values, seed_numbers, out, config,
                explainer=explainers[0], progress=progress, **options,
            )  # fmt: skip
            _print_frame(frame, key, options["metrics"], as_csv, as_json)
            return
        comparison = compare(
            dataset, models or None, explainers, seed_numbers, out, config,
            timing=not no_timing, progress=progress, **options,
        )  # fmt: skip
    if as_json or as_csv:
        click.echo(comparison.to_json() if as_json else comparison.to_csv(), nl=as_json)
        return
    heading = f"{dataset.name}, {comparison.split} graphs; {seeds_text(seeds)}"
    if not no_timing:
        conditions = comparison.conditions
        heading += f"; milliseconds on {conditions['device']}, threads: {conditions['threads']}"
    click.echo(heading)
    print_table(tables.headers(comparison), tables.table_rows(comparison), wrap=False)
    rules = dataset.manifest.load_recipe().generator_object.rules()
    definitions = [rule.name for rule in rules if rule.is_definition]
    for line in tables.floor_lines(comparison, definitions):
        click.echo(line)
    if options["faithfulness"]:
        headers = tables.faithfulness_headers(comparison)
        print_table(headers, tables.faithfulness_rows(comparison), wrap=False)


def _evaluate_files(
    dataset: "GraphXAIDataset", paths: tuple[Path, ...], model: Path | None, **options: Any
) -> "pd.DataFrame":
    """Return the rows of explanation files, followed by floor and ceiling.

    `options` are those of `graphxai_data.evaluate`.
    """
    from graphxai_data.evaluation.evaluate import evaluate as run_evaluate
    from graphxai_data.evaluation.floors import floor_names
    from graphxai_data.explain.files import ScoreFile
    from graphxai_data.explain.variants import variants_for

    measured = floor_names(dataset, ["all"]).measured
    rows = variants_for(None, dataset.manifest.load_recipe())
    floor = {v.name: v.name for v in rows if not v.is_floor or v.name in measured}
    files: dict[str, Any] = {}
    for path in paths:
        file = ScoreFile.load(path)
        is_taken = file.explainer in floor or file.explainer in files
        files[f"{file.explainer} ({path})" if is_taken else file.explainer] = file
    return run_evaluate(dataset, files | floor, model, **options)


def _model_folder(models: tuple[str, ...], seeds: list[int], out: Path, dataset: str) -> Path:
    """Return the folder of the one trained model, given by its path or by name and seed."""
    from graphxai_data.training.train import run_folder

    if len(models) == 1 and Path(models[0]).is_dir():
        return Path(models[0])
    if len(models) != 1 or len(seeds) != 1:
        raise InputError("--scores: they explain one model; give one --model and one of --seeds")
    return run_folder(out, models[0], dataset, seeds[0])


def _given(names: Sequence[str]) -> Iterator[str]:
    """Yield the options, such as "--seeds", of those parameters that the command line has."""
    context = click.get_current_context()
    for parameter in context.command.params:
        source = context.get_parameter_source(str(parameter.name))
        if parameter.name in names and source is click.core.ParameterSource.COMMANDLINE:
            yield parameter.opts[0]


def _refuse_without(option: str, *names: str) -> None:
    """Raise an `InputError` if one of these parameters was given, but not the option it is for."""
    for given in _given(names):
        raise InputError(f"{given} is for {option}; add it, or leave this out")


def _refuse_with(option: str, *names: str) -> None:
    """Raise an `InputError` if one of these parameters was given on the command line."""
    for given in _given(names):
        if option == "pairs":
            raise InputError(f"{given} is not available for pairs; leave it out")
        raise InputError(f"{given} cannot be combined with {option}; leave one of them out")


def _print_frame(
    frame: "pd.DataFrame", by: str, metrics: tuple[str, ...], as_csv: bool, as_json: bool
) -> None:
    """Print a table: mean and deviation over the rows that have the same value of `by`."""
    from graphxai_data.metrics import mean_and_deviation, plus_minus

    if as_csv:
        click.echo(frame.to_csv(index=False, lineterminator="\n"), nl=False)
        return
    if as_json:
        click.echo(json.dumps(json.loads(frame.to_json(orient="records")), indent=2))
        return
    columns = [column for column in dict.fromkeys((*_COLUMNS, *metrics)) if column in frame]
    rows = []
    for value, group in frame.groupby(by, sort=False)[columns]:
        cells = (plus_minus(*mean_and_deviation(group[column])) for column in columns)
        rows.append([str(value), *cells])
    print_table([by, *columns], rows, wrap=False)


def _parse_sweep(text: str) -> tuple[str, list[Any]]:
    """Return the key and the values of "KEY=V1,V2,…"."""
    key, equals, listed = text.partition("=")
    values = listed.split(",")
    if not (key and equals and all(values)):
        raise InputError(f"--sweep: expected KEY=V1,V2,…, got '{text}'")
    return key, [parse_setting(f"{key}={value}")[1] for value in values]
