import gzip
import hashlib
import http.server
import importlib.util
import io
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from graphxai_data.errors import DamagedError, InputError
from graphxai_data.files.shipped import shipped
from graphxai_data.generators.mnist_images import IDX_FILES
from graphxai_data.recipe import Recipe
from graphxai_data.sources import (
    Part,
    Source,
    SourceEntry,
    download,
    fetch,
    file_sha256,
    find_sources,
    folder_sha256,
    registry,
)  # fmt: skip

CONTENT = b"CCO\n" * 5000


class Server(http.server.ThreadingHTTPServer):
    """A mirror on loopback that can close the connection, ignore ranges, or have a wrong file."""

    break_off_after: int | None = None
    ignores_ranges = False
    content = CONTENT

    def __init__(self) -> None:
        self.ranges: list[str | None] = []
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/pool.smi"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        requested = self.headers.get("Range")
        self.server.ranges.append(requested)
        start = int(requested[6:-1]) if requested and not self.server.ignores_ranges else 0
        if start and start >= len(self.server.content):
            self.send_error(416)
            return
        body = self.server.content[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.server.break_off_after is not None:
            body = body[: self.server.break_off_after]
            self.server.break_off_after = None
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing; the tests look at `ranges`."""


@pytest.fixture
def mirror() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def _entry(*urls: str, content: bytes = CONTENT) -> SourceEntry:
    digest = hashlib.sha256(content).hexdigest()
    return SourceEntry("pool.smi", digest, len(content), "a test", "none", urls)


def test_a_file_is_downloaded_checked_and_kept(mirror: Server, tmp_path: Path) -> None:
    path = download(_entry(mirror.url), tmp_path)
    assert path.read_bytes() == CONTENT
    assert download(_entry(mirror.url), tmp_path) == path
    assert mirror.ranges == [None]


def test_the_next_mirror_is_tried(mirror: Server, tmp_path: Path) -> None:
    nobody = "http://127.0.0.1:9/pool.smi"
    assert download(_entry(nobody, mirror.url), tmp_path).read_bytes() == CONTENT


def test_an_interrupted_download_is_resumed(mirror: Server, tmp_path: Path) -> None:
    mirror.break_off_after = 7000
    with pytest.raises(InputError, match="could not be downloaded"):
        download(_entry(mirror.url), tmp_path)
    assert download(_entry(mirror.url), tmp_path).read_bytes() == CONTENT
    assert mirror.ranges == [None, "bytes=7000-"]


def test_another_mirror_resumes_what_the_first_one_began(mirror: Server, tmp_path: Path) -> None:
    mirror.break_off_after = 7000
    assert download(_entry(mirror.url, mirror.url), tmp_path).read_bytes() == CONTENT
    assert mirror.ranges == [None, "bytes=7000-"]


def test_a_mirror_without_ranges_starts_from_the_beginning(mirror: Server, tmp_path: Path) -> None:
    mirror.break_off_after = 7000
    mirror.ignores_ranges = True
    assert download(_entry(mirror.url, mirror.url), tmp_path).read_bytes() == CONTENT


def test_a_file_with_another_hash_is_refused_and_not_kept(mirror: Server, tmp_path: Path) -> None:
    mirror.content = b"something else"
    with pytest.raises(InputError, match="could not be downloaded.*pass it with --source"):
        download(_entry(mirror.url), tmp_path)
    assert list(tmp_path.iterdir()) == []
    mirror.content = CONTENT
    assert download(_entry(mirror.url), tmp_path).read_bytes() == CONTENT


def test_a_wrong_part_of_an_earlier_download_is_discarded(mirror: Server, tmp_path: Path) -> None:
    entry = _entry(mirror.url, mirror.url)
    (tmp_path / f"{entry.sha256}.part").write_bytes(b"x" * len(CONTENT))
    assert download(entry, tmp_path).read_bytes() == CONTENT


def test_without_a_network_the_error_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="get it by other means and pass it with --source"):
        download(_entry("http://127.0.0.1:9/pool.smi"), tmp_path)


def test_a_downloaded_source_can_be_given_by_its_id(
    mirror: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHXAI_DATA_CACHE", str(tmp_path))
    known = registry() | {"zinc250k": _entry(mirror.url)}
    monkeypatch.setattr("graphxai_data.sources.registry", lambda: known)
    source = find_sources(Recipe.load("dihalo"), {"zinc": "zinc250k"})["zinc"]
    assert source.id == "zinc250k"
    assert source.path.parent == tmp_path


@pytest.mark.parametrize("key", sorted(registry()))
def test_every_source_has_origin_licence_and_hashes(key: str) -> None:
    entry = registry()[key]
    assert entry.origin
    assert entry.licence
    if entry.elsewhere and not entry.sha256:  # its hash is not known
        assert not entry.urls
        assert not entry.bytes
        return
    assert len(entry.sha256) == 64
    assert entry.bytes > 0
    if entry.parts:
        assert sum(part.bytes for part in entry.parts) == entry.bytes
        assert all(len(part.sha256) == 64 and len(part.urls) > 1 for part in entry.parts)
    elif entry.elsewhere:
        assert not entry.urls
    elif not entry.urls:
        path = fetch(entry)
        assert path.stat().st_size == entry.bytes
        assert path.stat().st_size < 4 * 2**20
        assert hashlib.sha256(_decompressed(path)).hexdigest() == entry.text_sha256


def _decompressed(path: Path) -> bytes:
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        return b"".join(archive.read(name) for name in sorted(archive.namelist()))


def test_a_source_in_parts_is_downloaded_into_a_folder(
    mirror: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All parts have the same content here: only the download and the check are tested."""
    monkeypatch.setenv("GRAPHXAI_DATA_CACHE", str(tmp_path))
    whole = _entry(mirror.url)
    parts = tuple(
        Part(f"{name}.gz", whole.sha256, whole.bytes, ("http://127.0.0.1:9/x", mirror.url))
        for name in IDX_FILES
    )
    known = registry() | {"mnist": replace(registry()["mnist"], parts=parts)}
    monkeypatch.setattr("graphxai_data.sources.registry", lambda: known)
    with pytest.raises(DamagedError, match=r"not the files of 'mnist' \(expected SHA-256 d0a3eec1"):
        find_sources(Recipe.load("mnist75sp"), {"mnist": "mnist"})
    digest = folder_sha256(tmp_path / "mnist", IDX_FILES)
    known["mnist"] = replace(known["mnist"], sha256=digest)
    source = find_sources(Recipe.load("mnist75sp"), {"mnist": "mnist"})["mnist"]
    assert source == Source("mnist", tmp_path / "mnist", digest)
    assert sorted(p.name for p in source.path.iterdir()) == sorted(f"{n}.gz" for n in IDX_FILES)
    mirror.content = b"something else"
    (source.path / f"{IDX_FILES[2]}.gz").unlink()
    with pytest.raises(InputError, match="t10k-images-idx3-ubyte.gz could not be downloaded"):
        find_sources(Recipe.load("mnist75sp"), {"mnist": "mnist"})


def test_the_digest_of_a_folder_is_over_contents_gzipped_or_not(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one")
    (tmp_path / "b.gz").write_bytes(gzip.compress(b"two"))
    lines = [f"{hashlib.sha256(c).hexdigest()}  {n}\n" for c, n in ((b"one", "a"), (b"two", "b"))]
    expected = hashlib.sha256("".join(lines).encode()).hexdigest()
    assert folder_sha256(tmp_path, ("a", "b")) == expected


def test_a_shipped_source_that_is_damaged_or_missing_is_named(tmp_path: Path) -> None:
    entry = replace(_entry(), home=str(tmp_path / "sources"))
    with pytest.raises(DamagedError, match="missing from the installation"):
        fetch(entry)
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "pool.smi").write_bytes(b"CC")
    with pytest.raises(DamagedError, match="damaged .expected SHA-256"):
        fetch(entry)


def test_wrong_arguments_are_refused(tmp_path: Path) -> None:
    recipe = Recipe.load("dihalo")
    with pytest.raises(InputError, match="no source named 'zink'; it takes zinc"):
        find_sources(recipe, {"zink": "x"})
    with pytest.raises(InputError, match="no such file; give a readable file"):
        find_sources(recipe, {"zinc": tmp_path / "none.smi"})
    with pytest.raises(InputError, match="not a file; give a readable file"):
        find_sources(recipe, {"zinc": tmp_path})


def test_a_users_file_is_known_by_its_hash(tmp_path: Path) -> None:
    path = tmp_path / "mine.smi"
    path.write_bytes(CONTENT)
    source = find_sources(Recipe.load("dihalo"), {"zinc": path})["zinc"]
    assert (source.id, source.path) == ("user's file", path)
    assert source.sha256 == file_sha256(path) == hashlib.sha256(CONTENT).hexdigest()


def test_the_script_that_made_the_pool_selects_as_documented() -> None:
    path = shipped("data") / "sources" / "make_zinc_clean_leads.py"
    spec = importlib.util.spec_from_file_location("make_pool", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    good = [f"{'C' * n}N" for n in range(18, 40)]
    lines = [*good, *good, "C" * 18, "C" * 25 + "Cl", "FC" + "C" * 20, "[H]N" + "C" * 20]
    assert set(script.select(lines, 1000)) == set(good)
    few = script.select(lines, 5)
    assert few == sorted(few)
    assert len(few) == 5
    assert few == sorted(sorted(good, key=lambda s: hashlib.sha256(s.encode()).digest())[:5])
    pool = gzip.decompress((path.parent / "zinc-clean-leads.smi.gz").read_bytes()).decode().split()
    assert len(pool) == len(set(pool)) == script.MOLECULES
    assert all(map(script.usable, pool))


def test_the_script_that_made_the_second_pool_selects_as_documented() -> None:
    path = shipped("data") / "sources" / "make_moses_100k.py"
    spec = importlib.util.spec_from_file_location("make_second_pool", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    good = ["C" * 14 + halogen for halogen in ("F", "Cl", "Br")] + ["C" * n for n in range(15, 30)]
    lines = [*good, *good, "C" * 14, "C" * 13 + "Cl"]
    assert set(script.select(lines, 1000)) == set(good)
    few = script.select(lines, 5)
    by_hash = sorted(good, key=lambda s: hashlib.sha256(b"rules " + s.encode()).digest())
    assert few == sorted(by_hash[:5])
    pool = gzip.decompress((path.parent / "moses-100k.smi.gz").read_bytes()).decode().split()
    assert len(pool) == len(set(pool)) == script.MOLECULES
    assert all(map(script.is_large_enough, pool))


def test_an_archive_is_known_by_the_files_in_it(
    mirror: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = tuple(f"NCI1_{part}.txt" for part in ("A", "graph_indicator", "graph_labels",
                                                    "node_labels"))  # fmt: skip
    folder = tmp_path / "plain"
    folder.mkdir()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in members:
            (folder / name).write_text("1\n")
            archive.writestr(f"NCI1/{name}", "1\n")
    mirror.content = buffer.getvalue()
    digest = folder_sha256(folder, members)
    entry = SourceEntry(
        "NCI1.zip", digest, 8, "a test", "none", (mirror.url,), of_members=True
    )  # fmt: skip
    monkeypatch.setenv("GRAPHXAI_DATA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("graphxai_data.sources.registry", lambda: {"nci1": entry})
    recipe = Recipe.load("nci1")
    downloaded = find_sources(recipe)["nci1"]
    assert downloaded.sha256 == digest
    assert downloaded.path.read_bytes() == mirror.content
    own = find_sources(recipe, {"nci1": folder})["nci1"]
    assert (own.id, own.sha256) == ("nci1", digest)
    (folder / members[0]).write_text("2\n")
    other = find_sources(recipe, {"nci1": folder})["nci1"]
    assert other.id == "user's file"
    with zipfile.ZipFile(downloaded.path, "w") as archive:
        for name in members:
            archive.writestr(name, "3\n")
    # A wrong file in the cache is deleted, and the next mirror is tried.
    with pytest.raises(InputError, match="the files in it have SHA-256"):
        find_sources(recipe)
    assert find_sources(recipe)["nci1"].sha256 == digest
    downloaded.path.unlink()
    mirror.content = b"<html>please log in</html>"
    with pytest.raises(InputError, match="could not be downloaded.*nor a readable zip archive"):
        find_sources(recipe)
    assert not downloaded.path.exists()
