"""Full and read-only disks, missing permissions, and roots in unusual places."""

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
from tests.conftest import CHECKOUT, copy_build
from tests.faults.conftest import QUICK, SMALL, IntactBuild, file_contents

Mount = Callable[[int], Path]


def _grow(disk: Path, kibibytes: int) -> None:
    options = f"remount,size={kibibytes}k"
    subprocess.run(["mount", "-o", options, str(disk)], check=True)


@pytest.mark.parametrize("kibibytes", [12, 24, 36, 48, 60])
def test_a_build_stopped_by_a_full_disk_ends_with_the_same_bytes_once_there_is_room(
    small_disk: Mount, intact: IntactBuild, kibibytes: int
) -> None:
    disk = small_disk(kibibytes)
    with pytest.raises(DiskFullError, match="No space left on device; make room and run the same"):
        build(root=disk, **SMALL)
    assert not (disk / "ba2motif" / "seed-0").exists()
    kept = {path.name: path.stat().st_mtime_ns for path in disk.rglob("shard-*.h5")}
    for path in disk.rglob("shard-*.h5"):
        ShardReader(path).check()
    assert not list(disk.rglob("*.tmp"))
    _grow(disk, 4096)
    assert build(root=disk, **SMALL).content_sha256 == intact.digest
    folder = disk / "ba2motif" / "seed-0"
    assert file_contents(folder) == file_contents(intact.folder)
    assert {name: (folder / name).stat().st_mtime_ns for name in kept} == kept


def test_a_training_on_a_full_disk_keeps_its_last_whole_epoch(
    small_disk: Mount, intact: IntactBuild, tmp_path: Path
) -> None:
    dataset = GraphXAIDataset.from_folder(intact.folder)
    _, undisturbed = train(dataset, out=tmp_path, changes=QUICK)
    disk = small_disk(40)
    filler = disk / "filler"

    def fill(*_: object) -> None:
        filler.write_bytes(bytes(4096 * max(0, os.statvfs(disk).f_bavail - 1)))

    with pytest.raises(DiskFullError, match="it goes on from the last whole epoch"):
        train(dataset, out=disk, changes=QUICK, progress=fill)
    filler.unlink()
    _grow(disk, 4096)
    epochs: list[int] = []
    _, card = train(dataset, out=disk, changes=QUICK, progress=lambda done, *_: epochs.append(done))
    assert card == undisturbed
    assert epochs == [2]  # the first epoch was not trained again


def test_a_failed_write_keeps_the_old_file_and_leaves_no_other(
    small_disk: Mount,
) -> None:
    path = small_disk(64) / "file"
    write_atomically(path, b"old")
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, bytes(2**20))
    assert path.read_bytes() == b"old"
    assert list(path.parent.iterdir()) == [path]


def test_builds_on_a_read_only_disk_can_be_used_and_writing_there_is_a_clear_error(
    small_disk: Mount, intact: IntactBuild, tmp_path: Path
) -> None:
    disk = small_disk(4096)
    folder = copy_build(intact.folder, disk)
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    with pytest.raises(InputError, match="Read-only file system; choose a --root that you can wr"):
        build(root=disk, **SMALL | {"seed": 1})
    assert build(root=disk, **SMALL).content_sha256 == intact.digest
    assert verify(folder) == []
    dataset = GraphXAIDataset.from_folder(folder)
    train(dataset, out=tmp_path, changes=QUICK)
    with pytest.raises(InputError, match="Read-only file system; choose a --out that you can wri"):
        train(dataset, out=disk, changes=QUICK)


MAIN = """
import sys
sys.path[:0] = [sys.argv.pop(1)]
from graphxai_data.cli import main
main(sys.argv[1:])
"""


@pytest.fixture
def run_as_nobody() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command line as a user without permissions; root ignores them."""
    setpriv = shutil.which("setpriv")
    if os.getuid() != 0 or setpriv is None:
        pytest.skip("becoming another user needs root and setpriv")
    python = [setpriv, "--reuid=65534", "--regid=65534", "--clear-groups", sys.executable]
    read = [*python, "-c", f"open({str(CHECKOUT / 'README.md')!r})"]
    if subprocess.run(read, capture_output=True, cwd="/").returncode:
        pytest.skip("another user cannot read the package or the interpreter here")
    folders = {"NUMBA_CACHE_DIR": "/tmp", "MPLCONFIGDIR": "/tmp", "HOME": "/nonexistent"}  # noqa: S108

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*python, "-c", MAIN, str(CHECKOUT), *map(str, arguments)],
            capture_output=True, text=True, timeout=120, env=os.environ | folders, cwd="/",
        )  # fmt: skip

    return run


@pytest.fixture
def public_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that other users can read."""
    folder = tmp_path_factory.mktemp("public")
    for path in (folder, *folder.parents):
        if path.stat().st_uid == os.getuid() and not path.stat().st_mode & 0o001:
            path.chmod(path.stat().st_mode | 0o055)
    return folder


def test_an_error_about_permissions_is_one_line_that_names_the_path(
    run_as_nobody: Callable[..., subprocess.CompletedProcess[str]],
    public_folder: Path,
    intact: IntactBuild,
) -> None:
    command = ["build", "ba2motif", "--graphs", 40, "--no-rings", "--engine", "serial"]
    result = run_as_nobody(*command, "--root", public_folder / "mine")
    assert result.returncode == 2
    assert "Permission denied; choose a --root that you can write to" in result.stderr
    assert "Traceback" not in result.stderr
    folder = copy_build(intact.folder, public_folder)
    shard = folder / "shard-00001.h5"
    shard.chmod(0)
    result = run_as_nobody("verify", folder)
    assert result.returncode == 1
    assert "shard-00001.h5" in result.stdout
    assert "Permission denied" in result.stdout
    assert "Traceback" not in result.stderr
    shard.chmod(0o644)
    result = run_as_nobody("verify", folder)
    assert result.returncode == 0, result.stdout + result.stderr
    (folder / "manifest.json").chmod(0)
    result = run_as_nobody("verify", folder)
    assert result.returncode in (1, 2)
    assert "manifest.json" in result.stderr + result.stdout
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("name", ["mit Leerzeichen", "图 é ñ", "-rf", "a'b\"c", "$(x);&|", "%s{}"])
def test_builds_and_trainings_work_in_a_root_of_any_name(
    tmp_path: Path, intact: IntactBuild, name: str
) -> None:
    root = tmp_path / name
    assert build(root=root, **SMALL).content_sha256 == intact.digest
    folder = root / "ba2motif" / "seed-0"
    assert verify(folder) == []
    assert file_contents(folder) == file_contents(intact.folder)
    dataset = GraphXAIDataset(root, "ba2motif")
    train(dataset, out=root / "runs", changes=QUICK | {"epochs": 1})


def test_the_name_of_a_root_need_not_be_unicode(tmp_path: Path, intact: IntactBuild) -> None:
    root = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe"))
    try:
        root.mkdir()
    except OSError:
        pytest.skip("this file system accepts only Unicode names")
    assert build(root=root, **SMALL).content_sha256 == intact.digest
    assert verify(root / "ba2motif" / "seed-0") == []


def test_roots_and_folders_may_be_symbolic_links(tmp_path: Path, intact: IntactBuild) -> None:
    real, root = tmp_path / "real", tmp_path / "link"
    (real / "elsewhere").mkdir(parents=True)
    root.symlink_to(real)
    (root / "ba2motif").symlink_to(real / "elsewhere")
    assert build(root=root, **SMALL).content_sha256 == intact.digest
    folder = real / "elsewhere" / "seed-0"
    assert file_contents(folder) == file_contents(intact.folder)
    # A new build replaces a link, and leaves the folder alone that the link points to.
    folder.rename(tmp_path / "kept")
    folder.symlink_to(tmp_path / "kept")
    assert verify(folder) == []
    build(root=root, **SMALL | {"graphs": 10, "replace_existing": True})
    assert not folder.is_symlink()
    assert file_contents(tmp_path / "kept") == file_contents(intact.folder)


def test_an_error_names_a_root_that_is_a_link_to_itself(tmp_path: Path) -> None:
    root = tmp_path / "link"
    root.symlink_to(root)
    with pytest.raises(InputError, match="link"):
        build(root=root, **SMALL)
