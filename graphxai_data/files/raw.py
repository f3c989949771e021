"""Raw input files: plain or gzipped, in a folder or a zip archive, with a limit on their size."""

import gzip
import io
import lzma
import re
import warnings
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

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
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as file:
            content = file.read(MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{where}: a damaged gzip file ({error}); get it again") from None
    if len(content) > MAX_BYTES:
        raise _too_large(where)
    return content


def read_member(path: Path, name: str) -> bytes:
    """Return the content of a file, gzipped (`<name>.gz`) or not, in a folder or zip archive."""
    return _read_from_zip(path, name) if path.is_file() else _read_from_folder(path, name)


def read_numbers(path: Path, name: str, columns: int) -> npt.NDArray[np.int64]:
    """Return the integers [lines, columns] of a comma-separated file in a folder or zip archive.

    TUDataset and OGB have such files. Raises `InputError` if it has no lines, or a line is anything
    else than `columns` integers.
    """
    content = read_member(path, name).rstrip()
    if not content:
        raise InputError(f"{path}: {name}: has no lines; is it truncated?")
    try:
        # NumPy before 2.0 reads "1.5" as the integer 1, with no more than a warning.
        with warnings.catch_warnings(action="error"):
            values = np.loadtxt(
                io.BytesIO(content), np.int64, comments=None, delimiter=",", ndmin=2,
                encoding="utf-8",
            )  # fmt: skip
    except (ValueError, Warning):
        raise _wrong_line(content, columns, f"{path}: {name}") from None
    # A blank line is skipped by NumPy.
    if values.shape != (content.count(b"\n") + 1, columns):
        raise _wrong_line(content, columns, f"{path}: {name}")
    return values


def _wrong_line(content: bytes, columns: int, where: str) -> InputError:
    """Return the error about the first line that does not have `columns` integers of 64 bits."""
    pattern = re.compile(b",".join([rb"[ \t]*[-+]?[0-9]{1,19}[ \t]*"] * columns) + rb"\r?")
    lines = content.split(b"\n")
    number = next(
        i
        for i, line in enumerate(lines)
        if not pattern.fullmatch(line)
        or any(not -(2**63) <= int(cell) < 2**63 for cell in line.split(b","))
    )
    shown = lines[number][:40].decode(errors="replace")
    expected = f"{columns} whole numbers, separated by commas" if columns > 1 else "a whole number"
    return InputError(f"{where}: line {number + 1}: expected {expected}, got {shown!r}")


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
