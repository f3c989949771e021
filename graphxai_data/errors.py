"""The errors a user can meet: each message says what, where, expected, got and the next step."""

import difflib
import math
import operator
from collections.abc import Collection, Iterable
from numbers import Real


class GraphXAIDataError(Exception):
    """Base of all errors raised on purpose; the CLI prints its message as one line."""

    exit_code = 1


class InputError(GraphXAIDataError, ValueError):
    """What the caller asked for cannot be done: a wrong name, value, file or folder."""

    exit_code = 2


class SourceMissingError(InputError):
    """The raw files that a dataset is made from cannot be had here: they have to be brought."""


class DamagedError(GraphXAIDataError):
    """Something on disk is not what its manifest, or its own header, says it is."""


class CheckFailedError(GraphXAIDataError):
    """Generated data broke an invariant or an expectation of its recipe."""


def whole_number(name: str, value: object, low: int, high: int) -> int:
    """The value itself, or an `InputError` unless it is a whole number from low to high."""
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
    """The value itself, or an `InputError` unless it is a finite number from low to high."""
    number = math.nan
    if not isinstance(value, bool) and isinstance(value, Real):
        number = float(value)
    if not (math.isfinite(number) and low <= number <= high):
        limits = f" from {low:g} to {high:g}" if math.isfinite(high) else ""
        limits = limits or (f" of at least {low:g}" if math.isfinite(low) else "")
        raise InputError(f"{name}: expected a finite number{limits}, got {value!r}")
    return number


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of an error message about an unknown name: the nearest known one, or all of them."""
    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    if close:
        return f"did you mean '{close[0]}'?"
    return f"known: {', '.join(known)}" if known else "none is known here"


def known_name(what: str, name: str, known: Collection[str]) -> str:
    """The name itself, or an `InputError` unless it is among the known ones."""
    if name not in known:
        raise InputError(f"unknown {what} '{name}'; {nearest(name, known)}")
    return name
