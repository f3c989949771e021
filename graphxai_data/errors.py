"""Errors that users can meet: each message says what, where, expected, got and the next step."""

import difflib
import math
import operator
from collections.abc import Collection, Iterable
from contextlib import suppress
from numbers import Real


class GraphXAIDataError(Exception):
    """Base of all errors of this package; the CLI prints its message as one line."""

    exit_code = 1


class InputError(GraphXAIDataError, ValueError):
    """An argument is wrong: a name, value, file or folder."""

    exit_code = 2


class SourceMissingError(InputError):
    """The raw files of a dataset are neither shipped nor downloadable: the user supplies them."""


class DamagedError(GraphXAIDataError):
    """A file is not what its manifest or its own header says."""


class CheckFailedError(GraphXAIDataError):
    """Generated data broke an invariant or an expectation of its recipe."""


def whole_number(name: str, value: object, low: float, high: float) -> int:
    """Return the value, or raise `InputError` unless it is a whole number from low to high."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None or not low <= number <= high:
        limits = _limits(low, high)
        raise InputError(f"{name}: expected a whole number{limits}, got {shown(value)}")
    return number


def finite_number(
    name: str,
    value: object,
    low: float = -math.inf,
    high: float = math.inf,
    excluded: Collection[float] = (),
) -> float:
    """Return the value, or raise `InputError` unless it is a finite number from low to high."""
    number = math.nan
    if type(value) is not bool and isinstance(value, Real):
        with suppress(OverflowError):  # a whole number too large for a float
            number = float(value)
    if not (math.isfinite(number) and low <= number <= high) or number in excluded:
        limits = _limits(low, high)
        limits += f", but not {' or '.join(map(str, excluded))}" if excluded else ""
        raise InputError(f"{name}: expected a finite number{limits}, got {shown(value)}")
    return number


def _limits(low: float, high: float) -> str:
    texts = [f"{bound:g}" if isinstance(bound, float) else str(bound) for bound in (low, high)]
    if high < math.inf:
        return " from " + " to ".join(texts)
    return f" of at least {texts[0]}" if low > -math.inf else ""


def shown(value: object) -> str:
    """Return how a message shows a wrong value: its repr, shortened."""
    # repr refuses whole numbers of thousands of digits.
    huge = isinstance(value, int) and abs(value) > 10**60
    text = "a huge number" if huge else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: the nearest known name, or all."""
    known = sorted(known)
    close = difflib.get_close_matches(str(name), known, n=1, cutoff=0.6)
    if close:
        return f"did you mean '{close[0]}'?"
    return f"known: {', '.join(known)}" if known else "none is known here"


def known_name(what: str, name: str, known: Collection[str]) -> str:
    """Return the name, or raise `InputError` unless it is known."""
    if name not in known:
        raise InputError(f"unknown {what} '{name}'; {nearest(name, known)}")
    return name
