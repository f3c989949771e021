"""Several processes at once, workers that die, and clocks that jump."""

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from graphxai_data.building.build import build
from graphxai_data.building.engine import WorkerDiedError, run
from graphxai_data.building.verify import verify
from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.errors import InputError
from graphxai_data.evaluation.comparison import compare
from graphxai_data.evaluation.study import RESULTS
from graphxai_data.files.disk import folder_lock, write_atomically
from tests.faults.conftest import SMALL, content_of

HOLDER = """
import sys, time
from pathlib import Path
from graphxai_data.files.disk import folder_lock
with folder_lock(Path(sys.argv[1]), wait=False):
    print("held", flush=True)
    time.sleep(60)
"""


def _held(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", HOLDER, str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_the_owner_of_a_lock_is_named_and_the_lock_of_a_dead_one_is_free(
    tmp_path: Path, golden: tuple[Path, str]
) -> None:
    folder = tmp_path / "ba2motif" / "seed-0"
    folder.parent.mkdir()
    with _held(folder) as owner:
        with pytest.raises(InputError) as caught:
            build(root=tmp_path, **SMALL)
        found = re.search(
            r"\(process (\d+) on (\S+), since (\d{4}-\d\d-\d\d .*?)\)", str(caught.value)
        )
        assert found is not None, caught.value
        assert (int(found[1]), found[2]) == (owner.pid, socket.gethostname())
        owner.send_signal(signal.SIGKILL)
    assert (folder.parent / ".seed-0.lock").exists()
    assert (folder.parent / ".seed-0.owner").exists()
    begin = time.monotonic()
    assert build(root=tmp_path, **SMALL).content_sha256 == golden[1]
    assert time.monotonic() - begin < 30
    assert not (folder.parent / ".seed-0.owner").exists()


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"pid": 1}', "\0" * 100, "9" * 5000])
def test_a_note_about_the_owner_that_makes_no_sense_is_no_obstacle(
    tmp_path: Path, content: str
) -> None:
    folder = tmp_path / "f"
    with folder_lock(folder, wait=False):
        (tmp_path / ".f.owner").write_text(content)
        with (
            pytest.raises(InputError, match="another process is building here; wait"),
            folder_lock(folder, wait=False),
        ):
            pass
    with folder_lock(folder, wait=False):
        pass


ONE_OF_MANY = """
import sys
from graphxai_data.building.build import build
from graphxai_data.errors import InputError
try:
    wait = sys.argv[2] == "wait"
    print(build("ba2motif", root=sys.argv[1], graphs=40, shard_size=10, engine="serial",
                rings=False, wait=wait).content_sha256)
except InputError as error:
    assert "another process is building here" in str(error), error
    print("refused")
"""


@pytest.mark.parametrize("wait", ["wait", "no"])
def test_of_many_builds_at_once_one_wins_or_all_agree(
    tmp_path: Path, golden: tuple[Path, str], wait: str
) -> None:
    command = [sys.executable, "-c", ONE_OF_MANY, str(tmp_path), wait]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    found = {process.communicate(timeout=120)[0].strip() for process in running}
    assert all(process.returncode == 0 for process in running)
    assert golden[1] in found
    assert found <= ({golden[1]} if wait == "wait" else {golden[1], "refused"})
    made = tmp_path / "ba2motif" / "seed-0"
    assert verify(made) == []
    assert content_of(made) == content_of(golden[0])


def test_two_evaluations_at_once_keep_each_others_rows(
    golden: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = GraphXAIDataset.from_folder(golden[0])
    wish = {
        "models": ["bcos-gin"], "seeds": [0], "out": tmp_path, "timing": False,
        "changes": {"epochs": 1, "hidden": 8},
    }  # fmt: skip
    compare(dataset, explainers=["random"], faithfulness=False, **wish | {"models": None})
    path = tmp_path / "bcos-gin-ba2motif" / "seed-0" / RESULTS

    def other(done: int, total: int, what: str) -> None:
        # When the first one has read what is known, the second does all its work.
        if "bcos of" in what:
            compare(dataset, explainers=["bcos-input-x-gradient"], **wish)

    compare(dataset, explainers=["bcos"], progress=other, **wish)
    rows = json.loads(path.read_text())["splits"]["test"]
    assert {"bcos", "bcos-input-x-gradient"} <= rows.keys()
    assert all("jaccard" in row for row in rows.values())


def test_of_many_writers_of_one_file_the_last_one_stays_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    contents = [bytes([i]) * 300_000 for i in range(4)]
    failures: list[BaseException] = []

    def write(content: bytes) -> None:
        try:
            for _ in range(20):
                write_atomically(path, content)
                assert path.read_bytes() in contents
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert path.read_bytes() in contents
    assert list(tmp_path.iterdir()) == [path]


def _out_of_memory(number: int) -> int:
    raise MemoryError


def _hungry(number: int) -> int:
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31))
    return len(bytearray(2**33))


@pytest.mark.parametrize("function", [_out_of_memory, _hungry])
def test_a_worker_without_memory_is_reported_with_the_remedy(
    function: Callable[[int], int],
) -> None:
    with pytest.raises(WorkerDiedError, match="with fewer --jobs if memory is short"):
        list(run(function, [0, 1], engine="processes", jobs=2))


KILLED_WORKER = """
import sys
from graphxai_data.building.build import build
from graphxai_data.building.engine import WorkerDiedError
import psutil

killed = []

def progress(done, total, what):
    if done >= 30 and not killed:
        workers = [c for c in psutil.Process().children() if "popen_loky" in str(c.cmdline())]
        workers[0].kill()
        killed.append(workers[0].pid)
try:
    build("ba2motif", root=sys.argv[1], graphs=600, shard_size=10, jobs=2, rings=False,
          progress=progress)
    print("finished")
except WorkerDiedError as error:
    print(error)
"""


def test_a_worker_that_is_killed_ends_the_build_clearly_and_a_rerun_goes_on(tmp_path: Path) -> None:
    pytest.importorskip("psutil")
    command = [sys.executable, "-c", KILLED_WORKER, str(tmp_path / "a")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert "a worker process died" in result.stdout, result.stdout + result.stderr
    kept = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "a").rglob("shard-*.h5")}
    assert len(kept) >= 3
    wish = SMALL | {"graphs": 600}
    again = build(root=tmp_path / "a", **wish)
    assert again == build(root=tmp_path / "b", **wish)
    made = tmp_path / "a" / "ba2motif" / "seed-0"
    assert {name: (made / name).stat().st_mtime_ns for name in kept} == kept


@pytest.mark.parametrize("jump", [-(10**9), 10**9])
def test_a_clock_that_jumps_changes_nothing(
    tmp_path: Path, golden: tuple[Path, str], monkeypatch: pytest.MonkeyPatch, jump: int
) -> None:
    """Between two runs, so that what is on disk comes from the future, or from 1995."""
    calls = 0

    def stop(done: int, total: int, what: str) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(root=tmp_path, progress=stop, **SMALL)
    then = time.time() + jump
    for path in tmp_path.rglob("*"):
        os.utime(path, (then, then))
    kept = {path.name for path in tmp_path.rglob("shard-*.h5")}
    seen: list[int] = []
    build(root=tmp_path, progress=lambda done, *_: seen.append(done), **SMALL)
    assert seen[0] == 10 * len(kept) > 0
    made = tmp_path / "ba2motif" / "seed-0"
    assert content_of(made) == content_of(golden[0])


def test_a_clock_that_jumps_while_it_is_looked_at_changes_nothing(
    tmp_path: Path, golden: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    draws = random.Random(0)  # noqa: S311
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + draws.uniform(-(10**9), 10**9))
    assert build(root=tmp_path, **SMALL).content_sha256 == golden[1]
    assert content_of(tmp_path / "ba2motif" / "seed-0") == content_of(golden[0])
