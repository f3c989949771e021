import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphxai_data.files.raw as raw_files
from graphxai_data.errors import InputError
from graphxai_data.files.raw import gunzipped


@given(st.lists(st.binary(max_size=200), min_size=1, max_size=3), st.integers(0, 20))
def test_members_of_a_gzip_file_are_joined_and_zeros_behind_them_ignored(
    parts: list[bytes], zeros: int
) -> None:
    packed = b"".join(gzip.compress(part) for part in parts)
    assert gunzipped(packed + bytes(zeros), "file") == b"".join(parts)


@given(st.binary(max_size=200), st.data())
def test_a_gzip_file_that_is_cut_off_is_refused(content: bytes, data: st.DataObject) -> None:
    packed = gzip.compress(content)
    length = data.draw(st.integers(2, len(packed) - 1))
    with pytest.raises(InputError, match="file: a damaged gzip file"):
        gunzipped(packed[:length], "file")


@given(st.binary(min_size=1, max_size=200), st.data())
def test_a_gzip_file_with_a_wrong_byte_in_its_content_is_refused(
    content: bytes, data: st.DataObject
) -> None:
    packed = bytearray(gzip.compress(content))
    at = data.draw(st.integers(len(packed) - 8, len(packed) - 1))  # checksum and length
    packed[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(InputError, match="a damaged gzip file"):
        gunzipped(bytes(packed), "file")


def test_what_is_no_gzip_file_is_taken_as_it_is() -> None:
    assert gunzipped(b"plain", "file") == b"plain"


def test_what_unpacks_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_files, "MAX_BYTES", 1000)
    bomb = gzip.compress(bytes(600)) + gzip.compress(bytes(401))
    with pytest.raises(InputError, match="file: more than"):
        gunzipped(bomb, "file")
    assert len(gunzipped(gzip.compress(bytes(600)) + gzip.compress(bytes(400)), "file")) == 1000
