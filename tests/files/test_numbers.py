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
    read_numbers(folder, "first.csv", 1)  # compiled now, where no example is waiting for it
    return folder


@given(table=tables())
def test_whatever_numbers_are_written_are_read(table: tuple[list[list[int]], str], folder) -> None:
    rows, text = table
    (folder / "a.csv").write_bytes(text.encode())
    assert np.array_equal(read_numbers(folder, "a.csv", len(rows[0])), rows)


@given(text=st.text("0123456789,-. \t\nx\0", max_size=40), columns=st.integers(1, 3))
def test_anything_else_is_refused_with_its_line(text: str, columns: int, folder: Path) -> None:
    (folder / "a.csv").write_bytes(text.encode())
    # An independent reading: a regular expression, a line at a time.
    cell = r"[ \t]*-?[0-9]{1,18}[ \t]*"
    lines = text.rstrip().split("\n")
    wrong = [i for i, s in enumerate(lines) if not re.fullmatch(",".join([cell] * columns), s)]
    if wrong:
        expected = "has no lines" if not text.rstrip() else f"line {wrong[0] + 1}: expected"
        with pytest.raises(InputError, match=expected):
            read_numbers(folder, "a.csv", columns)
    else:
        found = read_numbers(folder, "a.csv", columns)
        assert found.tolist() == [[int(v) for v in s.split(",")] for s in lines]
