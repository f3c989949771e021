"""Finish: RINGS measurement and cards of a build whose shards are all there."""

from pathlib import Path
from typing import Any, Literal

from graphxai_data.building.cards import write_cards
from graphxai_data.files.disk import explained_disk_errors
from graphxai_data.manifest import Manifest
from graphxai_data.progress import Progress, no_progress
from graphxai_data.rings.measure import measure_shards, required_failures
from graphxai_data.rings.plot import write_measurement
from graphxai_data.rings.verdict import Measurement


def check_and_write(
    folder: Path,
    depth: Literal["quick", "full"],
    seed: int = 0,
    progress: Progress = no_progress,
    **options: Any,
) -> tuple[Measurement, list[str]]:
    """Measure a build, write the result and its card, and say which required principles fail."""
    manifest = Manifest.load(folder)
    recipe = manifest.load_recipe()
    if depth == "full":
        options |= {"progress": progress, "resume": folder / ".rings.partial.json"}
    found = measure_shards(folder, manifest, recipe, depth, seed, **options)
    with explained_disk_errors(folder):
        write_measurement(folder, found)
        write_cards(folder, manifest, recipe, found)
    return found, required_failures(found, recipe)
