"""Charts of a page: matplotlib's SVG, in the colours of the page."""

import io
import re
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from graphxai_data.graphs.record import SPLIT_NAMES

# Stand-ins, each exchanged for what the page's style sheet says, light or dark.
_INK, _GRID = "#010203", "#010204"
_SPLITS = ("#010205", "#010206", "#010207")
_EXCHANGED = {
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
    """Bars of each class, a colour a split; `counts` [classes][splits]."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(5.2, 0.9 + 0.26 * len(names)), layout="constrained")
        axes = figure.subplots()
        before = np.zeros(len(names))
        for k, split in enumerate(SPLIT_NAMES):
            of_split = np.array([row[k] for row in counts], float)
            axes.barh(names, of_split, left=before, color=_SPLITS[k], label=split)
            before += of_split
        axes.invert_yaxis()
        axes.grid(axis="x", alpha=0.6)
        axes.set_xlabel(unit)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False,
                    borderaxespad=-1.8)  # fmt: skip
        return _inline(figure, "How many of each class there are in each split")


def histogram(counts: npt.NDArray[np.int64], first: int, label: str, unit: str) -> str:
    """Bars of how often `first`, `first` + 1, … occur; neighbours together where there are many."""
    together = max(1, -(-len(counts) // 60))
    padded = np.pad(counts, (0, -len(counts) % together)).reshape(-1, together).sum(axis=1)
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(5.2, 2.4), layout="constrained")
        axes = figure.subplots()
        places = first + np.arange(len(padded)) * together
        axes.bar(places, padded, width=together * 0.9, align="edge" if together > 1 else "center",
                 color=_SPLITS[0])  # fmt: skip
        axes.grid(axis="y", alpha=0.6)
        axes.set(xlabel=label, ylabel=unit)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        return _inline(figure, f"Histogram: {label}")


def _inline(figure: Figure, title: str) -> str:
    """The SVG element alone, named for those who hear a page."""
    content = io.StringIO()
    figure.savefig(content, format="svg", transparent=True, metadata={"Date": None})
    svg = content.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    # Several charts share a page, and no id may be there twice.
    prefix = re.sub(r"\W+", "-", title)
    svg = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}-", svg)
    for stand_in, variable in _EXCHANGED.items():
        svg = svg.replace(stand_in, variable)
    return svg.replace("<svg", f'<svg role="img" aria-label="{title}"', 1)
