"""Sources: the raw inputs of datasets; shipped, a user's own file, or downloaded; hash checked."""

import hashlib
import logging
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pooch

from graphxai_data.errors import DamagedError, InputError, SourceMissingError, nearest
from graphxai_data.files.hashing import file_sha256, folder_sha256
from graphxai_data.files.raw import Source, has_file
from graphxai_data.files.shipped import cache_folder, shipped
from graphxai_data.files.toml import parse_table, read_toml
from graphxai_data.generators import generator_module
from graphxai_data.recipe import Recipe

log = logging.getLogger(__name__)

_CHUNK = 1 << 20


@dataclass(frozen=True)
class Part:
    """One file of a source that is downloaded as several."""

    file: str
    sha256: str
    bytes: int
    urls: tuple[str, ...]


@dataclass(frozen=True)
class SourceEntry:
    """A raw input as `data/sources.toml` describes it.

    Attributes:
        file: name of the file; it lies in `data/sources/` unless it is downloaded. Of a source in
            parts, the folder they are downloaded to.
        sha256: of the file; of a source in parts, as `folder_sha256` has it; empty where it was
            never at hand.
        bytes: its size, or 0.
        origin: where it comes from.
        licence: under which it may be used.
        urls: mirrors to download it from, tried in turn.
        text_sha256: of the decompressed content, where the file was compressed here.
        parts: the files that are downloaded, where it is not one but several.
        spdx: the licence of what is made from it, as an SPDX identifier; empty if it has none.
        elsewhere: where people get it themselves, where it is neither shipped nor downloaded.
        of_members: it is an archive that mirrors may pack each in their own way: `sha256` is that
            of the files in it, as `folder_sha256` has it, and `bytes` is theirs.
    """

    file: str
    sha256: str
    bytes: int
    origin: str
    licence: str
    urls: tuple[str, ...] = ()
    text_sha256: str = ""
    parts: tuple[Part, ...] = ()
    spdx: str = "MIT"
    of_members: bool = False
    elsewhere: str = ""


def find_sources(
    recipe: Recipe, chosen: Mapping[str, str | Path] | None = None
) -> dict[str, Source]:
    """The sources that a recipe needs, each found and checked.

    Args:
        recipe: names its sources by their ids in `data/sources.toml`.
        chosen: for some of them, another id or the path of a file to use instead; of a folder,
            where the generator knows its files.
    """
    chosen = chosen or {}
    refuse_unknown_sources(recipe, chosen)
    return {name: find_source(recipe, name, chosen.get(name)) for name in recipe.sources}


def find_source(recipe: Recipe, name: str, chosen: str | Path | None = None) -> Source:
    """One source of a recipe: its own, or the chosen id or path."""
    known = registry()
    wish = str(recipe.sources[name] if chosen is None else chosen)
    generator = generator_module(recipe.generator)
    members, others = generator.SOURCES[name], getattr(generator, "OTHER_FILES", {}).get(name, ())
    if wish in known:
        entry = known[wish]
        if entry.elsewhere:
            raise SourceMissingError(
                f"'{wish}' is neither shipped nor downloaded; get it from {entry.elsewhere} and "
                f"pass --source {name}={_form(members, others)}"
            )
        path = fetch(entry, members)
        if entry.parts and (found := folder_sha256(path, members)) != entry.sha256:
            # Each part was right; something else lies beside them under the same name.
            raise DamagedError(
                f"{path}: not the files of '{wish}' (expected SHA-256 {entry.sha256}, "
                f"got {found}); empty the folder"
            )
        return Source(wish, path, entry.sha256)
    if chosen is None:
        raise InputError(f"{recipe.name}: unknown source id '{wish}'; {nearest(wish, known)}")
    path = Path(wish).expanduser()
    if others and path.exists() and has_file(path, others[0]):
        members = others
    own = _users_own(name, path, members)
    usual = known.get(recipe.sources[name])
    if usual is not None and usual.of_members:
        own = replace(own, sha256=folder_sha256(own.path, members))
        if own.sha256 == usual.sha256:  # the very files, wherever they lie
            own = replace(own, id=recipe.sources[name])
    return own


def refuse_unknown_sources(recipe: Recipe, chosen: Mapping[str, str | Path]) -> None:
    """An `InputError` if a source is chosen that the recipe does not have."""
    for name in chosen:
        if name not in recipe.sources:
            takes = ", ".join(sorted(recipe.sources)) or "none"
            raise InputError(f"{recipe.name}: no source named '{name}'; it takes {takes}")


def registry() -> dict[str, SourceEntry]:
    """All sources in `data/sources.toml`, by id."""
    table = read_toml(shipped("data") / "sources.toml")
    return {
        key: parse_table(SourceEntry, entry, f"data/sources.toml: {key}")
        for key, entry in table.items()
    }


def fetch(entry: SourceEntry, members: tuple[str, ...] = ()) -> Path:
    """Path of a known source: the shipped file, the downloaded one, or a folder of those."""
    if entry.parts:
        folder = cache_folder() / entry.file
        for part in entry.parts:
            download(part, folder)
        return folder
    if entry.urls:
        return download(entry, cache_folder(), members)
    path = shipped("data") / "sources" / entry.file
    if not path.is_file():
        raise DamagedError(f"{path}: missing from the installation; install graphxai-data again")
    found = file_sha256(path)
    if found != entry.sha256:
        raise DamagedError(
            f"{path}: damaged (expected SHA-256 {entry.sha256}, got {found}); "
            "install graphxai-data again"
        )
    return path


def download(entry: SourceEntry | Part, folder: Path, members: tuple[str, ...] = ()) -> Path:
    """Fetch a file from the first mirror that has it; whole, checked, or not at all.

    Of an archive known by the files in it, `members` are those.

    A download that broke off goes on where it stopped, also from another mirror.
    """
    failures = []
    of_members = isinstance(entry, SourceEntry) and entry.of_members
    for url in entry.urls:
        # What one mirror has begun another can go on with, if their files are the same.
        begun = hashlib.sha256(url.encode()).hexdigest() if of_members else entry.sha256
        try:
            path = pooch.retrieve(
                url,
                known_hash=None if of_members else f"sha256:{entry.sha256}",
                fname=entry.file,
                path=folder,
                downloader=_ResumingDownloader(folder / f"{begun}.part"),
            )
            if of_members:
                _check_members(Path(path), entry.sha256, members)
            return Path(path)
        except (ValueError, OSError, HTTPException) as error:
            failures.append(f"{url}: {' '.join(str(error).split())}")
            log.info("download failed: %s", failures[-1])
    what = "the folder of all its parts" if isinstance(entry, Part) else "it"
    raise SourceMissingError(
        f"{entry.file} could not be downloaded ({'; '.join(failures)}); "
        f"get it by other means and pass {what} with --source to `graphxai-data build`"
    )


def _check_members(path: Path, expected: str, members: tuple[str, ...]) -> None:
    """Take a file away, with a ValueError, unless it is an archive of the right files."""
    try:
        found = folder_sha256(path, members)
    except InputError as error:
        path.unlink()
        raise ValueError(str(error)) from None
    if found != expected:
        path.unlink()
        raise ValueError(f"the files in it have SHA-256 {found}, expected {expected}")


class _ResumingDownloader:
    """A pooch downloader that keeps what it has and asks for the rest (HTTP Range)."""

    def __init__(self, part: Path) -> None:
        self._part = part

    def __call__(self, url: str, output_file: str | Path, _pooch: Any) -> None:
        have = self._part.stat().st_size if self._part.exists() else 0
        headers = {"Range": f"bytes={have}-"} if have else {}
        request = urllib.request.Request(url, headers=headers)  # noqa: S310 - from sources.toml
        try:
            # urllib hands over what came before a connection broke; requests throws it away.
            with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310
                resumed = response.status == HTTPStatus.PARTIAL_CONTENT
                with self._part.open("ab" if resumed else "wb") as file:
                    while chunk := response.read(_CHUNK):
                        file.write(chunk)
                expected = response.headers.get("Content-Length")
        except urllib.error.HTTPError as error:
            if error.code != HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                raise
            # Nothing is left to ask for: what is here is whole, or wrong; the hash will tell.
            self._part.replace(output_file)
            return
        received = self._part.stat().st_size - (have if resumed else 0)
        if expected is not None and received < int(expected):
            raise ConnectionError(f"broke off after {received} of {expected} bytes")
        self._part.replace(output_file)


def _users_own(name: str, path: Path, members: tuple[str, ...]) -> Source:
    """A user's own file, or folder if the source consists of several files."""
    try:
        if members and path.is_dir():
            return Source("user's file", path, folder_sha256(path, members))
        # Not a pipe or a device: a source is read more than once, and has an end.
        reason = "" if path.is_file() else "no such file" if not path.exists() else "not a file"
        if not reason:
            return Source("user's file", path, file_sha256(path))
    except OSError as error:
        reason = str(error.strerror)
    ids = ", ".join(registry())
    wanted = _form(members).partition(", ")[2] if members else "a readable file"
    raise InputError(f"--source {name}={path}: {reason}; give {wanted}, or one of {ids}")


def _form(members: tuple[str, ...], others: tuple[str, ...] = ()) -> str:
    """What may be passed as a source."""
    if not members:
        return "FILE"
    either = f"; or with {', '.join(others)}" if others else ""
    return f"DIR, a folder or zip with {', '.join(members)}{either}"
