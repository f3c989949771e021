"""A folder at an fsspec URL: what is put there arrives whole, and one publisher writes at a time.

What a store has to do is little: put, get, copy, delete and list. Two publishers cannot mix their
files: each leaves a mark of its own, and then looks for the marks of others. Of two that want
different builds at most one finds none, because the later of the two marks was written before its
owner looked.
"""

import hashlib
import logging
import random
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from graphxai_data.errors import GraphXAIDataError, InputError
from graphxai_data.files.urls import shown

log = logging.getLogger(__name__)

# Stores whose folders exist as soon as something is in them. On others they have to be made; here
# that must not be tried, since it would make the bucket.
_FLAT = ("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oci", "oss", "memory")
_TRIES = 4  # to find no mark of another publisher
_CHUNK = 1 << 22
_EXTRA = "URLs need an extra: pip install 'graphxai-data[remote]'"


class StoreError(InputError):
    """A store cannot be used: unknown, out of reach, or it refuses."""


class Store:
    """The folder of a build at a URL.

    Args:
        url: of the folder.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._fs, self._path = _file_system(url)

    def delete(self, name: str) -> None:
        """Take a file away."""
        self._fs.rm_file(f"{self._path}/{name}")

    def upload(self, file: Path, mark: str) -> None:
        """Put a file under a temporary key, check it there, then give it its name."""
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
        if type(self._fs).mv is not _plain_mv():  # a rename, where the store has one
            self._fs.mv(temporary, key)
        else:
            self._fs.cp_file(temporary, key)
            self._fs.rm_file(temporary)

    def _holds(self, key: str, file: Path) -> bool:
        """Whether the store has this very content under a key."""
        self._fs.invalidate_cache()
        try:
            about = self._fs.info(key)
        except FileNotFoundError:
            return False
        if about["size"] != file.stat().st_size:
            return False
        content = file.read_bytes()
        # S3 tells the MD5 of what came in one piece and is not encrypted with a key of one's own.
        if (
            str(about.get("ETag")).strip('"')
            == hashlib.md5(content, usedforsecurity=False).hexdigest()
        ):
            return True
        digest = hashlib.sha256()
        with self._fs.open(key, "rb") as stored:
            while chunk := stored.read(_CHUNK):
                digest.update(chunk)
        return digest.digest() == hashlib.sha256(content).digest()

    @contextmanager
    def marked(self, content: bytes, last: str) -> Iterator[str]:
        """Hold the right to publish; gives the folder of temporary keys, whose name is the mark."""
        digest = hashlib.sha256(content).hexdigest()[:16]
        mark = f"{self._path}/.upload-{digest}-{secrets.token_hex(8)}"
        try:
            for i in range(_TRIES):
                # Both may have stepped back: not again at the same time.
                time.sleep(i * secrets.randbelow(500) / 1000)
                self._make_folder(mark)
                self._fs.pipe_file(f"{mark}/mark", content)
                others = [n for n in self._marks() if not n.startswith(f".upload-{digest}-")]
                if not others:
                    break
                self.remove(mark)
            else:
                raise InputError(
                    f"{shown(self.url)}: another build is being published here; wait for it, or, "
                    f"if its process is dead, delete {shown(self.url)}/{others[0]}"
                )
            yield mark
            # Of publishers of the same build that were killed. One that is alive loses nothing: all
            # that it wants to publish is there.
            for name in self.names():
                if name.startswith((f".upload-{digest}-", ".probe-")):
                    self.remove(f"{self._path}/{name}")
        except GraphXAIDataError:
            raise
        except Exception:  # such as a key that a publisher of the same build took away meanwhile
            if self.read(last) != content:
                raise
            log.info("%s was published by another process", shown(self.url))
        finally:
            with suppress(Exception):
                self.remove(mark)

    def _marks(self) -> list[str]:
        return sorted(name for name in self.names() if name.startswith(".upload-"))

    def names(self) -> list[str]:
        """What lies directly in the folder."""
        self._fs.invalidate_cache()
        try:
            return [
                path.rstrip("/").rsplit("/", 1)[-1]
                for path in self._fs.ls(self._path, detail=False)
            ]
        except FileNotFoundError:
            return []

    def remove(self, folder: str) -> None:
        """Delete a key, or a folder with all that is in it, if it is there."""
        self._fs.invalidate_cache()
        with suppress(FileNotFoundError):
            self._fs.rm(folder, recursive=True)

    def _make_folder(self, folder: str) -> None:
        protocols = self._fs.protocol
        if not set([protocols] if isinstance(protocols, str) else protocols) & set(_FLAT):
            self._fs.makedirs(folder, exist_ok=True)

    def probe(self) -> None:
        """An error unless something can be written."""
        with self.explained():
            self._make_folder(self._path)
            key = f"{self._path}/.probe-{secrets.token_hex(8)}"
            self._fs.pipe_file(key, b"graphxai-data")
            self.remove(key)

    def read(self, name: str) -> bytes | None:
        """Content of a file, or None if there is none."""
        with self.explained():
            self._fs.invalidate_cache()
            try:
                return bytes(self._fs.cat_file(f"{self._path}/{name}"))
            except FileNotFoundError as error:
                if "bucket does not exist" in str(error):  # nor is there anything else
                    raise
                return None

    def get(self, name: str, path: Path) -> bool:
        """Fetch a file; False if there is none."""
        with self.explained():
            try:
                self._fs.get_file(f"{self._path}/{name}", str(path))
            except FileNotFoundError:
                path.unlink(missing_ok=True)
                return False
            return True

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Whatever a store raises, as one clear line."""
        # Some stores draw waiting times from the global generator; the caller shall not notice.
        state = random.getstate()
        try:
            yield
        except GraphXAIDataError:
            raise
        except Exception as error:  # every store has its own
            raise StoreError(f"{shown(self.url)}: {_reason(error)}") from None
        finally:
            random.setstate(state)


def _file_system(url: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs  # type: ignore[import-untyped]
    except ImportError:
        raise StoreError(f"{shown(url)}: {_EXTRA}") from None
    try:
        fs, path = url_to_fs(url)
    except ImportError as error:
        raise StoreError(
            f"{shown(url)}: {error} (graphxai-data[remote] has what s3:// needs)"
        ) from None
    except Exception as error:  # an unknown protocol, or options that a store does not take
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


def _plain_mv() -> Any:
    from fsspec import AbstractFileSystem  # type: ignore[import-untyped]

    return AbstractFileSystem.mv
