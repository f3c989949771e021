"""Pictures of superpixel graphs: image, superpixels, graph and rationale of each digit."""

import base64
import io
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from PIL import Image

from graphxai_data.graphs.record import GraphRecord

_SCALE, _GAP, _MARGIN = 4, 10, 92
_BORDER, _RATIONALE = (70, 120, 190), (250, 191, 89)

Pixels = npt.NDArray[np.uint8]


def digit_gallery(records: Sequence[GraphRecord], images: Mapping[int, Pixels]) -> str:
    """Return an SVG with one column per graph; `images` has the pixels by the image's id."""
    columns = [_column(record, images[int(record.meta["image_id"])]) for record in records]
    side = _SCALE * len(images[int(records[0].meta["image_id"])])
    step = side + _GAP
    width, height = _MARGIN + len(columns) * step, len(columns[0]) * step + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="sans-serif" font-size="14">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for i, name in enumerate(columns[0]):
        parts.append(f'<text x="4" y="{i * step + side // 2 + 5}">{name}</text>')
    for j, (record, column) in enumerate(zip(records, columns, strict=True)):
        left = _MARGIN + j * step
        for i, picture in enumerate(column.values()):
            parts.append(f'<g transform="translate({left},{i * step})">{picture}</g>')
        middle = f'x="{left + side // 2}" y="{height - 8}" text-anchor="middle"'
        parts.append(f"<text {middle}>{record.y}</text>")
    return "\n".join([*parts, "</svg>"]) + "\n"


def _column(record: GraphRecord, image: Pixels) -> dict[str, str]:
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
        "graph": _graph(record, shade, len(large)),
        "rationale": _embedded(rationale),
    }


def _graph(record: GraphRecord, shade: Pixels, side: int) -> str:
    """Return nodes at their centres, as bright as their superpixels; the rationale is ringed."""
    # The number of a pixel is its left edge: its middle lies half a pixel further.
    places = record.meta["pos"].astype(float) * side + _SCALE / 2
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
    frame = f'<rect width="{side}" height="{side}" fill="#f4f4f4"/>'
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
