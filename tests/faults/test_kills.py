"""A call that is killed at any disk operation or moment, and run again, gives the same files."""

import os
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphxai_data.building.build import build
from graphxai_data.building.verify import verify
from graphxai_data.manifest import Manifest
from graphxai_data.training.checkpoint import CARD, WEIGHTS
from graphxai_data.training.state import STATE
from tests.conftest import copy_build
from tests.faults.conftest import QUICK, SMALL, IntactBuild, RunInChild, file_contents

TRAINED = "bcos-gin-ba2motif/seed-0"


def _kill_at_every_operation(run_killed_at: Callable[[int], dict[str, Any]]) -> int:
    """Kill a call at its operation 1, 2, … until it finishes; return the number of kills."""
    for n in range(1, 200):
        if not run_killed_at(n)["killed"]:
            return n - 1
    raise AssertionError("the call never finishes")


def _check_only_the_build_is_left(folder: Path, n: int) -> None:
    names = {path.name for path in folder.parent.iterdir()}
    # A note about the owner may stay if the build had been finished before.
    assert names - {".seed-0.owner"} == {"seed-0", ".seed-0.lock"}, n


def test_a_build_killed_at_any_disk_operation_ends_with_the_same_bytes(
    run_in_child: RunInChild, intact: IntactBuild, tmp_path: Path
) -> None:
    def run_killed_at(n: int) -> dict[str, Any]:
        root = tmp_path / str(n)
        answer = run_in_child("build", kill_at=n, root=root, **SMALL)
        folder = root / "ba2motif" / "seed-0"
        if folder.exists():  # under its final name, a build is complete
            assert verify(folder) == [], n
        shards = {p.name: p.stat().st_mtime_ns for p in root.rglob("shard-*.h5")}
        assert run_in_child("build", root=root, **SMALL)["result"] == intact.digest, n
        assert file_contents(folder) == file_contents(intact.folder), n
        for name, modified in shards.items():
            assert (folder / name).stat().st_mtime_ns == modified, f"{name} was lost, operation {n}"
        _check_only_the_build_is_left(folder, n)
        shutil.rmtree(root)
        return answer

    kills = _kill_at_every_operation(run_killed_at)
    print(f"{kills} kills")
    assert kills >= 20


def test_a_replacement_killed_at_any_disk_operation_keeps_the_old_build_or_the_new_one(
    run_in_child: RunInChild, intact: IntactBuild, tmp_path: Path
) -> None:
    new = SMALL | {"graphs": 10, "replace_existing": True}
    new_digest = run_in_child("build", root=tmp_path / "new", **new)["result"]

    def run_killed_at(n: int) -> dict[str, Any]:
        root = tmp_path / str(n)
        folder = copy_build(intact.folder, root)
        answer = run_in_child("build", kill_at=n, root=root, **new)
        remaining = folder if folder.exists() else folder.with_name(".seed-0.replaced")
        assert Manifest.load(remaining).content_sha256 in (intact.digest, new_digest), n
        assert verify(remaining) == [], n
        assert run_in_child("build", root=root, **new)["result"] == new_digest, n
        _check_only_the_build_is_left(folder, n)
        shutil.rmtree(root)
        return answer

    assert _kill_at_every_operation(run_killed_at) >= 10


def test_a_replaced_build_that_was_half_deleted_is_never_restored(
    intact: IntactBuild, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copy_build(intact.folder, tmp_path)
    new = SMALL | {"graphs": 10}

    def delete_half(path: Path) -> None:
        (path / "shard-00001.h5").unlink()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", delete_half)
        with pytest.raises(KeyboardInterrupt):
            build(root=tmp_path, **new, replace_existing=True)
    shutil.rmtree(folder)  # as a user might
    assert build(root=tmp_path, **new).graphs == 10
    assert {path.name for path in folder.parent.iterdir()} == {"seed-0", ".seed-0.lock"}


def test_a_training_killed_at_any_disk_operation_ends_with_the_same_weights(
    run_in_child: RunInChild, intact: IntactBuild, tmp_path: Path
) -> None:
    undisturbed = tmp_path / "undisturbed" / TRAINED
    answer = run_in_child("train", root=intact.root, out=tmp_path / "undisturbed")
    weights_sha256 = answer["result"]

    def run_killed_at(n: int) -> dict[str, Any]:
        out = tmp_path / str(n)
        answer = run_in_child("train", kill_at=n, root=intact.root, out=out)
        rerun = run_in_child("train", root=intact.root, out=out)
        assert rerun["result"] == weights_sha256, n
        files, expected = file_contents(out / TRAINED), file_contents(undisturbed)
        for name in (CARD, WEIGHTS):
            assert files[name] == expected[name], (n, name)
        assert set(files) == set(expected), n
        assert STATE not in files
        return answer

    assert _kill_at_every_operation(run_killed_at) >= 12


def _kill_at_random_moments(
    run_in_child: RunInChild, call: str, kills: int, seed: int, seconds: float, **arguments: Any
) -> tuple[Any, int]:
    """Kill a call several times, each within `seconds`, then let it finish.

    A call continues where it was killed: kills within 2 / `kills` of its time cover all of it.

    Returns:
        the result, and how many kills hit a running process.
    """
    draws = random.Random(seed)  # noqa: S311
    hits = 0
    for _ in range(kills):
        hits += run_in_child(call, kill_after=draws.uniform(0.0, seconds), **arguments)["killed"]
    answer = run_in_child(call, **arguments)
    assert "result" in answer, (seed, answer)
    return answer["result"], hits


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_build_killed_at_random_moments_ends_with_the_same_digest(
    run_in_child: RunInChild, tmp_path: Path, seed: int
) -> None:
    arguments = SMALL | {"graphs": 400, "rings": True}
    undisturbed = run_in_child("build", root=tmp_path / "undisturbed", **arguments)
    digest, hits = _kill_at_random_moments(
        run_in_child, "build", 8, seed, undisturbed["seconds"] * 0.6,
        root=tmp_path / "killed", **arguments,
    )  # fmt: skip
    assert digest == undisturbed["result"], seed
    folders = [tmp_path / name / "ba2motif" / "seed-0" for name in ("undisturbed", "killed")]
    assert verify(folders[1]) == []
    assert file_contents(folders[0]) == file_contents(folders[1]), seed
    assert hits >= 3, seed


def _loky_workers() -> set[int]:
    pids = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if b"loky" in (entry / "cmdline").read_bytes():
                    pids.add(int(entry.name))
            except OSError:
                continue
    return pids


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="needs Linux")
@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_a_build_of_many_processes_killed_at_random_moments_ends_with_the_same_digest(
    run_in_child: RunInChild, tmp_path: Path, kills: int
) -> None:
    before = _loky_workers()
    arguments = SMALL | {"graphs": 1000, "engine": "processes", "jobs": 2}
    undisturbed = run_in_child("build", root=tmp_path / "undisturbed", **arguments)
    digest, hits = _kill_at_random_moments(
        run_in_child, "build", kills, kills, undisturbed["seconds"],
        root=tmp_path / "killed", **arguments,
    )  # fmt: skip
    assert digest == undisturbed["result"]
    assert verify(tmp_path / "killed" / "ba2motif" / "seed-0") == []
    assert hits >= 1
    # Workers exit when their parent was killed, and hold no lock until then.
    deadline = time.monotonic() + 60
    while _orphans(_loky_workers() - before):
        assert time.monotonic() < deadline, "workers outlive the build that was killed"
        time.sleep(0.2)


def _orphans(pids: set[int]) -> set[int]:
    """Return the processes whose parent is gone; other tests may run workers at the same time."""
    orphans = set()
    for pid in pids:
        try:
            parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        orphans |= {pid} if parent == 1 else set()
    return orphans


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_training_killed_at_random_moments_ends_with_the_same_weights(
    run_in_child: RunInChild, intact: IntactBuild, tmp_path: Path, seed: int
) -> None:
    arguments = {"changes": QUICK | {"epochs": 40}, "root": intact.root}
    undisturbed = run_in_child("train", out=tmp_path / "undisturbed", **arguments)
    weights_sha256, hits = _kill_at_random_moments(
        run_in_child, "train", 8, seed, undisturbed["seconds"] * 2 / 8,
        out=tmp_path / "killed", **arguments,
    )  # fmt: skip
    assert weights_sha256 == undisturbed["result"], seed
    weights = [tmp_path / name / TRAINED / WEIGHTS for name in ("undisturbed", "killed")]
    assert weights[0].read_bytes() == weights[1].read_bytes(), seed
    assert hits >= 3, seed


def test_a_comparison_killed_at_any_disk_operation_ends_with_the_same_rows(
    run_in_child: RunInChild, intact: IntactBuild, tmp_path: Path
) -> None:
    arguments = {
        "root": intact.root, "models": ["bcos-gin"], "seeds": [0],
        "explainers": ["bcos", "bcos-input-x-gradient", "random"],
    }  # fmt: skip
    answer = run_in_child("compare", out=tmp_path / "undisturbed", **arguments)
    assert "result" in answer, answer
    rows = answer["result"]
    shutil.copytree(tmp_path / "undisturbed", tmp_path / "trained")
    (tmp_path / "trained" / TRAINED / "evaluation.json").unlink()

    def run_killed_at(n: int) -> dict[str, Any]:
        out = tmp_path / str(n)
        shutil.copytree(tmp_path / "trained", out)
        answer = run_in_child("compare", kill_at=n, out=out, **arguments)
        assert run_in_child("compare", out=out, **arguments)["result"] == rows, n
        return answer

    assert _kill_at_every_operation(run_killed_at) >= 6


@pytest.mark.parametrize("kills", [5, pytest.param(15, marks=pytest.mark.slow)])
def test_a_reproduction_killed_at_random_moments_ends_with_the_same_table(
    run_in_child: RunInChild, tmp_path: Path, kills: int
) -> None:
    def arguments(folder: Path) -> dict[str, Any]:
        return {
            "parts": ["table 2"], "root": folder / "data", "out": folder / "runs",
            "results": folder / "results",
        }  # fmt: skip

    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    answer = run_in_child("reproduce", **arguments(undisturbed))
    result, hits = _kill_at_random_moments(
        run_in_child, "reproduce", kills, kills, answer["seconds"] * 2 / kills, **arguments(killed)
    )
    assert result == answer["result"]
    assert result[2] == 0  # no cell is missing
    weights = {
        path.relative_to(folder): path.read_bytes()
        for folder in (undisturbed, killed)
        for path in folder.rglob(WEIGHTS)
    }
    assert len(weights) == 6
    for path in undisturbed.rglob(WEIGHTS):
        assert path.read_bytes() == weights[path.relative_to(undisturbed)]
    assert hits >= kills // 2
    assert "Not finished" not in (killed / "results" / "report.md").read_text()


def test_a_process_that_was_not_killed_is_not_counted_as_killed(
    run_in_child: RunInChild, tmp_path: Path
) -> None:
    answer = run_in_child("build", kill_at=10**6, root=tmp_path, **SMALL)
    assert not answer["killed"]
    assert answer["pid"] != os.getpid()
