"""The paper's figures as PNG and SVG: sensitivity to B, and explanations next to the truth."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from torch import nn

from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.drawing.graphs import NO_DATE, STYLE, draw_graph
from graphxai_data.explain import explain
from graphxai_data.files.disk import write_atomically
from graphxai_data.metrics import jaccard_at_k

# The names of the scores of predictions.
SCORES = {"accuracy": "accuracy", "f1": "F1", "roc_auc": "ROC AUC"}
_COLOURS = {
    "ba2motif": "#1b6ca8", "nci1": "#5aae61", "dihalo": "#b2182b", "molhiv": "#9970ab",
}  # fmt: skip


def draw_sweep(rows: Sequence[Mapping[str, Any]], folder: Path) -> list[str]:
    """Draw predictions and AUROC of explanations over B, a panel each; the paper's are dashed."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8, 3.6), layout="constrained")
        panels = figure.subplots(1, 2)
        for dataset in dict.fromkeys(row["dataset"] for row in rows):
            curve = [row for row in rows if row["dataset"] == dataset]
            predictions = curve[0]["predictions"]
            for axes, key in zip(panels, (predictions, "auroc"), strict=True):
                if key in curve[0]:
                    _draw_curve(axes, curve, key, f"{dataset} ({SCORES[predictions]})")
        ticks = sorted({row["b"] for row in rows})
        for axes, title in zip(panels, ("Predictions", "AUROC of explanations"), strict=True):
            axes.set(title=title, xlabel="B", ylim=(0, 1.05), xticks=ticks)
            axes.grid(alpha=0.3)
        lines, names = panels[0].get_legend_handles_labels()
        paper = Line2D([], [], color="#444444", marker="x", linestyle="--")
        figure.legend([*lines, paper], [*names, "the paper"], loc="outside lower center",
                      ncols=3, fontsize=8)  # fmt: skip
        return _save(figure, folder, "sensitivity-to-b")


def _draw_curve(axes: Axes, rows: Sequence[Mapping[str, Any]], key: str, name: str) -> None:
    """Draw one score of a dataset over B, and the paper's."""
    b, colour = [row["b"] for row in rows], _COLOURS.get(rows[0]["dataset"], "#444444")
    deviation = np.nan_to_num([row[f"{key}_std"] for row in rows])
    axes.errorbar(
        b, [row[key] for row in rows], deviation, color=colour, marker="o", capsize=3, label=name
    )
    axes.plot(b, [row[f"{key}_paper"] for row in rows], color=colour, marker="x", linestyle="--")


def draw_explanations(dataset: GraphXAIDataset, model: nn.Module, folder: Path) -> list[str]:
    """Draw a test graph of each of some classes: its rationale, and a B-cos model's map below."""
    recipe = dataset.manifest.load_recipe()
    names = recipe.class_names
    test = dataset[dataset.get_idx_split()["test"]]
    label = [int(data.y) for data in test]
    shown = [label.index(c) for c in sorted(set(label))[:4]]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(3 * len(shown), 6), layout="constrained")
        grid = figure.subplots(2, len(shown), squeeze=False)
        for (above, below), i in zip(grid.T, shown, strict=True):
            data = test[i]
            explanation = explain(model, data)
            assert explanation.target is not None  # noqa: S101 - a model was given
            scores, truth = explanation.node_scores.detach().numpy(), data.node_mask.numpy()
            predicted = names[int(explanation.target[0])]
            draw_graph(above, data, np.where(truth, 1.0, 0.0), truth)
            above.set_title(names[label[i]])
            draw_graph(below, data, scores, None)
            below.set_xlabel(f"Jaccard@k {jaccard_at_k(scores, truth):.2f}\npredicted: {predicted}")
        grid[0, 0].set_ylabel("ground truth")
        grid[1, 0].set_ylabel("B-cos contributions")
        return _save(figure, folder, f"qualitative-{dataset.name}")


def _save(figure: Figure, folder: Path, name: str) -> list[str]:
    files = []
    for kind in ("png", "svg"):
        content = io.BytesIO()
        figure.savefig(content, format=kind, dpi=150, metadata=NO_DATE[kind])
        write_atomically(folder / f"{name}.{kind}", content.getvalue())
        files.append(f"{name}.{kind}")
    return files
