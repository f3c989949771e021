"""The command `report`."""

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
    help="What `evaluate` leaves: the folder of a model or its evaluation.json, the output of "
    "--json, or an explanation file (.h5); may be given more than once.  [default: the shipped "
    "models of the dataset]",
)
@click.option(
    "--explainer",
    "explainers",
    multiple=True,
    help="Which explainers of the models are shown, as for `evaluate`; may be given more than "
    "once.  [default: B-cos, integrated gradients, GSAT and the simplest rules]",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Where the page goes.  [default: report.html in DIR]",
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
    """Write one page about a build: statistics, proofs, RINGS, explainers, and all its graphs.

    The page needs nothing beside itself: open it in a browser, or send it to somebody.
    """
    import json

    from graphxai_data.manifest import Manifest
    from graphxai_data.remote import opened
    from graphxai_data.report.page import write_report

    with progress_bar("Writing the report", "graphs") as bar, opened(folder) as (local, there):
        path = write_report(local, evaluations, out, explainers, check=not no_verify, told=bar)
        place = str(path)
        if there is not None and out is None:
            there.publish(Manifest.load(local), [path.name])
            place = f"{shown(there.url)}/{path.name}"
    size = path.stat().st_size
    if as_json:
        click.echo(json.dumps({"page": place, "bytes": size}, indent=2))
    else:
        click.echo(f"{place} ({size / 1e6:.1f} MB)")
