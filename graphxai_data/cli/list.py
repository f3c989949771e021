"""The verb `list`."""

import json
from typing import Any

import click

from graphxai_data.cli.console import json_option, print_table


@click.command(name="list")
@json_option
def list_datasets(as_json: bool) -> None:
    """List the datasets that can be built, and the package that each comes from."""
    from graphxai_data import __version__
    from graphxai_data.files.toml import read_toml
    from graphxai_data.generators import PLUGINS
    from graphxai_data.recipe import find, plugin_recipes, shipped_names

    own = f"graphxai-data {__version__}"
    recipes = [(name, find(name), own) for name in shipped_names()]
    recipes += [(name, *entry) for name, found in plugin_recipes().items() for entry in found]
    rows = [
        {
            "name": name,
            "graphs": table.get("params", {}).get("graphs"),
            "splits": table.get("splits", {}),
            "summary": table.get("summary", ""),
            "generator": table.get("generator"),
            "package": package,
        }
        for name, table, package in ((n, read_toml(path), p) for n, path, p in recipes)
    ]
    problems = PLUGINS.problems()
    for problem in problems.values():
        click.echo(f"Warning: {problem}", err=True)
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


def _cells(row: dict[str, Any]) -> list[str]:
    shares = " / ".join(
        f"{share:.0%}" if isinstance(share, float) else f"{share:,}"
        for share in row["splits"].values()
    )
    return [row["name"], f"{row['graphs']:,}", shares, row["summary"], row["package"]]
