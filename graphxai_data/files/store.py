"""A folder at an fsspec URL: files arrive whole, and only one build is published at a time.

A store needs nothing but put, get, copy, delete and list. Two publishers cannot mix their files:
each writes a mark of its own and then lists the marks of others. If they publish different builds,
at most one of them finds no other mark, because both marks were written before the later of the two
listed them. (fsspec's exclusive create is not atomic on most stores: on a local disk two threads
that called `pipe_file(…, mode="create")` at the same time both succeeded in 194 of 300 trials.)
"""

import hashlib
import logging
import random
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from graphxai_data.errors import GraphXAIDataError, InputError
from graphxai_data.files.hashing import file_sha256
from graphxai_data.files.urls import shown

log = logging.getLogger(__name__)

# Stores without real folders; making one there would create the bucket.
_FLAT = ("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oci", "oss", "memory")
_TRIES = 4  # to find no mark of another publisher


class StoreError(InputError):
    """A store cannot be used: it is unknown, cannot be reached, or refuses."""


class Store:
    """The folder of a build at a URL."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._fs, self._path = _file_system(url)

    def delete(self, name: str) -> None:
        """Delete a file."""
        self._fs.rm_file(f"{self._path}/{name}")

    def upload(self, file: Path, mark: str) -> None:
        """Write a file under a temporary key, check it there, then rename it."""
        from fsspec import AbstractFileSystem  # type: ignore[import-untyped]

        key, temporary = f"{self._path}/{file.name}", f"{mark}/{file.name}"
        if self._holds(key, file):
            return
        self._make_folder(mark)
        self._fs.put_file(str(file), temporary)
        if not self._holds(temporary, file):
            raise StoreError(
                f"{shown(self.url)}/{file.name}: did not arrive as it was sent; "
                "run the same command again"
            )
        if type(self._fs).mv is not AbstractFileSystem.mv:  # the store has a real rename
            self._fs.mv(temporary, key)
        else:
            self._fs.cp_file(temporary, key)
            self._fs.rm_file(temporary)

    def _holds(self, key: str, file: Path) -> bool:
        """Return whether the store has the content of `file` under a key."""
        self._fs.invalidate_cache()
        try:
            info = self._fs.info(key)
        except FileNotFoundError:
            return False
        if info["size"] != file.stat().st_size:
            return False
        # The ETag of S3 is the MD5 of objects uploaded in one part without a custom encryption key.
        with file.open("rb") as local:
            md5 = hashlib.file_digest(local, partial(hashlib.md5, usedforsecurity=False))
        if str(info.get("ETag")).strip('"') == md5.hexdigest():
            return True
        digest = hashlib.sha256()
        with self._fs.open(key, "rb") as stored:
            # Not `file_digest`: the files of some stores cannot `readinto`.
            while chunk := stored.read(1 << 22):
                digest.update(chunk)
        return digest.hexdigest() == file_sha256(file)

    @contextmanager
    def marked(self, content: bytes, last: str) -> Iterator[str]:
        """Hold the right to publish; yields the folder for temporary keys, which is the mark.

        Builds are the same if the file that is published last has the same content.
        """
        digest = hashlib.sha256(content).hexdigest()[:16]
        mark, held = f"{self._path}/.upload-{digest}-{secrets.token_hex(8)}", False
        try:
            for i in range(_TRIES):
                # Random back-off: two publishers that withdrew must not meet again.
                time.sleep(i * secrets.randbelow(500) / 1000)
                self._make_folder(mark)
                self._fs.pipe_file(f"{mark}/mark", content)
                others = [
                    name
                    for name in sorted(self.names())
                    if name.startswith(".upload-") and not name.startswith(f".upload-{digest}-")
                ]
                if not others:
                    break
                self.remove(mark)
            else:
                raise InputError(
                    f"{shown(self.url)}: another build is being published here; wait for it, or, "
                    f"if its process is dead, delete {shown(self.url)}/{others[0]}"
                )
            held = True
            yield mark
            # Also the marks of other publishers of this build: dead ones leave them, and a live one
            # finds everything published.
            for name in self.names():
                if name.startswith((f".upload-{digest}-", ".probe-")):
                    self.remove(f"{self._path}/{name}")
        except Exception:
            # A publisher of the same build that finishes first deletes our mark and all keys in it.
            if not held or self._exists(f"{mark}/mark") or self.read(last) != content:
                raise
            log.info("%s was published by another process", shown(self.url))
        finally:
            with suppress(Exception):
                self.remove(mark)

    def _exists(self, key: str) -> bool:
        self._fs.invalidate_cache()
        return bool(self._fs.exists(key))

    def names(self) -> list[str]:
        """Return the names of the files and folders directly in the folder."""
        self._fs.invalidate_cache()
        with suppress(FileNotFoundError):
            return [PurePosixPath(path).name for path in self._fs.ls(self._path, detail=False)]
        return []

    def remove(self, folder: str) -> None:
        """Delete a key, or a folder with everything in it, if it exists."""
        self._fs.invalidate_cache()
        with suppress(FileNotFoundError):
            self._fs.rm(folder, recursive=True)

    def _make_folder(self, folder: str) -> None:
        protocols = self._fs.protocol
        if not set([protocols] if isinstance(protocols, str) else protocols) & set(_FLAT):
            self._fs.makedirs(folder, exist_ok=True)

    def probe(self) -> None:
        """Raise `StoreError` if nothing can be written."""
        with self.explained():
            self._make_folder(self._path)
            key = f"{self._path}/.probe-{secrets.token_hex(8)}"
            self._fs.pipe_file(key, b"graphxai-data")
            self.remove(key)

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, or None if it does not exist."""
        with self.explained():
            self._fs.invalidate_cache()
            try:
                return bytes(self._fs.cat_file(f"{self._path}/{name}"))
            except FileNotFoundError as error:
                if "bucket does not exist" in str(error):
                    raise
                return None

    def get(self, name: str, path: Path) -> bool:
        """Download a file; return False if it does not exist."""
        with self.explained():
            try:
                self._fs.get_file(f"{self._path}/{name}", str(path))
            except FileNotFoundError:
                path.unlink(missing_ok=True)
                return False
            return True

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn whatever a store raises into a `StoreError` of one line."""
        # Some stores draw waiting times from the global generator; the caller's must not change.
        state = random.getstate()
        try:
            yield
        except GraphXAIDataError:
            raise
        except Exception as error:  # every store has its own exceptions
            raise StoreError(f"{shown(self.url)}: {_reason(error)}") from None
        finally:
            random.setstate(state)


def _file_system(url: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs  # type: ignore[import-untyped]
    except ImportError:
        raise StoreError(
            f"{shown(url)}: URLs need an extra: pip install 'graphxai-data[remote]'"
        ) from None
    try:
        fs, path = url_to_fs(url)
    except ImportError as error:
        raise StoreError(
            f"{shown(url)}: {error} (graphxai-data[remote] has what s3:// needs)"
        ) from None
    except Exception as error:  # an unknown protocol or option
        raise StoreError(
            f"{shown(url)}: {_reason(error)}; expected a folder, or a URL that fsspec knows, such "
            "as s3://bucket/folder"
        ) from None
    return fs, str(path).rstrip("/")


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    name = type(error).__name__
    if isinstance(error, PermissionError) or "Credentials" in name or "Token" in name:
        return f"no permission ({text}); check the credentials that fsspec finds"
    if isinstance(error, FileNotFoundError):
        return f"not found ({text}); check the bucket, or make it first"
    if isinstance(error, OSError | TimeoutError) or "Connection" in name or "Timeout" in name:
        return f"cannot be reached ({text}); check the network and the endpoint"
    return text
