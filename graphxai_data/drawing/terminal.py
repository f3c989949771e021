"""Pictures made of characters, for terminals with or without colours: bars and one graph."""

import numpy as np
from rich.text import Text

from graphxai_data.drawing.sketch import SIDE, Ints, Sketch, sketch, summed_in_groups
from graphxai_data.graphs.record import GraphRecord

_RATIONALE = "bold dark_orange"
# One style per alternative, then from the start again.
_ALTERNATIVES = (_RATIONALE, "bold green", "bold medium_purple", "bold hot_pink", "bold yellow4")
_FOR, _AGAINST = "bold red", "bold blue"
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEVELS = "▁▂▃▄▅▆▇█"
_SHADES = " ░▒▓█"
# A Braille character has two columns of four dots.
_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])


def bar(share: float, width: int = 24) -> str:
    """Return a bar of `share` times `width` characters."""
    eighths = round(share * width * 8)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def sparkline(counts: Ints, width: int = 60) -> str:
    """Return one character per count, as high as the count; many counts are summed in groups."""
    sums, _ = summed_in_groups(counts, width)
    levels = np.ceil(sums / max(int(sums.max()), 1) * len(_LEVELS)).astype(int)
    return "".join(_LEVELS[level - 1] if level else " " for level in levels)


def graph_text(record: GraphRecord, width: int = 76, colours: bool = True) -> Text:
    """Draw one graph, its rationale orange, or without `colours` with a star at its atoms.

    Further alternatives have other colours. Signed weights are red and blue, or have their sign.
    Lines have at most `width` characters; those of digits have 56, or 28 if there is less room.
    """
    if "segments" in record.meta:
        return _digit(record, 2 if width >= 2 * record.meta["segments"].shape[1] else 1)
    return _drawing(record, width, colours)


def _digit(record: GraphRecord, characters: int) -> Text:
    """Draw a digit with some characters per pixel, darker where there is more ink."""
    text, inside, styles = Text(), record.rationale, node_styles(record)
    for row in record.meta["segments"]:
        for node in row.tolist():
            shade = _SHADES[round(float(record.x[node, 0]) * (len(_SHADES) - 1))]
            # Show the rationale even where there is almost no ink.
            shade = "·" if shade == " " and inside[node] else shade
            text.append(shade * characters, styles[node] or "")
        text.append("\n")
    return text


def _drawing(record: GraphRecord, width: int, colours: bool) -> Text:
    """Draw edges in Braille dots, and nodes as letters or circles."""
    meta = record.meta
    layout = sketch(
        record.edge_index, record.num_nodes, meta.get("smiles"), meta.get("smiles_atom")
    )
    top = layout.places[:, 1].min(initial=SIDE)
    points = (layout.places - [0.0, top]) * (2 * width - 4) / SIDE + 2
    rows = int(points[:, 1].max(initial=0.0)) // 4 + 1
    dots = np.zeros((4 * rows, 2 * width), bool)
    for a, b in layout.edges.tolist():
        steps = int(np.abs(points[a] - points[b]).max()) + 2
        line = np.rint(np.linspace(points[a], points[b], steps)).astype(int)
        dots[np.clip(line[:, 1], 0, 4 * rows - 1), np.clip(line[:, 0], 0, 2 * width - 1)] = True
    cells = (dots.reshape(rows, 4, width, 2).transpose(0, 2, 1, 3) * _DOTS).sum(axis=(2, 3))
    canvas = [[(chr(0x2800 + c) if c else " ", "dim") for c in row] for row in cells.tolist()]

    styles = node_styles(record)
    node_at: dict[tuple[int, int], int] = {}
    for node, (x, y) in enumerate(np.rint(points).astype(int).tolist()):
        place = (min(y // 4, rows - 1), min(x // 2, width - 1))
        if styles[node] or place not in node_at:  # where nodes overlap, show the rationale
            node_at[place] = node
    letters = _letters(record, layout, starred=not colours)
    for (row, column), node in node_at.items():
        # A second letter takes the next place, unless a node is there.
        ends = [k for k in range(1, len(letters[node])) if (row, column + k) in node_at]
        text = letters[node][: min([*ends, width - column])]
        style = styles[node] or "bold"
        canvas[row][column : column + len(text)] = [(text, style), *[("", "")] * (len(text) - 1)]
    return Text.assemble(*(cell for row in canvas for cell in [*row, ("\n", "")]))


def node_styles(record: GraphRecord) -> list[str]:
    """Return the style of each node: of its first alternative, or of its sign; "" for others."""
    if record.node_weight is not None and record.alternative_bits is None:
        weights = record.node_weight.tolist()
        return [_FOR if w > 0 else _AGAINST if w < 0 else "" for w in weights]
    styles = [""] * record.num_nodes
    if record.node_mask is not None:
        for number, mask in reversed(list(enumerate(record.alternatives))):
            for node in np.flatnonzero(mask):
                styles[node] = _ALTERNATIVES[number % len(_ALTERNATIVES)]
    return styles


def _letters(record: GraphRecord, layout: Sketch, starred: bool) -> list[str]:
    """Return elements, or circles that are filled in the rationale or for nodes of class 1.

    Elements with signed weights have their sign, or circles of a kind for each sign.
    """
    labels, weight = layout.labels, record.node_weight
    signed, marks = weight is not None and starred, [""] * len(layout.labels)
    if weight is not None and starred:
        marks = [("-", "", "+")[int(sign) + 1] for sign in np.sign(weight)]
    elif starred and record.node_mask is not None:
        marks = ["*" * int(inside) for inside in record.node_mask]
    if layout.is_molecule:
        return [(label or "C") + mark for label, mark in zip(labels, marks, strict=True)]
    if signed:
        return [{"-": "⊖", "": "○", "+": "⊕"}[mark] for mark in marks]
    filled = record.node_y if record.node_mask is None else record.node_mask
    if weight is not None:
        filled = weight != 0
    return ["○"] * len(labels) if filled is None else ["●" if fill else "○" for fill in filled]
