"""Reads a page without a browser, by code of its own."""

import base64
import json
import re
import struct
import zlib
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np


class Page(HTMLParser):
    """A page with the text of its scripts, by id, and everything that it refers to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.text = path.read_text(encoding="utf-8")
        self.scripts: dict[str, str] = {}
        self.references: list[str] = []
        self._id: str | None = None
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self._id = values.get("id") if tag == "script" else None
        self.references += [values[k] or "" for k in ("src", "href", "xlink:href") if k in values]

    def handle_data(self, data: str) -> None:
        if self._id:
            self.scripts[self._id] = self.scripts.get(self._id, "") + data

    @cached_property
    def meta(self) -> dict[str, Any]:
        """Settings of the page's script."""
        return json.loads(self.scripts["meta"])

    @cached_property
    def index(self) -> dict[str, Any]:
        """Labels, splits, predictions and overlaps of all graphs."""
        return unpacked(self.scripts["index"])

    @property
    def titles(self) -> list[str]:
        """Titles of the explainers."""
        return [explainer["title"] for explainer in self.meta["explainers"]]

    @property
    def explainer_table(self) -> str:
        """HTML of the table of explainers."""
        return self.text[self.text.index('id="explainers"') : self.text.index('id="gallery"')]

    @property
    def explainer_rows(self) -> list[list[str]]:
        """Cells of the table of explainers."""
        rows = re.findall(r"<tr>(<td.*?)</tr>", self.explainer_table)
        return [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in rows]

    def piece(self, k: int) -> dict[str, Any]:
        """Return the arrays of some graphs."""
        return unpacked(self.scripts[f"piece-{k}"])


def unpacked(text: str) -> dict[str, Any]:
    """Return the arrays and drawings of a piece."""
    whole = zlib.decompress(base64.b64decode(text))
    (length,) = struct.unpack("<I", whole[:4])
    header = json.loads(whole[4 : 4 + length])
    arrays = {
        name: np.frombuffer(whole, f"<{kind}", size, 4 + length + offset)
        for name, (kind, offset, size) in header["arrays"].items()
    }
    return {"drawings": header.get("drawings", {}), **arrays}
