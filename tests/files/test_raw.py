import gzip
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphxai_data.files.raw as raw_files
from graphxai_data.errors import InputError
from graphxai_data.files.raw import gunzipped, read_numbers


@given(st.lists(st.binary(max_size=200), min_size=1, max_size=3), st.integers(0, 20))
def test_members_of_a_gzip_file_are_joined_and_zeros_after_them_ignored(
    parts: list[bytes], zeros: int
) -> None:
    packed = b"".join(gzip.compress(part) for part in parts)
    assert gunzipped(packed + bytes(zeros), "file") == b"".join(parts)


@given(st.binary(max_size=200), st.data())
def test_a_truncated_gzip_file_is_refused(content: bytes, data: st.DataObject) -> None:
    packed = gzip.compress(content)
    length = data.draw(st.integers(2, len(packed) - 1))
    with pytest.raises(InputError, match="file: a damaged gzip file"):
        gunzipped(packed[:length], "file")


@given(st.binary(min_size=1, max_size=200), st.data())
def test_a_gzip_file_with_a_wrong_checksum_or_length_is_refused(
    content: bytes, data: st.DataObject
) -> None:
    packed = bytearray(gzip.compress(content))
    position = data.draw(st.integers(len(packed) - 8, len(packed) - 1))
    packed[position] ^= data.draw(st.integers(1, 255))
    with pytest.raises(InputError, match="a damaged gzip file"):
        gunzipped(bytes(packed), "file")


def test_a_file_that_is_not_gzipped_is_returned_unchanged() -> None:
    assert gunzipped(b"plain", "file") == b"plain"


def test_a_gzip_file_with_too_much_content_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_files, "MAX_BYTES", 1000)
    bomb = gzip.compress(bytes(600)) + gzip.compress(bytes(401))
    with pytest.raises(InputError, match="file: more than"):
        gunzipped(bomb, "file")
    assert len(gunzipped(gzip.compress(bytes(600)) + gzip.compress(bytes(400)), "file")) == 1000


NUMBERS = st.integers(-(2**63), 2**63 - 1)
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
    return tmp_path_factory.mktemp("numbers")


@given(table=tables())
def test_all_numbers_of_a_file_are_read(table: tuple[list[list[int]], str], folder: Path) -> None:
    rows, text = table
    (folder / "a.csv").write_bytes(text.encode())
    assert np.array_equal(read_numbers(folder, "a.csv", len(rows[0])), rows)


def is_row(line: str, columns: int) -> bool:
    """An independent reading: a regular expression, and Python's own integers."""
    cell = r"[ \t]*[-+]?[0-9]+[ \t]*"
    return re.fullmatch(",".join([cell] * columns), line) is not None and all(
        -(2**63) <= int(value) < 2**63 for value in line.split(",")
    )


@given(text=st.text("0123456789,-+. \t\nxe\0", max_size=40), columns=st.integers(1, 3))
def test_any_other_line_is_refused_with_its_number(text: str, columns: int, folder: Path) -> None:
    (folder / "a.csv").write_bytes(text.encode())
    lines = text.rstrip().split("\n")
    wrong = [i for i, line in enumerate(lines) if not is_row(line, columns)]
    if wrong:
        expected = "has no lines" if not text.rstrip() else f"line {wrong[0] + 1}: expected"
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
    ],
)
def test_what_numpy_might_let_pass_is_refused(text: bytes, line: int, folder: Path) -> None:
    (folder / "a.csv").write_bytes(text)
    message = rf"a.csv: line {line}: expected 2 whole numbers, separated by commas, got '"
    with pytest.raises(InputError, match=message):
        read_numbers(folder, "a.csv", 2)
