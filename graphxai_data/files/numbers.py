"""Text files of whole numbers, as TUDataset and OGB have them: every byte is looked at.

Where NumPy's own reader meets something else, it stops, goes on or takes the largest number there
is, depending on its version.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from graphxai_data.errors import InputError
from graphxai_data.files.jit import compiled
from graphxai_data.files.raw import read_member

_MOST_DIGITS = 18  # so many fit into 64 bits, whichever they are


def read_numbers(path: Path, name: str, columns: int) -> npt.NDArray[np.int64]:
    """[lines, columns] the whole numbers of a file of a source, with commas between them.

    Args:
        path: folder or zip archive that the file is in.
        name: of the file.
        columns: how many numbers each line must have.

    Raises:
        InputError: a line is anything else, or there is none.
    """
    content = read_member(path, name).rstrip() + b"\n"
    if b"\r" in content:
        content = content.replace(b"\r\n", b"\n")
    if content == b"\n":
        raise InputError(f"{path}: {name}: has no lines; is it truncated?")
    values = np.empty((content.count(b"\n"), columns), np.int64)
    wrong = _parse(np.frombuffer(content, np.uint8), columns, _MOST_DIGITS, values.reshape(-1))
    if wrong >= 0:
        line = content.split(b"\n", wrong + 1)[wrong]
        shown = line[:40].decode(errors="replace")
        what = "a whole number"
        if columns > 1:
            what = f"{columns} whole numbers, commas between"
        raise InputError(f"{path}: {name}: line {wrong + 1}: expected {what}, got {shown!r}")
    return values


@compiled
def _parse(text, columns, most_digits, values):  # type: ignore[no-untyped-def]
    """Fill in the values; the first line that is wrong, or −1."""
    at, line, column, found = 0, 0, 0, 0
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
            if at - first > most_digits:
                return line
        if at == first:
            return line
        while text[at] == 32 or text[at] == 9:
            at += 1
        values[found] = sign * number
        found, column = found + 1, column + 1
        if column < columns:
            if text[at] != 44:  # a comma
                return line
        else:
            if text[at] != 10:  # a newline
                return line
            line, column = line + 1, 0
        at += 1
    return -1
