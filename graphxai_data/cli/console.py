"""What all commands share: options, tables on stdout, progress on stderr."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graphxai_data.errors import InputError
from graphxai_data.files.urls import is_url, place_of, shown

if TYPE_CHECKING:
    from rich.console import Console

Bar = Callable[..., None]

# Everything heavier than click is imported where it is used: --help has to be quick.

json_option = click.option("--json", "as_json", is_flag=True, help="Machine-readable output.")


class Place(click.Path):
    """A path; or, where that makes sense, a URL, which stays the text it is."""

    def __init__(self, urls: bool = True) -> None:
        super().__init__(path_type=Path)
        self._urls = urls

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """A `Path`, or the URL."""
        if is_url(value) and not self._urls:
            raise InputError(f"{shown(value)}: expected a folder of this machine, got a URL")
        return super().convert(value, param, ctx) if not isinstance(value, str) else place_of(value)


folder_argument = click.argument("folder", metavar="DIR", type=Place())
root_option = click.option(
    "--root",
    type=Place(),
    callback=lambda _ctx, _param, root: (
        root or place_of(os.environ.get("GRAPHXAI_DATA_ROOT") or "data")
    ),
    help="Folder of all builds, or its URL, such as s3://bucket/folder.  [default: "
    "$GRAPHXAI_DATA_ROOT, else ./data]",
)
source_option = click.option(
    "--source",
    "sources",
    metavar="ID=PATH",
    multiple=True,
    help="A file, a folder or zip of files, or another known source, to use instead of the "
    "recipe's, by its name there; may be given more than once.",
)


def parse_sources(texts: Iterable[str]) -> dict[str, str]:
    """What `--source` says: a path, or another id, for each name."""
    found = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise InputError(f"--source: expected ID=PATH, got '{text}'")
        found[name] = path
    return found


@contextmanager
def progress_bar(title: str, unit: str) -> Iterator[Bar]:
    """A bar on stderr, where that is a terminal; the function in it takes done, total and text."""
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
    err = Console(stderr=True)
    off = not err.is_terminal
    with Progress(*columns, console=err, transient=True, disable=off) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total, text=title: bar.update(
            task, completed=done, total=total, description=text
        )


def console() -> "Console":
    """Stdout; colours are left out where it is no terminal."""
    from rich.console import Console

    # A pipe has no width: there, lines are as long as they need to be.
    width = None if sys.stdout.isatty() else 200
    return Console(width=width, markup=False, emoji=False, highlight=False)


def print_table(headers: Sequence[str], rows: Iterable[Sequence[str]], wrap: bool = True) -> None:
    """A table on stdout; without `wrap` as wide as it has to be, for numbers that must be whole."""
    from rich import box
    from rich.measure import Measurement
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for header in headers:
        table.add_column(header, no_wrap=not wrap)
    for row in rows:
        table.add_row(*row)
    out = console()
    if not wrap:
        out.width = max(
            out.width, Measurement.get(out, out.options.update(width=10_000), table).maximum
        )
    out.print(table)
