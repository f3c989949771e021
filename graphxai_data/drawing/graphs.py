"""One graph as a picture: its rationale, or the scores of its nodes."""

import io
from itertools import cycle
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import TwoSlopeNorm, to_rgba_array
from matplotlib.figure import Figure

from graphxai_data.drawing import rationale
from graphxai_data.drawing.rationale import PALETTE, colours_of
from graphxai_data.drawing.sketch import Points, Sketch, sketch
from graphxai_data.graphs.rationale import alternatives_of
from graphxai_data.metrics import as_array, checked_scores

# Distance of the lines of a double bond; a graph is about 300 wide.
_BETWEEN_LINES = 4.0
_EDGE = "#9a9a9a"
# Perceived brightness of red, green and blue.
_LUMINANCE = np.array([0.299, 0.587, 0.114])
# Text stays text, and files carry no date: the same figure has the same bytes.
STYLE: Any = {"svg.hashsalt": "graphxai-data", "svg.fonttype": "none", "font.size": 9}
NO_DATE = {"svg": {"Date": None}, "png": {"Software": None}}


class Drawing(Figure):
    """A matplotlib figure that notebooks display by themselves."""

    def _repr_svg_(self) -> str:
        content = io.StringIO()
        with mpl.rc_context(STYLE):
            self.savefig(content, format="svg", metadata=NO_DATE["svg"])
        return content.getvalue()


def drawing(data: Any, scores: Any = None, title: str = "") -> Drawing:
    """Draw the rationale of a graph, if it is known, and next to it scores of nodes, if given.

    Each alternative has a colour of its own. Signed weights are a picture of their own, red for
    positive and blue for negative ones.

    `data` is a PyG `Data`, with `smiles` for a molecule or `segments` for superpixels; `scores` is
    [n] or None, and `title` goes above them.
    """
    weight = _on_cpu(data, "node_weight")
    panels: list[tuple[str, Any, Any]] = []
    if weight is None or "alternative_bits" in data:
        name, painted = _highlighted(data)
        if scores is None or name != "graph":
            panels.append((name, np.zeros(data.num_nodes), painted))
    if weight is not None:
        panels.append(("weights", weight.astype(np.float64), None))
    if scores is not None:
        whole = np.array([0, data.num_nodes])
        values = checked_scores(as_array(scores), whole, "scores")
        panels.append((title or "scores", values, None))
    with mpl.rc_context(STYLE):
        figure = Drawing(figsize=(3.4 * len(panels), 3.6), layout="constrained")
        grid = figure.subplots(1, len(panels), squeeze=False)
        for axes, (heading, values, truth) in zip(grid[0], panels, strict=True):
            draw_graph(axes, data, values, truth)
            axes.set_title(heading)
    return figure


def _highlighted(data: Any) -> tuple[str, npt.NDArray[np.bool_]]:
    """Return what is painted, and its nodes [n]; "graph": none is."""
    if (mask := _on_cpu(data, "node_mask")) is not None:
        return rationale.title(mask, _on_cpu(data, "alternative_bits")), mask
    y = _on_cpu(data, "y")
    if y is not None and len(y) == data.num_nodes > 1:
        return "nodes of class 1 and above", y > 0
    return "graph", np.zeros(data.num_nodes, bool)


def draw_graph(axes: Axes, data: Any, scores: Points, truth: npt.NDArray[np.bool_] | None) -> None:
    """Draw the rationale of a graph, or what each node contributes: red for, blue against."""
    axes.set(xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set_visible(False)
    largest = float(np.abs(scores).max()) or 1.0
    norm = TwoSlopeNorm(0, -largest, largest)
    if "segments" in data:
        segments = data.segments[0].cpu().numpy()
        if truth is None:
            axes.imshow(scores[segments], cmap="RdBu_r", vmin=-largest, vmax=largest)
        else:  # the digit as the model sees it
            axes.imshow(data.x[:, 0].cpu().numpy()[segments], cmap="gray_r", vmin=0, vmax=1)
        for mask, colour in zip(_outlined(data), cycle(PALETTE), strict=False):
            inside = mask[segments].astype(float)
            axes.contour(inside, levels=[0.5], colors=colour, linewidths=1.2)
        return
    layout = sketch(
        data.edge_index.cpu().numpy(),
        data.num_nodes,
        data.get("smiles"),
        _on_cpu(data, "smiles_atom"),
    )
    points = layout.places * [1.0, -1.0]  # the y axis points upwards
    lines = _bonds(points, layout)
    axes.add_collection(LineCollection(lines, colors=_EDGE, linewidths=1, zorder=1))
    if truth is None:
        paint = mpl.colormaps["RdBu_r"](norm(scores))
    else:
        paint = to_rgba_array(colours_of(truth, _on_cpu(data, "alternative_bits")))
    axes.scatter(
        points[:, 0], points[:, 1], c=paint, s=70, edgecolors="#555555", linewidths=0.6, zorder=2
    )
    dark = paint[:, :3] @ _LUMINANCE < 0.35
    for point, text, on_dark in zip(points, layout.labels, dark, strict=True):
        colour = "white" if on_dark else "black"
        axes.annotate(text, point, ha="center", va="center", fontsize=6, color=colour, zorder=3)
    axes.set_aspect("equal")
    axes.margins(0.08)


def _outlined(data: Any) -> npt.NDArray[np.bool_]:
    """Return [a, n] the alternatives of a graph: none if its rationale is null or not known."""
    bits, mask = _on_cpu(data, "alternative_bits"), _on_cpu(data, "node_mask")
    if bits is None:
        bits = np.zeros(data.num_nodes, np.int64) if mask is None else mask.astype(np.int64)
    return alternatives_of(bits)


def _bonds(points: Points, layout: Sketch) -> list[Points]:
    """Return one line per edge, or several side by side for double and triple bonds."""
    lines = []
    for (a, b), order in zip(layout.edges.tolist(), layout.orders.tolist(), strict=True):
        along = points[b] - points[a]
        across = np.array([-along[1], along[0]]) / max(float(np.hypot(*along)), 1e-9)
        for line in range(order):
            aside = across * (line - (order - 1) / 2) * _BETWEEN_LINES
            lines.append(np.stack([points[a] + aside, points[b] + aside]))
    return lines


def _on_cpu(data: Any, key: str) -> npt.NDArray[Any] | None:
    return data[key].cpu().numpy() if key in data else None
