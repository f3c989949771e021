"""Cards of a build: `README.md` for people, `croissant.json` for machines."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from graphxai_data.building.croissant import croissant
from graphxai_data.building.statistics_tables import (
    class_rows,
    classes_of_nodes,
    labels_are_numbers,
    statistics_rows,
)
from graphxai_data.files.disk import write_atomically
from graphxai_data.files.plugins import blamed, checked_texts
from graphxai_data.generators.base import Generator
from graphxai_data.graphs.record import SPLIT_NAMES
from graphxai_data.graphs.shards import ShardReader
from graphxai_data.manifest import PICTURE_NAME, PLOT_NAME, Manifest
from graphxai_data.recipe import Recipe
from graphxai_data.rings.floors import Floors
from graphxai_data.rings.plot import kind_of_mode
from graphxai_data.rings.verdict import Measurement
from graphxai_data.seeds import rng_for, spread

# Graphs that a generator's own sections are computed from: descriptors of molecules are slow.
_SAMPLE = 200


def write_cards(
    folder: Path,
    manifest: Manifest,
    recipe: Recipe,
    measurement: Measurement | None,
    floors: Floors | None = None,
) -> None:
    """Write both cards; all other files must exist, because `croissant.json` lists them."""
    has_picture = (folder / PICTURE_NAME).is_file()
    own = own_sections(folder, manifest, recipe)
    card = data_card(manifest, recipe, has_picture, measurement, floors, own)
    write_atomically(folder / "README.md", card.encode())
    write_atomically(folder / "croissant.json", croissant(manifest, recipe, folder).encode())


def own_sections(folder: Path, manifest: Manifest, recipe: Recipe) -> list[str]:
    """Return what the generator writes on its card about a random sample of graphs."""
    generator = recipe.generator_object
    if type(generator).card_sections is Generator.card_sections:
        return []
    sample = spread(_SAMPLE, manifest.graphs, rng_for(manifest.seed, "card/sample"))
    shards = [ShardReader(folder / entry.name) for entry in manifest.shards]
    places = zip(*divmod(sample, manifest.shard_size), strict=True)
    records = [shards[shard][i] for shard, i in places]
    with blamed(recipe.plugin):
        return checked_texts(generator.card_sections(records), "card_sections")


def data_card(
    manifest: Manifest,
    recipe: Recipe,
    has_picture: bool,
    measurement: Measurement | None,
    floors: Floors | None = None,
    own: Sequence[str] = (),
) -> str:
    """Return the card in Markdown: statistics next to their expectations, and how to check them.

    `own` are the paragraphs of the generator.
    """
    numbers = labels_are_numbers(manifest)
    drawn = "graphs with low to high labels" if numbers else "one graph of each class"
    picture = f"![{drawn}, rationale highlighted]({PICTURE_NAME})"
    sections = [
        f"# {manifest.dataset}, seed {manifest.seed}",
        recipe.summary,
        *([recipe.notes.strip()] if recipe.notes.strip() else []),
        f"{manifest.graphs} graphs in {len(manifest.shards)} shards, built by graphxai-data "
        f"{manifest.versions['graphxai-data']} from recipe version {recipe.version}.",
        "## Statistics",
        markdown_table(
            ["statistic", "this build", "expected", "tolerance"], statistics_rows(manifest)
        ),
        "Edges are counted in both directions.",
        *rationale_lines(manifest, recipe),
        "## Labels and splits" if numbers else "## Classes and splits",
        *([f"The label is a number: {recipe.class_names[0]}."] if numbers else []),
        markdown_table(["" if numbers else "class", *SPLIT_NAMES, "all"], class_rows(manifest)),
        *(["Nodes have classes, so nodes are counted."] if classes_of_nodes(manifest) else []),
        "All graphs of a group are in the same split.",
        *([picture] if has_picture else []),
        *own,
        "## RINGS principles",
        *_rings_sections(recipe, measurement),
        *(_floor_sections(floors) if floors and floors.rows else []),
        "## Provenance",
        markdown_table(
            ["what", "value"],
            [
                ["content SHA-256", f"`{manifest.content_sha256}`"],
                ["recipe SHA-256", f"`{manifest.recipe_sha256}`"],
                ["shard schema", str(manifest.schema_version)],
                *([["made by", str(manifest.made_by)]] if manifest.made_by else []),
                *([name, version] for name, version in manifest.versions.items()),
            ],
        ),
        *_sources_sections(manifest),
        f"To build the same graphs again, run {again_words(manifest)}. "
        "To prove every label and mask, run `graphxai-data verify --full` on this folder.",
    ]
    return "\n\n".join(sections) + "\n"


def rationale_lines(manifest: Manifest, recipe: Recipe) -> list[str]:
    """Return a sentence about each form of rationale that the build has, besides a single one."""
    schema, lines = recipe.schema, []
    if manifest.statistics["null_rationales"] is not None:
        lines.append(
            "A null rationale is empty: nothing in the graph makes its label. Such graphs are left "
            "out of the mean size, and scored apart."
        )
    if schema.has_alternatives:
        lines.append(
            "A graph may have several rationales, each of which explains its label: "
            "`alternative_bits` tells them apart, and `node_mask` is their union."
        )
    if schema.has_weights:
        what = "what each adds to the label"
        if schema.label == "class":
            one = weights_class(recipe) or "the class"
            what = f"positive for nodes that speak for {one}, negative for those against it"
        lines.append(f"Nodes have signed weights, `node_weight`: {what}.")
    return lines


def weights_class(recipe: Recipe) -> str:
    """Return the class that positive weights speak for; "" if there are not just two classes."""
    schema = recipe.schema
    is_binary = schema.has_weights and schema.label == "class" and schema.num_classes == 2
    return f"class 1 ({recipe.class_names[1]})" if is_binary else ""


def again_words(manifest: Manifest) -> str:
    """Return the command that builds the same graphs again."""
    return (
        "`graphxai-data build` with this recipe (it is in `manifest.json`), "
        f"`--seed {manifest.seed} --graphs {manifest.graphs}`"
        + ("" if manifest.has_usual_sources else " and the file above as `--source`")
    )


def mode_rows(measurement: Measurement) -> list[list[str]]:
    """Return a row per mode: name, kind, and mean and standard deviation of its scores."""
    return [
        [mode, kind_of_mode(mode), f"{np.mean(scores):.3f}", f"{np.std(scores):.3f}"]
        for mode, scores in measurement.scores.items()
    ]


def rings_rows(recipe: Recipe, measurement: Measurement | None) -> list[list[str]]:
    """Return a row per principle: name, the paper's claim, the verdict, and its reason."""
    claims = {True: "holds", False: "does not hold", None: "says nothing"}
    rows = []
    for key, name, claimed in (
        ("p1", "P1, structural necessity", recipe.rings.claimed_p1),
        ("p2", "P2, feature-topology interdependence", recipe.rings.claimed_p2),
    ):
        word, reason = "not measured", ""
        if measurement:
            verdict = measurement.principles[key]
            word, reason = f"{verdict.verdict} ({measurement.depth})", verdict.reason
        rows.append([name, claims[claimed], word, reason])
    return rows


def _rings_sections(recipe: Recipe, measurement: Measurement | None) -> list[str]:
    rows = rings_rows(recipe, measurement)
    table = markdown_table(["principle", "the paper", "measured", "why"], rows)
    if measurement is None:
        return [table, "To measure them, run `graphxai-data rings` on this folder."]
    if not measurement.scores:
        return [table]
    how = {
        "quick": "linear probes on untrained embeddings (Weisfeiler–Leman colours, or random "
        "message passing), cross-validated, groups kept together",
        "full": "a GIN trained on every mode, DeepSets where there are no edges",
    }
    runs = len(measurement.scores["original"])
    sections = [
        table,
        f"{measurement.graphs} graphs; {how[measurement.depth]}; {runs} runs per mode; "
        f"score: {measurement.score}.",
        f"![scores of every mode]({PLOT_NAME})",
        markdown_table(["mode", "kind", "mean", "standard deviation"], mode_rows(measurement)),
    ]
    if measurement.complementarity is not None:
        mean = f"{measurement.complementarity:.3f}"
        sections.append(f"Mode complementarity (diffusion, Euclidean, L1,1), mean: {mean}.")
    return sections


def floor_headers(floors: Floors) -> list[str]:
    """Return the headers of `floor_rows`."""
    further = ["mean over the pair"] if floors.bound else []
    further += ["Spearman"] if floors.by == "spearman" else []
    return ["rule that looks at no model", "Jaccard@k", *further, "AUROC, ties half", "note"]


def floor_rows(floors: Floors, strongest: bool = False) -> list[list[str]]:
    """Return a row per rule, best first, the definition itself last; or only the strongest."""
    names = sorted(floors.rows, key=lambda n: (floors.rows[n].definition, -floors.value(n)))
    if strongest:
        names = [name for name in names if name in floors.strongest]
    rows = []
    for name in names:
        floor = floors.rows[name]
        note = "knows training labels" if floor.labels else ""
        note = "the definition itself" if floor.definition else note
        pair = "" if floor.pair_mean is None else f"{floor.pair_mean:.3f}"
        cells = [pair] if floors.bound else []
        cells += [f"{floors.value(name):.3f}"] if floors.by == "spearman" else []
        rows.append([name, f"{floor.jaccard:.3f}", *cells, f"{floor.auroc_average:.3f}", note])
    return rows


def _floor_sections(floors: Floors) -> list[str]:
    sections = [
        "## Floors of explanations",
        f"What rules find that look at no model, on {floors.graphs} {floors.split} graphs. "
        "An explainer that is not above the best of them may have read the data, not the model. "
        f"The best: `{floors.best}`. Without labels of training graphs: "
        f"`{floors.best_without_labels}`.",
        markdown_table(floor_headers(floors), floor_rows(floors)),
    ]
    if floors.bound is not None:
        sections.append(
            "No rule that looks neither at the model nor at labels can have a mean over the pair "
            f"above {floors.bound:.3f}."
        )
    return sections


def _sources_sections(manifest: Manifest) -> list[str]:
    if not manifest.sources:
        return []
    rows = [
        [name, source.id, source.file, f"`{source.sha256}`"]
        for name, source in manifest.sources.items()
    ]
    table = markdown_table(["name", "id", "file", "SHA-256"], rows)
    return ["## Sources", table, *rejected_lines(manifest)]


def rejected_lines(manifest: Manifest) -> list[str]:
    """Return a sentence per reason why entries of a source were rejected."""
    return [
        f"source {name}: {count} rejected: {reason}"
        for name, source in manifest.sources.items()
        for reason, count in source.rejected.items()
    ]


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
