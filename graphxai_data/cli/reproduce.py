"""The command `reproduce`."""

from pathlib import Path
from typing import Any

import click

from graphxai_data.cli.console import (
    Place,
    config_option,
    device_option,
    json_option,
    out_option,
    parse_seeds,
    progress_bar,
    root_option,
    source_option,
    threads_option,
)
from graphxai_data.errors import InputError

_SECONDS_BETWEEN_LINES = 30

# Everything heavier than click is imported inside the command: --help has to be quick.


@click.command()
@click.option(
    "--table", "tables", type=click.Choice(["2", "3"]), multiple=True,
    help="2: predictions, 3: explanations. Can be repeated.",
)  # fmt: skip
@click.option(
    "--figure", "figures", type=click.Choice(["b", "qualitative"]), multiple=True,
    help="b: sensitivity to B, qualitative: explanations next to the ground truth.",
)  # fmt: skip
@click.option("--datasets", metavar="A,B,…", help="Use only these.  [default: all of the paper's]")
@click.option("--seeds", help="Seeds of the trainings, as 0-4 or 0,2.  [default: the budget's]")
@click.option(
    "--budget", type=click.Choice(["small", "paper"]), default="small",
    help="small: about 15 minutes on two cores; paper: the whole protocol, a day.",
)  # fmt: skip
@config_option
@source_option
@root_option
@out_option
@click.option(
    "--results", type=Place(urls=False), default=Path("reproduce"),
    help="Folder for report.md, report.json and the figures; an earlier report in it is replaced.",
)  # fmt: skip
@device_option
@threads_option
@json_option
def reproduce(
    tables: tuple[str, ...],
    figures: tuple[str, ...],
    datasets: str | None,
    seeds: str | None,
    budget: str,
    config: str,
    results: Path,
    as_json: bool,
    **options: Any,
) -> None:
    """Reproduce the paper's tables and figures, with its numbers next to ours.

    Without --table and --figure, all of them. Builds what is missing, trains, explains, measures,
    and writes a report after every cell. A run that was stopped goes on where it was.
    """
    # `options` has the arguments of the function `reproduce` that are passed on unchanged.
    from graphxai_data.evaluation.reproduce import reproduce as run
    from graphxai_data.evaluation.reproduction import PARTS, report_text

    parts = [f"table {name}" for name in tables] + [f"figure {name}" for name in figures]
    names = None
    if datasets is not None:
        names = [name.strip() for name in datasets.split(",") if name.strip()]
        if not names:
            raise InputError("--datasets: expected names with commas between, got none")
    numbers = None if seeds is None else parse_seeds(seeds, "--seeds")
    with progress_bar("Reproducing", "cells", _SECONDS_BETWEEN_LINES) as progress:
        report = run(
            parts or PARTS, names, numbers, budget, config, results=results, progress=progress,
            **options,
        )  # fmt: skip
    click.echo(report.to_json() if as_json else report_text(report))
    click.echo(f"written to {results}", err=True)
