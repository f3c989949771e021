"""Pictures of superpixel graphs: image, superpixels, graph and rationale of each."""

import base64
import io
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from PIL import Image

from graphxai_data.graphs.record import GraphRecord

_SCALE, _GAP, _MARGIN, _LINE = 4, 10, 92, 24
_BORDER, _RATIONALE = (70, 120, 190), (250, 191, 89)

Pixels = npt.NDArray[np.uint8]


def digit_gallery(records: Sequence[GraphRecord], pictures: Pixels) -> str:
    """Return an SVG with a column per graph, or with a row per graph where pictures are wide.

    `pictures` [k, h, w] are what the graphs were made from.
    """
    panels = [_panels(record, picture) for record, picture in zip(records, pictures, strict=True)]
    names, labels = list(panels[0]), [str(record.y) for record in records]
    high, wide = (_SCALE * length for length in pictures.shape[1:])
    across, down = wide + _GAP, high + _GAP
    cells = [
        (i, j, panel) for i, column in enumerate(panels) for j, panel in enumerate(column.values())
    ]
    if wide == high:
        left, top = _MARGIN, 0
        width, height = left + len(records) * across, len(names) * down + _LINE
        texts = [_text(4, j * down + high // 2 + 5, name) for j, name in enumerate(names)]
        middle = left + wide // 2
        under = [_text(middle + i * across, height - 8, y, "middle") for i, y in enumerate(labels)]
    else:
        left, top = _LINE, _LINE
        width, height = left + len(names) * across, top + len(records) * down
        middle = left + wide // 2
        texts = [_text(middle + j * across, 16, name, "middle") for j, name in enumerate(names)]
        under = [_text(4, top + i * down + high // 2 + 5, y) for i, y in enumerate(labels)]
        cells = [(j, i, panel) for i, j, panel in cells]
    shown = [
        f'<g transform="translate({left + column * across},{top + row * down})">{panel}</g>'
        for column, row, panel in cells
    ]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="sans-serif" font-size="14">\n'
        f'<rect width="{width}" height="{height}" fill="white"/>'
    )
    return "\n".join([head, *texts, *shown, *under, "</svg>"]) + "\n"


def _text(x: int, y: int, text: str, anchor: str = "") -> str:
    anchored = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x}" y="{y}"{anchored}>{text}</text>'


def _panels(record: GraphRecord, image: Pixels) -> dict[str, str]:
    """Return the SVG of each picture of a graph, by its name."""
    segments = record.meta["segments"]
    counts = np.bincount(segments.ravel())
    shade = (np.bincount(segments.ravel(), image.ravel()) / counts).round().astype(np.uint8)
    large, grey = _enlarged(segments), _grey(image)
    tinted = (0.55 * grey + 0.45 * np.array(_RATIONALE)).round().astype(np.uint8)
    border = np.zeros(large.shape, bool)
    border[1:] |= large[1:] != large[:-1]
    border[:, 1:] |= large[:, 1:] != large[:, :-1]
    superpixels = _grey(shade[segments])
    rationale = np.where(record.rationale[large][:, :, None], tinted, grey)
    superpixels[border] = rationale[border] = _BORDER
    return {
        "image": _embedded(grey),
        "superpixels": _embedded(superpixels),
        "graph": _graph(record, shade, *large.shape),
        "rationale": _embedded(rationale),
    }


def _graph(record: GraphRecord, shade: Pixels, height: int, width: int) -> str:
    """Return nodes at their centres, as bright as their superpixels; the rationale is ringed."""
    # Positions are in sides of an image, which is as wide as it is high. The number of a pixel is
    # its left edge: its middle lies half a pixel further.
    places = record.meta["pos"].astype(float) * height + _SCALE / 2
    lines = "".join(
        f"M{places[i, 0]:.1f} {places[i, 1]:.1f}L{places[j, 0]:.1f} {places[j, 1]:.1f}"
        for i, j in record.edge_index.T.tolist()
        if i < j
    )
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="rgb({s},{s},{s})" '
        f'stroke="{"#d9822b" if marked else "#777"}" stroke-width="{1.5 if marked else 0.6}"/>'
        for (x, y), s, marked in zip(places.tolist(), shade, record.rationale, strict=True)
    )
    frame = f'<rect width="{width}" height="{height}" fill="#f4f4f4"/>'
    return f'{frame}<path d="{lines}" stroke="#999" stroke-width="0.8" fill="none"/>{dots}'


def _enlarged(image: Pixels) -> Pixels:
    return image.repeat(_SCALE, axis=0).repeat(_SCALE, axis=1)


def _grey(image: Pixels) -> Pixels:
    """Return the enlarged image as [h, w, 3]."""
    return np.repeat(_enlarged(image)[:, :, None], 3, axis=2)


def _embedded(picture: Pixels) -> str:
    """Return a picture [h, w, 3] as an SVG element with a PNG inside."""
    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, "PNG", optimize=True)
    encoded = base64.b64encode(buffer.getvalue()).decode()
    height, width = picture.shape[:2]
    return f'<image width="{width}" height="{height}" href="data:image/png;base64,{encoded}"/>'
