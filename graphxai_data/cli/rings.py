"""The verb `rings`."""

import json
from pathlib import Path

import click

from graphxai_data.cli.console import folder_argument, json_option, progress_bar
from graphxai_data.cli.info import show_floors, show_rings
from graphxai_data.errors import CheckFailedError, InputError
from graphxai_data.files.urls import shown


@click.command()
@folder_argument
@click.option("--quick", is_flag=True, help="Use probes without training, as every build does.")
@click.option("--runs", type=int, help="Trainings per mode.  [default: 8]")
@click.option("--graphs", type=int, help="Maximum number of graphs.  [default: 2000]")
@click.option("--epochs", type=int, help="Epochs per training.  [default: 20]")
@click.option("--seed", type=int, default=0, help="Seed of splits, modes and trainings.")
@json_option
def rings(
    folder: str | Path, quick: bool, seed: int, as_json: bool, **training: int | None
) -> None:
    """Measure whether a build needs its structure (P1), and structure and features both (P2).

    Trains a GIN on every mode of the graphs. A check that was stopped resumes where it stopped.
    Also measures the floors of explanations: how well rules that look at no model find the
    rationale. Writes rings.json, rings.svg and floors.json into DIR, and updates the data card.
    """
    from graphxai_data.building.finish import check_and_write
    from graphxai_data.manifest import EXTRAS, Manifest
    from graphxai_data.remote import opened
    from graphxai_data.rings.floors import Floors

    options = {name: value for name, value in training.items() if value is not None}
    if quick and options:
        raise InputError(f"--{next(iter(options))} is for training; leave it out, or --quick")
    with progress_bar("Measuring RINGS", "trainings") as progress, opened(folder) as (path, remote):
        measurement, failures = check_and_write(
            path, "quick" if quick else "full", seed, progress, **options
        )
        manifest, floors = Manifest.load(path), Floors.load(path)
        if remote is not None:
            remote.publish(manifest, EXTRAS)
    if as_json:
        measured = None if floors is None else json.loads(floors.to_json())
        click.echo(json.dumps(json.loads(measurement.to_json()) | {"floors": measured}, indent=2))
    else:
        show_rings(manifest.load_recipe(), measurement)
        show_floors(floors)
    if failures:
        raise CheckFailedError(f"{shown(folder)}: {'; '.join(failures)}")
