"""`evaluate --all`: the big table."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from graphxai_data.cli.console import print_table, progress_bar
from graphxai_data.cli.train import SECONDS_BETWEEN_LINES

RESULTS = Path("results")


def evaluate_all(
    name: str | None,
    seeds: list[int] | None,
    root: str | Path,
    data_seed: int,
    out: Path,
    results: Path,
    as_json: bool,
    **options: Any,
) -> None:
    """Complete the big table, or one row of it, and print it.

    `options` are those of `graphxai_data.evaluation.benchmark.run.fill`.
    """
    from graphxai_data.evaluation.benchmark.cell import Place
    from graphxai_data.evaluation.benchmark.plan import Plan
    from graphxai_data.evaluation.benchmark.run import fill
    from graphxai_data.evaluation.benchmark.store import Store
    from graphxai_data.evaluation.benchmark.summary import summarise
    from graphxai_data.evaluation.benchmark.tables import (
        OVERVIEW,
        columns,
        overview_row,
        table_rows,
    )

    plan = Plan.load([name] if name else (), seeds)
    place = Place(str(root), data_seed, str(out))
    with progress_bar("Filling the table", "trainings", SECONDS_BETWEEN_LINES) as progress:
        fill(plan, results, place, progress=progress, **options)
    summaries = [summarise(Store(results), row, plan.seeds) for row in plan.names]
    if as_json:
        lines = [
            {
                "dataset": summary.name, "explainer": line.explainer, "model": line.model,
                "jaccard": line.interval._asdict(), "auroc": line.auroc_interval._asdict(),
                "ms_per_graph": line.ms_per_graph, "accuracy": line.accuracy,
            }
            for summary in summaries
            for line in summary.lines
        ]  # fmt: skip
        click.echo(json.dumps({"plan": asdict(plan), "rows": lines}, indent=2))
        return
    if name:
        print_table(columns(summaries[0]), table_rows(summaries[0]), wrap=False)
    else:
        print_table(OVERVIEW, [overview_row(summary) for summary in summaries], wrap=False)
