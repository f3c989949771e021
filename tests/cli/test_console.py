import pytest

from graphxai_data.cli import console
from graphxai_data.cli.console import parse_seeds, progress_bar, seeds_text
from graphxai_data.errors import InputError


def test_without_a_terminal_progress_is_a_line_every_few_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 100.0
    monkeypatch.setattr(console.time, "monotonic", lambda: now)
    with progress_bar("Counting", "steps", line_seconds=5) as progress:
        for done in range(5):
            progress(done, 100, "counting")
            now += 3
        progress(0, 7, "something new")
        now += 6
        progress(1, 7, "something new, about 9 min left")
    assert capsys.readouterr().err.splitlines() == [
        "counting: 0 of 100 steps",
        "counting: 2 of 100 steps, about 5 min left",
        "counting: 4 of 100 steps, about 5 min left",
        "something new: 0 of 7 steps",
        "something new, about 9 min left: 1 of 7 steps",
    ]


def test_without_a_terminal_and_line_seconds_nothing_is_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with progress_bar("Counting", "steps") as progress:
        progress(1, 2, "counting")
    assert capsys.readouterr() == ("", "")


def test_a_table_of_one_seed_shows_no_means() -> None:
    assert seeds_text("3") == seeds_text("3,3") == "seed 3"
    assert seeds_text("0-4") == "mean ± standard deviation over seeds 0-4"


def test_seeds_are_numbers_ranges_and_lists() -> None:
    assert parse_seeds("3") == [3]
    assert parse_seeds("0-2,5,1") == [0, 1, 2, 5]
    for text in ("", "x", "4-2", "0-1000", "1,,2"):
        with pytest.raises(InputError, match="--seed: expected a number, or up to 1000 as in 0-4"):
            parse_seeds(text)
