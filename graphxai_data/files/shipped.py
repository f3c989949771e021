"""Where the shipped `recipes/`, `data/` and `models/` are: in the wheel, or in a checkout."""

import os
from pathlib import Path

_PACKAGE = Path(__file__).parent.parent


def shipped(folder: str) -> Path:
    """Path of a shipped folder; the wheel carries it inside the package, a checkout beside it."""
    in_wheel = _PACKAGE / "_shipped"
    return (in_wheel if in_wheel.is_dir() else _PACKAGE.parent) / folder


def cache_folder() -> Path:
    """Where downloads are kept: $GRAPHXAI_DATA_CACHE, else the user's cache folder."""
    import pooch

    return Path(os.environ.get("GRAPHXAI_DATA_CACHE") or pooch.os_cache("graphxai-data"))
