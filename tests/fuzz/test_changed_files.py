"""Changed files of every kind: each is read or refused with one of the package's own errors."""

import os
import subprocess
import sys

import pytest

from tests.fuzz.conftest import REPOSITORY, needs_proc
from tests.fuzz.targets import TARGETS

# Per group of targets that share a process: how many changed files are read per target, and how
# many of those have to be refused at least.
GROUPS: dict[str, dict[str, tuple[int, int]]] = {
    "recipes": {"recipes": (300, 60)},
    "molecules": {"smiles": (300, 20), "grafts": (100, 2)},
    "raw files": {
        "idx": (60, 5),
        "tu": (200, 80),
        "tu_zip": (200, 60),
        "ogb": (120, 40),
        "ogb_table": (60, 5),
        "pattern": (200, 60),
    },
    "builds": {"shards": (300, 150), "builds": (40, 10)},
    "trainings": {"checkpoints": (200, 100), "states": (200, 100), "evaluations": (300, 0)},
    "explanations": {"scores": (400, 60)},
}


def fuzz(counts: dict[str, int], seed: int) -> dict[str, int]:
    """Read changed files in a process of its own; return how many were refused per target."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = os.pathsep.join([str(REPOSITORY), *sys.path])
    arguments = [f"{target}={count}" for target, count in counts.items()]
    result = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.runner", str(seed), *arguments],
        capture_output=True, text=True, env=environment, cwd=REPOSITORY, timeout=3600,
    )  # fmt: skip
    lines = result.stdout.split("\n")
    assert result.returncode == 0, f"seed {seed}: {lines[-4:]}\n{result.stderr[-3000:]}"
    refused = [line.split() for line in lines if line.startswith("refused")]
    return {target: int(count) for _, target, count in refused}


def test_every_target_is_in_one_group() -> None:
    assert sorted(target for group in GROUPS.values() for target in group) == sorted(TARGETS)


@needs_proc
@pytest.mark.parametrize("group", GROUPS)
def test_changed_files_are_read_or_refused(group: str) -> None:
    refused = fuzz({target: count for target, (count, _) in GROUPS[group].items()}, seed=0)
    for target, (count, least) in GROUPS[group].items():
        assert least <= refused[target] <= count, target


@needs_proc
@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_thirty_times_as_many_changed_files_are_read_or_refused(group: str) -> None:
    fuzz({target: 30 * count for target, (count, _) in GROUPS[group].items()}, seed=1)
