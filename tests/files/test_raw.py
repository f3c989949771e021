import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphxai_data.files.raw as raw_files
from graphxai_data.errors import InputError
from graphxai_data.files.raw import gunzipped
from tests.conftest import needs_proc, run_python


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


@needs_proc
def test_a_small_gzip_file_needs_little_memory() -> None:
    code = """
import gzip, resource
from graphxai_data.files.raw import gunzipped
content = gzip.compress(bytes(200))
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + (100 << 20), -1))
print(len(gunzipped(content, "file")))
"""
    assert run_python(code).stdout == "200\n"
