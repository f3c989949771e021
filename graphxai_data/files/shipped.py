"""Folders that come with the package: `recipes/`, `data/` and `models/`; and the cache."""

import os
from pathlib import Path

_PACKAGE = Path(__file__).parent.parent


def shipped(folder: str) -> Path:
    """Return the path of a shipped folder: inside the package in a wheel, next to it otherwise."""
    in_wheel = _PACKAGE / "_shipped"
    return (in_wheel if in_wheel.is_dir() else _PACKAGE.parent) / folder


def cache_folder() -> Path:
    """Return the folder of downloads: $GRAPHXAI_DATA_CACHE, else the user's cache folder."""
    import pooch

    return Path(os.environ.get("GRAPHXAI_DATA_CACHE") or pooch.os_cache("graphxai-data"))
