"""Builds at a URL: made and read in a local cache, published with the manifest last.

A build is visible once its `manifest.json` exists, which is written after everything else was
uploaded and checked: a reader sees a complete build or none.
"""

import hashlib
import logging
import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from graphxai_data.errors import DamagedError, GraphXAIDataError, InputError
from graphxai_data.files import disk
from graphxai_data.files.hashing import file_crc32, file_sha256
from graphxai_data.files.shipped import cache_folder
from graphxai_data.files.store import Store
from graphxai_data.files.urls import inside, is_url, local_path, shown
from graphxai_data.manifest import EXTRAS, MANIFEST_NAME, Manifest, ShardEntry

log = logging.getLogger(__name__)

_STREAMS = 8  # concurrent transfers
_TRIES = 4  # to read a build that is being replaced
_SHARD = re.compile(r"shard-\d+\.h5")
_CACHE = "$GRAPHXAI_DATA_CACHE"


class RemoteBuild:
    """One build at a URL, and its copy in the cache.

    The `folder` of the copy is `<cache>/remote/<key of the root>/<dataset>/seed-<seed>`.
    """

    def __init__(self, url: str) -> None:
        self.url = str(inside(url))
        self.store = Store(self.url)
        root, dataset, name = self.url.rsplit("/", 2)
        key = hashlib.sha256(root.encode()).hexdigest()[:16]
        self.folder = cache_folder() / "remote" / key / _file_name(dataset) / _file_name(name)

    @classmethod
    def at(cls, root: str, dataset: str, seed: int) -> "RemoteBuild":
        """Return the build of a dataset under the URL of a root."""
        return cls(str(inside(root, dataset, f"seed-{seed}")))

    @property
    def root(self) -> Path:
        """The root folder in the cache."""
        return self.folder.parent.parent

    def exists(self) -> bool:
        """Return whether a build has been published."""
        return self.store.read(MANIFEST_NAME) is not None

    @contextmanager
    def named(self) -> Iterator[None]:
        """Make errors name the URL instead of the copy in the cache."""
        try:
            yield
        except GraphXAIDataError as error:
            raise type(error)(self.by_url(str(error))) from None

    def by_url(self, text: str) -> str:
        """Return a message with the URL instead of the path of the copy."""
        staged = re.escape(str(self.folder.parent)) + rf"/\.{re.escape(self.folder.name)}\.\w+"
        text = re.sub(staged + r"\.(fetching|partial)", lambda _: shown(self.url), text)
        return text.replace(str(self.folder), shown(self.url))

    def fetch(self, *, extras: bool = True, fresh: bool = False) -> Path:
        """Download the build and return the folder of the copy, checked against the manifest.

        Cards and measurements are `extras`; `fresh` downloads even the shards in the cache again.

        Raises:
            InputError: there is no build.
            DamagedError: a shard is missing or damaged.
        """
        with (
            self.named(),
            disk.explained_disk_errors(self.folder, _CACHE, "the fetched shards"),
            disk.folder_lock(self.folder, wait=True, work="reading", option=_CACHE),
        ):
            disk.finish_replacing(self.folder)
            for _ in range(_TRIES):
                content = self.store.read(MANIFEST_NAME)
                if content is None:
                    raise InputError(
                        f"{self.folder}: not a graphxai-data build (no {MANIFEST_NAME} in it); "
                        "give the URL that `graphxai-data build` printed"
                    )
                try:
                    self._fetch(content, extras, fresh)
                except DamagedError:
                    if self.store.read(MANIFEST_NAME) == content:
                        raise
                    continue  # the build was replaced while it was read
                return self.folder
            raise DamagedError(f"{self.folder}: is being replaced repeatedly; try again later")

    def _fetch(self, content: bytes, extras: bool, fresh: bool) -> None:
        copy = self.folder
        cached = copy / MANIFEST_NAME
        is_current = cached.is_file() and cached.read_bytes() == content
        if not is_current:
            digest = hashlib.sha256(content).hexdigest()
            copy = self.folder.with_name(f".{self.folder.name}.{digest[:16]}.fetching")
            copy.mkdir(parents=True, exist_ok=True)
            disk.write_atomically(copy / MANIFEST_NAME, content)
        _for_all(lambda entry: self._fetch_shard(entry, copy, fresh), Manifest.load(copy).shards)
        if extras:
            _for_all(lambda name: self._fetch_extra(copy / name), EXTRAS)
        if not is_current:
            disk.publish(copy, self.folder)

    def _fetch_shard(self, entry: ShardEntry, copy: Path, fresh: bool) -> None:
        path, where = copy / entry.name, f"{self.folder}/{entry.name}"
        if not fresh and path.is_file() and file_crc32(path) == entry.file_crc32:
            return
        temporary = path.with_name(f".{path.name}.tmp")
        if not self.store.get(entry.name, temporary):
            raise DamagedError(f"{where}: no such shard; delete the build there and build again")
        digest = file_sha256(temporary)
        if digest != entry.file_sha256:
            temporary.unlink()
            raise DamagedError(
                f"{where}: damaged (expected SHA-256 {entry.file_sha256}, got {digest}); delete "
                "the build there and build again"
            )
        temporary.replace(path)

    def _fetch_extra(self, path: Path) -> None:
        temporary = path.with_name(f".{path.name}.tmp")
        if self.store.get(path.name, temporary):
            temporary.replace(path)
        else:
            path.unlink(missing_ok=True)

    def unlisted_shards(self) -> list[str]:
        """Return a sentence about each shard at the URL that the manifest does not list."""
        listed = {entry.name for entry in Manifest.load(self.folder).shards}
        names = {name for name in self.store.names() if _SHARD.fullmatch(name)}
        return [
            f"{shown(self.url)}/{name}: not listed in {MANIFEST_NAME}"
            for name in sorted(names - listed)
        ]

    def publish(
        self, manifest: Manifest, names: Iterable[str] | None = None, replace_existing: bool = False
    ) -> None:
        """Upload the copy in the cache, the manifest last, if the copy still has this manifest.

        Only the files in `names` are uploaded to a build that is published already. With
        `replace_existing`, another build is deleted first; readers find none in the meantime.

        Raises:
            InputError: another build is there, or is being published.
            StoreError: the store refuses or cannot be reached. Nothing is visible then; running
                the same command again continues the upload.
        """
        with self.named(), disk.folder_lock(self.folder, wait=True):
            content = (self.folder / MANIFEST_NAME).read_bytes()
            if Manifest.load(self.folder) != manifest:
                raise InputError(
                    f"{self.folder}: another process has built something else here meanwhile; run "
                    "the same command again"
                )
            with self.store.explained(), self.store.marked(content, MANIFEST_NAME) as mark:
                self._make_way(content, replace_existing)
                if names is not None:
                    files = [f for name in names if (f := self.folder / name).is_file()]
                    _for_all(lambda file: self.store.upload(file, mark), files)
                    return
                files = [f for f in self.folder.iterdir() if not f.name.startswith(".")]
                last = self.folder / MANIFEST_NAME
                _for_all(lambda f: self.store.upload(f, mark), [f for f in files if f != last])
                for name in set(self.store.names()) - {file.name for file in files}:
                    if _SHARD.fullmatch(name):
                        self.store.delete(name)
                self.store.upload(last, mark)

    def _make_way(self, content: bytes, replace_existing: bool) -> None:
        """Delete the manifest of another published build, or raise `InputError`."""
        published = self.store.read(MANIFEST_NAME)
        if published in (None, content):
            return
        if not replace_existing:
            raise InputError(
                f"{self.folder}: another build has been published here meanwhile; run the "
                "same command again"
            )
        self.store.delete(MANIFEST_NAME)


@contextmanager
def opened(place: str | Path, *, extras: bool = True) -> Iterator[tuple[Path, RemoteBuild | None]]:
    """Yield the folder of a build; if it is at a URL, that of its copy, and the `RemoteBuild`."""
    if not is_url(place):
        yield local_path(place), None
        return
    build = RemoteBuild(place)
    with build.named():
        yield build.fetch(extras=extras), build


def is_built(root: str | Path, dataset: str, seed: int) -> bool:
    """Return whether a root, which may be a URL, has a build of this dataset and seed."""
    if is_url(root):
        return RemoteBuild.at(root, dataset, seed).exists()
    return Path(inside(root, dataset, f"seed-{seed}")).exists()


def verified(url: str, verify: Callable[[Path], list[str]]) -> list[str]:
    """Return the problems of a build at a URL, after downloading every shard again."""
    build = RemoteBuild(url)
    try:
        with build.named():
            folder = build.fetch(fresh=True)
            return [build.by_url(problem) for problem in verify(folder)] + build.unlisted_shards()
    except DamagedError as error:
        return [str(error)]


def _for_all(function: Callable[[Any], None], items: Iterable[Any]) -> None:
    """Apply a function to all items in threads; the first error stops it."""
    with ThreadPoolExecutor(_STREAMS) as pool:
        try:
            list(pool.map(function, items))
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _file_name(text: str) -> str:
    return re.sub(r"[^\w.-]|^\.+", "_", text) or "_"
