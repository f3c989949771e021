"""The verb `info`: a build, or one of its graphs, in a terminal; `build` prints the same."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graphxai_data.cli.console import console, folder_argument, json_option, print_table
from graphxai_data.errors import whole_number
from graphxai_data.files.urls import shown

if TYPE_CHECKING:
    from graphxai_data.graphs.record import GraphRecord
    from graphxai_data.manifest import Manifest
    from graphxai_data.recipe import Recipe
    from graphxai_data.rings.floors import Floors
    from graphxai_data.rings.verdict import Measurement


@click.command()
@folder_argument
@click.option("--graph", metavar="ID", type=int, help="Show this graph instead.")
@json_option
def info(folder: str | Path, graph: int | None, as_json: bool) -> None:
    """Show what is in a build, compared with its recipe, or one of its graphs."""
    from graphxai_data.datasets.records import Graphs
    from graphxai_data.manifest import Manifest
    from graphxai_data.remote import opened

    with opened(folder) as (path, _):
        manifest = Manifest.load(path)
        graphs = Graphs(path, manifest)
        if graph is not None:
            whole_number("--graph", graph, 0, manifest.graphs - 1)
            _show_graph(graphs[graph], manifest.load_recipe(), as_json)
            return
        show_manifest(manifest, path, shown(folder), as_json)
        if not as_json:
            _show_sizes(graphs)


def show_manifest(manifest: "Manifest", folder: Path, name: str, as_json: bool) -> None:
    """Print what is in a build; `name` is its path or URL for people."""
    from graphxai_data.manifest import reference_verdict
    from graphxai_data.rings.floors import Floors
    from graphxai_data.rings.verdict import Measurement

    rings, floors = Measurement.load(folder), Floors.load(folder)
    if as_json:
        extra = {
            "folder": name,
            "reference": reference_verdict(manifest),
            "rings": json.loads(rings.to_json()) if rings else None,
            "floors": json.loads(floors.to_json()) if floors else None,
        }
        click.echo(json.dumps(json.loads(manifest.to_json()) | extra, indent=2))
        return
    from graphxai_data.building.cards import rejected_lines
    from graphxai_data.building.statistics_tables import (
        class_rows,
        labels_are_numbers,
        statistics_rows,
    )
    from graphxai_data.drawing.terminal import bar
    from graphxai_data.graphs.record import SPLIT_NAMES

    click.echo(f"{manifest.dataset}, seed {manifest.seed}: {manifest.graphs:,} graphs in {name}")
    if manifest.made_by:
        click.echo(f"made by {manifest.made_by}")
    print_table(("statistic", "this build", "expected", "tolerance"), statistics_rows(manifest))
    rows = class_rows(manifest)
    largest = max(int(row[-1]) for row in rows)
    room = console().width - 10 - max(len(row[0]) for row in rows) - 8 * (len(SPLIT_NAMES) + 1)
    bars = [[*row, bar(int(row[-1]) / largest, max(0, min(24, room)))] for row in rows]
    first = "" if labels_are_numbers(manifest) else "class"
    print_table((first, *SPLIT_NAMES, "all", ""), bars)
    show_rings(manifest.load_recipe(), rings)
    show_floors(floors)
    for source_name, source in manifest.sources.items():
        click.echo(f"source {source_name}     {source.id} ({source.file}, sha256 {source.sha256})")
    for line in rejected_lines(manifest):
        click.echo(line)
    click.echo(f"content sha256  {manifest.content_sha256}")
    click.echo(f"reference       {reference_verdict(manifest)}")


def show_rings(recipe: "Recipe", rings: "Measurement | None") -> None:
    """Print the verdicts on the RINGS principles."""
    from graphxai_data.building.cards import rings_rows

    print_table(("RINGS principle", "the paper", "measured", "why"), rings_rows(recipe, rings))


def show_floors(floors: "Floors | None") -> None:
    """Print the strongest rules that look at no model; nothing if there are none."""
    from graphxai_data.building.cards import floor_headers, floor_rows

    if floors is not None:
        print_table(floor_headers(floors), floor_rows(floors, strongest=True))
        if floors.bound is not None:
            click.echo(
                f"bound of the mean over the pair, without model and labels: {floors.bound:.3f}"
            )


def _show_sizes(graphs: Any) -> None:
    """Print the distributions of graph sizes and node degrees."""
    import numpy as np

    from graphxai_data.drawing.terminal import sparkline

    overview = graphs.overview()
    low, high = int(overview.nodes.min()), int(overview.nodes.max())
    sizes = sparkline(np.bincount(overview.nodes)[low:])
    click.echo(f"nodes per graph {low} {sizes} {high}")
    click.echo(f"degrees         0 {sparkline(overview.degrees)} {len(overview.degrees) - 1}")


def _show_graph(record: "GraphRecord", recipe: "Recipe", as_json: bool) -> None:
    """Print one graph as a drawing and a few lines; or all of it as JSON."""
    from graphxai_data.drawing.terminal import graph_text

    facts = _facts(record, recipe)
    if as_json:
        node_y, weight = record.node_y, record.node_weight
        facts |= {"x": record.x.tolist(), "edge_index": record.edge_index.tolist()}
        facts["node_classes"] = None if node_y is None else node_y.tolist()
        facts["node_weight"] = None if weight is None else weight.tolist()
        click.echo(json.dumps(facts))
        return
    out = console()
    out.print(graph_text(record, min(76, out.width), colours=out.color_system is not None))
    edges = record.edge_index.shape[1]
    click.echo(f"graph {facts['graph']}: {record.num_nodes} nodes, {edges} directed edges")
    for key in ("class", "label", "split", "group", "smiles"):
        if facts[key] is not None:
            click.echo(f"{key:<10}{facts[key]}")
    for line in _rationale_lines(record):
        click.echo(line)


def _facts(record: "GraphRecord", recipe: "Recipe") -> dict[str, Any]:
    """Return what is known about one graph, as plain data."""
    import numpy as np

    from graphxai_data.graphs.record import SPLIT_NAMES

    is_number, mask = isinstance(record.y, float), record.node_mask
    has_class = record.node_y is None and not is_number
    return {
        "graph": record.meta["graph_id"],
        "class": recipe.class_names[int(record.y)] if has_class else None,
        # The shortest number that is the same as float32.
        "label": float(str(np.float32(record.y))) if is_number else None,
        "split": SPLIT_NAMES[record.meta["split"]],
        "group": record.group,
        "smiles": record.meta.get("smiles"),
        "rationale": None if mask is None else np.flatnonzero(mask).tolist(),
        "alternatives": None
        if record.alternative_bits is None
        else [np.flatnonzero(alternative).tolist() for alternative in record.alternatives],
    }


def _rationale_lines(record: "GraphRecord") -> list[str]:
    """Return a line about each rationale of a graph, and about its weights."""
    import numpy as np

    from graphxai_data.drawing.rationale import NULL

    lines = []
    weight = record.node_weight
    if weight is not None:
        values = ", ".join(f"{node}: {weight[node]:+.3g}" for node in np.flatnonzero(weight))
        lines.append(f"weights   {values}")
    if record.node_mask is None or (weight is not None and record.alternative_bits is None):
        return lines
    for number, mask in enumerate(record.alternatives, 1):
        nodes = np.flatnonzero(mask).tolist()
        name = "rationale" if len(record.alternatives) == 1 else f"rationale {number}"
        lines.append(f"{name} {len(nodes)} nodes: {', '.join(map(str, nodes))}")
    return lines if record.node_mask.any() else [*lines, NULL]
