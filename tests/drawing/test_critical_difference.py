"""The critical-difference diagram: what is drawn where, and that nothing is cut off or overlaps."""

from itertools import combinations

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from graphxai_data.drawing.critical_difference import critical_difference_diagram
from graphxai_data.drawing.rationale import PALETTE
from graphxai_data.errors import InputError

NAMES = ("saliency", "bcos", "random", "gsat", "oracle")
RANKS = (3.2, 1.4, 4.6, 3.5, 2.3)  # bcos, oracle, saliency, gsat, random
CLIQUES = ([1, 4], [4, 0, 3], [0, 3, 2])
LONG = "integrated-gradients, 50 steps"


def diagram(count: int, spread: float = 1.0) -> Figure:
    """A diagram of so many long names; a low spread moves all ranks together."""
    middle = (count + 1) / 2
    ranks = middle + spread * (np.arange(1, count + 1) - middle)
    groups = [[i, i + 1, i + 2] for i in range(count - 2)]
    return critical_difference_diagram([f"{LONG} {i}" for i in range(count)], ranks, 2.0, groups)


def axes_of(figure: Figure) -> Axes:
    (axes,) = figure.axes
    return axes


def points(line: Line2D) -> npt.NDArray[np.float64]:
    """The points [p, 2] of a line."""
    return np.asarray(line.get_xydata(), np.float64)


def bars(figure: Figure) -> list[npt.NDArray[np.float64]]:
    lines = axes_of(figure).lines
    return [points(line) for line in lines if to_hex(line.get_color()) == PALETTE[0]]


def place(figure: Figure, rank: int) -> float:
    """Where the axis has the number of this rank."""
    (text,) = [text for text in axes_of(figure).texts if text.get_text() == str(rank)]
    return float(text.get_position()[0])


def leader(figure: Figure, label: str) -> npt.NDArray[np.float64]:
    """The line that ends next to a label."""
    (text,) = [text for text in axes_of(figure).texts if text.get_text() == label]
    lines = [points(line) for line in axes_of(figure).lines]
    (line,) = [line for line in lines if np.allclose(line[-1], text.get_position(), atol=0.1)]
    return line


def test_better_names_stand_at_the_left_and_the_rest_at_the_right() -> None:
    texts = axes_of(critical_difference_diagram(NAMES, RANKS, 1.5, CLIQUES)).texts
    labels = [text for text in texts if "  " in text.get_text()]
    by_side = {
        side: [text.get_text() for text in labels if text.get_horizontalalignment() == side]
        for side in ("right", "left")
    }
    # Labels at the left of the axis are aligned at their right end.
    assert by_side["right"] == ["bcos  1.40", "oracle  2.30", "saliency  3.20"]
    assert by_side["left"] == ["4.60  random", "3.50  gsat"]


def test_leader_lines_begin_at_the_mean_rank() -> None:
    figure = critical_difference_diagram(NAMES, RANKS, 1.5, CLIQUES)
    one, five = place(figure, 1), place(figure, 5)
    assert one < five
    for label, rank in {"bcos  1.40": 1.4, "oracle  2.30": 2.3, "4.60  random": 4.6}.items():
        x = leader(figure, label)[0][0]
        assert x == pytest.approx(one + (rank - 1) / 4 * (five - one))


def test_bars_reach_from_the_first_to_the_last_of_a_clique() -> None:
    figure = critical_difference_diagram(NAMES, RANKS, 1.5, CLIQUES)
    one, unit = place(figure, 1), (place(figure, 5) - place(figure, 1)) / 4
    ends = [[1 + (x - one) / unit for x, _ in bar] for bar in bars(figure)]
    expected = [(1.4, 2.3), (2.3, 3.5), (3.2, 4.6)]
    assert np.allclose(ends, expected, atol=0.1)
    assert len(bars(critical_difference_diagram(NAMES, RANKS, 1.5, []))) == 0


def test_bars_do_not_touch_and_stay_above_the_labels() -> None:
    figure = diagram(18)
    drawn = bars(figure)
    assert len(drawn) == 16
    for first, second in combinations(drawn, 2):
        apart = first[1][0] + 0.1 < second[0][0] or second[1][0] + 0.1 < first[0][0]
        assert apart or first[0][1] != second[0][1]
    labels = [text for text in axes_of(figure).texts if LONG in text.get_text()]
    assert max(bar[0][1] for bar in drawn) < min(text.get_position()[1] for text in labels) - 0.1


@pytest.mark.parametrize("cd", [0.8, 3.0, 6.0])
def test_the_ruler_is_as_long_as_the_critical_difference(cd: float) -> None:
    figure = critical_difference_diagram(NAMES, RANKS, cd, CLIQUES)
    unit = (place(figure, 5) - place(figure, 1)) / 4
    lines = [points(line) for line in axes_of(figure).lines]
    level = [line for line in lines if np.ptp(line[:, 1]) == 0]
    (start, _), (end, _) = min(level, key=lambda line: line[0][1])  # the highest line
    assert end - start == pytest.approx(cd * unit)
    assert end < figure.get_figwidth()  # also where it is longer than the axis
    assert f"critical difference {cd:.2f}" in [text.get_text() for text in axes_of(figure).texts]


@pytest.mark.parametrize("count", [2, 5, 8, 18, 20])
@pytest.mark.parametrize("spread", [0.05, 1.0])
def test_no_text_is_cut_off_or_overlaps_another(count: int, spread: float) -> None:
    figure = diagram(count, spread)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()  # type: ignore[no-untyped-call]
    renderer = canvas.get_renderer()  # type: ignore[no-untyped-call]
    boxes = [text.get_window_extent(renderer) for text in axes_of(figure).texts]
    assert len(boxes) == 2 * count + 2  # names, ranks, the axis and the ruler
    for box in boxes:
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= figure.bbox.x1
        assert box.y1 <= figure.bbox.y1
    for first, second in combinations(boxes, 2):
        assert not first.overlaps(second)


def test_names_are_no_formulas() -> None:
    figure = critical_difference_diagram(["$a$", r"$\b$"], [1.2, 1.8], 1.0, [])
    # A wrong formula is an error here.
    svg = figure._repr_svg_()  # type: ignore[attr-defined]
    assert "$a$  1.20" in svg
    assert "1.80  $\\b$" in svg


def test_a_diagram_leaves_the_settings_of_matplotlib_alone_and_is_the_same_each_time() -> None:
    before = dict(mpl.rcParams)
    first, second = (diagram(8)._repr_svg_() for _ in range(2))  # type: ignore[attr-defined]
    assert first == second
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize(
    ("names", "ranks", "cd", "groups", "message"),
    [
        (["a", "b"], [1.0, 1.5, 2.0], 1.0, [], r"got \[3\] for 2 names"),
        (["a"], [1.0], 1.0, [], r"two names or more, got \[1\] for 1 names"),
        (["a", "b"], [0.5, 2.0], 1.0, [], r"from 1 to 2, got \[0.5, 2.0\]"),
        (["a", "b"], [1.0, np.nan], 1.0, [], r"from 1 to 2, got \[1.0, nan\]"),
        (["a", "b"], [1.0, 2.0], np.nan, [], "cd: expected a finite number of at least 0, got nan"),
        (["a", "b"], [1.0, 2.0], 1.0, [[0, 2]], r"indices from 0 to 1, got \[0, 2\]"),
        (["a", "b"], [1.0, 2.0], 1.0, [[]], r"indices from 0 to 1, got \[\]"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    names: list[str], ranks: list[float], cd: float, groups: list[list[int]], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        critical_difference_diagram(names, ranks, cd, groups)
