"""The plot of a RINGS measurement: the scores of every mode, the original on top."""

from html import escape
from pathlib import Path

import numpy as np

from graphxai_data.files.disk import write_atomically
from graphxai_data.manifest import PLOT_NAME
from graphxai_data.rings.modes import FEATURE_FREE, STRUCTURE_FREE
from graphxai_data.rings.verdict import CONTROL, Measurement

_LEFT, _WIDTH, _ROW = 210, 420, 26
_COLOURS = {"original": "#1b6ca8", "structure-free": "#d9822b", "feature-free": "#7a4ea3"}


def write_measurement(folder: Path, found: Measurement) -> None:
    """Write `rings.json` and, if there is anything to plot, `rings.svg`."""
    found.save(folder)
    if found.scores:
        write_atomically(folder / PLOT_NAME, rings_plot(found).encode())
    else:
        (folder / PLOT_NAME).unlink(missing_ok=True)  # of an earlier measurement


def kind_of_mode(mode: str) -> str:
    """What a mode is: original, without structure, without features, a shortcut, or a control."""
    if mode in STRUCTURE_FREE:
        return "structure-free"
    if mode in FEATURE_FREE:
        return "feature-free"
    return {"original": "original", CONTROL: "control"}.get(mode, "shortcut")


def rings_plot(found: Measurement) -> str:
    """SVG: one row a mode, a dot for each run, a bar at the mean."""
    height = (len(found.scores) + 2) * _ROW
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 70} {height}" '
        f'width="{_LEFT + _WIDTH + 70}" height="{height}" font-family="sans-serif" font-size="13" '
        'role="img" aria-label="Scores of every mode">',
        f'<rect width="{_LEFT + _WIDTH + 70}" height="{height}" fill="white"/>',
    ]
    bottom = len(found.scores) * _ROW + 8
    for tick in range(6):
        x = _LEFT + _WIDTH * tick / 5
        parts.append(f'<line x1="{x}" x2="{x}" y1="4" y2="{bottom}" stroke="#ddd"/>')
        parts.append(f'<text x="{x}" y="{bottom + 18}" text-anchor="middle">{tick / 5:.1f}</text>')
    for row, (mode, scores) in enumerate(found.scores.items()):
        middle = row * _ROW + 18
        colour = _COLOURS.get(kind_of_mode(mode), "#666")
        mean = _LEFT + _WIDTH * float(np.mean(scores))
        parts.append(
            f'<text x="{_LEFT - 10}" y="{middle + 4}" text-anchor="end">{escape(mode)}</text>'
        )
        parts += [
            f'<circle cx="{_LEFT + _WIDTH * score:.1f}" cy="{middle}" r="4" fill="{colour}" '
            'fill-opacity="0.35"/>'
            for score in scores
        ]
        parts.append(
            f'<line x1="{mean:.1f}" x2="{mean:.1f}" y1="{middle - 9}" y2="{middle + 9}" '
            f'stroke="{colour}" stroke-width="2.5"/>'
        )
        parts.append(
            f'<text x="{_LEFT + _WIDTH + 14}" y="{middle + 4}">{np.mean(scores):.3f}</text>'
        )
    centre = _LEFT + _WIDTH / 2
    parts.append(
        f'<text x="{centre}" y="{bottom + 36}" text-anchor="middle">{escape(found.score)}</text>'
    )
    return "\n".join([*parts, "</svg>"]) + "\n"
