"""Places of builds: a folder on this machine, or an fsspec URL such as s3://bucket/root.

A URL stays text everywhere: `Path` would turn `s3://bucket` into `s3:/bucket`.
"""

import re
from pathlib import Path
from typing import TypeGuard

from graphxai_data.errors import InputError

_URL = re.compile(r"(?:[A-Za-z][\w+.-]*::)*([A-Za-z][\w+.-]*)://", re.ASCII)
_LOCAL = ("file", "local")
# Two letters or more: `c:/data` is a folder on Windows.
_MANGLED = re.compile(r"[A-Za-z][\w+.-]+:/", re.ASCII)


def is_url(place: object) -> TypeGuard[str]:
    """Return whether a place is a URL; `file://` counts as a plain path."""
    match = _URL.match(place) if isinstance(place, str) else None
    return match is not None and match[1] not in _LOCAL


def local_path(place: str | Path) -> Path:
    """Return the path of a place on this machine, without `file://`."""
    text = str(place)
    if isinstance(place, str) and (match := _URL.match(text)) and match[1] in _LOCAL:
        text = text[match.end() :]
    elif _MANGLED.match(text) and not Path(text).exists():
        raise InputError(f"{text}: a URL has two slashes, and is given as text, not as a Path")
    return Path(text).expanduser()


def place_of(text: str) -> str | Path:
    """Return a text of the command line as a URL or as a path."""
    return text if is_url(text) else local_path(text)


def inside(place: str | Path, *names: str) -> str | Path:
    """Return a folder in a place; a URL stays a URL."""
    if is_url(place):
        # Keep the slashes of a bare `memory://`.
        bare = place if place.endswith("://") else place.rstrip("/") + "/"
        return (bare + "/".join(names)).rstrip("/")
    return local_path(place).joinpath(*names)


def shown(place: str | Path) -> str:
    """Return the text of a place, without the password that a URL may contain."""
    return re.sub(r"://[^/@]*@", "://…@", str(place))
