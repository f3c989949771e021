"""Errors that users can meet: each message says what, where, expected, got and the next step."""

import difflib
import math
import operator
from collections.abc import Collection, Iterable
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


def whole_number(name: str, value: object, low: int, high: int) -> int:
    """Return the value, or raise `InputError` unless it is a whole number from low to high."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = low - 1
    if isinstance(value, bool) or not low <= number <= high:
        raise InputError(f"{name}: expected a whole number from {low} to {high}, got {value!r}")
    return number


def finite_number(
    name: str, value: object, low: float = -math.inf, high: float = math.inf
) -> float:
    """Return the value, or raise `InputError` unless it is a finite number from low to high."""
    number = math.nan
    if not isinstance(value, bool) and isinstance(value, Real):
        number = float(value)
    if not (math.isfinite(number) and low <= number <= high):
        limits = f" from {low:g} to {high:g}" if math.isfinite(high) else ""
        limits = limits or (f" of at least {low:g}" if math.isfinite(low) else "")
        raise InputError(f"{name}: expected a finite number{limits}, got {value!r}")
    return number


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: the nearest known name, or all."""
    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    if close:
        return f"did you mean '{close[0]}'?"
    return f"known: {', '.join(known)}" if known else "none is known here"


def known_name(what: str, name: str, known: Collection[str]) -> str:
    """Return the name, or raise `InputError` unless it is known."""
    if name not in known:
        raise InputError(f"unknown {what} '{name}'; {nearest(name, known)}")
    return name
