"""Raw input files: plain or gzipped, in a folder or a zip archive, with a limit on their size."""

import gzip
import io
import lzma
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

from graphxai_data.errors import InputError

MAX_BYTES = 512 * 2**20


@dataclass(frozen=True)
class Source:
    """A raw input that is on this machine and has been checked: a file, folder or zip archive."""

    id: str  # in `data/sources.toml`, or "user's file"
    path: Path
    sha256: str  # of the file's bytes; of a folder, see `folder_sha256`


def read_bytes(path: Path) -> bytes:
    """Return the content of a file, decompressed if it is gzipped."""
    if path.stat().st_size > MAX_BYTES:
        raise _too_large(str(path))
    return gunzipped(path.read_bytes(), str(path))


def gunzipped(raw: bytes, where: str) -> bytes:
    """Return the content, decompressed if it is gzipped; errors name `where`."""
    if raw[:2] != b"\x1f\x8b":
        return raw
    try:
        pieces, room = [], MAX_BYTES + 1
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as file:
            # In pieces: `read(n)` allocates n bytes, however small the file is.
            while room and (piece := file.read(min(room, 1 << 20))):
                pieces.append(piece)
                room -= len(piece)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{where}: a damaged gzip file ({error}); get it again") from None
    if not room:
        raise _too_large(where)
    return b"".join(pieces)


def read_member(path: Path, name: str) -> bytes:
    """Return the content of a file, gzipped (`<name>.gz`) or not, in a folder or zip archive."""
    return _read_from_zip(path, name) if path.is_file() else _read_from_folder(path, name)


def has_file(path: Path, name: str) -> bool:
    """Return whether a folder or zip archive has this file, gzipped or not."""
    if not path.is_file():
        return any((path / alias).is_file() for alias in (name, f"{name}.gz"))
    with _open_zip(path) as archive:
        return any(n == name or n.endswith(f"/{name}") for n in _plain_names(archive))


def _read_from_folder(folder: Path, name: str) -> bytes:
    folder, name = (folder / name).parent, Path(name).name
    try:
        alias = _alias(name, sorted(path.name for path in folder.iterdir()), folder)
        if not (folder / alias).is_file():
            raise InputError(f"{folder / alias}: not a file")
        return read_bytes(folder / alias)
    except OSError as error:
        where = error.filename or folder
        raise InputError(f"{where}: cannot be read: {error.strerror}") from None


def _alias(name: str, names: list[str], where: Path) -> str:
    """Return the form of a name that is among the existing names."""
    # Some copies of MNIST have a dot in place of the second hyphen.
    for form in dict.fromkeys([name, name.replace("-idx", ".idx")]):
        for alias in (form, f"{form}.gz"):
            if alias in names:
                return alias
    shown = ", ".join(names[:6]) + (", …" if names[6:] else "") if names else "nothing"
    raise InputError(f"{where}: no file {name} (or {name}.gz) in it; it has {shown}")


# What zipfile raises for archives that are damaged, encrypted, or of an unknown kind.
_ZIP_ERRORS = (
    zipfile.BadZipFile, OSError, EOFError, zlib.error, lzma.LZMAError, NotImplementedError,
    RuntimeError, ValueError, OverflowError, MemoryError,
)  # fmt: skip


def _open_zip(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except _ZIP_ERRORS as error:
        raise InputError(f"{path}: neither a folder nor a readable zip archive ({error})") from None


def _plain_names(archive: zipfile.ZipFile) -> list[str]:
    """Return the names without `.gz`, and without the resource forks that macOS adds."""
    names = (name.removesuffix(".gz") for name in archive.namelist())
    return [name for name in names if not name.startswith("__MACOSX/")]


def _read_from_zip(path: Path, name: str) -> bytes:
    # Members are read into memory by name: nothing is ever unpacked to a path of the archive.
    with _open_zip(path) as archive:
        names = archive.namelist()
        # Some archives have all files in one folder.
        folders = {n.removesuffix(name) for n in _plain_names(archive) if n.endswith(f"/{name}")}
        if name not in names and len(folders) == 1:
            name = f"{folders.pop()}{name}"
        alias = _alias(name, names, path)
        try:
            with archive.open(alias) as file:
                content = file.read(MAX_BYTES + 1)
        except _ZIP_ERRORS as error:
            raise InputError(f"{path}: {alias}: cannot be read ({error})") from None
    if len(content) > MAX_BYTES:
        raise _too_large(f"{path}: {alias}")
    return gunzipped(content, f"{path}: {alias}")


def _too_large(where: str) -> InputError:
    return InputError(f"{where}: more than {MAX_BYTES >> 20} MiB; use a part of it")
