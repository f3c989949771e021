"""The verb `list`."""

import json
from pathlib import Path
from typing import Any

import click

from graphxai_data.cli.console import json_option, print_table
from graphxai_data.errors import InputError, finite_number, whole_number

_SPLITS = ("train", "valid", "test")


@click.command(name="list")
@json_option
def list_datasets(as_json: bool) -> None:
    """List the datasets that can be built, and the package that each comes from."""
    from graphxai_data import __version__
    from graphxai_data.generators import PLUGINS
    from graphxai_data.recipe import find, plugin_recipes, shipped_names

    own = f"graphxai-data {__version__}"
    rows = [_row(name, find(name), own) for name in shipped_names()]
    problems = PLUGINS.problems()
    warnings = list(problems.values())
    for name, entries in plugin_recipes().items():
        for path, package in entries:
            try:
                row = _row(name, path, package)
                if name in shipped_names():
                    raise InputError(f"{path}: a shipped dataset has this name; it is ignored")
                rows.append(row)
            except InputError as error:
                warnings.append(f"package {package}: {error}")
    for warning in warnings:
        click.echo(f"Warning: {warning}", err=True)
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    headers = ["dataset", "graphs", "train / valid / test", "description"]
    # Only with plug-ins: otherwise all come from here.
    headers += ["package"] if len(rows) > len(shipped_names()) else []
    print_table(headers, [_cells(row)[: len(headers)] for row in rows])
    used = {row["generator"] for row in rows}
    for name in PLUGINS.names():
        if name not in used and name not in problems:
            click.echo(f"{PLUGINS.origin(name)}: no recipe; name it in a recipe of your own")


def _row(name: str, path: Path, package: str) -> dict[str, Any]:
    """Return what a recipe says about its dataset; an `InputError` if it is no recipe."""
    from graphxai_data.files.toml import read_toml

    table = read_toml(path)
    if table.get("name") != name:
        raise InputError(f"{path}: not named '{name}', as its file; make them agree")
    try:
        return {
            "name": name,
            "graphs": whole_number("graphs", table["params"]["graphs"], 1, 10**9),
            "splits": {split: _share(table["splits"][split]) for split in _SPLITS},
            "summary": str(table.get("summary", "")),
            "generator": str(table["generator"]),
            "package": package,
        }
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InputError(f"{path}: not a recipe ({type(error).__name__}: {error})") from None


def _share(value: object) -> int | float:
    return value if type(value) is int else finite_number("splits", value, 0)


def _cells(row: dict[str, Any]) -> list[str]:
    shares = " / ".join(
        f"{share:.0%}" if isinstance(share, float) else f"{share:,}"
        for share in row["splits"].values()
    )
    return [row["name"], f"{row['graphs']:,}", shares, row["summary"], row["package"]]
