"""What all verbs share: options, tables on stdout, progress on stderr."""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graphxai_data.errors import InputError, whole_number
from graphxai_data.files.urls import is_url, place_of, shown
from graphxai_data.progress import Progress, no_progress

if TYPE_CHECKING:
    from rich.console import Console

# Everything heavier than click is imported where it is used: --help has to be quick.

_MAX_SEEDS = 1000


class Place(click.Path):
    """A path as a `Path`, or a URL as text; with `urls=False` a URL is an error."""

    def __init__(self, urls: bool = True) -> None:
        super().__init__(path_type=Path)
        self._urls = urls

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the `Path` or the URL."""
        if is_url(value) and not self._urls:
            raise InputError(f"{shown(value)}: expected a folder on this machine, got a URL")
        return super().convert(value, param, ctx) if not isinstance(value, str) else place_of(value)


def _set_threads(_ctx: click.Context, _param: click.Parameter, threads: int | None) -> None:
    if threads is not None:
        whole_number("--threads", threads, 1, 4096)
        import torch

        torch.set_num_threads(threads)


folder_argument = click.argument("folder", metavar="DIR", type=Place())
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
root_option = click.option(
    "--root",
    type=Place(),
    callback=lambda _ctx, _param, root: (
        root or place_of(os.environ.get("GRAPHXAI_DATA_ROOT") or "data")
    ),
    help="Folder that holds all builds, or its URL, such as s3://bucket/folder.  [default: "
    "$GRAPHXAI_DATA_ROOT, else ./data]",
)
source_option = click.option(
    "--source",
    "sources",
    metavar="ID=PATH",
    multiple=True,
    callback=lambda _ctx, _param, texts: dict(
        key_and_value("--source", "ID=PATH", text) for text in texts
    ),
    help="Replace the recipe's source ID by a file, by a folder or zip of files, or by another "
    "known source. Can be repeated.",
)
config_option = click.option(
    "--config", default="default", help="Training configuration: default, or paper (as published)."
)
out_option = click.option(
    "--out",
    type=Place(urls=False),
    default=Path("runs"),
    help="Folder that holds all trained models.",
)
device_option = click.option("--device", default="auto", help="auto, cpu, cuda, cuda:1, …")
threads_option = click.option(
    "--threads",
    type=int,
    callback=_set_threads,
    expose_value=False,
    help="CPU threads of PyTorch.  [default: all cores]",
)
jobs_option = click.option("--jobs", type=int, help="Worker processes.  [default: all cores]")


def training_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that `train` and `evaluate` share."""
    options = (
        click.option(
            "--set",
            "changes",
            metavar="KEY=VALUE",
            multiple=True,
            callback=lambda _ctx, _param, texts: dict(map(parse_setting, texts)),
            help="Change a setting of the configuration, such as b=2.5 or epochs=20. "
            "Can be repeated.",
        ),
        click.option("--data-seed", type=int, default=0, help="Seed of the build."),
        root_option,
        out_option,
        device_option,
        threads_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


def key_and_value(option: str, form: str, text: str) -> tuple[str, str]:
    """Return what is before and after the equals sign; `form` tells users what is expected."""
    key, _, value = text.partition("=")
    if not (key and value):
        raise InputError(f"{option}: expected {form}, got '{text}'")
    return key, value


def parse_seeds(text: str, option: str = "--seed") -> list[int]:
    """Return the seeds in "3", "0-4" or "0,2,5"."""
    seeds: list[int] = []
    try:
        for part in text.split(","):
            first, dash, last = part.partition("-")
            new = range(int(first), int(last if dash else first) + 1)
            if not new or len(seeds) + (new[-1] - new[0]) >= _MAX_SEEDS:
                raise ValueError
            seeds += new
    except ValueError:
        raise InputError(
            f"{option}: expected a number, or up to {_MAX_SEEDS} as in 0-4 or 0,2,5; got '{text}'"
        ) from None
    return list(dict.fromkeys(seeds))


def seeds_text(text: str) -> str:
    """Return what a table shows for seeds such as "0-4": means over them, or values of one seed."""
    seeds = parse_seeds(text)
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    return f"mean ± standard deviation over seeds {text}"


def parse_setting(text: str) -> tuple[str, Any]:
    """Return key and value of "b=2.5"; words need no quotes."""
    import tomllib

    key, value = key_and_value("--set", "KEY=VALUE", text)
    try:
        parsed: Any = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        parsed = value
    return key.strip(), parsed


@contextmanager
def progress_bar(title: str, unit: str, line_seconds: float | None = None) -> Iterator[Progress]:
    """Show progress on stderr: a bar on a terminal, elsewhere lines or nothing.

    `unit` is what is counted. A line is printed at most every `line_seconds`, and whenever
    something new is counted; None prints no lines.
    """
    from rich import progress as rich
    from rich.console import Console

    stderr = Console(stderr=True)
    if not stderr.is_terminal:
        yield no_progress if line_seconds is None else _Lines(unit, line_seconds)
        return
    description = rich.TextColumn("{task.description}", markup=False)
    count = rich.BarColumn(), rich.MofNCompleteColumn(), rich.TextColumn(f"{unit}, elapsed")
    times = rich.TimeElapsedColumn(), rich.TextColumn("left"), rich.TimeRemainingColumn()
    with rich.Progress(description, *count, *times, console=stderr, transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total, what: bar.update(
            task, completed=done, total=total, description=what
        )


class _Lines:
    """Progress as lines on stderr."""

    def __init__(self, unit: str, seconds: float) -> None:
        self._unit, self._seconds = unit, seconds
        self._begin, self._first, self._done, self._last_line = 0.0, 0, -1, 0.0

    def __call__(self, done: int, total: int, what: str) -> None:
        now = time.monotonic()
        is_new = self._done < 0 or done < self._done
        if is_new:
            self._begin, self._first = now, done
        self._done = done
        if not is_new and now - self._last_line < self._seconds:
            return
        self._last_line, left = now, ""
        if done > self._first and not what.endswith(" left"):  # it may have a better guess
            seconds = (now - self._begin) * (total - done) / (done - self._first)
            time_left = f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
            left = f", about {time_left} left"
        click.echo(f"{what}: {done} of {total} {self._unit}{left}", err=True)


def console() -> "Console":
    """Return a rich console on stdout, without colours where that is no terminal."""
    from rich.console import Console

    # A pipe has no width, so lines there get as long as they need to be.
    width = None if sys.stdout.isatty() else 200
    return Console(width=width, markup=False, emoji=False, highlight=False)


def print_table(headers: Sequence[str], rows: Iterable[Sequence[str]], wrap: bool = True) -> None:
    """Print a table on stdout; without `wrap`, cells are never cut, however wide it becomes."""
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
