"""Where the shipped `recipes/`, `data/` and `models/` are: in the wheel, or in a checkout."""

from pathlib import Path

_PACKAGE = Path(__file__).parent.parent


def shipped(folder: str) -> Path:
    """Path of a shipped folder; the wheel carries it inside the package, a checkout beside it."""
    in_wheel = _PACKAGE / "_shipped"
    return (in_wheel if in_wheel.is_dir() else _PACKAGE.parent) / folder
