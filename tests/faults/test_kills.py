"""SIGKILL, at every operation that changes the disk and at random moments; then the same again."""

import os
import random
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from graphxai_data.building.build import build
from graphxai_data.building.verify import verify
from graphxai_data.manifest import Manifest
from graphxai_data.training.checkpoint import CARD, WEIGHTS
from graphxai_data.training.state import STATE
from tests.faults.conftest import SMALL, Ask, content_of

TRAINED = "bcos-gin-ba2motif/seed-0"


def _killed_at_every_operation(ask: Any) -> int:
    """Call `ask(n)` for n = 1, 2, … until it comes to its end; gives the number of kills."""
    for n in range(1, 200):
        if not ask(n)["killed"]:
            return n - 1
    raise AssertionError("it never comes to an end")


def test_a_build_killed_before_any_write_ends_with_the_same_bytes(
    nursery: Ask, golden: tuple[Path, str], tmp_path: Path
) -> None:
    folder, digest = golden

    def killed(n: int) -> dict[str, Any]:
        root = tmp_path / str(n)
        answer = nursery("build", kill_at=n, root=root, **SMALL)
        made = root / "ba2motif" / "seed-0"
        if made.exists():  # what has its name is whole
            assert verify(made) == [], n
        shards = {p.name: p.stat().st_mtime_ns for p in root.rglob("shard-*.h5")}
        assert nursery("build", root=root, **SMALL)["result"] == digest, n
        assert content_of(made) == content_of(folder), n
        for name, when in shards.items():
            assert (made / name).stat().st_mtime_ns == when, f"{name} was lost, operation {n}"
        rest = {path.name for path in made.parent.iterdir()}
        # A note about the owner may stay where nothing was left to be done.
        assert rest - {".seed-0.owner"} == {"seed-0", ".seed-0.lock"}, n
        shutil.rmtree(root)
        return answer

    kills = _killed_at_every_operation(killed)
    print(f"{kills} kills")
    assert kills >= 20


def test_a_replacement_killed_before_any_write_keeps_the_old_build_or_the_new_one(
    nursery: Ask, golden: tuple[Path, str], tmp_path: Path
) -> None:
    old, digest = golden
    new = SMALL | {"graphs": 10, "replace_existing": True}
    expected = nursery("build", root=tmp_path / "new", **new)["result"]

    def killed(n: int) -> dict[str, Any]:
        root = tmp_path / str(n)
        made = root / "ba2motif" / "seed-0"
        shutil.copytree(old, made)
        answer = nursery("build", kill_at=n, root=root, **new)
        there = made if made.exists() else made.with_name(".seed-0.replaced")
        assert Manifest.load(there).content_sha256 in (digest, expected), n
        assert verify(there) == [], n
        assert nursery("build", root=root, **new)["result"] == expected, n
        rest = {path.name for path in made.parent.iterdir()}
        assert rest - {".seed-0.owner"} == {"seed-0", ".seed-0.lock"}, n
        shutil.rmtree(root)
        return answer

    assert _killed_at_every_operation(killed) >= 10


def test_a_build_that_was_half_taken_away_is_never_put_back(
    golden: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tmp_path / "ba2motif" / "seed-0"
    shutil.copytree(golden[0], made)
    new = SMALL | {"graphs": 10}

    def half(path: Path) -> None:
        (path / "shard-00001.h5").unlink()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", half)
        with pytest.raises(KeyboardInterrupt):
            build(root=tmp_path, **new, replace_existing=True)
    shutil.rmtree(made)  # by hand
    assert build(root=tmp_path, **new).graphs == 10
    assert {path.name for path in made.parent.iterdir()} == {"seed-0", ".seed-0.lock"}


def test_a_training_killed_before_any_write_ends_with_the_same_weights(
    nursery: Ask, golden: tuple[Path, str], tmp_path: Path
) -> None:
    root = golden[0].parent.parent
    weights = nursery("train", root=root, out=tmp_path / "whole")["result"]
    whole = tmp_path / "whole" / TRAINED

    def killed(n: int) -> dict[str, Any]:
        out = tmp_path / str(n)
        answer = nursery("train", kill_at=n, root=root, out=out)
        assert nursery("train", root=root, out=out)["result"] == weights, n
        for name in (CARD, WEIGHTS):
            assert (out / TRAINED / name).read_bytes() == (whole / name).read_bytes(), (n, name)
        assert set(content_of(out / TRAINED)) == set(content_of(whole)), n
        assert not (out / TRAINED / STATE).exists()
        return answer

    assert _killed_at_every_operation(killed) >= 12


def _killed_at_random(
    nursery: Ask, call: str, kills: int, seed: int, seconds: float, **arguments: Any
) -> tuple[Any, int]:
    """Kill at random moments of a run that takes so many seconds, then let it come to its end."""
    draws = random.Random(seed)  # noqa: S311
    done = 0
    for _ in range(kills):
        done += nursery(call, kill_after=draws.uniform(0.0, seconds), **arguments)["killed"]
    answer = nursery(call, **arguments)
    assert "result" in answer, (seed, answer)
    return answer["result"], done


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_build_killed_at_random_moments_ends_with_the_same_digest(
    nursery: Ask, tmp_path: Path, seed: int
) -> None:
    wish = SMALL | {"graphs": 400, "rings": True}
    whole = nursery("build", root=tmp_path / "whole", **wish)
    found, kills = _killed_at_random(
        nursery, "build", 8, seed, whole["seconds"] * 0.6, root=tmp_path / "killed", **wish
    )
    assert found == whole["result"], seed
    assert verify(tmp_path / "killed" / "ba2motif" / "seed-0") == []
    names = [tmp_path / name / "ba2motif" / "seed-0" for name in ("whole", "killed")]
    assert content_of(names[0]) == content_of(names[1]), seed
    assert kills >= 3, seed


def _children_of_loky() -> set[int]:
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if b"loky" in (entry / "cmdline").read_bytes():
                    found.add(int(entry.name))
            except OSError:
                continue
    return found


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="needs Linux")
@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_a_build_of_many_processes_killed_at_random_moments_ends_with_the_same_digest(
    nursery: Ask, tmp_path: Path, kills: int
) -> None:
    before = _children_of_loky()
    wish = SMALL | {"graphs": 1000, "engine": "processes", "jobs": 2}
    whole = nursery("build", root=tmp_path / "whole", **wish)
    found, done = _killed_at_random(
        nursery, "build", kills, kills, whole["seconds"], root=tmp_path / "killed", **wish
    )
    assert found == whole["result"]
    assert verify(tmp_path / "killed" / "ba2motif" / "seed-0") == []
    assert done >= 1
    # Workers whose master was killed end by themselves, and hold no lock meanwhile.
    patience = time.monotonic() + 60
    while _ours(_children_of_loky() - before):
        assert time.monotonic() < patience, "workers outlive the build that was killed"
        time.sleep(0.2)


def _ours(pids: set[int]) -> set[int]:
    """Those without the parent that started them; other suites may run beside this one."""
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
    nursery: Ask, golden: tuple[Path, str], tmp_path: Path, seed: int
) -> None:
    root = golden[0].parent.parent
    more = {"changes": {"epochs": 40, "batch_size": 16, "hidden": 8}, "root": root}
    whole = nursery("train", out=tmp_path / "whole", **more)
    found, kills = _killed_at_random(
        nursery, "train", 8, seed, whole["seconds"] * 0.6, out=tmp_path / "killed", **more
    )
    assert found == whole["result"], seed
    files = [(tmp_path / name / TRAINED / WEIGHTS).read_bytes() for name in ("whole", "killed")]
    assert files[0] == files[1], seed
    assert kills >= 3, seed


def test_a_comparison_killed_before_any_write_ends_with_the_same_rows(
    nursery: Ask, golden: tuple[Path, str], tmp_path: Path
) -> None:
    wish = {
        "root": golden[0].parent.parent, "models": ["bcos-gin"], "seeds": [0],
        "explainers": ["bcos", "bcos-input-x-gradient", "random"],
    }  # fmt: skip
    answer = nursery("compare", out=tmp_path / "whole", **wish)
    assert "result" in answer, answer
    whole = answer["result"]
    shutil.copytree(tmp_path / "whole", tmp_path / "trained")
    (tmp_path / "trained" / TRAINED / "evaluation.json").unlink()

    def killed(n: int) -> dict[str, Any]:
        out = tmp_path / str(n)
        shutil.copytree(tmp_path / "trained", out)
        answer = nursery("compare", kill_at=n, out=out, **wish)
        assert nursery("compare", out=out, **wish)["result"] == whole, n
        return answer

    assert _killed_at_every_operation(killed) >= 6


@pytest.mark.parametrize("kills", [5, pytest.param(15, marks=pytest.mark.slow)])
def test_a_reproduction_killed_at_random_moments_ends_with_the_same_table(
    nursery: Ask, tmp_path: Path, kills: int
) -> None:
    def places(folder: Path) -> dict[str, Any]:
        return {
            "parts": ["table 2"], "root": folder / "data", "out": folder / "runs",
            "results": folder / "results",
        }  # fmt: skip

    whole = nursery("reproduce", **places(tmp_path / "whole"))
    found, done = _killed_at_random(
        nursery, "reproduce", kills, kills, whole["seconds"] * 0.5, **places(tmp_path / "killed")
    )
    assert found == whole["result"]
    assert found[2] == 0  # no cell is missing
    weights = {
        path.relative_to(tmp_path / name): path.read_bytes()
        for name in ("whole", "killed")
        for path in (tmp_path / name).rglob(WEIGHTS)
    }
    assert len(weights) == 6
    for path in (tmp_path / "whole").rglob(WEIGHTS):
        assert path.read_bytes() == weights[path.relative_to(tmp_path / "whole")]
    assert done >= kills // 2
    report = (tmp_path / "killed" / "results" / "report.md").read_text()
    assert "Not finished" not in report


def test_the_suite_can_see_a_process_that_was_not_killed(nursery: Ask, tmp_path: Path) -> None:
    answer = nursery("build", kill_at=10**6, root=tmp_path, **SMALL)
    assert not answer["killed"]
    assert answer["pid"] != os.getpid()
