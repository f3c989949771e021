"""Builds at a URL: in memory, in folders behind fsspec, and on a real S3 server on loopback."""

import json
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from graphxai_data import remote
from graphxai_data.building.build import build
from graphxai_data.building.verify import verify
from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.errors import DamagedError, InputError
from graphxai_data.files.store import Store, StoreError
from graphxai_data.files.urls import inside, is_url, local_path, shown
from graphxai_data.remote import RemoteBuild
from graphxai_data.rings import check

fsspec = pytest.importorskip("fsspec", reason="needs the extra [remote]")
SMALL = {"graphs": 20, "shard_size": 5, "engine": "serial", "rings": False}


class Shelf(fsspec.get_filesystem_class("file")):
    """A store with real folders and its own rename, like SFTP or HDFS."""

    protocol = "shelf"

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return super()._strip_protocol(path.removeprefix("shelf://"))


fsspec.register_implementation("shelf", Shelf, clobber=True)


@pytest.fixture(scope="module")
def s3_server() -> Iterator[str]:
    """URL of a server with the protocol of S3."""
    reason = "needs s3fs and moto[server]"
    pytest.importorskip("s3fs", reason=reason)
    server_module = pytest.importorskip("moto.moto_server.threaded_moto_server", reason=reason)
    server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAPHXAI_DATA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def memory() -> Iterator[Any]:
    fs = fsspec.filesystem("memory")
    fs.store.clear()
    fs.pseudo_dirs[:] = [""]
    yield fs
    fs.store.clear()


@pytest.fixture
def s3(s3_server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for key, value in {
        "AWS_ENDPOINT_URL": s3_server, "AWS_ACCESS_KEY_ID": "reader",
        "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1",
    }.items():  # fmt: skip
        monkeypatch.setenv(key, value)
    cls = fsspec.get_filesystem_class("s3")
    cls.clear_instance_cache()
    fs = fsspec.filesystem("s3")
    fs.mkdir("benchmarks")
    yield fs
    fs.invalidate_cache()
    fs.rm("benchmarks", recursive=True)
    cls.clear_instance_cache()


@pytest.fixture(params=["memory", "shelf", "s3"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of an empty root in each kind of store."""
    if request.param == "shelf":
        return f"shelf://{tmp_path}/shelf/deep"
    request.getfixturevalue(request.param)
    return "memory://root" if request.param == "memory" else "s3://benchmarks/some/root"


def other_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str = "other") -> None:
    monkeypatch.setenv("GRAPHXAI_DATA_CACHE", str(tmp_path / name))


def keys(url: str) -> list[str]:
    fs, path = fsspec.core.url_to_fs(url)
    fs.invalidate_cache()
    return sorted(key.split("/ba2motif/")[-1] for key in fs.find(path, withdirs=False))


def test_a_build_at_a_url_has_the_same_files_as_a_local_one(root: str, tmp_path: Path) -> None:
    here = build("ba2motif", root=tmp_path / "here", **SMALL | {"rings": True})
    assert build("ba2motif", root=root, **SMALL | {"rings": True}) == here
    folder = tmp_path / "here/ba2motif/seed-0"
    assert keys(root) == sorted(f"seed-0/{path.name}" for path in folder.iterdir())
    fs, path = fsspec.core.url_to_fs(root)
    for file in folder.iterdir():
        assert fs.cat_file(f"{path}/ba2motif/seed-0/{file.name}") == file.read_bytes()


def test_a_build_that_is_published_is_kept(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = build("ba2motif", root=root, **SMALL)
    other_cache(monkeypatch, tmp_path)  # as another machine

    def drawn(*_: object) -> None:
        raise AssertionError("drawn again")

    monkeypatch.setattr(sys.modules["graphxai_data.building.build"], "make_shard", drawn)
    assert build("ba2motif", root=root, **SMALL) == first
    assert build("ba2motif", root=root, **SMALL | {"shard_size": 10}) == first  # the same graphs
    with pytest.raises(InputError, match=f"{root}/ba2motif/seed-0: holds another build .graphs 20"):
        build("ba2motif", root=root, **SMALL | {"graphs": 30})
    assert verify(f"{root}/ba2motif/seed-0") == []


def test_a_measurement_made_later_is_published(root: str) -> None:
    build("ba2motif", root=root, **SMALL)
    assert "seed-0/rings.json" not in keys(root)
    build("ba2motif", root=root, **SMALL | {"rings": True})
    assert "seed-0/rings.json" in keys(root)
    assert not [key for key in keys(root) if "/." in key]


def test_a_reader_downloads_once_and_then_reads_only_the_manifest(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build("ba2motif", root=root, graphs=20, shard_size=5, engine="serial")
    other_cache(monkeypatch, tmp_path)
    fetched: list[str] = []
    get = Store.get

    def counted(self: Store, name: str, path: Path) -> bool:
        fetched.append(name)
        return get(self, name, path)

    monkeypatch.setattr(Store, "get", counted)
    dataset = GraphXAIDataset(root, "ba2motif")
    assert sorted(fetched) == [f"shard-0000{i}.h5" for i in range(4)]
    assert (len(dataset), dataset.url) == (20, f"{root}/ba2motif/seed-0")
    fetched.clear()
    assert len(GraphXAIDataset.from_folder(f"{root}/ba2motif/seed-0")) == 20
    assert fetched == []
    # Only a damaged copy is downloaded again.
    (dataset.folder / "shard-00002.h5").write_bytes(b"damaged")
    assert len(GraphXAIDataset(root, "ba2motif")) == 20
    assert fetched == ["shard-00002.h5"]


MINE = """
name = "mine"
version = 1
generator = "ba2motif"
splits = { train = 0.8, valid = 0.1, test = 0.1 }
[params]
graphs = 20
motifs = ["house", "k23"]
base_nodes_mean = 12.5
base_nodes_min = 8
features = "degree"
twins = true
"""


def test_a_dataset_that_is_missing_at_a_url_is_built_and_published(
    root: str, tmp_path: Path
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(MINE)
    assert len(GraphXAIDataset(root, path)) == 20
    assert RemoteBuild.at(root, "mine", 0).exists()
    assert len(GraphXAIDataset(root, path, force_reload=True)) == 20
    assert verify(f"{root}/mine/seed-0", full=True) == []


def test_a_replaced_build_is_downloaded_again(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build("ba2motif", root=root, **SMALL | {"graphs": 40})
    assert len(GraphXAIDataset(root, "ba2motif")) == 40
    mine = Path(str(tmp_path / "cache"))
    other_cache(monkeypatch, tmp_path)
    build("ba2motif", root=root, **SMALL, replace_existing=True)
    assert len([key for key in keys(root) if key.endswith(".h5")]) == 4  # four are deleted
    monkeypatch.setenv("GRAPHXAI_DATA_CACHE", str(mine))
    assert len(GraphXAIDataset(root, "ba2motif")) == 20
    assert verify(f"{root}/ba2motif/seed-0", full=True) == []


@pytest.mark.parametrize("how", ["damaged", "missing"])
def test_a_damaged_or_missing_shard_is_named(
    root: str, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build("ba2motif", root=root, **SMALL)
    url = f"{root}/ba2motif/seed-0"
    fs, path = fsspec.core.url_to_fs(url)
    content = bytearray(fs.cat_file(f"{path}/shard-00002.h5"))
    content[-1] ^= 1
    fs.rm_file(f"{path}/shard-00002.h5")
    if how == "damaged":
        fs.pipe_file(f"{path}/shard-00002.h5", bytes(content))
    # Although a good copy is in the cache: `verify` checks the store.
    what = "damaged .expected SHA-256" if how == "damaged" else "no such shard"
    problems = verify(url)
    assert len(problems) == 1
    assert problems[0].startswith(f"{url}/shard-00002.h5: {how if how == 'damaged' else 'no'}")
    other_cache(monkeypatch, tmp_path)
    for read in (
        lambda: GraphXAIDataset(root, "ba2motif"),
        lambda: build("ba2motif", root=root, **SMALL),
    ):
        with pytest.raises(DamagedError, match=f"{url}/shard-00002.h5: {what}"):
            read()


def test_an_unlisted_shard_is_a_problem(memory: Any) -> None:
    build("ba2motif", root="memory://root", **SMALL)
    url = "memory://root/ba2motif/seed-0"
    memory.pipe_file("/root/ba2motif/seed-0/shard-00009.h5", b"")
    assert verify(url) == [f"{url}/shard-00009.h5: not listed in manifest.json"]


def test_a_damaged_manifest_is_a_problem(memory: Any) -> None:
    build("ba2motif", root="memory://root", **SMALL)
    url = "memory://root/ba2motif/seed-0"
    memory.pipe_file("/root/ba2motif/seed-0/manifest.json", b"{}")
    (problem,) = verify(url)
    assert problem.startswith(f"{url}/manifest.json: schema version None")


class Killed(BaseException):
    """Stands for SIGKILL: no code catches it."""


class Faults:
    """Make the n-th call that changes a store fail: only that one, or all later ones as well."""

    CHANGING = ("put_file", "pipe_file", "cp_file", "rm_file", "rm")

    def __init__(self, monkeypatch: pytest.MonkeyPatch, n: int, forever: bool) -> None:
        self.left, self.hit = n, False
        cls = fsspec.get_filesystem_class("memory")
        for name in self.CHANGING:
            original = getattr(cls, name)

            def call(fs: Any, *args: Any, original: Any = original, **kwargs: Any) -> Any:
                self.left -= 1
                if self.left == 0 or (self.hit and forever):
                    self.hit = True
                    raise Killed if forever else OSError("connection reset")
                return original(fs, *args, **kwargs)

            monkeypatch.setattr(cls, name, call)


@pytest.mark.parametrize("forever", [False, True], ids=["an error", "killed"])
def test_an_upload_that_fails_anywhere_is_invisible_and_can_be_completed(
    memory: Any, forever: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "_STREAMS", 1)
    local = build("ba2motif", root=tmp_path / "here", **SMALL)
    remote_build = RemoteBuild.at("memory://root", "ba2motif", 0)
    outcomes = []
    for n in range(1, 100):
        memory.store.clear()
        with monkeypatch.context() as patched:
            faults = Faults(patched, n, forever)
            try:
                build("ba2motif", root="memory://root", **SMALL)
                failed = False
            except (StoreError, Killed):
                failed = True
        if not faults.hit:
            break
        visible = remote_build.exists()
        outcomes.append((failed, visible))
        # A visible build is complete; an upload that failed earlier is not visible.
        assert verify(remote_build.url) == [] if visible else failed
        assert build("ba2motif", root="memory://root", **SMALL) == local
        assert verify(remote_build.url) == []
        if not visible:  # otherwise nothing was left to do
            assert not [key for key in keys("memory://root") if "/." in key]
    assert not faults.hit
    assert outcomes.count((True, False)) > 20  # two for the probe, one for the mark, three per file


def test_files_uploaded_before_a_failure_are_not_uploaded_again(
    memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "_STREAMS", 1)
    with monkeypatch.context() as patched:
        Faults(patched, 12, forever=True)
        with pytest.raises(Killed):
            build("ba2motif", root="memory://root", **SMALL)
    before = {
        k: memory.created(f"/root/ba2motif/{k}") for k in keys("memory://root") if "/." not in k
    }
    assert 2 <= len(before) < 7
    build("ba2motif", root="memory://root", **SMALL)
    assert {k: memory.created(f"/root/ba2motif/{k}") for k in before} == before


def test_a_file_that_arrives_damaged_is_not_published(
    memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = type(memory).put_file

    def bent(fs: Any, local: str, key: str) -> None:
        put(fs, local, key)
        if key.endswith("shard-00001.h5"):
            content = bytearray(fs.cat_file(key))
            content[100] ^= 1
            fs.pipe_file(key, bytes(content))

    monkeypatch.setattr(type(memory), "put_file", bent)
    with pytest.raises(StoreError, match="seed-0/shard-00001.h5: did not arrive as it was sent"):
        build("ba2motif", root="memory://root", **SMALL)
    assert not RemoteBuild.at("memory://root", "ba2motif", 0).exists()


def _publisher(
    root: str, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch, graphs: int
) -> Callable[[], None]:
    """Return a function that publishes a build from another cache, as from another machine."""
    other_cache(monkeypatch, tmp_path, name)
    remote_build = RemoteBuild.at(root, "ba2motif", 0)
    manifest = build("ba2motif", root=remote_build.root, **SMALL | {"graphs": graphs})
    return lambda: remote_build.publish(manifest)


@pytest.mark.parametrize("graphs", [20, 40], ids=["the same build", "different builds"])
def test_two_publishers_at_once_never_mix_their_files(
    root: str, graphs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publishers = [
        _publisher(root, tmp_path, "a", monkeypatch, 20),
        _publisher(root, tmp_path, "b", monkeypatch, graphs),
    ]
    other_cache(monkeypatch, tmp_path, "reader")
    start, errors = threading.Barrier(2), []

    def run(publish: Callable[[], None]) -> None:
        start.wait()
        try:
            publish()
        except InputError as error:
            errors.append(str(error))

    threads = [threading.Thread(target=run, args=(publish,)) for publish in publishers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if graphs == 20:
        assert errors == []
    else:
        assert len(errors) == 1
        assert "another build" in errors[0]
    assert verify(f"{root}/ba2motif/seed-0", full=True) == []
    assert not [key for key in keys(root) if "/." in key]


@pytest.mark.parametrize("moment", ["before a file is sent", "before a file is checked"])
@pytest.mark.parametrize("graphs", [20, 40], ids=["the same build", "different builds"])
def test_a_second_publisher_does_not_disturb_the_first(
    memory: Any, graphs: int, moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "_TRIES", 1)
    monkeypatch.setattr(remote, "_STREAMS", 1)
    first = _publisher("memory://root", tmp_path, "a", monkeypatch, 20)
    second = _publisher("memory://root", tmp_path, "b", monkeypatch, graphs)
    other_cache(monkeypatch, tmp_path, "reader")
    copied, put = [], type(memory).put_file

    def interrupted(fs: Any, local: str, key: str) -> None:
        copied.append(key)
        if moment == "before a file is checked":
            put(fs, local, key)
        if len(copied) == 3:
            if graphs == 20:
                second()
            else:
                with pytest.raises(InputError, match="another build is being published here"):
                    second()
        if moment == "before a file is sent":
            put(fs, local, key)

    monkeypatch.setattr(type(memory), "put_file", interrupted)
    first()
    assert len(copied) > 3
    url = "memory://root/ba2motif/seed-0"
    assert verify(url, full=True) == []
    assert len(GraphXAIDataset("memory://root", "ba2motif")) == 20
    assert not [key for key in keys("memory://root") if "/." in key]


def test_the_mark_of_a_dead_publisher_of_another_build_is_named(
    memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "_TRIES", 1)
    with monkeypatch.context() as patched:
        Faults(patched, 8, forever=True)
        with pytest.raises(Killed):
            build("ba2motif", root="memory://root", **SMALL)
    other_cache(monkeypatch, tmp_path)
    with pytest.raises(InputError, match="if its process is dead, delete memory://root/.*upload-"):
        build("ba2motif", root="memory://root", **SMALL | {"graphs": 40})
    (mark,) = (k for k in memory.ls("/root/ba2motif/seed-0", detail=False) if "/.upload-" in k)
    memory.rm(mark, recursive=True)
    assert build("ba2motif", root="memory://root", **SMALL | {"graphs": 40}).graphs == 40
    assert verify("memory://root/ba2motif/seed-0") == []


def test_an_unpublished_or_damaged_build_in_the_cache_is_replaced(
    memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote_build = RemoteBuild.at("memory://root", "ba2motif", 0)
    build("ba2motif", root=remote_build.root, **SMALL | {"graphs": 40})
    assert build("ba2motif", root="memory://root", **SMALL).graphs == 20
    # A damaged one as well.
    memory.store.clear()
    (remote_build.folder / "shard-00001.h5").write_bytes(b"damaged")
    assert build("ba2motif", root="memory://root", **SMALL).graphs == 20
    assert verify(remote_build.url) == []


def test_file_urls_are_plain_paths(tmp_path: Path, cache: Path, cli: Callable[..., Result]) -> None:
    build("ba2motif", root=f"file://{tmp_path}/r", **SMALL)
    folder = tmp_path / "r/ba2motif/seed-0"
    assert verify(f"file://{folder}") == verify(folder) == []
    assert len(GraphXAIDataset(f"file://{tmp_path}/r", "ba2motif")) == 20
    assert cli("info", f"file://{folder}").exit_code == 0
    assert not cache.exists()


def test_every_command_accepts_a_url(
    root: str, cli: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"{root}/ba2motif/seed-0"
    options = ("--graphs", 40, "--shard-size", 10, "--engine", "serial")
    built = cli("build", "ba2motif", "--root", root, *options, "--json", "--no-rings")
    assert built.exit_code == 0, built.stderr
    assert json.loads(built.stdout)["folder"] == url
    other_cache(monkeypatch, tmp_path)
    assert cli("verify", "--full", url).stdout.startswith(f"{url}: whole, every graph proven")
    assert f"40 graphs in {url}" in cli("info", url).stdout
    assert "rationale 5 nodes" in cli("info", url, "--graph", 3).stdout
    assert cli("rings", url, "--quick").exit_code == 0
    assert check(url).content_sha256 == json.loads(built.stdout)["content_sha256"]
    report = cli("report", url, "--explainer", "degree")
    assert report.stdout.startswith(f"{url}/report.html"), report.stderr
    assert {"seed-0/rings.json", "seed-0/report.html"} <= set(keys(root))
    monkeypatch.setenv("GRAPHXAI_DATA_ROOT", root)
    common = ("--set", "epochs=1", "--set", "hidden=4", "--out", tmp_path / "runs")
    assert cli("train", "ba2motif", *common).exit_code == 0
    evaluated = cli("evaluate", "ba2motif", *common, "--seeds", 0, "--model", "bcos-gin",
                    "--explainer", "bcos", "--no-timing", "--csv")  # fmt: skip
    assert evaluated.stdout.splitlines()[1].startswith("bcos-gin,bcos,0,"), evaluated.stderr
    assert not [path for path in tmp_path.iterdir() if ":" in path.name]


def refused(result: Result, *words: str) -> None:
    assert result.exit_code == 2, result.output
    assert len(result.stderr.splitlines()) == 1
    for word in words:
        assert word in result.stderr


def test_an_unknown_store_or_a_folder_that_is_not_a_build_is_refused_in_one_line(
    memory: Any, cli: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    refused(cli("build", "ba2motif", "--root", "xyz://a/b"), "xyz://a/b", "Protocol not known")
    for command in ("verify", "info", "rings", "report"):
        refused(cli(command, "memory://root/nothing/seed-0"), "not a graphxai-data build")
        refused(cli(command, "xyz://a/b"), "Protocol not known")
    refused(cli("info", "s3:/bucket/root"), "a URL has two slashes")
    refused(cli("train", "ba2motif", "--out", "s3://b/runs"), "expected a folder on this machine")
    from fsspec.registry import known_implementations

    driver = {"class": "no_such_driver.Files", "err": "Please install no_such_driver"}
    monkeypatch.setitem(known_implementations, "lacking", driver)
    refused(cli("info", "lacking://a/b"), "Please install no_such_driver", "graphxai-data[remote]")
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "fsspec.core", None)
        refused(cli("info", "memory://a/b"), "pip install 'graphxai-data[remote]'")


def test_a_read_only_store_is_refused_before_anything_is_drawn(
    memory: Any, cli: Callable[..., Result], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build("ba2motif", root="memory://root", **SMALL)

    def denied(*_: object, **__: object) -> None:
        raise PermissionError("Access Denied")

    monkeypatch.setattr(type(memory), "pipe_file", denied)
    options = ("--graphs", 20, "--shard-size", 5, "--engine", "serial")
    refused(cli("build", "ba2motif", "--root", "memory://new", *options), "no permission", "Denied")
    assert not list(cache.rglob("new*"))
    # A published build can still be read and kept.
    assert cli("build", "ba2motif", "--root", "memory://root", *options).exit_code == 0
    assert cli("verify", "memory://root/ba2motif/seed-0").exit_code == 0
    shutil.rmtree(cache)
    assert len(GraphXAIDataset("memory://root", "ba2motif")) == 20


def test_a_missing_bucket_and_a_silent_server_are_refused_in_one_line(
    s3: Any, cli: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "s3://nowhere/root"
    refused(cli("build", "ba2motif", "--root", url), url, "bucket does not exist")
    refused(cli("info", f"{url}/ba2motif/seed-0"), url, "bucket does not exist")
    assert not s3.exists("nowhere")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setattr(type(s3), "retries", 1)
    type(s3).clear_instance_cache()
    refused(cli("info", f"{url}/ba2motif/seed-0"), url, "cannot be reached", "check the network")


def test_urls_and_paths_are_distinguished() -> None:
    assert is_url("s3://bucket/x")
    assert is_url("simplecache::s3://bucket/x")
    assert not any(map(is_url, ("data", "/data", "file:///data", "a:b", "c:/x", Path("s3://x"))))
    assert local_path("file:///data/x") == Path("/data/x")
    assert inside("s3://bucket/root/", "a", "b") == "s3://bucket/root/a/b"
    assert inside("memory://", "a") == "memory://a"
    assert inside("sftp:///data/", "a") == "sftp:///data/a"
    assert inside("data", "a") == Path("data/a")
    assert shown("ftp://me:secret@host/x") == "ftp://…@host/x"
    with pytest.raises(InputError, match="given as text, not as a Path"):
        build("ba2motif", root=Path("s3://bucket/x"))
