"""Processes to be killed, small disks, and what is to come out in the end."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[2]
SMALL = {"name": "ba2motif", "graphs": 40, "shard_size": 10, "engine": "serial", "rings": False}
Ask = Callable[..., dict[str, Any]]


@pytest.fixture(scope="session")
def nursery() -> Iterator[Ask]:
    """Run a call in a process of its own, and maybe kill it: `nursery.py`."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = os.pathsep.join([str(REPOSITORY), *sys.path])
    command = [sys.executable, str(Path(__file__).with_name("nursery.py"))]
    kills = 0
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:

        def ask(
            call: str,
            kill_after: float | None = None,
            kill_at: int | None = None,
            **arguments: Any,
        ) -> dict[str, Any]:
            nonlocal kills
            plain = {k: str(v) if isinstance(v, Path) else v for k, v in arguments.items()}
            request = {
                "call": call, "kill_after": kill_after, "kill_at": kill_at, "arguments": plain,
            }  # fmt: skip
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            answer: dict[str, Any] = json.loads(process.stdout.readline())
            kills += answer["killed"]
            return answer

        yield ask
        assert process.stdin is not None
        process.stdin.close()
    print(f"{kills} processes were killed")  # shown by `pytest -s`


@pytest.fixture(scope="session")
def golden(nursery: Ask, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """An undisturbed small build, and its digest."""
    root = tmp_path_factory.mktemp("golden")
    return root / "ba2motif" / "seed-0", nursery("build", root=root, **SMALL)["result"]


def content_of(folder: Path) -> dict[str, bytes]:
    """All files of a folder, hidden ones too."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """Mount a disk of so many KiB; needs root."""
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
