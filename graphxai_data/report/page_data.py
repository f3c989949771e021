"""What the script of a page reads: its settings, and an index of all graphs for the filters."""

from typing import Any

import numpy as np

from graphxai_data.drawing.sketch import SIDE
from graphxai_data.graphs.record import SPLIT_NAMES
from graphxai_data.manifest import Manifest
from graphxai_data.recipe import Recipe
from graphxai_data.report.explained import Explained
from graphxai_data.report.packed import PLACES, SCORES, Packer, pack


def packed_words(packer: Packer, manifest: Manifest) -> str:
    """Return which graphs a page holds."""
    count = len(packer.packed)
    if count == manifest.graphs:
        return f"all {count:,} graphs, 0 to {count - 1}"
    return (
        f"{count:,} of {manifest.graphs:,} graphs: a sample of all classes and splits, then test "
        "graphs, then others"
    )


def settings(
    manifest: Manifest, recipe: Recipe, packer: Packer, explanations: Explained
) -> dict[str, Any]:
    """Return the settings of the page's script."""
    overview = packer.overview
    models = list(explanations.predicted)
    values: list[dict[str, Any]] = [
        {"name": name, "of": names} for name, names in recipe.generator_object.node_values().items()
    ]
    for value, low, high in zip(values, overview.lowest, overview.highest, strict=False):
        value |= {"low": float(low), "high": float(high)}
    segments = [extra.shape for extra in overview.schema.extras if extra.name == "segments"]
    return {
        "side": SIDE,
        "places": PLACES,
        "scores": SCORES,
        "per_piece": packer.per_piece,
        "rows": segments[0][0] if segments else 0,
        "columns": segments[0][1] if segments else 0,
        "graphs": len(packer.packed),
        "graphs_words": packed_words(packer, manifest),
        "classes": recipe.class_names,
        "numbers": overview.schema.label == "number",
        "splits": SPLIT_NAMES,
        "labels": packer.labels,
        "values": values,
        "explainers": [
            {
                "title": shown.title,
                "what": f"{shown.title}: {shown.what}.",
                "model": None if shown.model is None else models.index(shown.model),
                "unexplained": shown.unexplained,
            }
            for shown in explanations.shown
        ],
    }


def packed_index(packer: Packer, explanations: Explained) -> str:
    """Return what the filters need to know about every graph of the page, packed."""
    ids, overview = np.array(packer.packed), packer.overview
    numbers = overview.schema.label == "number"
    arrays: dict[str, Any] = {
        "graph_id": ids.astype(np.uint32),
        "y": overview.label[ids].astype(np.float32 if numbers else np.uint16),
        "split": overview.split[ids].astype(np.uint8),
    }
    for k, labels in enumerate(explanations.predicted.values()):
        predicted = [labels.get(i, np.nan if numbers else -1) for i in packer.packed]
        arrays[f"predicted_{k}"] = np.array(predicted, np.float32 if numbers else np.int16)
    for k, shown in enumerate(explanations.shown):
        if shown.jaccard:
            jaccard = [shown.jaccard.get(i, np.nan) for i in packer.packed]
            arrays[f"jaccard_{k}"] = np.array(jaccard, np.float32)
    return pack({}, arrays)
