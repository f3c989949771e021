"""The RINGS principles of a build or a dataset, measured by the quick or the full check."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from graphxai_data.errors import InputError, known_name, whole_number
from graphxai_data.manifest import Manifest
from graphxai_data.recipe import Recipe
from graphxai_data.remote import opened
from graphxai_data.rings.quick import quick_check
from graphxai_data.rings.sample import Sample, sample_build, sample_dataset
from graphxai_data.rings.verdict import Claims, Depth, Measurement
from graphxai_data.seeds import MAX_SEED


def check(
    dataset_or_folder: Any, depth: Depth = "quick", seed: int = 0, **options: Any
) -> Measurement:
    """Measure structural necessity (P1) and feature-topology interdependence (P2).

    Args:
        dataset_or_folder: a build folder or its URL, or any PyG dataset (or list) of graphs
            with one class or number each; graphs with the same `group` stay in one fold. A number
            becomes a class: whether it is above the median.
        depth: "quick": probes without training; "full": GIN and DeepSets trained on every mode.
        seed: seed of folds, splits, random modes and weights.
        options: for "full": `runs`, `graphs`, `epochs`, `progress`, `resume`.

    Returns:
        The verdicts `.p1` and `.p2`, with all scores. Nothing is written.
    """
    known_name("depth", depth, ("quick", "full"))
    allowed = ("runs", "graphs", "epochs", "progress", "resume") if depth == "full" else ()
    for option in options:
        if option not in allowed:
            takes = ", ".join(allowed) or "none"
            raise InputError(f"the {depth} check takes no option '{option}'; it takes {takes}")
    if not isinstance(dataset_or_folder, str | Path):
        return _measure(sample_dataset(dataset_or_folder), depth, seed, **options)
    with opened(dataset_or_folder) as (folder, _):
        return measure_shards(folder, Manifest.load(folder), depth, seed, **options)


def measure_shards(
    folder: Path, manifest: Manifest, depth: Depth = "quick", seed: int = 0, **options: Any
) -> Measurement:
    """Measure a build whose manifest need not be on disk yet."""
    measurement = _measure(sample_build(folder, manifest), depth, seed, **options)
    rings = manifest.load_recipe().rings
    claimed = Claims(rings.claimed_p1, rings.claimed_p2)
    return replace(measurement, claimed=claimed, content_sha256=manifest.content_sha256)


def required_failures(measurement: Measurement, recipe: Recipe) -> list[str]:
    """Return a message for every principle that the recipe requires and that fails."""
    return [
        f"RINGS {key.upper()} is required but fails: {principle.reason}"
        for key, principle in measurement.principles.items()
        if getattr(recipe.rings, key) == "require" and principle.verdict == "fail"
    ]


def _measure(sample: Sample, depth: Depth, seed: int, **options: Any) -> Measurement:
    whole_number("seed", seed, 0, MAX_SEED)
    if depth == "quick":
        measurement = quick_check(sample, seed)
    else:  # torch is needed only here
        from graphxai_data.rings.full import full_check

        measurement = full_check(sample, seed, **options)
    if sample.median is None:
        return measurement
    return replace(measurement, classes=f"whether y is above its median, {sample.median:.6g}")
