"""Results of the big table as data: a JSON file per dataset or pair, with every graph's scores.

A cell is one model with one seed. It is kept as long as build and settings are the same, on any
machine: a table that was stopped, or begun elsewhere, goes on where it was.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from graphxai_data.errors import DamagedError
from graphxai_data.files.disk import explained_disk_errors, folder_lock, write_atomically

Cell = dict[str, Any]
Key = tuple[str, str, int]
# What a cell has to have in common with a training to be its result.
_IDENTITY = ("content_sha256", "settings_sha256")


class Store:
    """The results in a folder."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def path(self, name: str) -> Path:
        """Return the file of a dataset or pair."""
        return self.folder / f"{name}.json"

    def names(self) -> list[str]:
        """Return the datasets and pairs that have results."""
        return sorted(path.stem for path in self.folder.glob("*.json"))

    def read(self, name: str) -> Cell:
        """Return the results of a dataset or pair: `cells`, `floors` and `graph_id`; may be {}."""
        path = self.path(name)
        if not path.is_file():
            return {}
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            for cell in content["cells"]:
                key_of(cell)
            return dict(content)
        except (ValueError, KeyError, TypeError) as error:
            raise DamagedError(
                f"{path}: not results of a table ({type(error).__name__}: {error}); restore it, or "
                "delete it to measure again"
            ) from None

    def cells(self, name: str) -> dict[Key, Cell]:
        """Return the cells of a dataset or pair by dataset, model and seed."""
        return {key_of(cell): cell for cell in self.read(name).get("cells", [])}

    def add(self, name: str, cells: Iterable[Cell], **other: Any) -> None:
        """Add cells, or explainers to cells of the same training, and replace those of others."""
        with (
            explained_disk_errors(self.folder, "--results", "what is measured already"),
            folder_lock(self.path(name), wait=True),
        ):
            content = self.read(name)
            known = {key_of(cell): cell for cell in content.get("cells", [])}
            for cell in cells:
                old = known.get(key_of(cell), {})
                if is_same_training(old, cell):
                    cell = cell | {"rows": old["rows"] | cell["rows"]}
                known[key_of(cell)] = cell
            content |= other | {"cells": [known[key] for key in sorted(known)]}
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomically(self.path(name), _text(content).encode())


def key_of(cell: Cell) -> Key:
    """Return what tells a cell from others."""
    return cell["dataset"], cell["model"], cell["seed"]


def is_same_training(old: Cell, new: Cell) -> bool:
    """Return whether two cells have the same build and settings, and so the same model."""
    return bool(old) and all(old.get(key) == new.get(key) for key in _IDENTITY)


def _text(content: Cell) -> str:
    """Return JSON with a line per explainer, so that changes can be read in a diff."""

    def compact(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)

    lines = ["{"]
    for key in sorted(content.keys() - {"cells"}):
        lines.append(f"{compact(key)}:{compact(content[key])},")
    lines.append('"cells":[')
    for place, cell in enumerate(content["cells"]):
        head = compact({key: value for key, value in cell.items() if key != "rows"})
        rows = ",\n".join(f"{compact(k)}:{compact(cell['rows'][k])}" for k in sorted(cell["rows"]))
        comma = "," if place < len(content["cells"]) - 1 else ""
        lines.append(f'{head[:-1]},"rows":{{\n{rows}}}}}{comma}')
    return "\n".join([*lines, "]}", ""])
