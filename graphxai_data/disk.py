"""Writing to disk: whole files only, one writer a folder, and errors that say what to do."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from graphxai_data.errors import GraphXAIDataError, InputError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class DiskFullError(GraphXAIDataError):
    """There is no room left; what was finished before is kept."""


@contextmanager
def explained_disk_errors(
    folder: Path, option: str = "--root", parts: str = "the finished shards"
) -> Iterator[None]:
    """Turn operating-system errors under `folder` into one clear line.

    Args:
        folder: where the work is done.
        option: of the command line, to choose another folder by.
        parts: what the same command would go on from.
    """
    try:
        yield
    except OSError as error:
        place = error.filename or folder
        if error.errno in _FULL:
            raise DiskFullError(
                f"{place}: {os.strerror(error.errno)}; make room and run the same command again, "
                f"it goes on from {parts}"
            ) from None
        raise InputError(
            f"{place}: {error.strerror or error}; choose a {option} that you can write to"
        ) from None


@contextmanager
def folder_lock(
    folder: Path, wait: bool, work: str = "building", option: str = "--root"
) -> Iterator[None]:
    """One process at a time writes `folder`; a lock dies with its process, so none is ever stale.

    Args:
        folder: to be written; the lock stands beside it.
        wait: for another process to finish, instead of an error.
        work: what the processes do, for that error.
        option: of the command line, to choose another folder by.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder.with_name(f".{folder.name}.lock"), timeout=-1 if wait else 0)
    try:
        with lock:
            yield
    except Timeout:
        raise InputError(
            f"{folder}: another process is {work} here; wait for it, or choose another {option}"
        ) from None


def publish(staging: Path, folder: Path) -> None:
    """Give a finished folder its name; what had that name before goes when the new one is there."""
    if folder.exists():
        folder.rename(_replaced(folder))
    staging.rename(folder)
    finish_replacing(folder)


def finish_replacing(folder: Path) -> None:
    """Take away what `publish` replaced, or put it back if it was killed between two steps."""
    old = _replaced(folder)
    if old.exists() and not folder.exists():
        old.rename(folder)
    elif old.is_symlink():
        old.unlink()
    elif old.exists():
        shutil.rmtree(old)


def _replaced(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.replaced")


def write_atomically(path: Path, content: bytes) -> None:
    """Write under a temporary name beside `path`, flush to disk, then rename."""
    temporary = path.with_name(f".{path.name}.tmp")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
