"""Pictures of superpixel graphs: image, superpixels, graph and rationale of each digit."""

import base64
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping

import numpy as np
import numpy.typing as npt

from graphxai_data.drawing.gallery import first_of_each_class
from graphxai_data.graphs.record import GraphRecord

_SCALE, _GAP, _MARGIN = 4, 10, 92
_BORDER = np.array([70, 120, 190], np.uint8)
_RATIONALE = np.array([250, 191, 89])

Pixels = npt.NDArray[np.uint8]


def digit_gallery(
    records: Iterable[GraphRecord], pixels: Mapping[int, Pixels], classes: int
) -> str:
    """SVG with the first graph of each class; `pixels` has the images by their ids."""
    shown = first_of_each_class(records, classes)
    images = [pixels[int(record.meta["image_id"])] for record in shown]
    side = images[0].shape[0] * _SCALE
    rows: dict[str, Callable[[GraphRecord, Pixels], str]] = {
        "image": lambda record, image: _embedded(_grey(image)),
        "superpixels": lambda record, image: _embedded(_superpixels(record, image)),
        "graph": lambda record, image: _graph(record, image, side),
        "rationale": lambda record, image: _embedded(_rationale(record, image)),
    }
    width = _MARGIN + len(shown) * (side + _GAP)
    height = len(rows) * (side + _GAP) + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="sans-serif" font-size="14">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for i, (name, draw) in enumerate(rows.items()):
        top = i * (side + _GAP)
        parts.append(f'<text x="4" y="{top + side // 2 + 5}">{name}</text>')
        for j, (record, image) in enumerate(zip(shown, images, strict=True)):
            left = _MARGIN + j * (side + _GAP)
            parts.append(f'<g transform="translate({left},{top})">{draw(record, image)}</g>')
    for j, record in enumerate(shown):
        middle = _MARGIN + j * (side + _GAP) + side // 2
        parts.append(f'<text x="{middle}" y="{height - 8}" text-anchor="middle">{record.y}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _graph(record: GraphRecord, image: Pixels, side: int) -> str:
    """Nodes at their centres, as bright as they are; those of the rationale ringed."""
    # A pixel's place is its number: its middle lies half a pixel further.
    places = record.meta["pos"].astype(float) * side + _SCALE / 2
    shade = _mean_of_superpixels(record, image)
    lines = "".join(
        f"M{places[i, 0]:.1f} {places[i, 1]:.1f}L{places[j, 0]:.1f} {places[j, 1]:.1f}"
        for i, j in record.edge_index.T.tolist()
        if i < j
    )
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="rgb({s},{s},{s})" '
        f'stroke="{"#d9822b" if marked else "#777"}" stroke-width="{1.5 if marked else 0.6}"/>'
        for (x, y), s, marked in zip(
            places.tolist(), shade.round().astype(int).tolist(), record.rationale, strict=True
        )
    )
    frame = f'<rect width="{side}" height="{side}" fill="#f4f4f4"/>'
    return f'{frame}<path d="{lines}" stroke="#999" stroke-width="0.8" fill="none"/>{dots}'


def _grey(image: Pixels) -> Pixels:
    """[h, w, 3] enlarged."""
    large = image.repeat(_SCALE, axis=0).repeat(_SCALE, axis=1)
    return np.repeat(large[:, :, None], 3, axis=2)


def _superpixels(record: GraphRecord, image: Pixels) -> Pixels:
    means = _mean_of_superpixels(record, image).round().astype(np.uint8)
    return _bordered(_grey(means[record.meta["segments"]]), record)


def _rationale(record: GraphRecord, image: Pixels) -> Pixels:
    inside = record.rationale[record.meta["segments"]]
    inside = inside.repeat(_SCALE, axis=0).repeat(_SCALE, axis=1)[:, :, None]
    grey = _grey(image)
    tinted = (0.55 * grey + 0.45 * _RATIONALE).round().astype(np.uint8)
    return _bordered(np.where(inside, tinted, grey), record)


def _bordered(picture: Pixels, record: GraphRecord) -> Pixels:
    large = record.meta["segments"].repeat(_SCALE, axis=0).repeat(_SCALE, axis=1)
    border = np.zeros(large.shape, bool)
    border[1:] |= large[1:] != large[:-1]
    border[:, 1:] |= large[:, 1:] != large[:, :-1]
    return np.where(border[:, :, None], _BORDER, picture)


def _mean_of_superpixels(record: GraphRecord, image: Pixels) -> npt.NDArray[np.float64]:
    segments = record.meta["segments"].ravel()
    means: npt.NDArray[np.float64] = np.bincount(segments, image.ravel()) / np.bincount(segments)
    return means


def _embedded(picture: Pixels) -> str:
    """An image [h, w, 3] as an SVG element with a PNG inside."""
    height, width = picture.shape[:2]
    lines = np.zeros((height, 1 + 3 * width), np.uint8)  # each line begins with its filter: none
    lines[:, 1:] = picture.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + kind + content
        + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in (
            (b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b""),
        )
    )  # fmt: skip
    encoded = base64.b64encode(png).decode()
    return f'<image width="{width}" height="{height}" href="data:image/png;base64,{encoded}"/>'
