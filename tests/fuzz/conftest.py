"""Fuzzing in processes of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
needs_proc = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux")


def fuzz(target: str, count: int, seed: int = 0) -> int:
    """Read so many changed files; gives how many were refused."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = os.pathsep.join([str(REPOSITORY), *sys.path])
    command = [sys.executable, "-m", "tests.fuzz.runner", target, str(seed), str(count)]
    result = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=REPOSITORY, timeout=3600
    )
    lines = result.stdout.split("\n")[-3:]
    assert result.returncode == 0, f"{target}, seed {seed}: {lines}\n{result.stderr[-3000:]}"
    return int(result.stdout.split()[-1])
