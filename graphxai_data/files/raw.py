"""Raw files as people have them: plain or gzipped, in a folder or a zip archive; never a bomb."""

import lzma
import re
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

from graphxai_data.errors import InputError

MAX_BYTES = 512 * 2**20
_NOT_ZERO = re.compile(rb"[^\0]")


@dataclass(frozen=True)
class Source:
    """A raw input that is here and is what it should be.

    Attributes:
        id: its name in `data/sources.toml`, or "user's file".
        path: where it lies.
        sha256: of its bytes; of a folder, as `folder_sha256` has it.
    """

    id: str
    path: Path
    sha256: str


def read_bytes(path: Path) -> bytes:
    """Content of a file, decompressed if it is gzipped."""
    if path.stat().st_size > MAX_BYTES:
        raise _too_large(str(path))
    return gunzipped(path.read_bytes(), str(path))


def gunzipped(raw: bytes, where: str) -> bytes:
    """The content, decompressed if it is gzipped; `where` is named in errors."""
    if raw[:2] != b"\x1f\x8b":
        return raw
    parts, room, at = [], MAX_BYTES + 1, 0
    try:
        while at < len(raw):  # one member after the other
            member = zlib.decompressobj(wbits=31)
            # The first in one piece, unlike the module gzip. What is behind the end of a member is
            # copied, so that many small ones are met with small pieces.
            piece = len(raw) if at == 0 else 1 << 10
            while not member.eof:
                if at == len(raw):
                    raise zlib.error("it ends before its content does")
                given = memoryview(raw)[at : at + piece]
                parts.append(member.decompress(given, room))
                room -= len(parts[-1])
                if not room:
                    raise _too_large(where)
                at += len(given) - len(member.unused_data)
                piece *= 2
            more = _NOT_ZERO.search(raw, at)  # some writers fill up with zeros
            at = more.start() if more else len(raw)
    except zlib.error as error:
        raise InputError(f"{where}: a damaged gzip file ({error})") from None
    return b"".join(parts)


def read_member(path: Path, name: str) -> bytes:
    """Content of one file of a source that is several: in a folder, or in a zip archive.

    The file may be gzipped, with `.gz` behind its name.
    """
    return _zipped(path, name) if path.is_file() else _in_folder(path, name)


def has_file(path: Path, name: str) -> bool:
    """Whether a folder or zip archive has such a file, gzipped or not."""
    if not path.is_file():
        return any((path / alias).is_file() for alias in (name, f"{name}.gz"))
    with _archive(path) as archive:
        return any(n == name or n.endswith(f"/{name}") for n in _plain_names(archive))


def _in_folder(folder: Path, name: str) -> bytes:
    folder, name = (folder / name).parent, Path(name).name
    try:
        there = sorted(path.name for path in folder.iterdir())
        alias = _alias(name, there, folder)
        if not (folder / alias).is_file():
            raise InputError(f"{folder / alias}: not a file")
        return read_bytes(folder / alias)
    except OSError as error:
        where = error.filename or folder
        raise InputError(f"{where}: cannot be read: {error.strerror}") from None


def _alias(name: str, there: list[str], where: Path) -> str:
    """The name that the file has here."""
    # Some copies of MNIST have a dot in the place of the second hyphen.
    for form in dict.fromkeys([name, name.replace("-idx", ".idx")]):
        for alias in (form, f"{form}.gz"):
            if alias in there:
                return alias
    shown = ", ".join(there[:6]) + (", …" if there[6:] else "") if there else "nothing"
    raise InputError(f"{where}: no file {name} (or {name}.gz) in it; it has {shown}")


# What zipfile raises for archives that are damaged, encrypted, or of a kind it does not know.
_ZIP_ERRORS = (
    zipfile.BadZipFile, OSError, EOFError, zlib.error, lzma.LZMAError, NotImplementedError,
    RuntimeError, ValueError, OverflowError, MemoryError,
)  # fmt: skip


def _archive(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except _ZIP_ERRORS as error:
        raise InputError(f"{path}: neither a folder nor a readable zip archive ({error})") from None


def _plain_names(archive: zipfile.ZipFile) -> list[str]:
    """Names without `.gz`, and without the shadow copies that archives of macOS have."""
    names = (name.removesuffix(".gz") for name in archive.namelist())
    return [name for name in names if not name.startswith("__MACOSX/")]


def _zipped(path: Path, name: str) -> bytes:
    with _archive(path) as archive:
        # Members are asked for by name and read into memory: what else the archive holds, and
        # wherever it would unpack to, does not matter.
        there = archive.namelist()
        # In some archives all files lie in one folder.
        plain = _plain_names(archive)
        folders = {n.removesuffix(name) for n in plain if n.endswith(f"/{name}")}
        if name not in there and len(folders) == 1:
            name = f"{folders.pop()}{name}"
        alias = _alias(name, there, path)
        try:
            with archive.open(alias) as file:
                content = file.read(MAX_BYTES + 1)
        except _ZIP_ERRORS as error:
            raise InputError(f"{path}: {alias}: cannot be read ({error})") from None
    if len(content) > MAX_BYTES:
        raise _too_large(f"{path}: {alias}")
    return gunzipped(content, f"{path}: {alias}")


def _too_large(where: str) -> InputError:
    return InputError(f"{where}: more than {MAX_BYTES >> 20} MiB; take a part of it")
