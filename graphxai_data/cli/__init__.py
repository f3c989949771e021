"""Command line: with the other `cli_*.py` and `console.py`, all that prints.

Results go to stdout, progress and errors to stderr.
"""

import io
import json
import sys
from pathlib import Path
from typing import Any

import click

from graphxai_data import __version__
from graphxai_data.cli.console import (
    folder_argument,
    json_option,
    parse_sources,
    print_table,
    progress_bar,
    root_option,
    source_option,
)
from graphxai_data.cli.evaluate import evaluate
from graphxai_data.cli.info import info, show_manifest, show_rings
from graphxai_data.cli.report import report
from graphxai_data.cli.reproduce import reproduce
from graphxai_data.cli.train import train
from graphxai_data.errors import CheckFailedError, GraphXAIDataError, InputError
from graphxai_data.files.urls import inside, is_url, shown

# Everything heavier than click is imported inside the commands: --help has to be quick.


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


main.add_command(train)
main.add_command(evaluate)
main.add_command(reproduce)
main.add_command(report)
main.add_command(info)


@main.command(name="list")
@json_option
def list_command(as_json: bool) -> None:
    """Show the datasets that can be built."""
    from graphxai_data.files.toml import read_toml
    from graphxai_data.recipe import find, shipped_names

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
    lines = []
    for row in rows:
        shares = " / ".join(
            f"{share:.0%}" if isinstance(share, float) else f"{share:,}"
            for share in row["splits"].values()
        )
        lines.append([row["name"], f"{row['graphs']:,}", shares, row["summary"]])
    print_table(("dataset", "graphs", "train / valid / test", "what it is"), lines)


@main.command()
@click.argument("name")
@click.option("--seed", type=int, default=0, show_default=True, help="Which build of the recipe.")
@root_option
@click.option("--jobs", type=int, help="Worker processes.  [default: all cores]")
@click.option(
    "--engine",
    default="processes",
    show_default=True,
    help="serial, processes, dask, or the address of a Dask scheduler (tcp://host:port).",
)
@click.option("--graphs", type=int, help="Another number of graphs, in the same proportions.")
@click.option("--shard-size", type=int, default=1000, show_default=True, help="Graphs a shard.")
@source_option
@click.option("--no-rings", is_flag=True, help="Do not measure the RINGS principles.")
@json_option
def build(
    name: str,
    seed: int,
    root: str | Path,
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
    from graphxai_data.building.build import build as run_build
    from graphxai_data.manifest import reference_digest
    from graphxai_data.remote import RemoteBuild

    with progress_bar(f"Building {name}", "graphs") as progress:
        manifest = run_build(
            name,
            seed=seed,
            root=root,
            jobs=jobs,
            engine=engine,
            graphs=graphs,
            shard_size=shard_size,
            rings=not no_rings,
            sources=parse_sources(sources),
            progress=progress,
        )
    folder = inside(root, manifest.dataset, f"seed-{manifest.seed}")
    copy = RemoteBuild(folder).folder if is_url(folder) else folder
    show_manifest(manifest, Path(copy), shown(folder), as_json)
    if (reference := reference_digest(manifest)) not in (None, manifest.content_sha256):
        raise CheckFailedError(
            f"{shown(folder)}: content digest {manifest.content_sha256}, but data/digests.toml has "
            f"{reference}; please report this with the versions in manifest.json"
        )


@main.command()
@folder_argument
@click.option("--full", is_flag=True, help="Prove every graph, and draw each again from its seed.")
@source_option
@json_option
def verify(folder: str | Path, full: bool, sources: tuple[str, ...], as_json: bool) -> None:
    """Check a build: files, digests, invariants, labels and masks."""
    from graphxai_data.building.verify import verify as run_verify

    problems = run_verify(folder, full=full, sources=parse_sources(sources))
    folder = shown(folder)
    if as_json:
        result = {"folder": folder, "full": full, "problems": problems}
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
@folder_argument
@click.option("--quick", is_flag=True, help="Probes without training, as every build has them.")
@click.option("--runs", type=int, help="Trainings a mode.  [default: 8]")
@click.option("--graphs", type=int, help="Graphs at most.  [default: 2000]")
@click.option("--epochs", type=int, help="Epochs a training.  [default: 20]")
@click.option("--seed", type=int, default=0, show_default=True, help="Of all that is random.")
@json_option
def rings(
    folder: str | Path,
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
    from graphxai_data.building.finish import check_and_write
    from graphxai_data.manifest import EXTRAS, Manifest
    from graphxai_data.remote import opened

    wishes = {"runs": runs, "graphs": graphs, "epochs": epochs}
    options = {name: value for name, value in wishes.items() if value is not None}
    if quick and options:
        raise InputError(f"--{next(iter(options))} is for training; leave it out, or --quick")
    with progress_bar("Measuring RINGS", "trainings") as progress, opened(folder) as (path, there):
        found, failures = check_and_write(
            path, "quick" if quick else "full", seed, progress, **options
        )
        manifest = Manifest.load(path)
        if there is not None:
            there.publish(manifest, EXTRAS)
    if as_json:
        click.echo(found.to_json())
    else:
        show_rings(manifest.load_recipe(), found)
    if failures:
        raise CheckFailedError(f"{shown(folder)}: {'; '.join(failures)}")
