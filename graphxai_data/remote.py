"""Builds at a URL: made, and read, in a local cache; published whole, the manifest last.

A build becomes visible with its `manifest.json`, which is written when everything else is there and
checked; so a reader sees all of a build or none.
"""

import hashlib
import logging
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from graphxai_data.errors import DamagedError, GraphXAIDataError, InputError
from graphxai_data.files.disk import (
    explained_disk_errors,
    finish_replacing,
    folder_lock,
    publish,
    write_atomically,
)
from graphxai_data.files.hashing import file_sha256
from graphxai_data.files.shipped import cache_folder
from graphxai_data.files.store import Store
from graphxai_data.files.urls import inside, is_url, local_path, shown
from graphxai_data.manifest import EXTRAS, MANIFEST_NAME, Manifest, ShardEntry

log = logging.getLogger(__name__)

_STREAMS = 8  # files under way at a time: a store answers slowly, but many at once
_TRIES = 4  # to read a build that is replaced meanwhile
_CHUNK = 1 << 22
_CACHE = "$GRAPHXAI_DATA_CACHE"


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
        self._store = Store(self.url)
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
        return self._store.read(MANIFEST_NAME) is not None

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
                content = self._store.read(MANIFEST_NAME)
                if content is None:
                    raise InputError(
                        f"{self.folder}: not a graphxai-data build (no {MANIFEST_NAME} there); "
                        "give the URL that `graphxai-data build` printed"
                    )
                try:
                    self._fetch(content, extras, fresh)
                except DamagedError:
                    if self._store.read(MANIFEST_NAME) == content:
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
        if not self._store.get(entry.name, temporary):
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
        if self._store.get(path.name, temporary):
            temporary.replace(path)
        else:
            path.unlink(missing_ok=True)

    def probe(self) -> None:
        """An error unless something can be written there."""
        self._store.probe()

    def strays(self) -> list[str]:
        """Sentences about shards at the URL that the manifest does not list."""
        listed = {entry.name for entry in Manifest.load(self.folder).shards}
        found = (name for name in self._store.names() if re.fullmatch(r"shard-\d+\.h5", name))
        return [
            f"{shown(self.url)}/{name}: not listed in {MANIFEST_NAME}"
            for name in sorted(set(found) - listed)
        ]

    # Publishing

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
            with self._store.explained(), self._store.marked(content, MANIFEST_NAME) as mark:
                there = self._store.read(MANIFEST_NAME)
                if there not in (None, content) and replace_existing:
                    self._store.delete(MANIFEST_NAME)
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
                _all(lambda file: self._store.upload(file, mark), [f for f in files if f != last])
                if names is None:
                    ours = {file.name for file in files}
                    for name in self._store.names():
                        if re.fullmatch(r"shard-\d+\.h5", name) and name not in ours:
                            self._store.delete(name)
                    self._store.upload(last, mark)


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
