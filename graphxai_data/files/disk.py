"""Writing to disk: whole files only, one writer a folder, and errors that say what to do."""

import errno
import json
import os
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
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
    # Not in the lock file itself: some versions of filelock empty it before they know it is taken.
    owner = folder.with_name(f".{folder.name}.owner")
    try:
        with lock:
            _name_owner(owner)
            try:
                yield
            finally:
                with suppress(OSError):
                    owner.unlink()
    except Timeout:
        raise InputError(
            f"{folder}: another process is {work} here{_owner_in(owner)}; wait for it, or choose "
            f"another {option}"
        ) from None


def _name_owner(path: Path) -> None:
    """Write down whose lock it is: for people only, so never a reason to fail."""
    since = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
    owner = {"pid": os.getpid(), "host": socket.gethostname(), "since": since}
    with suppress(OSError):
        path.write_text(json.dumps(owner), encoding="utf-8")


def _owner_in(path: Path) -> str:
    """Whose lock it is, in words; empty where that is not known."""
    try:
        owner = json.loads(path.read_bytes()[:1000])
        pid, host, since = (str(owner[key])[:80] for key in ("pid", "host", "since"))
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return f" (process {pid} on {host}, since {since})"


def publish(staging: Path, folder: Path) -> None:
    """Give a finished folder its name; what had that name before goes when the new one is there."""
    if folder.exists():
        folder.rename(_replaced(folder))
    staging.rename(folder)
    finish_replacing(folder)


def finish_replacing(folder: Path) -> None:
    """Take away what `publish` replaced, or put it back if it was killed between two steps."""
    old, discarded = _replaced(folder), folder.with_name(f".{folder.name}.discarded")
    if discarded.exists():
        shutil.rmtree(discarded)
    if old.exists() and not folder.exists():
        old.rename(folder)
    elif old.is_symlink():
        old.unlink()
    elif old.exists():
        # Under another name first: what is put back is never something half taken away.
        old.rename(discarded)
        shutil.rmtree(discarded)


def _replaced(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.replaced")


def write_atomically(path: Path, content: bytes) -> None:
    """Write under a temporary name beside `path`, flush to disk, then rename.

    The name is that of this writer alone: of several at once, the last one's file stays, whole.
    """
    writer = f"{os.getpid()}-{threading.get_ident()}"
    temporary = path.with_name(f".{path.name}.{writer}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def sweep(folder: Path) -> None:
    """Take away what writers that were killed have left in a folder; its lock must be held."""
    for path in folder.glob(".*.tmp"):
        path.unlink(missing_ok=True)
