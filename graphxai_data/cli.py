"""Command line: the only file that prints. Results go to stdout, progress and errors to stderr."""

import io
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graphxai_data import __version__
from graphxai_data.errors import CheckFailedError, GraphXAIDataError, InputError

if TYPE_CHECKING:
    from rich.table import Table

    from graphxai_data.manifest import Manifest
    from graphxai_data.nn.zoo import Training
    from graphxai_data.recipe import Recipe
    from graphxai_data.rings.verdict import Measurement
    from graphxai_data.train import Progress as TrainingProgress
    from graphxai_data.training_state import Epoch

    Bar = Callable[..., None]

_MODEL_NAMES = "bcos-gin, bcos-gine, gin, gine, gsat, deepsets"
_MOST_SEEDS = 1000
_SECONDS_BETWEEN_LINES = 5

# Everything heavier than click is imported inside the commands: --help has to be quick.

_json_option = click.option("--json", "as_json", is_flag=True, help="Machine-readable output.")
_source_option = click.option(
    "--source",
    "sources",
    metavar="ID=PATH",
    multiple=True,
    help="A file (of MNIST a folder), or another known source, to use instead of a shipped raw "
    "input, by its name in the recipe; may be given more than once.",
)
_root_option = click.option(
    "--root",
    type=click.Path(path_type=Path),
    callback=lambda _ctx, _param, root: (
        root or Path(os.environ.get("GRAPHXAI_DATA_ROOT") or "data")
    ),
    help="Folder of all builds.  [default: $GRAPHXAI_DATA_ROOT, else ./data]",
)
_folder_argument = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))


class _Cli(click.Group):
    """A group whose commands end with one clear line instead of a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        # Names and summaries have letters that a terminal in the C locale lacks.
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")
        try:
            return super().invoke(ctx)
        except GraphXAIDataError as error:
            message = " ".join(str(error).split())
            click.echo(f"Error: {message}", err=True)
            ctx.exit(error.exit_code)


@click.group(cls=_Cli, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="graphxai-data")
def main() -> None:
    """Graph-explainability benchmarks with ground truth known by construction.

    Exit codes: 0 good, 1 a check failed, 2 bad usage or input.
    """


@main.command(name="list")
@_json_option
def list_command(as_json: bool) -> None:
    """Show the datasets that can be built."""
    from graphxai_data.recipe import find, read_toml, shipped_names

    rows = []
    for name in shipped_names():
        recipe = read_toml(find(name))
        rows.append(
            {
                "name": name,
                "graphs": recipe["params"]["graphs"],
                "splits": recipe["splits"],
                "summary": recipe["summary"],
            }
        )
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    table = _table("dataset", "graphs", "train / valid / test", "what it is")
    for row in rows:
        shares = " / ".join(
            f"{share:.0%}" if isinstance(share, float) else f"{share:,}"
            for share in row["splits"].values()
        )
        table.add_row(row["name"], f"{row['graphs']:,}", shares, row["summary"])
    _print(table)


@main.command()
@click.argument("name")
@click.option("--seed", type=int, default=0, show_default=True, help="Which build of the recipe.")
@_root_option
@click.option("--jobs", type=int, help="Worker processes.  [default: all cores]")
@click.option(
    "--engine",
    default="processes",
    show_default=True,
    help="serial, processes, dask, or the address of a Dask scheduler (tcp://host:port).",
)
@click.option("--graphs", type=int, help="Another number of graphs, in the same proportions.")
@click.option("--shard-size", type=int, default=1000, show_default=True, help="Graphs a shard.")
@_source_option
@click.option("--no-rings", is_flag=True, help="Do not measure the RINGS principles.")
@_json_option
def build(
    name: str,
    seed: int,
    root: Path,
    jobs: int | None,
    engine: str,
    graphs: int | None,
    shard_size: int,
    sources: tuple[str, ...],
    no_rings: bool,
    as_json: bool,
) -> None:
    """Build dataset NAME (see `list`), or the recipe file NAME, ending in .toml.

    The graphs depend on recipe, seed, --graphs and --source alone. A build that was stopped goes on
    where it was; one that is already there is verified and kept.
    """
    from graphxai_data.build import build as run_build
    from graphxai_data.manifest import reference_digest

    with _progress_bar(f"Building {name}", "graphs") as progress:
        manifest = run_build(
            name,
            seed=seed,
            root=root,
            jobs=jobs,
            engine=engine,
            graphs=graphs,
            shard_size=shard_size,
            rings=not no_rings,
            sources=dict(map(_parse_source, sources)),
            progress=progress,
        )
    folder = root / manifest.dataset / f"seed-{manifest.seed}"
    _show_manifest(manifest, folder, as_json)
    if (reference := reference_digest(manifest)) not in (None, manifest.content_sha256):
        raise CheckFailedError(
            f"{folder}: content digest {manifest.content_sha256}, but data/digests.toml has "
            f"{reference}; please report this with the versions in manifest.json"
        )


@main.command()
@_folder_argument
@click.option("--full", is_flag=True, help="Prove every graph, and draw each again from its seed.")
@_source_option
@_json_option
def verify(folder: Path, full: bool, sources: tuple[str, ...], as_json: bool) -> None:
    """Check a build: files, digests, invariants, labels and masks."""
    from graphxai_data.verify import verify as run_verify

    problems = run_verify(folder, full=full, sources=dict(map(_parse_source, sources)))
    if as_json:
        result = {"folder": str(folder), "full": full, "problems": problems}
        click.echo(json.dumps(result, indent=2))
    elif problems:
        for problem in problems:
            click.echo(problem)
    else:
        click.echo(f"{folder}: whole" + (", every graph proven and reproduced" if full else ""))
    if problems:
        plural = "" if len(problems) == 1 else "s"
        click.echo(f"Error: {folder}: {len(problems)} problem{plural} found", err=True)
        sys.exit(1)


@main.command()
@_folder_argument
@click.option("--quick", is_flag=True, help="Probes without training, as every build has them.")
@click.option("--runs", type=int, help="Trainings a mode.  [default: 8]")
@click.option("--graphs", type=int, help="Graphs at most.  [default: 2000]")
@click.option("--epochs", type=int, help="Epochs a training.  [default: 20]")
@click.option("--seed", type=int, default=0, show_default=True, help="Of all that is random.")
@_json_option
def rings(
    folder: Path,
    quick: bool,
    runs: int | None,
    graphs: int | None,
    epochs: int | None,
    seed: int,
    as_json: bool,
) -> None:
    """Measure whether a build needs its structure (P1), and structure and features both (P2).

    Trains a GIN on every mode of the graphs; a check that was stopped goes on where it was. Writes
    rings.json and rings.svg into DIR, and the data card anew.
    """
    from graphxai_data.manifest import Manifest
    from graphxai_data.rings.measure import check_and_write

    wishes = {"runs": runs, "graphs": graphs, "epochs": epochs}
    options = {name: value for name, value in wishes.items() if value is not None}
    if quick and options:
        raise InputError(f"--{next(iter(options))} is for training; leave it out, or --quick")
    with _progress_bar("Measuring RINGS", "trainings") as progress:
        found, failures = check_and_write(
            folder, "quick" if quick else "full", seed, progress, **options
        )
    if as_json:
        click.echo(found.to_json())
    else:
        _show_rings(Manifest.load(folder).load_recipe(), found)
    if failures:
        raise CheckFailedError(f"{folder}: {'; '.join(failures)}")


@main.command()
@click.argument("name")
@click.option("--model", default="bcos-gin", show_default=True, help=f"One of {_MODEL_NAMES}.")
@click.option(
    "--config", default="default", show_default=True, help="default, or paper: as it was published."
)
@click.option(
    "--seed", "seeds", default="0", show_default=True, help="Of the training; 0-4 for five of them."
)
@click.option(
    "--set",
    "changes",
    metavar="KEY=VALUE",
    multiple=True,
    help="Another value for a setting, such as b=2.5 or epochs=20; may be given more than once.",
)
@click.option(
    "--data-seed", type=int, default=0, show_default=True, help="Which build to train on."
)
@_root_option
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("runs"),
    show_default=True,
    help="Folder of all trainings.",
)
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda, cuda:1, …")
@click.option("--threads", type=int, help="CPU threads.  [default: all cores]")
@click.option("--force", is_flag=True, help="Discard an earlier training in the same place.")
@_json_option
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

    table = _table("seed", "epochs", "best", "valid loss", "valid F1", "test accuracy", "test F1")
    columns = [("valid", "loss"), ("valid", "f1"), ("test", "accuracy"), ("test", "f1")]
    for result in results:
        scores = [f"{result['scores'][split][key]:.4f}" for split, key in columns]
        table.add_row(*(str(result[k]) for k in ("seed", "epochs", "best_epoch")), *scores)
    if len(results) > 1:
        values = [[r["scores"][split][key] for r in results] for split, key in columns]
        cells = [f"{statistics.mean(v):.4f} ± {statistics.stdev(v):.4f}" for v in values]
        table.add_row("all", "", "", *cells)
    _print(table)
    for result in results:
        click.echo(result["folder"])


@main.command()
@_folder_argument
@_json_option
def info(folder: Path, as_json: bool) -> None:
    """Show what is in a build, beside what its recipe expects."""
    from graphxai_data.manifest import Manifest

    _show_manifest(Manifest.load(folder), folder, as_json)


def _show_manifest(manifest: "Manifest", folder: Path, as_json: bool) -> None:
    from graphxai_data.rings.verdict import Measurement

    measured = Measurement.load(folder)
    if as_json:
        extra = {
            "folder": str(folder),
            "reference": _reference_verdict(manifest),
            "rings": json.loads(measured.to_json()) if measured else None,
        }
        click.echo(json.dumps(json.loads(manifest.to_json()) | extra, indent=2))
        return
    from graphxai_data.record import SPLIT_NAMES
    from graphxai_data.report.card import class_rows, rejected_lines, statistics_rows

    statistics = _table("statistic", "this build", "expected", "tolerance")
    for row in statistics_rows(manifest):
        statistics.add_row(*row)
    classes = _table("class", *SPLIT_NAMES, "all")
    for row in class_rows(manifest):
        classes.add_row(*row)
    click.echo(f"{manifest.dataset}, seed {manifest.seed}: {manifest.graphs:,} graphs in {folder}")
    _print(statistics)
    _print(classes)
    _show_rings(manifest.load_recipe(), measured)
    for name, source in manifest.sources.items():
        click.echo(f"source {name}     {source.id} ({source.file}, sha256 {source.sha256})")
    for line in rejected_lines(manifest):
        click.echo(line)
    click.echo(f"content sha256  {manifest.content_sha256}")
    click.echo(f"reference       {_reference_verdict(manifest)}")


def _show_rings(recipe: "Recipe", found: "Measurement | None") -> None:
    from graphxai_data.report.card import rings_rows

    table = _table("RINGS principle", "the paper", "measured", "why")
    for row in rings_rows(recipe, found):
        table.add_row(*row)
    _print(table)


def _reference_verdict(manifest: "Manifest") -> str:
    from graphxai_data.manifest import reference_digest

    reference = reference_digest(manifest)
    if reference is None and not manifest.has_usual_sources:
        return "not compared: made from other sources than the recipe's"
    if reference is None:
        return "none pinned for this recipe, seed and number of graphs"
    if reference == manifest.content_sha256:
        return "matches data/digests.toml"
    return f"DIFFERS from data/digests.toml ({reference})"


@contextmanager
def _training_progress(title: str) -> Iterator["TrainingProgress"]:
    """A bar on a terminal; elsewhere a line an epoch, at most one every few seconds."""
    with _progress_bar(title, "epochs") as bar:
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


@contextmanager
def _progress_bar(title: str, unit: str) -> Iterator["Bar"]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(f"{unit}, elapsed"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    off = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=off) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total, text=title: bar.update(
            task, completed=done, total=total, description=text
        )


def _parse_seeds(text: str) -> list[int]:
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
            f"--seed: expected a number, or up to {_MOST_SEEDS} as in 0-4 or 0,2,5; got '{text}'"
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


def _parse_source(text: str) -> tuple[str, str]:
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise InputError(f"--source: expected ID=PATH, got '{text}'")
    return name, path


def _table(*headers: str) -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for header in headers:
        table.add_column(header)
    return table


def _print(table: "Table") -> None:
    from rich.console import Console

    # A pipe has no width: there, lines are as long as they need to be.
    width = None if sys.stdout.isatty() else 200
    Console(width=width, markup=False, emoji=False, highlight=False).print(table)


if __name__ == "__main__":
    main()
