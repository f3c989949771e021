"""Child processes to kill, small disks, and the build that every run must end with."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from graphxai_data.building.build import build
from tests.conftest import importing_environment

SMALL: dict[str, Any] = {
    "name": "ba2motif", "graphs": 40, "shard_size": 10, "engine": "serial", "rings": False,
}  # fmt: skip
QUICK = {"epochs": 2, "batch_size": 16, "hidden": 8}
RunInChild = Callable[..., dict[str, Any]]


class IntactBuild(NamedTuple):
    """A build that nothing disturbed; not to be changed."""

    root: Path
    folder: Path
    digest: str


@pytest.fixture(scope="session")
def intact(tmp_path_factory: pytest.TempPathFactory) -> IntactBuild:
    """The build `SMALL`, undisturbed."""
    root = tmp_path_factory.mktemp("intact")
    digest = build(root=root, **SMALL).content_sha256
    return IntactBuild(root, root / "ba2motif" / "seed-0", digest)


@pytest.fixture(scope="session")
def run_in_child() -> Iterator[RunInChild]:
    """Run a call in a forked process, and kill it if asked to; see `fork_server.py`."""
    server = subprocess.Popen(
        [sys.executable, Path(__file__).with_name("fork_server.py")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=importing_environment(),
    )  # fmt: skip
    kills = 0
    with server as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def run(
            call: str,
            kill_after: float | None = None,
            kill_at: int | None = None,
            **arguments: Any,
        ) -> dict[str, Any]:
            nonlocal kills
            request = {
                "call": call, "kill_after": kill_after, "kill_at": kill_at, "arguments": arguments,
            }  # fmt: skip
            process.stdin.write(json.dumps(request, default=str) + "\n")
            process.stdin.flush()
            answer: dict[str, Any] = json.loads(process.stdout.readline())
            kills += answer["killed"]
            return answer

        yield run
        process.stdin.close()
    print(f"{kills} processes were killed")  # shown by `pytest -s`


def file_contents(folder: Path) -> dict[str, bytes]:
    """Return the content of every file of a folder, including hidden ones, by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """Mount a disk of the given size in KiB; needs root."""
    folder = tmp_path / "disk"
    folder.mkdir()

    def mount(kibibytes: int) -> Path:
        command = shutil.which("mount")
        options = ["-t", "tmpfs", "-o", f"size={kibibytes}k", "tmpfs", str(folder)]
        if command is None or subprocess.run([command, *options], capture_output=True).returncode:
            pytest.skip("mounting a small disk needs root")
        return folder

    yield mount
    if folder.is_mount():
        subprocess.run(["umount", "-l", str(folder)], check=True)
