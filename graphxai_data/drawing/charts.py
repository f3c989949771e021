"""Charts for HTML pages: SVG by matplotlib, in the colours of the page."""

import io
import re
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from graphxai_data.drawing.sketch import summed_in_groups
from graphxai_data.graphs.record import SPLIT_NAMES

# Placeholders, replaced by the colours of the page's style sheet, light or dark.
_INK, _GRID = "#010203", "#010204"
_SPLITS = ("#010205", "#010206", "#010207")
_COLOURS = {
    _INK: "var(--ink)", _GRID: "var(--line)",
    **dict(zip(_SPLITS, ("var(--train)", "var(--valid)", "var(--test)"), strict=True)),
}  # fmt: skip
_STYLE: Any = {
    "svg.hashsalt": "graphxai-data", "svg.fonttype": "none", "font.size": 10,
    "font.family": "sans-serif", "text.color": _INK, "axes.labelcolor": _INK,
    "axes.edgecolor": _GRID, "xtick.color": _INK, "ytick.color": _INK, "grid.color": _GRID,
    "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True,
}  # fmt: skip


def class_chart(names: Sequence[str], counts: Sequence[Sequence[int]], unit: str) -> str:
    """Return bars of each class, one colour per split, for `counts` [classes][splits]."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(5.2, 0.9 + 0.26 * len(names)), layout="constrained")
        axes = figure.subplots()
        before = np.zeros(len(names))
        for k, split in enumerate(SPLIT_NAMES):
            lengths = np.array([row[k] for row in counts], float)
            axes.barh(names, lengths, left=before, color=_SPLITS[k], label=split)
            before += lengths
        axes.invert_yaxis()
        axes.grid(axis="x", alpha=0.6)
        axes.set_xlabel(unit)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False,
                    borderaxespad=-1.8)  # fmt: skip
        return _inline(figure, "How many of each class there are in each split")


def histogram(counts: npt.NDArray[np.int64], first: int, label: str, unit: str) -> str:
    """Return bars of how often `first`, `first` + 1, … occur; many values are binned."""
    sums, size = summed_in_groups(counts, 60)
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(5.2, 2.4), layout="constrained")
        axes = figure.subplots()
        axes.bar(first + np.arange(len(sums)) * size, sums, width=size * 0.9,
                 align="edge" if size > 1 else "center", color=_SPLITS[0])  # fmt: skip
        axes.grid(axis="y", alpha=0.6)
        axes.set(xlabel=label, ylabel=unit)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        return _inline(figure, f"Histogram: {label}")


def label_chart(labels: npt.NDArray[Any], split: npt.NDArray[Any], name: str) -> str:
    """Return bars of how often labels [g] that are numbers occur, one colour per split [g]."""
    edges = np.histogram_bin_edges(labels, bins=30)
    before = np.zeros(len(edges) - 1)
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(5.2, 2.6), layout="constrained")
        axes = figure.subplots()
        for k, split_name in enumerate(SPLIT_NAMES):
            counts = np.histogram(labels[split == k], edges)[0].astype(float)
            axes.bar(edges[:-1], counts, np.diff(edges), before, align="edge", color=_SPLITS[k],
                     label=split_name)  # fmt: skip
            before += counts
        axes.grid(axis="y", alpha=0.6)
        axes.set(xlabel=name, ylabel="graphs")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False,
                    borderaxespad=-1.8)  # fmt: skip
        return _inline(figure, "Histogram of the labels in each split")


def _inline(figure: Figure, title: str) -> str:
    """Return the SVG element alone, with a title for screen readers."""
    content = io.StringIO()
    figure.savefig(content, format="svg", transparent=True, metadata={"Date": None})
    svg = content.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    # Several charts share a page, where ids must be unique.
    prefix = re.sub(r"\W+", "-", title)
    svg = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}-", svg)
    for placeholder, variable in _COLOURS.items():
        svg = svg.replace(placeholder, variable)
    return svg.replace("<svg", f'<svg role="img" aria-label="{title}"', 1)
