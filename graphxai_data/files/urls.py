"""Where a build lies: in a folder of this machine, or at an fsspec URL such as s3://bucket/root.

A `Path` cannot hold a URL (it makes `s3:/bucket` of `s3://bucket`), so a URL stays text everywhere.
"""

import re
from pathlib import Path
from typing import TypeGuard

from graphxai_data.errors import InputError

_URL = re.compile(r"(?:[A-Za-z][\w+.-]*::)*([A-Za-z][\w+.-]*)://", re.ASCII)
_LOCAL = ("file", "local")
# Two letters or more: `c:/data` is a folder of Windows.
_MANGLED = re.compile(r"[A-Za-z][\w+.-]+:/", re.ASCII)


def is_url(place: object) -> TypeGuard[str]:
    """Whether a place is a URL of another machine, or of memory; `file://` is a plain path."""
    found = _URL.match(place) if isinstance(place, str) else None
    return found is not None and found[1] not in _LOCAL


def local_path(place: str | Path) -> Path:
    """The path that a place on this machine means, `file://` taken off."""
    text = str(place)
    if isinstance(place, str) and (found := _URL.match(text)) and found[1] in _LOCAL:
        text = text[found.end() :]
    elif _MANGLED.match(text) and not Path(text).exists():
        raise InputError(f"{text}: a URL has two slashes, and is given as text, not as a Path")
    return Path(text).expanduser()


def place_of(text: str) -> str | Path:
    """What a text on the command line means: a URL as it is, or a path."""
    return text if is_url(text) else local_path(text)


def inside(place: str | Path, *names: str) -> str | Path:
    """A folder below a place; a URL stays a URL."""
    if is_url(place):
        # Of a URL that ends after its protocol the slashes are not those of a folder.
        bare = place if place.endswith("://") else place.rstrip("/") + "/"
        return (bare + "/".join(names)).rstrip("/")
    return local_path(place).joinpath(*names)


def shown(place: str | Path) -> str:
    """For people, without the password that a URL may have."""
    return re.sub(r"://[^/@]*@", "://…@", str(place))
