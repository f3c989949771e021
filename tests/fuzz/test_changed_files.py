"""Changed files of every kind: each is read or refused with one of the package's own errors."""

import json

import pytest

from tests.conftest import needs_proc, run_python
from tests.fuzz.targets import TARGETS

# Targets that share a process: for each, how many changed files are read, and how many of them at
# least must be refused.
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


READ_FILES = """
import json, sys
from tests.fuzz.runner import read_changed_files
for target, count in json.loads(sys.argv[1]).items():
    read_changed_files(target, count, seed=int(sys.argv[2]))
"""


def count_refused(counts: dict[str, int], seed: int) -> dict[str, int]:
    """Read changed files in a fresh process; return how many were refused per target."""
    result = run_python(READ_FILES, json.dumps(counts), seed, timeout=3600)
    lines = result.stdout.split("\n")
    assert result.returncode == 0, f"seed {seed}: {lines[-4:]}\n{result.stderr[-3000:]}"
    refused = [line.split() for line in lines if line.startswith("refused")]
    return {target: int(count) for _, target, count in refused}


def test_every_target_is_in_exactly_one_group() -> None:
    assert sorted(target for group in GROUPS.values() for target in group) == sorted(TARGETS)


@needs_proc
@pytest.mark.parametrize("group", GROUPS)
def test_changed_files_are_read_or_refused(group: str) -> None:
    refused = count_refused({target: count for target, (count, _) in GROUPS[group].items()}, seed=0)
    for target, (count, least) in GROUPS[group].items():
        assert least <= refused[target] <= count, target


@needs_proc
@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_thirty_times_as_many_changed_files_are_read_or_refused(group: str) -> None:
    count_refused({target: 30 * count for target, (count, _) in GROUPS[group].items()}, seed=1)
