"""The verb `verify`."""

import json
import sys
from pathlib import Path

import click

from graphxai_data.cli.console import folder_argument, json_option, source_option
from graphxai_data.files.urls import shown


@click.command()
@folder_argument
@click.option(
    "--full", is_flag=True, help="Prove every graph, and generate each again from its seed."
)
@source_option
@json_option
def verify(folder: str | Path, full: bool, sources: dict[str, str], as_json: bool) -> None:
    """Check a build: files, digests, invariants, labels and masks."""
    from graphxai_data.building.verify import verify as run_verify
    from graphxai_data.manifest import Manifest
    from graphxai_data.remote import opened

    problems = run_verify(folder, full=full, sources=sources)
    name = shown(folder)
    if as_json:
        click.echo(json.dumps({"folder": name, "full": full, "problems": problems}, indent=2))
    elif problems:
        click.echo("\n".join(problems))
    else:
        with opened(folder) as (path, _):
            proven = Manifest.load(path).load_recipe().generator_object.has_prover
        done = "proven and reproduced" if proven else "reproduced"
        click.echo(f"{name}: whole" + (f", every graph {done}" if full else ""))
        if not proven:
            click.echo("labels and masks are not proven: the generator has no prover", err=True)
    if problems:
        plural = "" if len(problems) == 1 else "s"
        click.echo(f"Error: {name}: {len(problems)} problem{plural} found", err=True)
        sys.exit(1)
