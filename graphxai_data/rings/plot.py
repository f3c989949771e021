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


def write_measurement(folder: Path, measurement: Measurement) -> None:
    """Write `rings.json` and, if there are scores, `rings.svg`."""
    measurement.save(folder)
    if measurement.scores:
        write_atomically(folder / PLOT_NAME, rings_plot(measurement).encode())
    else:
        (folder / PLOT_NAME).unlink(missing_ok=True)  # of an earlier measurement


def kind_of_mode(mode: str) -> str:
    """Return original, structure-free, feature-free, shortcut or control."""
    if mode in STRUCTURE_FREE:
        return "structure-free"
    if mode in FEATURE_FREE:
        return "feature-free"
    return {"original": "original", CONTROL: "control"}.get(mode, "shortcut")


def rings_plot(measurement: Measurement) -> str:
    """Return SVG with one row per mode: a dot per run, a bar at the mean."""
    width, height = _LEFT + _WIDTH + 70, (len(measurement.scores) + 2) * _ROW
    bottom = len(measurement.scores) * _ROW + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="sans-serif" font-size="13" '
        'role="img" aria-label="Scores of every mode">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for tick in range(6):
        x = _LEFT + _WIDTH * tick / 5
        parts.append(f'<line x1="{x}" x2="{x}" y1="4" y2="{bottom}" stroke="#ddd"/>')
        parts.append(_text(x, bottom + 18, f"{tick / 5:.1f}", "middle"))
    for row, (mode, scores) in enumerate(measurement.scores.items()):
        y, mean = row * _ROW + 18, float(np.mean(scores))
        x = _LEFT + _WIDTH * mean
        colour = _COLOURS.get(kind_of_mode(mode), "#666")
        parts.append(_text(_LEFT - 10, y + 4, mode, "end"))
        parts += [
            f'<circle cx="{_LEFT + _WIDTH * score:.1f}" cy="{y}" r="4" fill="{colour}" '
            'fill-opacity="0.35"/>'
            for score in scores
        ]
        parts.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y - 9}" y2="{y + 9}" '
            f'stroke="{colour}" stroke-width="2.5"/>'
        )
        parts.append(_text(_LEFT + _WIDTH + 14, y + 4, f"{mean:.3f}"))
    parts.append(_text(_LEFT + _WIDTH / 2, bottom + 36, measurement.score, "middle"))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _text(x: float, y: float, text: str, anchor: str = "") -> str:
    place = f'x="{x}" y="{y}"' + (f' text-anchor="{anchor}"' if anchor else "")
    return f"<text {place}>{escape(text)}</text>"
