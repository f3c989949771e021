"""Disks that are full or cannot be written, and roots in unusual places."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from graphxai_data.building.build import build
from graphxai_data.building.verify import verify
from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.errors import InputError
from graphxai_data.files.disk import DiskFullError, write_atomically
from graphxai_data.graphs.shards import ShardReader
from graphxai_data.training.train import train
from tests.faults.conftest import REPOSITORY, SMALL, content_of

QUICK = {"epochs": 2, "batch_size": 16, "hidden": 8}
Mount = Callable[[int], Path]


def _grow(disk: Path, kibibytes: int) -> None:
    options = f"remount,size={kibibytes}k"
    subprocess.run(["mount", "-o", options, str(disk)], check=True)


@pytest.mark.parametrize("kibibytes", [12, 24, 36, 48, 60])
def test_wherever_the_disk_is_full_a_rerun_with_room_ends_with_the_golden_bytes(
    small_disk: Mount, golden: tuple[Path, str], kibibytes: int
) -> None:
    folder, digest = golden
    disk = small_disk(kibibytes)
    with pytest.raises(DiskFullError, match="No space left on device; make room and run the same"):
        build(root=disk, **SMALL)
    assert not (disk / "ba2motif" / "seed-0").exists()
    kept = {path.name: path.stat().st_mtime_ns for path in disk.rglob("shard-*.h5")}
    for path in disk.rglob("shard-*.h5"):
        ShardReader(path).check()
    assert not list(disk.rglob("*.tmp"))
    _grow(disk, 4096)
    assert build(root=disk, **SMALL).content_sha256 == digest
    made = disk / "ba2motif" / "seed-0"
    assert content_of(made) == content_of(folder)
    assert {name: (made / name).stat().st_mtime_ns for name in kept} == kept


def test_a_training_on_a_full_disk_keeps_its_last_whole_epoch(
    small_disk: Mount, golden: tuple[Path, str], tmp_path: Path
) -> None:
    dataset = GraphXAIDataset.from_folder(golden[0])
    _, whole = train(dataset, out=tmp_path / "whole", changes=QUICK)
    disk = small_disk(40)
    filler = disk / "filler"

    def fill(*_: object) -> None:
        filler.write_bytes(bytes(4096 * max(0, os.statvfs(disk).f_bavail - 1)))

    with pytest.raises(DiskFullError, match="it goes on from the last whole epoch"):
        train(dataset, out=disk, changes=QUICK, progress=fill)
    filler.unlink()
    _grow(disk, 4096)
    seen: list[int] = []
    _, again = train(dataset, out=disk, changes=QUICK, progress=lambda done, *_: seen.append(done))
    assert again == whole
    assert seen == [2]  # the first epoch was not done again


def test_after_a_write_that_failed_the_old_file_stands_and_nothing_lies_beside_it(
    small_disk: Mount,
) -> None:
    path = small_disk(64) / "file"
    write_atomically(path, b"old")
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, bytes(2**20))
    assert path.read_bytes() == b"old"
    assert list(path.parent.iterdir()) == [path]


def test_a_root_that_is_mounted_read_only_is_named_and_what_is_in_it_can_be_used(
    small_disk: Mount, golden: tuple[Path, str], tmp_path: Path
) -> None:
    folder, digest = golden
    disk = small_disk(4096)
    made = disk / "ba2motif" / "seed-0"
    shutil.copytree(folder, made)
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    with pytest.raises(InputError, match="Read-only file system; choose a --root that you can wr"):
        build(root=disk, **SMALL | {"seed": 1})
    assert build(root=disk, **SMALL).content_sha256 == digest
    assert verify(made) == []
    dataset = GraphXAIDataset.from_folder(made)
    train(dataset, out=tmp_path, changes=QUICK)
    with pytest.raises(InputError, match="Read-only file system; choose a --out that you can wri"):
        train(dataset, out=disk, changes=QUICK)


AS_NOBODY = """
import sys
from graphxai_data.cli import main
main(sys.argv[1:])
"""


def _as_nobody(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The command line as a user without rights; root ignores permissions."""
    setpriv = shutil.which("setpriv")
    if os.getuid() != 0 or setpriv is None:
        pytest.skip("becoming another user needs root and setpriv")
    user = [setpriv, "--reuid=65534", "--regid=65534", "--clear-groups"]
    # The package need not be readable by everybody: it is read before rights are given up.
    code = "import sys; sys.path[:0] = [sys.argv.pop(1)]" + AS_NOBODY
    command = [*user, sys.executable, "-c", code, str(REPOSITORY), *map(str, arguments)]
    environment = os.environ | {"NUMBA_CACHE_DIR": "/tmp", "MPLCONFIGDIR": "/tmp"}  # noqa: S108
    environment |= {"HOME": "/nonexistent"}
    probe = [*user, sys.executable, "-c", f"open({str(REPOSITORY / 'README.md')!r})"]
    if subprocess.run(probe, capture_output=True, cwd="/").returncode:
        pytest.skip("another user cannot read the package or the interpreter here")
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, env=environment, cwd="/"
    )


@pytest.fixture
def open_place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that other users can get to."""
    folder = tmp_path_factory.mktemp("open")
    for path in (folder, *folder.parents):
        if path.stat().st_uid == os.getuid() and not path.stat().st_mode & 0o001:
            path.chmod(path.stat().st_mode | 0o055)
    return folder


def test_without_permission_one_line_names_the_place(
    open_place: Path, golden: tuple[Path, str]
) -> None:
    wish = ["build", "ba2motif", "--graphs", 40, "--no-rings", "--engine", "serial"]
    result = _as_nobody(*wish, "--root", open_place / "mine")
    assert result.returncode == 2
    assert "Permission denied; choose a --root that you can write to" in result.stderr
    assert "Traceback" not in result.stderr
    shutil.copytree(golden[0], open_place / "ba2motif" / "seed-0")
    shard = open_place / "ba2motif" / "seed-0" / "shard-00001.h5"
    shard.chmod(0)
    result = _as_nobody("verify", open_place / "ba2motif" / "seed-0")
    assert result.returncode == 1
    assert "shard-00001.h5" in result.stdout
    assert "Permission denied" in result.stdout
    assert "Traceback" not in result.stderr
    shard.chmod(0o644)
    result = _as_nobody("verify", open_place / "ba2motif" / "seed-0")
    assert result.returncode == 0, result.stdout + result.stderr
    (open_place / "ba2motif" / "seed-0" / "manifest.json").chmod(0)
    result = _as_nobody("verify", open_place / "ba2motif" / "seed-0")
    assert result.returncode in (1, 2)
    assert "manifest.json" in result.stderr + result.stdout
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("place", ["mit Leerzeichen", "图 é ñ", "-rf", "a'b\"c", "$(x);&|", "%s{}"])
def test_whatever_a_root_is_called_builds_and_trainings_in_it_are_the_same(
    tmp_path: Path, golden: tuple[Path, str], place: str
) -> None:
    root = tmp_path / place
    assert build(root=root, **SMALL).content_sha256 == golden[1]
    made = root / "ba2motif" / "seed-0"
    assert verify(made) == []
    assert content_of(made) == content_of(golden[0])
    dataset = GraphXAIDataset(root, "ba2motif")
    train(dataset, out=root / "runs", changes=QUICK | {"epochs": 1})


def test_a_name_that_is_not_unicode_works_too(tmp_path: Path, golden: tuple[Path, str]) -> None:
    root = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe"))
    try:
        root.mkdir()
    except OSError:
        pytest.skip("this file system takes Unicode alone")
    assert build(root=root, **SMALL).content_sha256 == golden[1]
    assert verify(root / "ba2motif" / "seed-0") == []


def test_roots_and_folders_may_be_symbolic_links(tmp_path: Path, golden: tuple[Path, str]) -> None:
    real, root = tmp_path / "real", tmp_path / "link"
    (real / "elsewhere").mkdir(parents=True)
    root.symlink_to(real)
    (root / "ba2motif").symlink_to(real / "elsewhere")
    assert build(root=root, **SMALL).content_sha256 == golden[1]
    made = real / "elsewhere" / "seed-0"
    assert content_of(made) == content_of(golden[0])
    # The folder of a build as a link: replaced by a build, and what it led to is left alone.
    made.rename(tmp_path / "kept")
    made.symlink_to(tmp_path / "kept")
    assert verify(made) == []
    build(root=root, **SMALL | {"graphs": 10, "replace_existing": True})
    assert not made.is_symlink()
    assert content_of(tmp_path / "kept") == content_of(golden[0])


def test_a_link_to_nowhere_or_to_itself_is_named(tmp_path: Path) -> None:
    root = tmp_path / "link"
    root.symlink_to(root)
    with pytest.raises(InputError, match="link"):
        build(root=root, **SMALL)
