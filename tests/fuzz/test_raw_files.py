"""SMILES, IDX, TU, OGB and tensor files, archives: read or refused, whatever they hold."""

import pytest

from tests.fuzz.conftest import check, check_many, needs_proc

# How many changed files are read, and how many of those are refused at least.
COUNTS = {
    "smiles": (300, 20),
    "grafts": (100, 2),
    "idx": (60, 5),
    "tu": (200, 80),
    "tu_zip": (200, 60),
    "ogb": (120, 40),
    "ogb_table": (60, 5),
    "pattern": (200, 60),
}


@needs_proc
def test_changed_files_are_read_or_refused() -> None:
    check(COUNTS)


@needs_proc
@pytest.mark.slow
def test_many_more_changed_files_are_read_or_refused() -> None:
    check_many(COUNTS)
