"""Text files of whole numbers, as TUDataset and OGB have them, with every byte checked.

Not `np.loadtxt`: with it, reading ogbg-molhiv takes three times as long and NCI1 half as long
again. It also skips blank lines, and accepts "+1" and non-breaking spaces.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from graphxai_data.errors import InputError
from graphxai_data.files.jit import compiled
from graphxai_data.files.raw import read_member

_MAX_DIGITS = 18  # any number of 18 digits fits into 64 bits


def read_numbers(path: Path, name: str, columns: int) -> npt.NDArray[np.int64]:
    """Return the integers [lines, columns] of a comma-separated file in a folder or zip archive.

    Raises `InputError` if it has no lines, or a line is anything else than `columns` integers.
    """
    content = read_member(path, name).rstrip() + b"\n"
    if b"\r" in content:
        content = content.replace(b"\r\n", b"\n")
    if content == b"\n":
        raise InputError(f"{path}: {name}: has no lines; is it truncated?")
    values = np.empty((content.count(b"\n"), columns), np.int64)
    wrong = _parse(np.frombuffer(content, np.uint8), columns, _MAX_DIGITS, values.reshape(-1))
    if wrong >= 0:
        shown = content.split(b"\n", wrong + 1)[wrong][:40].decode(errors="replace")
        plural = f"{columns} whole numbers, separated by commas"
        expected = plural if columns > 1 else "a whole number"
        raise InputError(f"{path}: {name}: line {wrong + 1}: expected {expected}, got {shown!r}")
    return values


@compiled
def _parse(text, columns, max_digits, values):  # type: ignore[no-untyped-def]
    """Fill in the values; return the index of the first wrong line, or -1."""
    at, line, column, count = 0, 0, 0, 0
    while at < len(text):
        while text[at] == 32 or text[at] == 9:  # blanks
            at += 1
        sign = 1
        if text[at] == 45:  # a minus
            sign, at = -1, at + 1
        first, number = at, 0
        while 48 <= text[at] <= 57:  # digits; a newline ends all of these loops
            number = 10 * number + (int(text[at]) - 48)
            at += 1
            if at - first > max_digits:
                return line
        if at == first:
            return line
        while text[at] == 32 or text[at] == 9:
            at += 1
        values[count] = sign * number
        count, column = count + 1, column + 1
        if column < columns:
            if text[at] != 44:  # a comma
                return line
        else:
            if text[at] != 10:  # a newline
                return line
            line, column = line + 1, 0
        at += 1
    return -1
