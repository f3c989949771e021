"""The verb `build`."""

from pathlib import Path

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
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of all graphs.")
@root_option
@jobs_option
@click.option(
    "--engine",
    default="processes",
    show_default=True,
    help="What generates the graphs: serial, processes, dask, or the address of a Dask scheduler "
    "(tcp://host:port).",
)
@click.option(
    "--graphs",
    type=int,
    help="Number of graphs; proportions of classes and splits stay.  [default: the recipe's]",
)
@click.option("--shard-size", type=int, default=1000, show_default=True, help="Graphs per shard.")
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
    sources: dict[str, str],
    no_rings: bool,
    as_json: bool,
) -> None:
    """Build the dataset NAME (see `list`), or the recipe file NAME, ending in .toml.

    Only the recipe, --seed, --graphs and --source change the graphs. A build that was stopped
    resumes where it stopped; an existing build is verified and kept.
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
            sources=sources,
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
