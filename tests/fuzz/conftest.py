"""Fuzzing in processes of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
needs_proc = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux")


def fuzz(counts: dict[str, int], seed: int = 0) -> dict[str, int]:
    """Read so many changed files of each target; gives how many were refused."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = os.pathsep.join([str(REPOSITORY), *sys.path])
    wishes = [f"{target}={count}" for target, count in counts.items()]
    result = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.runner", str(seed), *wishes],
        capture_output=True, text=True, env=environment, cwd=REPOSITORY, timeout=3600,
    )  # fmt: skip
    lines = result.stdout.split("\n")
    assert result.returncode == 0, f"seed {seed}: {lines[-4:]}\n{result.stderr[-3000:]}"
    found = [line.split() for line in lines if line.startswith("refused")]
    return {target: int(count) for _, target, count in found}


def check(counts: dict[str, tuple[int, int]]) -> None:
    """Read files, and compare how many were refused with the least that has to be."""
    refused = fuzz({target: count for target, (count, _) in counts.items()})
    for target, (count, least) in counts.items():
        assert least <= refused[target] <= count, target


def check_many(counts: dict[str, tuple[int, int]]) -> None:
    """Thirty times as many."""
    fuzz({target: 30 * count for target, (count, _) in counts.items()}, seed=1)
