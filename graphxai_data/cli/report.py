"""The verb `report`."""

import json
from pathlib import Path

import click

from graphxai_data.cli.console import folder_argument, json_option, progress_bar
from graphxai_data.files.urls import shown


@click.command()
@folder_argument
@click.option(
    "--evaluation",
    "evaluations",
    metavar="FILE",
    type=click.Path(path_type=Path),
    multiple=True,
    help="A result of `evaluate`: a model's folder or its evaluation.json, the output of --json, "
    "or an explanation file (.safetensors). Can be repeated.  [default: the shipped models of the "
    "dataset]",
)
@click.option(
    "--explainer",
    "explainers",
    multiple=True,
    help="Explainer to show, named as for `evaluate`. Can be repeated.  [default: B-cos, "
    "integrated gradients, GSAT and the simplest rules]",
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="The page.  [default: report.html in DIR]"
)
@click.option("--no-verify", is_flag=True, help="Do not verify the build first.")
@json_option
def report(
    folder: str | Path,
    evaluations: tuple[Path, ...],
    explainers: tuple[str, ...],
    out: Path | None,
    no_verify: bool,
    as_json: bool,
) -> None:
    """Write an HTML page about a build: statistics, proofs, RINGS, explainers and graphs.

    The page is one file that needs no other: open it in a browser, or send it to somebody.
    """
    from graphxai_data.manifest import Manifest
    from graphxai_data.remote import opened
    from graphxai_data.report.page import write_report

    with progress_bar("Writing the report", "graphs") as bar, opened(folder) as (local, remote):
        path = write_report(local, evaluations, out, explainers, not no_verify, bar)
        place = str(path)
        if remote is not None and out is None:
            remote.publish(Manifest.load(local), [path.name])
            place = f"{shown(remote.url)}/{path.name}"
    size = path.stat().st_size
    if as_json:
        click.echo(json.dumps({"page": place, "bytes": size}, indent=2))
    else:
        click.echo(f"{place} ({size / 1e6:.1f} MB)")
