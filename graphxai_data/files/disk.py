"""Writing to disk: atomic writes, one writer per folder, and errors that say what to do."""

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


class DiskFullError(GraphXAIDataError):
    """The disk is full; finished parts are kept."""


@contextmanager
def explained_disk_errors(
    folder: Path, option: str = "--root", parts: str = "the finished shards"
) -> Iterator[None]:
    """Turn an `OSError` into an `InputError` or `DiskFullError` of one line.

    It names the option that chooses another folder, or the parts that a second run continues from.
    """
    try:
        yield
    except OSError as error:
        where = error.filename or folder
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise DiskFullError(
                f"{where}: {os.strerror(error.errno)}; make room and run the same command again, "
                f"it goes on from {parts}"
            ) from None
        raise InputError(
            f"{where}: {error.strerror or error}; choose a {option} that you can write to"
        ) from None


@contextmanager
def folder_lock(
    folder: Path, wait: bool, work: str = "building", option: str = "--root"
) -> Iterator[None]:
    """Hold the lock of a folder; the operating system releases it when the process dies.

    If another process holds it: wait, or raise an `InputError` that names its work and the option.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder.with_name(f".{folder.name}.lock"), timeout=-1 if wait else 0)
    # Not in the lock file: some versions of filelock truncate it before they have the lock.
    owner = folder.with_name(f".{folder.name}.owner")
    try:
        with lock:
            _write_owner(owner)
            try:
                yield
            finally:
                with suppress(OSError):
                    owner.unlink()
    except Timeout:
        raise InputError(
            f"{folder}: another process is {work} here{_describe_owner(owner)}; wait for it, or "
            f"choose another {option}"
        ) from None


def _write_owner(path: Path) -> None:
    """Write who holds the lock, for error messages only: a failure is ignored."""
    since = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
    owner = {"pid": os.getpid(), "host": socket.gethostname(), "since": since}
    with suppress(OSError):
        path.write_text(json.dumps(owner), encoding="utf-8")


def _describe_owner(path: Path) -> str:
    """Return who holds the lock, or an empty text if that is not known."""
    try:
        owner = json.loads(path.read_bytes()[:1000])
        pid, host, since = (str(owner[key])[:80] for key in ("pid", "host", "since"))
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return f" (process {pid} on {host}, since {since})"


def publish(staging: Path, folder: Path) -> None:
    """Rename a finished folder to its final name, and then delete the folder it replaces."""
    if folder.exists():
        folder.rename(_replaced(folder))
    staging.rename(folder)
    finish_replacing(folder)


def finish_replacing(folder: Path) -> None:
    """Complete or undo a `publish` that was killed between two of its steps."""
    old, discarded = _replaced(folder), folder.with_name(f".{folder.name}.discarded")
    if discarded.exists():
        shutil.rmtree(discarded)
    if old.exists() and not folder.exists():
        old.rename(folder)
    elif old.is_symlink():
        old.unlink()
    elif old.exists():
        # Rename before deleting: a crash never restores half a build.
        old.rename(discarded)
        shutil.rmtree(discarded)


def _replaced(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.replaced")


def write_atomically(path: Path, content: bytes) -> None:
    """Write to a temporary file next to `path`, flush it to disk, then rename it.

    Every writer has its own temporary file: if several write at once, the last one wins.
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
    """Delete temporary files that killed writers have left; the folder's lock must be held."""
    for path in folder.glob(".*.tmp"):
        path.unlink(missing_ok=True)
