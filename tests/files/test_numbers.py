"""Files of whole numbers: all that is written is read, and anything else is refused."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphxai_data.errors import InputError
from graphxai_data.files.numbers import read_numbers

NUMBERS = st.integers(-(10**18) + 1, 10**18 - 1)
BLANKS = st.text(" \t", max_size=2)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[list[int]], str]:
    columns = draw(st.integers(1, 4))
    rows = draw(st.lists(st.lists(NUMBERS, min_size=columns, max_size=columns), min_size=1))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    lines = [",".join(f"{draw(BLANKS)}{v}{draw(BLANKS)}" for v in row) for row in rows]
    return rows, end.join(lines) + draw(st.sampled_from(["", end, end * 3]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("numbers")
    (folder / "first.csv").write_bytes(b"1\n")
    read_numbers(folder, "first.csv", 1)  # compiled now, while no example is timed
    return folder


@given(table=tables())
def test_all_numbers_of_a_file_are_read(table: tuple[list[list[int]], str], folder: Path) -> None:
    rows, text = table
    (folder / "a.csv").write_bytes(text.encode())
    assert np.array_equal(read_numbers(folder, "a.csv", len(rows[0])), rows)


def is_row(line: str, columns: int) -> bool:
    """An independent reading: a regular expression."""
    cell = r"[ \t]*-?[0-9]{1,18}[ \t]*"
    return re.fullmatch(",".join([cell] * columns), line) is not None


@given(
    text=st.text("0123456789,-+. \t\n\x0b\x0c\xa0\x85xe\0", max_size=40), columns=st.integers(1, 3)
)
def test_any_other_line_is_refused_with_its_number(text: str, columns: int, folder: Path) -> None:
    (folder / "a.csv").write_bytes(text.encode())
    stripped = text.encode().rstrip().decode()  # of ASCII blanks only
    lines = stripped.split("\n")
    wrong = [i for i, line in enumerate(lines) if not is_row(line, columns)]
    if wrong:
        expected = (
            "has no lines" if not text.encode().rstrip() else f"line {wrong[0] + 1}: expected"
        )
        with pytest.raises(InputError, match=expected):
            read_numbers(folder, "a.csv", columns)
    else:
        values = read_numbers(folder, "a.csv", columns)
        assert values.tolist() == [[int(v) for v in line.split(",")] for line in lines]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b"1,2\n1.5,2", 2),
        (b"1e3,2", 1),
        (b"1,2\n\n3,4", 2),
        (b"1,2\n3", 2),
        (b"1,2,\n3,4,", 1),
        (b"1,2\n3,99999999999999999999", 2),
        (b"1,\xff", 1),
        (b"1,2 # a comment", 1),
        (b"1,2\r3,4", 1),
        (b"+1,2", 1),
        ("1,\u00a02".encode(), 1),
    ],
)
def test_what_numpy_might_let_pass_is_refused(text: bytes, line: int, folder: Path) -> None:
    (folder / "a.csv").write_bytes(text)
    message = rf"a.csv: line {line}: expected 2 whole numbers, separated by commas, got '"
    with pytest.raises(InputError, match=message):
        read_numbers(folder, "a.csv", 2)
