"""Builds at a URL: made, and read, in a local cache; published whole, the manifest last.

What a store has to do is little: put, get, copy, delete and list. A build becomes visible with its
`manifest.json`, which is written when everything else is there and checked; so a reader sees all of
a build or none. Two publishers cannot mix their files: each leaves a mark of its own, and then
looks for the marks of others. Of two that want different builds at most one finds none, because the
later of the two marks was written before its owner looked.
"""

import hashlib
import logging
import random
import re
import secrets
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from graphxai_data.disk import (
    explained_disk_errors,
    finish_replacing,
    folder_lock,
    publish,
    write_atomically,
)
from graphxai_data.errors import DamagedError, GraphXAIDataError, InputError
from graphxai_data.manifest import MANIFEST_NAME, Manifest, ShardEntry
from graphxai_data.order import Order, difference
from graphxai_data.report.cards import PICTURE_NAME
from graphxai_data.report.rings_plot import PLOT_NAME
from graphxai_data.rings.verdict import RINGS_NAME
from graphxai_data.sources import cache_folder, file_sha256
from graphxai_data.urls import inside, is_url, local_path, shown

log = logging.getLogger(__name__)

# What a build may have beside manifest and shards; small, and read anew whenever it is wanted.
EXTRAS = ("README.md", "croissant.json", RINGS_NAME, PLOT_NAME, PICTURE_NAME)
# Stores whose folders exist as soon as something is in them. On others they have to be made; here
# that must not be tried, since it would make the bucket.
_FLAT = ("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oci", "oss", "memory")
_STREAMS = 8  # files under way at a time: a store answers slowly, but many at once
_TRIES = 4  # to find no mark of another publisher
_CHUNK = 1 << 22
_CACHE = "$GRAPHXAI_DATA_CACHE"


class StoreError(InputError):
    """A store cannot be used: unknown, out of reach, or it refuses."""


class RemoteBuild:
    """One build at a URL, and its copy in the cache.

    Args:
        url: of the build folder.

    Attributes:
        url: the same.
        folder: of the copy; `<cache>/remote/<key of the root>/<dataset>/seed-<seed>`.
    """

    def __init__(self, url: str) -> None:
        self.url = str(inside(url))
        self._fs, self._path = _file_system(self.url)
        root, dataset, name = self.url.rsplit("/", 2)
        key = hashlib.sha256(root.encode()).hexdigest()[:16]
        self.folder = cache_folder() / "remote" / key / _file_name(dataset) / _file_name(name)

    @classmethod
    def at(cls, root: str, dataset: str, seed: int) -> "RemoteBuild":
        """The build of a dataset below the URL of a root."""
        return cls(str(inside(root, dataset, f"seed-{seed}")))

    @property
    def root(self) -> Path:
        """The folder in the cache that stands for the root at the URL."""
        return self.folder.parent.parent

    def exists(self) -> bool:
        """Whether a whole build is published."""
        return self._manifest() is not None

    @contextmanager
    def named(self) -> Iterator[None]:
        """Errors inside name the URL, not the copy in the cache."""
        try:
            yield
        except GraphXAIDataError as error:
            raise type(error)(self.by_url(str(error))) from None

    def by_url(self, text: str) -> str:
        """A message with the URL instead of the copy in the cache."""
        staged = re.escape(str(self.folder.parent)) + rf"/\.{re.escape(self.folder.name)}\.\w+"
        text = re.sub(staged + r"\.(fetching|partial)", lambda _: shown(self.url), text)
        return text.replace(str(self.folder), shown(self.url))

    # Reading

    def fetch(self, *, extras: bool = True, fresh: bool = False) -> Path:
        """The folder of the copy, with everything in it checked against the manifest.

        Args:
            extras: cards and measurements, too, not only manifest and shards.
            fresh: read every shard from the store, also those that are in the cache.

        Raises:
            InputError: there is no build.
            DamagedError: a shard is missing, or not the one that the manifest names.
        """
        with (
            self.named(),
            explained_disk_errors(self.folder, _CACHE, "the fetched shards"),
            folder_lock(self.folder, wait=True, work="reading", option=_CACHE),
        ):
            finish_replacing(self.folder)
            for _ in range(_TRIES):
                content = self._manifest()
                if content is None:
                    raise InputError(
                        f"{self.folder}: not a graphxai-data build (no {MANIFEST_NAME} there); "
                        "give the URL that `graphxai-data build` printed"
                    )
                try:
                    self._fetch(content, extras, fresh)
                except DamagedError:
                    if self._manifest() == content:
                        raise
                    continue  # it was replaced while it was read
                return self.folder
            raise DamagedError(f"{self.folder}: is replaced again and again; read it later")

    def _fetch(self, content: bytes, extras: bool, fresh: bool) -> None:
        copy = self.folder
        cached = copy / MANIFEST_NAME
        same = cached.is_file() and cached.read_bytes() == content
        if not same:
            digest = hashlib.sha256(content).hexdigest()
            copy = self.folder.with_name(f".{self.folder.name}.{digest[:16]}.fetching")
            copy.mkdir(parents=True, exist_ok=True)
            write_atomically(copy / MANIFEST_NAME, content)
        entries = Manifest.load(copy).shards
        _all(lambda entry: self._fetch_shard(entry, copy, fresh), entries)
        if extras:
            _all(lambda name: self._fetch_extra(copy / name), EXTRAS)
        if not same:
            publish(copy, self.folder)

    def _fetch_shard(self, entry: ShardEntry, copy: Path, fresh: bool) -> None:
        path = copy / entry.name
        if not fresh and path.is_file() and _crc32(path) == entry.file_crc32:
            return
        temporary = path.with_name(f".{path.name}.tmp")
        if not self._get(entry.name, temporary):
            raise DamagedError(
                f"{self.folder}/{entry.name}: no such shard; delete the build there and build again"
            )
        found = file_sha256(temporary)
        if found != entry.file_sha256:
            temporary.unlink()
            raise DamagedError(
                f"{self.folder}/{entry.name}: damaged (expected SHA-256 {entry.file_sha256}, got "
                f"{found}); delete the build there and build again"
            )
        temporary.replace(path)

    def _fetch_extra(self, path: Path) -> None:
        temporary = path.with_name(f".{path.name}.tmp")
        if self._get(path.name, temporary):
            temporary.replace(path)
        else:
            path.unlink(missing_ok=True)

    def strays(self) -> list[str]:
        """Sentences about shards at the URL that the manifest does not list."""
        listed = {entry.name for entry in Manifest.load(self.folder).shards}
        found = (name for name in self._names() if re.fullmatch(r"shard-\d+\.h5", name))
        return [
            f"{shown(self.url)}/{name}: not listed in {MANIFEST_NAME}"
            for name in sorted(set(found) - listed)
        ]

    # Building and publishing

    def built(
        self, order: Order, make: Callable[[bool], Manifest], replace_existing: bool
    ) -> Manifest:
        """Build in the cache and publish, or keep what is published if it is the same and whole.

        Args:
            order: what is asked for.
            make: builds into `root`; with True, also where something else is.
            replace_existing: publish anew, whatever is there.
        """
        with self.named():
            if self.exists() and not replace_existing:
                measured = (self.fetch() / RINGS_NAME).exists()
                manifest = make(False)
                if not measured:
                    self._complete(manifest)
                return manifest
            # Before hours of work: may anything be written there?
            self._probe()
            manifest = make(replace_existing or not self._begun(order))
            self.publish(manifest, replace_existing=replace_existing)
            return manifest

    def _begun(self, order: Order) -> bool:
        """Whether what the cache has, whole or not, is of this order: an upload that broke off."""
        from graphxai_data.verify import verify

        if not self.folder.exists():
            return True
        try:
            return difference(Manifest.load(self.folder), order) is None and not verify(self.folder)
        except GraphXAIDataError as error:
            log.info("made again: %s", error)
            return False

    def _complete(self, manifest: Manifest) -> None:
        """Publish what was measured just now of a build that was there without."""
        try:
            self.publish(manifest, EXTRAS)
        except StoreError as error:  # as in a folder that one may only read
            log.warning("not published: %s", error)

    def publish(
        self,
        manifest: Manifest,
        names: Iterable[str] | None = None,
        replace_existing: bool = False,
    ) -> None:
        """Upload the copy in the cache; the manifest last.

        Args:
            manifest: of the build that is meant.
            names: of single files of a build that is published already; all if None.
            replace_existing: take another build away first. Readers then find none for a while.

        Raises:
            InputError: another build is there, or being published.
            StoreError: the store refuses, or is out of reach. Nothing is visible then; the same
                command again goes on from what was uploaded.
        """
        with self.named(), folder_lock(self.folder, wait=True, work="building", option="--root"):
            content = (self.folder / MANIFEST_NAME).read_bytes()
            if Manifest.load(self.folder) != manifest:
                raise InputError(
                    f"{self.folder}: another process has built something else here meanwhile; run "
                    "the same command again"
                )
            with self._explained(), self._marked(content) as mark:
                there = self._manifest()
                if there not in (None, content) and replace_existing:
                    self._fs.rm_file(f"{self._path}/{MANIFEST_NAME}")
                elif there not in (None, content):
                    raise InputError(
                        f"{self.folder}: another build has been published here meanwhile; run the "
                        "same command again"
                    )
                if names is None:
                    files = [f for f in self.folder.iterdir() if not f.name.startswith(".")]
                else:
                    files = [f for n in names if (f := self.folder / n).is_file()]
                last = self.folder / MANIFEST_NAME
                _all(lambda file: self._upload(file, mark), [f for f in files if f != last])
                if names is None:
                    ours = {file.name for file in files}
                    for name in self._names():
                        if re.fullmatch(r"shard-\d+\.h5", name) and name not in ours:
                            self._fs.rm_file(f"{self._path}/{name}")
                    self._upload(last, mark)

    def _upload(self, file: Path, mark: str) -> None:
        """Put a file under a temporary key, check it there, then give it its name."""
        key, temporary = f"{self._path}/{file.name}", f"{mark}/{file.name}"
        if self._holds(key, file):
            return
        self._make_folder(mark)
        self._fs.put_file(str(file), temporary)
        if not self._holds(temporary, file):
            raise StoreError(
                f"{self.folder}/{file.name}: did not arrive as it was sent; "
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
    def _marked(self, content: bytes) -> Iterator[str]:
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
                self._remove(mark)
            else:
                raise InputError(
                    f"{self.folder}: another build is being published here; wait for it, or, if "
                    f"its process is dead, delete {shown(self.url)}/{others[0]}"
                )
            yield mark
            # Of publishers of the same build that were killed. One that is alive loses nothing: all
            # that it wants to publish is there.
            for name in self._names():
                if name.startswith((f".upload-{digest}-", ".probe-")):
                    self._remove(f"{self._path}/{name}")
        except GraphXAIDataError:
            raise
        except Exception:
            if self._manifest() != content:
                raise
            log.info("%s was published by another process", shown(self.url))
        finally:
            with suppress(Exception):
                self._remove(mark)

    def _marks(self) -> list[str]:
        return sorted(name for name in self._names() if name.startswith(".upload-"))

    def _names(self) -> list[str]:
        self._fs.invalidate_cache()
        try:
            return [
                path.rstrip("/").rsplit("/", 1)[-1]
                for path in self._fs.ls(self._path, detail=False)
            ]
        except FileNotFoundError:
            return []

    def _remove(self, folder: str) -> None:
        self._fs.invalidate_cache()
        with suppress(FileNotFoundError):
            self._fs.rm(folder, recursive=True)

    def _make_folder(self, folder: str) -> None:
        protocols = self._fs.protocol
        if not set([protocols] if isinstance(protocols, str) else protocols) & set(_FLAT):
            self._fs.makedirs(folder, exist_ok=True)

    def _probe(self) -> None:
        with self._explained():
            self._make_folder(self._path)
            key = f"{self._path}/.probe-{secrets.token_hex(8)}"
            self._fs.pipe_file(key, b"graphxai-data")
            self._remove(key)

    def _manifest(self) -> bytes | None:
        with self._explained():
            self._fs.invalidate_cache()
            try:
                return bytes(self._fs.cat_file(f"{self._path}/{MANIFEST_NAME}"))
            except FileNotFoundError as error:
                if "bucket does not exist" in str(error):  # nor is there anything else
                    raise
                return None

    def _get(self, name: str, path: Path) -> bool:
        """Fetch a file; False if there is none."""
        with self._explained():
            try:
                self._fs.get_file(f"{self._path}/{name}", str(path))
            except FileNotFoundError:
                path.unlink(missing_ok=True)
                return False
            return True

    @contextmanager
    def _explained(self) -> Iterator[None]:
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


@contextmanager
def opened(place: str | Path, *, extras: bool = True) -> Iterator[tuple[Path, RemoteBuild | None]]:
    """A build folder to read from, wherever it lies; at a URL, its copy, and what publishes it."""
    if not is_url(place):
        yield local_path(place), None
        return
    build = RemoteBuild(place)
    with build.named():
        yield build.fetch(extras=extras), build


def is_built(root: str | Path, dataset: str, seed: int) -> bool:
    """Whether a root, a folder or a URL, has a build of this dataset and seed."""
    if is_url(root):
        return RemoteBuild.at(root, dataset, seed).exists()
    return Path(inside(root, dataset, f"seed-{seed}")).exists()


def verified(url: str, verify: Callable[[Path], list[str]]) -> list[str]:
    """Problems of a build at a URL, every shard read from the store again."""
    build = RemoteBuild(url)
    try:
        with build.named():
            folder = build.fetch(fresh=True)
            return [build.by_url(problem) for problem in verify(folder)] + build.strays()
    except DamagedError as error:
        return [str(error)]


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


_EXTRA = "URLs need an extra: pip install 'graphxai-data[remote]'"


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


def _all(function: Callable[[Any], None], items: Iterable[Any]) -> None:
    """Apply a function to all items, some at a time; the first error ends it."""
    with ThreadPoolExecutor(_STREAMS) as pool:
        try:
            for _ in pool.map(function, items):
                pass
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _crc32(path: Path) -> int:
    value = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            value = zlib.crc32(chunk, value)
    return value


def _file_name(text: str) -> str:
    return re.sub(r"[^\w.-]|^\.+", "_", text) or "_"
