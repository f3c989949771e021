"""The verb `build`."""

from pathlib import Path
from typing import Any

import click

from graphxai_data.cli.console import (
    jobs_option,
    json_option,
    progress_bar,
    root_option,
    source_option,
)
from graphxai_data.cli.info import show_manifest
from graphxai_data.errors import CheckFailedError
from graphxai_data.files.urls import inside, is_url, shown


@click.command()
@click.argument("name")
@click.option("--seed", type=int, default=0, help="Seed of all graphs.")
@root_option
@jobs_option
@click.option(
    "--engine",
    default="processes",
    help="What generates the graphs: serial, processes, dask, or the address of a Dask scheduler "
    "(tcp://host:port).",
)
@click.option(
    "--graphs",
    type=int,
    help="Number of graphs; proportions of classes and splits stay.  [default: the recipe's]",
)
@click.option("--shard-size", type=int, default=1000, help="Graphs per shard.")
@source_option
@click.option("--no-rings", is_flag=True, help="Do not measure the RINGS principles.")
@json_option
def build(name: str, root: str | Path, no_rings: bool, as_json: bool, **options: Any) -> None:
    """Build the dataset NAME (see `list`), or the recipe file NAME, ending in .toml.

    Only the recipe, --seed, --graphs and --source change the graphs. A build that was stopped
    resumes where it stopped; an existing build is verified and kept.
    """
    # `options` has the arguments of the function `build` that are passed on unchanged.
    from graphxai_data.building.build import build as run_build
    from graphxai_data.manifest import reference_digest
    from graphxai_data.remote import RemoteBuild

    with progress_bar(f"Building {name}", "graphs") as progress:
        manifest = run_build(name, root=root, rings=not no_rings, progress=progress, **options)
    folder = inside(root, manifest.dataset, f"seed-{manifest.seed}")
    copy = RemoteBuild(folder).folder if is_url(folder) else folder
    show_manifest(manifest, Path(copy), shown(folder), as_json)
    if (reference := reference_digest(manifest)) not in (None, manifest.content_sha256):
        raise CheckFailedError(
            f"{shown(folder)}: content digest {manifest.content_sha256}, but data/digests.toml has "
            f"{reference}; please report this with the versions in manifest.json"
        )
