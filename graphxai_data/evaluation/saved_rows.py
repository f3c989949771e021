"""Measurements that are saved next to a model, in `evaluation.json`, so that none is made twice."""

import json
import logging
import math
from pathlib import Path
from typing import Any

from graphxai_data import __version__
from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.evaluation.evaluate import Row
from graphxai_data.explain.variants import Variant
from graphxai_data.files.disk import explained_disk_errors, folder_lock, write_atomically
from graphxai_data.training.checkpoint import Card

log = logging.getLogger(__name__)


class SavedRows:
    """The rows in a model's `evaluation.json`, for one split; none if weights or data differ.

    The row of a plug-in has its package and version under "plugin". Columns of metrics from
    plug-ins are under "metrics": value and, under "by", package and version, by name.

    With `force` no row is known, and what is written replaces rows instead of adding to them.
    """

    def __init__(
        self, path: Path, dataset: GraphXAIDataset, card: Card, split: str, force: bool
    ) -> None:
        self._path, self._split, self._force = path, split, force
        self._identity = {
            "content_sha256": dataset.manifest.content_sha256,
            "weights_sha256": card.weights_sha256,
            "graphxai_data": __version__,
        }
        self.rows: dict[str, Row] = {} if force else self._read().get(split, {})

    def row(self, variant: Variant) -> Row:
        """Return the row of an explainer to add to; empty if its plug-in has another version."""
        new: Row = {} if variant.origin is None else {"plugin": variant.origin.words}
        if self.rows.setdefault(variant.name, new).get("plugin") != new.get("plugin"):
            self.rows[variant.name] = new
        return self.rows[variant.name]

    def write(self, rows: dict[str, Row]) -> None:
        """Write these rows, and keep what other processes have written meanwhile."""
        with (
            explained_disk_errors(self._path.parent, "--out", "what is measured already"),
            folder_lock(self._path, wait=True),
        ):
            splits = self._read()
            on_disk = splits.setdefault(self._split, {})
            for name, row in rows.items():
                other = {} if self._force else on_disk.get(name, {})
                if other.get("plugin") != row.get("plugin"):
                    other = {}
                on_disk[name] = other | row
            content = without_nan({"of": self._identity, "splits": splits})
            write_atomically(self._path, json.dumps(content, indent=2).encode())

    def _read(self) -> dict[str, dict[str, Row]]:
        if not self._path.is_file():
            return {}
        try:
            content = json.loads(self._path.read_text(encoding="utf-8"))
            if content["of"] != self._identity:
                return {}
            return {
                split: {name: _row(row) for name, row in rows.items()}
                for split, rows in content["splits"].items()
            }
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            log.warning("%s: damaged (%s); measured again", self._path, error)
            return {}


def _row(row: Row) -> Row:
    """Return a row with nan instead of null; raises if its metrics are not what was written."""
    for column in row.get("metrics", {}).values():
        if not isinstance(column["value"], float) or not isinstance(column["by"], str):
            raise TypeError("metrics: expected numbers and packages")
    return {key: math.nan if value is None else value for key, value in row.items()}


def without_nan(value: Any) -> Any:
    """Return the same value with None, null in JSON, instead of numbers that are not finite."""
    if isinstance(value, dict):
        return {key: without_nan(v) for key, v in value.items()}
    if isinstance(value, list):
        return [without_nan(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
