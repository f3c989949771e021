"""Checkpoints, states of trainings, kept evaluations: read or refused, whatever they hold."""

import pytest

from tests.fuzz.conftest import check, check_many, needs_proc

# How many changed files are read, and how many of those are refused at least.
COUNTS = {"checkpoints": (200, 100), "states": (200, 100), "evaluations": (300, 0)}


@needs_proc
def test_changed_files_are_read_or_refused() -> None:
    check(COUNTS)


@needs_proc
@pytest.mark.slow
def test_many_more_changed_files_are_read_or_refused() -> None:
    check_many(COUNTS)
