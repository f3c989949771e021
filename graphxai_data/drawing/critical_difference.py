"""The critical-difference diagram: mean ranks of explainers, and which of them do not differ."""

from collections.abc import Iterable, Sequence

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.textpath import TextPath

from graphxai_data.drawing.graphs import STYLE, Drawing
from graphxai_data.drawing.rationale import PALETTE
from graphxai_data.errors import InputError, finite_number
from graphxai_data.metrics import Floats

# Lengths are inches: one unit of the axes is an inch, and y points downwards.
_AXIS, _ROW, _LEVEL, _MARGIN, _GAP = 5.0, 0.2, 0.11, 0.12, 0.08
_RULER_Y, _AXIS_Y = 0.3, 0.72
_INK, _LINE, _BAR = "#222222", "#777777", PALETTE[0]


def critical_difference_diagram(
    names: Sequence[str],
    mean_ranks: npt.ArrayLike,
    cd: float,
    cliques: Iterable[Sequence[int]],
) -> Figure:
    """Draw mean ranks on an axis, the best at the left, with a bar for each clique (Demšar, 2006).

    Args:
        names: of the k explainers.
        mean_ranks: [k], from 1 to k.
        cd: the critical difference, drawn as a ruler.
        cliques: groups of explainers that do not differ significantly, as indices into `names`.
    """
    ranks = np.asarray(mean_ranks, np.float64)
    count, groups = len(names), [list(group) for group in cliques]
    _check(count, ranks, cd, groups)
    order = np.argsort(ranks, kind="stable").tolist()
    left, right = order[: (count + 1) // 2], order[(count + 1) // 2 :][::-1]
    with mpl.rc_context(STYLE):
        texts = {i: _label(names[i], ranks[i], at_left=i in left) for i in order}
        start = _MARGIN + max(_width(text) for text in ["mean rank", *(texts[i] for i in left)])
        start += 2 * _GAP
        end = start + _AXIS
        places = start + (ranks - 1) / (count - 1) * _AXIS
        ruler = start + cd / (count - 1) * _AXIS
        width = max(end + 2 * _GAP + max(_width(texts[i]) for i in right), ruler) + _MARGIN
        levels = _levels([(places[group].min(), places[group].max()) for group in groups])
        first_row = _AXIS_Y + _LEVEL * (max(levels, default=-1) + 1) + 0.28
        height = first_row + _ROW * (len(left) - 1) + _ROW / 2 + _MARGIN
        figure = Drawing(figsize=(width, height))
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, width), ylim=(height, 0))
        axes.set_axis_off()
        _draw_axis(axes, start, count)
        _draw_ruler(axes, start, ruler, cd)
        for side, edge, towards in ((left, start, -1), (right, end, 1)):
            for row, i in enumerate(side):
                y = first_row + row * _ROW
                axes.plot([places[i], places[i], edge + towards * _GAP], [_AXIS_Y, y, y],
                          color=_LINE, linewidth=0.8, zorder=1)  # fmt: skip
                axes.text(edge + towards * 2 * _GAP, y, texts[i], color=_INK, va="center_baseline",
                          ha="right" if side is left else "left")  # fmt: skip
        for group, level in zip(groups, levels, strict=True):
            y = _AXIS_Y + 0.13 + level * _LEVEL
            axes.plot([places[group].min() - 0.05, places[group].max() + 0.05], [y, y], color=_BAR,
                      linewidth=4, solid_capstyle="butt", zorder=2)  # fmt: skip
    return figure


def _check(count: int, ranks: Floats, cd: float, groups: Sequence[Sequence[int]]) -> None:
    if count < 2 or ranks.shape != (count,):
        raise InputError(
            f"mean_ranks: expected one of each of two names or more, got {list(ranks.shape)} for "
            f"{count} names"
        )
    if not ((ranks >= 1) & (ranks <= count)).all():
        raise InputError(f"mean_ranks: expected numbers from 1 to {count}, got {ranks.tolist()}")
    finite_number("cd", cd, 0)
    for group in groups:
        if not group or not set(group) <= set(range(count)):
            raise InputError(f"cliques: expected indices from 0 to {count - 1}, got {list(group)}")


def _draw_axis(axes: Axes, start: float, count: int) -> None:
    """Draw the axis from rank 1 to the number of explainers, with numbers above it."""
    axes.plot([start, start + _AXIS], [_AXIS_Y] * 2, color=_INK, linewidth=1)
    axes.text(start - 2 * _GAP, _AXIS_Y, "mean rank", color=_LINE, va="center", ha="right")
    for rank in range(1, count + 1):
        x = start + (rank - 1) / (count - 1) * _AXIS
        axes.plot([x, x], [_AXIS_Y - 0.07, _AXIS_Y], color=_INK, linewidth=1)
        axes.text(x, _AXIS_Y - 0.1, str(rank), color=_INK, va="bottom", ha="center")


def _draw_ruler(axes: Axes, start: float, end: float, cd: float) -> None:
    """Draw a line as long as the critical difference, with caps and its value above it."""
    axes.plot([start, end], [_RULER_Y] * 2, color=_INK, linewidth=1)
    for x in (start, end):
        axes.plot([x, x], [_RULER_Y - 0.04, _RULER_Y + 0.04], color=_INK, linewidth=1)
    axes.text(start, _RULER_Y - 0.06, f"critical difference {cd:.2f}", color=_INK, va="bottom")


def _levels(spans: Sequence[tuple[float, float]]) -> list[int]:
    """Return the level of each bar, given where it begins and ends: the first with room for it."""
    last: list[float] = []  # where the bars of each level end
    levels = [0] * len(spans)
    for i in sorted(range(len(spans)), key=spans.__getitem__):
        low, high = spans[i]
        free = [level for level, end in enumerate(last) if end + 0.25 < low]
        levels[i] = free[0] if free else len(last)
        last[levels[i] : levels[i] + 1] = [high]
    return levels


def _label(name: str, rank: float, at_left: bool) -> str:
    name = name.replace("$", r"\$")  # a formula otherwise
    return f"{name}  {rank:.2f}" if at_left else f"{rank:.2f}  {name}"


def _width(text: str) -> float:
    """Return the width of a text in inches, with 5 % for fonts of other programs."""
    outline = TextPath((0, 0), text, size=mpl.rcParams["font.size"])
    return 1.05 * float(outline.get_extents().width) / 72
