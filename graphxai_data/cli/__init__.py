"""The command line: one file per verb. The only package that prints.

Results go to stdout, progress and errors to stderr.
"""

import io
import sys
from typing import Any

import click

from graphxai_data import __version__
from graphxai_data.cli.build import build
from graphxai_data.cli.evaluate import evaluate
from graphxai_data.cli.info import info
from graphxai_data.cli.list import list_datasets
from graphxai_data.cli.report import report
from graphxai_data.cli.reproduce import reproduce
from graphxai_data.cli.rings import rings
from graphxai_data.cli.train import train
from graphxai_data.cli.verify import verify
from graphxai_data.errors import GraphXAIDataError


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


@click.group(
    cls=_Cli, context_settings={"help_option_names": ["-h", "--help"], "show_default": True}
)
@click.version_option(__version__, prog_name="graphxai-data")
def main() -> None:
    """Graph-explainability benchmarks with ground truth known by construction.

    Exit codes: 0 good, 1 a check failed, 2 bad usage or input.
    """


for verb in (list_datasets, build, verify, info, rings, train, evaluate, reproduce, report):
    main.add_command(verb)
