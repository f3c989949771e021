"""Several processes at the same time, workers that die, and clocks that jump."""

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
from tests.conftest import importing_environment, run_python
from tests.faults.conftest import SMALL, IntactBuild, file_contents
from tests.faults.worker_functions import allocate_too_much, raise_memory_error

HOLD_LOCK = """
import sys, time
from pathlib import Path
from graphxai_data.files.disk import folder_lock
with folder_lock(Path(sys.argv[1]), wait=False):
    print("held", flush=True)
    time.sleep(60)
"""


def _start_python(code: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=importing_environment())


def test_an_error_names_the_owner_of_a_lock_and_a_dead_owner_does_not_block(
    tmp_path: Path, intact: IntactBuild
) -> None:
    folder = tmp_path / "ba2motif" / "seed-0"
    folder.parent.mkdir()
    with _start_python(HOLD_LOCK, folder) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "held\n"
        with pytest.raises(InputError) as caught:
            build(root=tmp_path, **SMALL)
        match = re.search(
            r"\(process (\d+) on (\S+), since (\d{4}-\d\d-\d\d .*?)\)", str(caught.value)
        )
        assert match is not None, caught.value
        assert (int(match[1]), match[2]) == (owner.pid, socket.gethostname())
        owner.send_signal(signal.SIGKILL)
    assert (folder.parent / ".seed-0.lock").exists()
    assert (folder.parent / ".seed-0.owner").exists()
    start = time.monotonic()
    assert build(root=tmp_path, **SMALL).content_sha256 == intact.digest
    assert time.monotonic() - start < 30
    assert not (folder.parent / ".seed-0.owner").exists()


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"pid": 1}', "\0" * 100, "9" * 5000])
def test_an_unreadable_note_about_the_owner_of_a_lock_is_ignored(
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


BUILD_OR_REFUSE = """
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
def test_builds_at_the_same_time_wait_for_each_other_or_are_refused(
    tmp_path: Path, intact: IntactBuild, wait: str
) -> None:
    processes = [_start_python(BUILD_OR_REFUSE, tmp_path, wait) for _ in range(4)]
    outputs = {process.communicate(timeout=120)[0].strip() for process in processes}
    assert all(process.returncode == 0 for process in processes)
    assert intact.digest in outputs
    assert outputs <= ({intact.digest} if wait == "wait" else {intact.digest, "refused"})
    folder = tmp_path / "ba2motif" / "seed-0"
    assert verify(folder) == []
    assert file_contents(folder) == file_contents(intact.folder)


def test_two_evaluations_at_the_same_time_keep_each_others_rows(
    intact: IntactBuild, tmp_path: Path
) -> None:
    dataset = GraphXAIDataset.from_folder(intact.folder)
    options = {
        "models": ["bcos-gin"], "seeds": [0], "out": tmp_path, "timing": False,
        "changes": {"epochs": 1, "hidden": 8},
    }  # fmt: skip
    compare(dataset, explainers=["random"], faithfulness=False, **options | {"models": None})
    path = tmp_path / "bcos-gin-ba2motif" / "seed-0" / RESULTS

    def compare_meanwhile(done: int, total: int, what: str) -> None:
        # The second evaluation runs as a whole after the first has read the saved rows.
        if "bcos of" in what:
            compare(dataset, explainers=["bcos-input-x-gradient"], **options)

    compare(dataset, explainers=["bcos"], progress=compare_meanwhile, **options)
    rows = json.loads(path.read_text())["splits"]["test"]
    assert {"bcos", "bcos-input-x-gradient"} <= rows.keys()
    assert all("jaccard" in row for row in rows.values())


def test_a_file_with_many_writers_always_has_the_whole_content_of_one_of_them(
    tmp_path: Path,
) -> None:
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


@pytest.mark.parametrize("function", [raise_memory_error, allocate_too_much])
def test_the_error_about_a_worker_without_memory_suggests_fewer_jobs(
    function: Callable[[int], int],
) -> None:
    with pytest.raises(WorkerDiedError, match="with fewer --jobs if memory is short"):
        list(run(function, [0, 1], engine="processes", jobs=2))


KILL_A_WORKER = """
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


def test_a_killed_worker_ends_the_build_with_a_clear_error_and_a_rerun_continues_it(
    tmp_path: Path,
) -> None:
    pytest.importorskip("psutil")
    result = run_python(KILL_A_WORKER, tmp_path / "a")
    assert "a worker process died" in result.stdout, result.stdout + result.stderr
    kept = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "a").rglob("shard-*.h5")}
    assert len(kept) >= 3
    options = SMALL | {"graphs": 600}
    assert build(root=tmp_path / "a", **options) == build(root=tmp_path / "b", **options)
    folder = tmp_path / "a" / "ba2motif" / "seed-0"
    assert {name: (folder / name).stat().st_mtime_ns for name in kept} == kept


@pytest.mark.parametrize("jump", [-(10**9), 10**9])
def test_a_clock_that_jumps_between_two_runs_changes_nothing(
    tmp_path: Path, intact: IntactBuild, jump: int
) -> None:
    """The files of the first run come from the future, or from 1995."""
    calls = 0

    def stop(done: int, total: int, what: str) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(root=tmp_path, progress=stop, **SMALL)
    wrong_time = time.time() + jump
    for path in tmp_path.rglob("*"):
        os.utime(path, (wrong_time, wrong_time))
    kept = {path.name for path in tmp_path.rglob("shard-*.h5")}
    counts: list[int] = []
    build(root=tmp_path, progress=lambda done, *_: counts.append(done), **SMALL)
    assert counts[0] == 10 * len(kept) > 0
    assert file_contents(tmp_path / "ba2motif" / "seed-0") == file_contents(intact.folder)


def test_a_clock_that_jumps_whenever_it_is_read_changes_nothing(
    tmp_path: Path, intact: IntactBuild, monkeypatch: pytest.MonkeyPatch
) -> None:
    draws = random.Random(0)  # noqa: S311
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + draws.uniform(-(10**9), 10**9))
    assert build(root=tmp_path, **SMALL).content_sha256 == intact.digest
    assert file_contents(tmp_path / "ba2motif" / "seed-0") == file_contents(intact.folder)
