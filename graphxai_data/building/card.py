"""The data card: `README.md` of a build folder."""

from collections.abc import Iterable, Sequence

import numpy as np

from graphxai_data.generators import generator_module
from graphxai_data.graphs.record import SPLIT_NAMES
from graphxai_data.manifest import PLOT_NAME, Manifest
from graphxai_data.recipe import Recipe
from graphxai_data.rings.plot import kind_of_mode
from graphxai_data.rings.verdict import Measurement


def data_card(
    manifest: Manifest,
    recipe: Recipe,
    picture: str | None = None,
    rings: Measurement | None = None,
) -> str:
    """Markdown: what is in the build, beside what was expected, and how to check it.

    Args:
        manifest: of the build.
        recipe: of the build.
        picture: name of a file in the build folder that shows a graph of each class.
        rings: what was measured of its principles.
    """
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
        "## Classes and splits",
        markdown_table(["class", *SPLIT_NAMES, "all"], class_rows(manifest)),
        *(["Classes are of nodes, and counted in nodes."] if classes_of_nodes(manifest) else []),
        "Graphs of one group lie in one split.",
        *([f"![one graph of each class, its rationale highlighted]({picture})"] if picture else []),
        "## RINGS principles",
        *_rings(recipe, rings),
        "## Provenance",
        markdown_table(
            ["what", "value"],
            [
                ["content SHA-256", f"`{manifest.content_sha256}`"],
                ["recipe SHA-256", f"`{manifest.recipe_sha256}`"],
                ["shard schema", str(manifest.schema_version)],
                *([name, version] for name, version in manifest.versions.items()),
            ],
        ),
        *_sources(manifest),
        f"Same graphs again: {again_words(manifest)}. "
        "Proof of every label and mask: `graphxai-data verify --full` on this folder.",
    ]
    return "\n\n".join(sections) + "\n"


def again_words(manifest: Manifest) -> str:
    """How to build the same graphs again."""
    return (
        "`graphxai-data build` with this recipe (it is in `manifest.json`), "
        f"`--seed {manifest.seed} --graphs {manifest.graphs}`"
        + ("" if manifest.has_usual_sources else " and the file above as `--source`")
    )


def mode_rows(found: Measurement) -> list[list[str]]:
    """For each mode: what it is, and the mean and deviation of its scores."""
    return [
        [mode, kind_of_mode(mode), f"{np.mean(values):.3f}", f"{np.std(values):.3f}"]
        for mode, values in found.scores.items()
    ]


def classes_of_nodes(manifest: Manifest) -> bool:
    """Whether it is nodes that have classes."""
    return bool(sum(manifest.statistics["classes"].values()) != manifest.graphs)


def statistics_rows(manifest: Manifest) -> list[list[str]]:
    """Each mean beside the value and tolerance its recipe expects, where it does; then others."""
    labels = {
        "nodes_mean": "nodes a graph, mean",
        "edges_mean": "edges a graph, mean",
        "rationale_nodes_mean": "nodes in the rationale, mean",
    }
    recipe = manifest.load_recipe()
    rows = []
    if manifest.statistics["rationale_nodes_mean"] is None:
        del labels["rationale_nodes_mean"]
    for key, label in labels.items():
        expected = recipe.expected.get(key)
        tag = " (paper)" if f"expected.{key}.value" in recipe.origin.paper else ""
        rows.append(
            [
                label,
                f"{manifest.statistics[key]:.2f}",
                f"{expected.value:.2f}{tag}" if expected else "",
                f"± {expected.tolerance:g}" if expected else "",
            ]
        )
    facts = manifest.statistics
    nodes = facts["nodes_mean"]
    derived = {
        "nodes a graph, smallest to largest": f"{facts['nodes_min']} to {facts['nodes_max']}",
        **(
            {"share of nodes in the rationale": f"{facts['rationale_nodes_mean'] / nodes:.1%}"}
            if facts["rationale_nodes_mean"] is not None
            else {"rationale": "none is known: no explanation can be scored here"}
        ),
        "degree, mean": f"{facts['edges_mean'] / nodes:.2f}",
        "isolated nodes, share": f"{facts['isolated_nodes_mean'] / nodes:.1%}",
        "connected components a graph, mean": f"{facts['components_mean']:.2f}",
    }
    return [*rows, *([label, value, "", ""] for label, value in derived.items())]


def class_rows(manifest: Manifest) -> list[list[str]]:
    """Graphs of each class in each split; nodes, where nodes have classes, and graphs in all."""
    recipe = manifest.load_recipe()
    names = dict(enumerate(generator_module(recipe.generator).class_names(recipe.params)))
    rows = [
        [
            f"{label}: {names.get(int(label), '?')}",
            *(str(counts[split]) for split in SPLIT_NAMES),
            str(sum(counts.values())),
        ]
        for label, counts in manifest.statistics["class_splits"].items()
    ]
    if classes_of_nodes(manifest):
        splits = manifest.statistics["splits"]
        rows.append(["graphs", *(str(splits[s]) for s in SPLIT_NAMES), str(manifest.graphs)])
    return rows


def rings_rows(recipe: Recipe, found: Measurement | None) -> list[list[str]]:
    """For each principle: what the paper claims, what was found, and why."""
    claims = {True: "holds", False: "does not hold", None: "says nothing"}
    rows = []
    for key, name, claimed in (
        ("p1", "P1, structural necessity", recipe.rings.claimed_p1),
        ("p2", "P2, feature-topology interdependence", recipe.rings.claimed_p2),
    ):
        verdict = found.principles[key] if found else None
        word = f"{verdict.verdict} ({found.depth})" if found and verdict else "not measured"
        rows.append([name, claims[claimed], word, verdict.reason if verdict else ""])
    return rows


def _rings(recipe: Recipe, found: Measurement | None) -> list[str]:
    table = markdown_table(["principle", "the paper", "measured", "why"], rings_rows(recipe, found))
    if found is None:
        return [table, "Measure with `graphxai-data rings` on this folder."]
    if not found.scores:
        return [table]
    how = {
        "quick": "linear probes on untrained embeddings (Weisfeiler–Leman colours, or random "
        "message passing), cross-validated, groups kept together",
        "full": "a GIN trained on every mode, DeepSets where there are no edges",
    }
    runs = len(found.scores["original"])
    complementarity = []
    if found.complementarity is not None:
        mean = f"{found.complementarity:.3f}"
        complementarity = [f"Mode complementarity (diffusion, Euclidean, L1,1), mean: {mean}."]
    return [
        table,
        f"{found.graphs} graphs; {how[found.depth]}; {runs} runs a mode; score: {found.score}.",
        f"![scores of every mode]({PLOT_NAME})",
        markdown_table(["mode", "kind", "mean", "standard deviation"], mode_rows(found)),
        *complementarity,
    ]


def _sources(manifest: Manifest) -> list[str]:
    if not manifest.sources:
        return []
    rows = [
        [name, source.id, source.file, f"`{source.sha256}`"]
        for name, source in manifest.sources.items()
    ]
    table = markdown_table(["name", "id", "file", "SHA-256"], rows)
    return ["## Sources", table, *rejected_lines(manifest)]


def rejected_lines(manifest: Manifest) -> list[str]:
    """What was passed over in each source, and why."""
    return [
        f"source {name}: {count} passed over: {reason}"
        for name, source in manifest.sources.items()
        for reason, count in source.rejected.items()
    ]


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
