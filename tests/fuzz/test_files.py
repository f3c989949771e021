"""Whatever a file holds, it is read or refused with the package's own errors, in bounds."""

import pytest

from tests.fuzz.conftest import fuzz, needs_proc

# How many changed files of each kind are read, and how many of those are refused at least.
COUNTS = {
    "recipes": (300, 60), "smiles": (300, 20), "grafts": (100, 10), "idx": (60, 5),
    "tu": (200, 80), "tu_zip": (200, 60), "ogb": (120, 40), "ogb_table": (60, 5),
    "pattern": (200, 60), "shards": (300, 150), "builds": (40, 10), "checkpoints": (200, 100),
    "states": (200, 100), "scores": (300, 60), "evaluations": (300, 0),
}  # fmt: skip


@needs_proc
@pytest.mark.parametrize("target", COUNTS)
def test_changed_files_are_read_or_refused(target: str) -> None:
    count, least = COUNTS[target]
    assert fuzz(target, count) >= least


@needs_proc
@pytest.mark.slow
@pytest.mark.parametrize("target", COUNTS)
def test_many_more_changed_files_are_read_or_refused(target: str) -> None:
    fuzz(target, 30 * COUNTS[target][0], seed=1)
