"""The verb `list`."""

import json

import click

from graphxai_data.cli.console import json_option, print_table


@click.command(name="list")
@json_option
def list_datasets(as_json: bool) -> None:
    """List the datasets that can be built."""
    from graphxai_data.files.toml import read_toml
    from graphxai_data.recipe import find, shipped_names

    recipes = {name: read_toml(find(name)) for name in shipped_names()}
    rows = [
        {
            "name": name,
            "graphs": recipe["params"]["graphs"],
            "splits": recipe["splits"],
            "summary": recipe["summary"],
        }
        for name, recipe in recipes.items()
    ]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    lines = []
    for row in rows:
        shares = " / ".join(
            f"{share:.0%}" if isinstance(share, float) else f"{share:,}"
            for share in row["splits"].values()
        )
        lines.append([row["name"], f"{row['graphs']:,}", shares, row["summary"]])
    print_table(("dataset", "graphs", "train / valid / test", "description"), lines)
