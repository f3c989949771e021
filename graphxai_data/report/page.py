"""`report.html`: one self-contained page about a build."""

import base64
import hashlib
import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup, escape

from graphxai_data.building.cards import (
    again_words,
    floor_headers,
    floor_rows,
    mode_rows,
    rationale_lines,
    rejected_lines,
    rings_rows,
    weights_class,
)
from graphxai_data.building.croissant import CITE_AS, licence
from graphxai_data.building.statistics_tables import (
    class_rows,
    classes_of_nodes,
    labels_are_numbers,
    statistics_rows,
)
from graphxai_data.building.verify import WITHOUT_SOURCE, verify
from graphxai_data.datasets.records import Graphs, Overview
from graphxai_data.drawing.charts import class_chart, histogram, label_chart
from graphxai_data.errors import CheckFailedError, InputError
from graphxai_data.evaluation.tables import explanation_cells
from graphxai_data.files.disk import explained_disk_errors, write_atomically
from graphxai_data.files.urls import local_path
from graphxai_data.graphs.record import SPLIT_NAMES
from graphxai_data.manifest import Manifest, reference_verdict
from graphxai_data.progress import Progress, no_progress
from graphxai_data.recipe import Recipe, shipped_names
from graphxai_data.report.explained import Explained, explained
from graphxai_data.report.packed import Packer, page_order, sample_graphs
from graphxai_data.report.page_data import packed_index, packed_words, settings
from graphxai_data.rings.floors import Floors
from graphxai_data.rings.plot import rings_plot
from graphxai_data.rings.verdict import Measurement

PAGE_NAME = "report.html"
# Maximum number of characters of all graphs, so that a page stays under 5 MB.
_GRAPHS_LIMIT = 4_500_000


def write_report(
    folder: str | Path,
    evaluations: Sequence[str | Path] = (),
    out: str | Path | None = None,
    explainers: Sequence[str] = (),
    check: bool = True,
    progress: Progress | None = None,
) -> Path:
    """Write a page about a build, and return its path.

    Args:
        folder: build folder.
        evaluations: results of `evaluate`: model folders, `evaluation.json`, output of
            `evaluate --json`, explanation files; if empty, the shipped models of the recipe.
        out: the page; by default `report.html` in the build folder.
        explainers: names of explainers to show; if empty, those that take no time.
        check: verify the build first, and state it on the page.
        progress: counts graphs.
    """
    progress = progress or no_progress
    folder = local_path(folder)
    path = folder / PAGE_NAME if out is None else Path(out).expanduser()
    # So that no file of a build is overwritten.
    if path.is_dir() or path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"--out: expected the name of a file that ends in .html, got '{path}'")
    manifest = Manifest.load(folder)
    recipe = manifest.load_recipe()
    proof = _verified(folder, manifest) if check else "This build was not verified for this page."
    graphs = Graphs(folder, manifest)
    overview = graphs.overview()
    sample = sample_graphs(overview)
    explanations = explained(folder, manifest, evaluations, explainers, sample, progress)
    packer = Packer(graphs, overview, [e.scores for e in explanations.shown], _GRAPHS_LIMIT)
    pieces = []
    for piece in packer.pieces(page_order(overview, sample), sample):
        pieces.append(piece)
        progress(len(packer.packed), manifest.graphs, "drawing graphs")
    script = '"use strict";\n{\n' + _asset("graphs.js") + _asset("gallery.js") + "}\n"
    page = _template().render(
        **_tables(folder, manifest, recipe, overview, explanations),
        proof=proof,
        packed=packed_words(packer, manifest),
        meta=settings(manifest, recipe, packer, explanations),
        index=packed_index(packer, explanations),
        pieces=pieces,
        css=Markup(_asset("report.css")),  # noqa: S704 - our own file
        js=Markup(script),  # noqa: S704 - our own file
        js_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )
    with explained_disk_errors(path.parent, "--out", "the build"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, page.encode())
    return path


def _verified(folder: Path, manifest: Manifest) -> str:
    """Verify a build and return what was proven; raise if it has problems."""
    problems = verify(folder)
    missing = [p for p in problems if WITHOUT_SOURCE in p]
    others = [p for p in problems if p not in missing]
    if others:
        raise CheckFailedError(
            f"{others[0]}; {len(others)} in all (`graphxai-data verify {folder}`); "
            "a page is made of whole builds only"
        )
    words = "Verified when this page was made: every file, digest and invariant"
    if missing:
        return (
            f"{words}. Labels were not proven, since the files they come from are not on this "
            "machine."
        )
    generator = manifest.load_recipe().generator_object
    if not generator.has_prover:
        return f"{words}. Labels were not proven, since the generator has no prover."
    proven = min(manifest.graphs, generator.proof_sample)
    no_rationale = not manifest.has_rationale
    what = "label" if no_rationale else "label and the rationale"
    count, full = f"{proven:,} graphs", "proves all of them, and generates"
    if proven == manifest.graphs:
        count, full = "every graph", "generates"
    return (
        f"{words}, and by independent code the {what} of {count}. `graphxai-data verify --full` "
        f"{full} each again from its seed."
    )


def _tables(
    folder: Path, manifest: Manifest, recipe: Recipe, overview: Overview, explanations: Explained
) -> dict[str, Any]:
    """Return the tables and charts of the page, and what its texts are made of."""
    node_level = classes_of_nodes(manifest)
    unit = "nodes" if node_level else "graphs"
    names = recipe.class_names
    rings, floors = Measurement.load(folder), Floors.load(folder)
    splits = manifest.statistics["class_splits"]
    counts = [[by_split[name] for name in SPLIT_NAMES] for by_split in splits.values()]
    smallest = int(overview.nodes.min())
    sizes = np.bincount(overview.nodes)[smallest:]
    numbers = labels_are_numbers(manifest)
    labels = (
        label_chart(overview.label, overview.split, names[0])
        if numbers
        else class_chart([names[int(c)] for c in splits], counts, unit)
    )
    charts = {
        "nodes_chart": histogram(sizes, smallest, "nodes per graph", "graphs"),
        "degrees_chart": histogram(overview.degrees, 0, "degree of a node", "nodes"),
        "class_chart": labels,
        "rings_plot": rings_plot(rings) if rings and rings.scores else "",
    }
    return {
        **{name: Markup(svg) for name, svg in charts.items()},  # noqa: S704 - drawn by us
        "manifest": manifest,
        "recipe": recipe,
        "explanations": explanations,
        "explainers": [[*explanation_cells(row), str(row["seeds"])] for row in explanations.table],
        "statistics": statistics_rows(manifest),
        "unit": unit,
        "node_level": node_level,
        "numbers": numbers,
        "rationale_lines": rationale_lines(manifest, recipe),
        "classes": class_rows(manifest),
        "class_names": names,
        "splits": list(SPLIT_NAMES),
        "rings": rings,
        "principles": rings_rows(recipe, rings),
        "modes": mode_rows(rings) if rings else [],
        "floors": floors,
        "floor_headers": floor_headers(floors) if floors else [],
        "floor_numbers": list(range(1, len(floor_headers(floors)) - 1)) if floors else [],
        "floor_rows": floor_rows(floors) if floors else [],
        "strongest_rows": floor_rows(floors, strongest=True) if floors else [],
        "has_rationale": overview.schema.has_rationale,
        "has_alternatives": overview.schema.has_alternatives,
        "has_weights": overview.schema.has_weights,
        "weights_class": weights_class(recipe),
        "reference": reference_verdict(manifest),
        "command": _command(manifest),
        "again": again_words(manifest),
        "rejected": rejected_lines(manifest),
        "licence": licence(manifest),
        "citation": CITE_AS,
    }


def _command(manifest: Manifest) -> str:
    """Return the command that builds the same graphs; "" if the recipe or source is not shipped."""
    name = manifest.dataset
    is_shipped = name in shipped_names() and Recipe.load(name).sha256 == manifest.recipe_sha256
    if not (is_shipped and manifest.has_usual_sources):
        return ""
    return f"graphxai-data build {name} --seed {manifest.seed} --graphs {manifest.graphs}"


def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_asset), autoescape=True, undefined=jinja2.StrictUndefined
    )
    environment.filters |= {"code": _with_code, "thousands": "{:,}".format}
    return environment.get_template("report.html")


def _with_code(text: str) -> Markup:
    """Return HTML in which text between backticks is code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704


def _asset(name: str) -> str:
    return (resources.files("graphxai_data.report") / "templates" / name).read_text("utf-8")
