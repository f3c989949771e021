"""Statistics of a build as rows of tables: for its card, `info` and its page."""

from typing import Any

from graphxai_data.building.survey import tolerances
from graphxai_data.graphs.record import SPLIT_NAMES
from graphxai_data.manifest import Manifest

_UNKNOWN = "none is known: no explanation can be scored here"


def classes_of_nodes(manifest: Manifest) -> bool:
    """Return whether nodes have classes, instead of graphs."""
    counts = manifest.statistics["classes"].values()
    return bool(counts and sum(counts) != manifest.graphs)


def labels_are_numbers(manifest: Manifest) -> bool:
    """Return whether the label of a graph is a number, instead of a class."""
    return manifest.statistics["y_mean"] is not None


def statistics_rows(manifest: Manifest) -> list[list[str]]:
    """Return rows of statistic, value, expected value, and the tolerance for so many graphs."""
    facts, recipe = manifest.statistics, manifest.load_recipe()
    labels = {"nodes_mean": "nodes per graph, mean", "edges_mean": "edges per graph, mean"}
    is_signed = recipe.schema.has_weights and not recipe.schema.has_alternatives
    where = "with a positive weight" if is_signed else "in the rationale"
    if facts["rationale_nodes_mean"] is not None:
        some = facts["null_rationales"] is not None
        over = "mean over graphs that have one" if some else "mean"
        labels["rationale_nodes_mean"] = f"nodes {where}, {over}"
    applied = tolerances(recipe, manifest.graphs, manifest.has_usual_sources)
    rows = []
    for key, label in labels.items():
        expected_cells = ["", ""]
        if expected := recipe.expected.get(key):
            tag = " (paper)" if f"expected.{key}.value" in recipe.origin.paper else ""
            tolerance = f"± {applied[key]:.3g}" if key in applied else "not checked"
            expected_cells = [f"{expected.value:.2f}{tag}", tolerance]
        rows.append([label, f"{facts[key]:.2f}", *expected_cells])
    nodes = facts["nodes_mean"]
    derived = {
        "nodes per graph, smallest to largest": f"{facts['nodes_min']} to {facts['nodes_max']}",
        **_rationale_facts(facts, manifest.graphs, where),
        "degree, mean": f"{facts['edges_mean'] / nodes:.2f}",
        "isolated nodes, share": f"{facts['isolated_nodes_mean'] / nodes:.1%}",
        "connected components per graph, mean": f"{facts['components_mean']:.2f}",
    }
    if labels_are_numbers(manifest):
        derived["label, mean"] = f"{facts['y_mean']:.3f}"
        derived["label, standard deviation"] = f"{facts['y_std']:.3f}"
    return [*rows, *([label, value, "", ""] for label, value in derived.items())]


def _rationale_facts(facts: dict[str, Any], graphs: int, where: str) -> dict[str, str]:
    """Return what is known about rationales, besides their mean size; `where` names their nodes."""
    if facts["rationale_nodes_mean"] is None:
        return {"rationale": _UNKNOWN}
    if facts["null_rationales"] is None:
        share = facts["rationale_nodes_mean"] / facts["nodes_mean"]
        rows = {f"share of nodes {where}": f"{share:.1%}"}
    else:  # the mean size is over the others, so it has no share of all nodes
        count = facts["null_rationales"]
        rows = {"graphs with a null rationale": f"{count} ({count / graphs:.1%})"}
    if facts["alternatives_mean"] is not None:
        rows["alternatives per graph with a rationale, mean"] = f"{facts['alternatives_mean']:.2f}"
    return rows


def class_rows(manifest: Manifest) -> list[list[str]]:
    """Return a row per class: its graphs, or nodes, in each split and in total.

    Where nodes have classes, or labels are numbers, the last row counts graphs.
    """
    recipe = manifest.load_recipe()
    names = dict(enumerate(recipe.class_names))
    rows = [
        [
            f"{label}: {names.get(int(label), '?')}",
            *(str(counts[split]) for split in SPLIT_NAMES),
            str(sum(counts.values())),
        ]
        for label, counts in manifest.statistics["class_splits"].items()
    ]
    if classes_of_nodes(manifest) or not rows:
        splits = manifest.statistics["splits"]
        rows.append(["graphs", *(str(splits[s]) for s in SPLIT_NAMES), str(manifest.graphs)])
    return rows
