"""`evaluate` on a pair of causes: both halves, and the bound of rules that look at no model."""

from pathlib import Path
from typing import Any

import click

from graphxai_data.cli.console import print_table, progress_bar, seeds_text
from graphxai_data.cli.train import SECONDS_BETWEEN_LINES


def is_pair(name: str) -> bool:
    """Return whether a name is that of a pair, and of no dataset."""
    from graphxai_data.evaluation.pairs import pair_names
    from graphxai_data.recipe import shipped_names

    return name not in shipped_names() and pair_names(name) is not None


def evaluate_pair(
    name: str,
    root: str | Path,
    data_seed: int,
    arguments: tuple[Any, ...],
    seeds: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Compare explainers on a pair and print the tables; `arguments` are those of `compare_pair`.

    `seeds` are the seeds as they were given.
    """
    from graphxai_data.evaluation import pair_tables as tables
    from graphxai_data.evaluation.pair_study import compare_pair
    from graphxai_data.evaluation.pairs import Pair

    with progress_bar("Comparing explainers", "models", SECONDS_BETWEEN_LINES) as progress:
        pair = Pair.load(root, name, data_seed)
        comparison = compare_pair(pair, *arguments, progress=progress, **options)
    if as_json:
        click.echo(comparison.to_json())
        return
    split = options["split"]
    click.echo(f"{name}, {split} graphs; {seeds_text(seeds)}; Jaccard@k")
    print_table(tables.headers(comparison), tables.rows(comparison), wrap=False)
    for line in tables.notes(comparison):
        click.echo(line)
    if comparison.models:
        click.echo("What the models go by: the share of graphs in which a prediction ...")
        print_table(tables.MODEL_HEADERS, tables.model_rows(comparison), wrap=False)
