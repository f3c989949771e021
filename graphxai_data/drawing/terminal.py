"""Pictures made of characters: bars, and one graph, for terminals with colours or without."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from rich.text import Text

from graphxai_data.drawing.sketch import SIDE, sketch
from graphxai_data.graphs.record import GraphRecord

_RATIONALE = "bold dark_orange"
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEVELS = "▁▂▃▄▅▆▇█"
_SHADES = " ░▒▓█"
# A character of Braille has two dots side by side and four above each other.
_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])

Counts = npt.NDArray[np.int64]


def bar(share: float, width: int = 24) -> str:
    """A bar as long as a share of `width` characters."""
    eighths = round(share * width * 8)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def sparkline(counts: Counts, width: int = 60) -> str:
    """A character for each count, as high as it; neighbours together where there are many."""
    together = max(1, -(-len(counts) // width))
    padded = np.pad(counts, (0, -len(counts) % together)).reshape(-1, together).sum(axis=1)
    levels = np.ceil(padded / max(int(padded.max()), 1) * len(_LEVELS)).astype(int)
    return "".join(_LEVELS[level - 1] if level else " " for level in levels)


def graph_text(record: GraphRecord, width: int = 76, colours: bool = True) -> Text:
    """One graph.

    Args:
        record: the graph.
        width: characters a line, at most; digits take 56, or 28 where there is less room.
        colours: its rationale is orange; without them, atoms of a rationale have a star.
    """
    if "segments" in record.meta:
        return _digit(record, 2 if width >= 2 * record.meta["segments"].shape[1] else 1)
    return _drawing(record, width, colours)


def _digit(record: GraphRecord, characters: int) -> Text:
    """Some characters a pixel, darker where there is more ink."""
    text = Text()
    inside = record.rationale
    for row in record.meta["segments"]:
        for node in row.tolist():
            shade = _SHADES[round(float(record.x[node, 0]) * (len(_SHADES) - 1))]
            # What the rationale has of no ink is seen all the same.
            shade = "·" if shade == " " and inside[node] else shade
            text.append(shade * characters, _RATIONALE if inside[node] else "")
        text.append("\n")
    return text


def _drawing(record: GraphRecord, width: int, colours: bool) -> Text:
    """Edges in dots of Braille, nodes as letters or circles."""
    meta, mask = record.meta, record.node_mask
    found = sketch(record.edge_index, record.num_nodes, meta.get("smiles"), meta.get("smiles_atom"))
    top = found.places[:, 1].min(initial=SIDE)
    scale = (2 * width - 4) / SIDE
    points = (found.places - [0.0, top]) * scale + 2
    rows = int(points[:, 1].max(initial=0.0)) // 4 + 1
    dots = np.zeros((4 * rows, 2 * width), bool)
    for a, b in found.edges.tolist():
        steps = int(np.abs(points[a] - points[b]).max()) + 2
        line = np.rint(np.linspace(points[a], points[b], steps)).astype(int)
        dots[np.clip(line[:, 1], 0, 4 * rows - 1), np.clip(line[:, 0], 0, 2 * width - 1)] = True
    cells = (dots.reshape(rows, 4, width, 2).transpose(0, 2, 1, 3) * _DOTS).sum(axis=(2, 3))
    letters = _letters(record, found.labels, starred=not colours)
    at = {}
    for v, (x, y) in enumerate(np.rint(points).astype(int).tolist()):
        inside = mask is not None and bool(mask[v])
        place = (min(y // 4, rows - 1), min(x // 2, width - 1))
        if inside or place not in at:  # where nodes meet, the rationale is seen
            at[place] = (letters[v], _RATIONALE if inside else "bold")
    text = Text()
    for row in range(rows):
        skip = 0
        for column in range(width):
            if skip:
                skip -= 1
            elif (row, column) in at:
                letter, style = at[row, column]
                # Letters after the first take the next places, unless a node stands there.
                taken = [k for k in range(1, len(letter)) if (row, column + k) in at]
                letter = letter[: min([*taken, len(letter), width - column])]
                text.append(letter, style)
                skip = len(letter) - 1
            else:
                dot = int(cells[row, column])
                text.append(chr(0x2800 + dot) if dot else " ", "dim")
        text.append("\n")
    return text


def _letters(record: GraphRecord, labels: Sequence[str], starred: bool) -> list[str]:
    """Elements of a molecule; elsewhere a circle, filled in the rationale or a class of nodes."""
    if "smiles" in record.meta:
        mask = record.node_mask if starred else None
        stars = [""] * len(labels) if mask is None else ["*" if inside else "" for inside in mask]
        return [(label or "C") + star for label, star in zip(labels, stars, strict=True)]
    filled = record.node_y if record.node_mask is None else record.node_mask
    return ["○" if filled is None or not filled[v] else "●" for v in range(record.num_nodes)]
