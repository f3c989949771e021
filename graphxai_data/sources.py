"""Sources: raw inputs of datasets, shipped, downloaded, or a user's own file; hashes checked."""

import hashlib
import logging
import shutil
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
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
from graphxai_data.recipe import Recipe, plugin_folders

log = logging.getLogger(__name__)


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
        file: name of the file; in `data/sources/` if it has no URLs. For a source in parts, the
            folder they are downloaded to.
        sha256: of the file; for a source in parts, its `folder_sha256`; empty if not known.
        urls: mirrors, tried in turn.
        text_sha256: of the decompressed content, if this project compressed the file.
        parts: the files to download, if there are several.
        spdx: SPDX identifier of the licence of datasets made from it; empty if there is none.
        elsewhere: where users can get it, if it is neither shipped nor downloadable.
        of_members: it is an archive that every mirror packs differently: `sha256` is the
            `folder_sha256` of the files in it, and `bytes` is their size.
        home: folder of the file, if it is shipped; a registry sets it.
        package: that ships the entry; a registry sets it.
        rival: another package that ships an entry of this id; a registry sets it.
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
    home: str = ""
    package: str = "graphxai-data"
    rival: str = ""


def find_sources(
    recipe: Recipe, given: Mapping[str, str | Path] | None = None
) -> dict[str, Source]:
    """Return the sources of a recipe, downloaded if necessary, and checked.

    The recipe gives their ids in `data/sources.toml`; other ids or paths can be given instead.
    """
    given = given or {}
    refuse_unknown_sources(recipe, given)
    return {name: find_source(recipe, name, given.get(name)) for name in recipe.sources}


def find_source(recipe: Recipe, name: str, given: str | Path | None = None) -> Source:
    """Return one source of a recipe: the given id or path, by default the recipe's own id."""
    known = registry()
    wish = str(recipe.sources[name] if given is None else given)
    if wish in known:
        return _known_source(recipe, name, wish)
    if given is None:
        raise InputError(
            f"{recipe.name}: unknown source id '{wish}'; {nearest(wish, known)} "
            f"(or pass --source {name}=PATH)"
        )
    return _users_source(recipe, name, Path(wish).expanduser())


def _known_source(recipe: Recipe, name: str, source_id: str) -> Source:
    """Return the shipped or downloaded source with an id of `data/sources.toml`."""
    entry = registry()[source_id]
    if entry.rival:
        raise InputError(
            f"source '{source_id}' is offered by packages {entry.rival} and {entry.package}; "
            f"uninstall one, or pass --source {name}=PATH"
        )
    members, others = _members(recipe, name)
    if entry.elsewhere:
        raise SourceMissingError(
            f"'{source_id}' is neither shipped nor downloadable; get it from {entry.elsewhere} and "
            f"pass --source {name}={_form(members, others)}"
        )
    path = fetch(entry, members)
    if entry.parts and (digest := folder_sha256(path, members)) != entry.sha256:
        # Each part was right, but a file with the same name and no `.gz` is read instead.
        raise DamagedError(
            f"{path}: not the files of '{source_id}' (expected SHA-256 {entry.sha256}, "
            f"got {digest}); empty the folder"
        )
    return Source(source_id, path, entry.sha256)


def _users_source(recipe: Recipe, name: str, path: Path) -> Source:
    """Return a user's own file, or folder if the source consists of several files."""
    members, others = _members(recipe, name)
    if others and path.exists() and has_file(path, others[0]):
        members = others
    usual_id = recipe.sources[name]
    usual = registry().get(usual_id)
    try:
        # Not a pipe or a device: a source is read more than once, and has an end.
        if path.is_file() or (members and path.is_dir()):
            by_members = path.is_dir() or (usual is not None and usual.of_members)
            digest = folder_sha256(path, members) if by_members else file_sha256(path)
            is_usual = usual is not None and usual.of_members and digest == usual.sha256
            return Source(usual_id if is_usual else "user's file", path, digest)
        reason = "not a file" if path.exists() else "no such file"
    except OSError as error:
        reason = str(error.strerror)
    ids = ", ".join(registry())
    expected = _form(members).partition(", ")[2] if members else "a readable file"
    raise InputError(f"--source {name}={path}: {reason}; give {expected}, or one of {ids}")


def _members(recipe: Recipe, name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the files that a source consists of, and other files it may consist of instead."""
    generator = recipe.generator_object
    return tuple(generator.sources[name]), tuple(generator.other_files.get(name, ()))


def _form(members: tuple[str, ...], others: tuple[str, ...] = ()) -> str:
    """Return what may be passed as a source, for error messages."""
    if not members:
        return "FILE"
    either = f"; or with {', '.join(others)}" if others else ""
    return f"DIR, a folder or zip with {', '.join(members)}{either}"


def refuse_unknown_sources(recipe: Recipe, names: Iterable[str]) -> None:
    """Raise `InputError` if the recipe does not have a source of one of these names."""
    for name in names:
        if name not in recipe.sources:
            takes = ", ".join(sorted(recipe.sources)) or "none"
            raise InputError(f"{recipe.name}: no source named '{name}'; it takes {takes}")


def registry() -> dict[str, SourceEntry]:
    """Return all sources by id: those of `data/sources.toml`, and of plug-ins.

    A plug-in has its own in `sources.toml` inside its package, and the files in `sources/`. It may
    not take an id of ours.
    """
    entries = _entries(shipped("data"), "graphxai-data", "data/sources.toml")
    own = set(entries)
    for folder, package in plugin_folders():
        path = folder / "sources.toml"
        if not path.is_file():
            continue
        for key, entry in _plugin_entries(folder, package, path.stat().st_mtime_ns).items():
            if key in entries and key not in own:
                entry = replace(entry, rival=entries[key].package)
            entries = entries | ({} if key in own else {key: entry})
    return entries


@lru_cache(maxsize=32)
def _plugin_entries(folder: Path, package: str, changed: int) -> dict[str, SourceEntry]:
    """Return the sources of a plug-in; none, with a warning, if their file is wrong."""
    try:
        entries = _entries(folder, package, str(folder / "sources.toml"))
    except InputError as error:  # it must not be in the way of other datasets
        log.warning("sources of package %s are ignored: %s", package, error)
        return {}
    for key in entries.keys() & read_toml(shipped("data") / "sources.toml").keys():
        log.warning("source '%s' of package %s is ignored: it is an id of ours", key, package)
    return entries


def _entries(folder: Path, package: str, where: str) -> dict[str, SourceEntry]:
    home = str(folder / "sources")
    return {
        key: replace(parse_table(SourceEntry, table, f"{where}: {key}"), home=home, package=package)
        for key, table in read_toml(folder / "sources.toml").items()
    }


def fetch(entry: SourceEntry, members: tuple[str, ...] = ()) -> Path:
    """Return the path of a known source: a shipped or downloaded file, or a folder of those."""
    if entry.parts:
        folder = cache_folder() / entry.file
        for part in entry.parts:
            download(part, folder)
        return folder
    if entry.urls:
        return download(entry, cache_folder(), members)
    path = Path(entry.home) / entry.file
    if not path.is_file():
        raise DamagedError(f"{path}: missing from the installation; install {entry.package} again")
    digest = file_sha256(path)
    if digest != entry.sha256:
        raise DamagedError(
            f"{path}: damaged (expected SHA-256 {entry.sha256}, got {digest}); "
            f"install {entry.package} again"
        )
    return path


def download(entry: SourceEntry | Part, folder: Path, members: tuple[str, ...] = ()) -> Path:
    """Download a file from the first mirror that has it, and check it, or its members.

    An interrupted download is resumed, also from another mirror.
    """
    failures = []
    of_members = isinstance(entry, SourceEntry) and entry.of_members
    for url in entry.urls:
        # If all mirrors have the same file, one can resume what another has begun.
        key = hashlib.sha256(url.encode()).hexdigest() if of_members else entry.sha256
        try:
            path = pooch.retrieve(
                url,
                known_hash=None if of_members else f"sha256:{entry.sha256}",
                fname=entry.file,
                path=folder,
                downloader=partial(_resume_download, folder / f"{key}.part"),
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
    """Delete a file and raise `ValueError` unless it is an archive of the expected files."""
    try:
        digest = folder_sha256(path, members)
        if digest == expected:
            return
        problem = f"the files in it have SHA-256 {digest}, expected {expected}"
    except InputError as error:
        problem = str(error)
    path.unlink()
    raise ValueError(problem)


def _resume_download(part: Path, url: str, output_file: str | Path, _pooch: Any) -> None:
    """Download for pooch, beginning after the bytes that `part` has already (HTTP Range)."""
    have = part.stat().st_size if part.exists() else 0
    headers = {"Range": f"bytes={have}-"} if have else {}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - from sources.toml
    try:
        # urllib returns what arrived before a connection broke; requests drops it.
        with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310
            resumed = response.status == HTTPStatus.PARTIAL_CONTENT
            with part.open("ab" if resumed else "wb") as file:
                shutil.copyfileobj(response, file, length=2**20)
            expected = response.headers.get("Content-Length")
    except urllib.error.HTTPError as error:
        if error.code != HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise
        # All bytes are here already; the hash decides whether they are right.
    else:
        received = part.stat().st_size - (have if resumed else 0)
        if expected is not None and received < int(expected):
            raise ConnectionError(f"broke off after {received} of {expected} bytes")
    part.replace(output_file)
