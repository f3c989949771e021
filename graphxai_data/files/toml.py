"""From a TOML table to a frozen dataclass; unknown and missing keys and wrong values are errors.

A dataclass states the bounds of its values where it declares them:

    @dataclass(frozen=True)
    class Params(Checked):
        graphs: Annotated[int, Between(1, 1000)]
        motifs: Annotated[tuple[str, ...], Names(("house", "cycle"))]

`parse_table` checks them; with the base class `Checked`, so does every call of the constructor.
"""

import dataclasses
import math
import re
import sys
import tomllib
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from graphxai_data.errors import InputError, finite_number, nearest, shown, whole_number
from graphxai_data.files.shipped import shipped

T = TypeVar("T")

# Limits of a TOML file and of the dotted keys in it.
_MAX_BYTES, _MAX_KEY_PARTS = 2**20, 200
# What `int | None` is, and what `Annotated[int, …] | None` is.
_UNIONS = (types.UnionType, typing.Union)


@dataclasses.dataclass(frozen=True)
class Between:
    """Bounds of a number, both included unless they are listed in `excluded`."""

    low: float
    high: float = math.inf
    excluded: tuple[float, ...] = ()

    def check(self, name: str, kind: type, value: object) -> None:
        """Raise an `InputError` unless the value of a field of type `kind` is within the bounds."""
        if kind is int:
            whole_number(name, value, self.low, self.high)
        else:
            finite_number(name, value, self.low, self.high, self.excluded)


@dataclasses.dataclass(frozen=True)
class Names:
    """A list of different names, all of them in `known` unless that is empty.

    Errors call a name `noun`, such as "element".
    """

    known: tuple[str, ...] = ()
    least: int = 1
    most: int = 1000
    noun: str = "name"

    def check(self, name: str, kind: object, value: tuple[str, ...]) -> None:
        """Raise an `InputError` unless the names are different, known and as many as allowed."""
        different = len(set(value)) == len(value) and self.least <= len(value) <= self.most
        if not different or (self.known and not set(value) <= set(self.known)):
            count = f"{self.least} " if self.least == self.most else ""
            if not value and not count:
                raise InputError(f"{name}: expected at least one {self.noun}, got []")
            known = f" of {', '.join(self.known)}" if self.known else ""
            got = shown(list(value))
            raise InputError(f"{name}: expected {count}different {self.noun}s{known}, got {got}")


class Checked:
    """Base of dataclasses that refuse values outside their declared bounds."""

    def __post_init__(self) -> None:
        """Raise an `InputError` for the first value that is out of bounds."""
        for name, hint in typing.get_type_hints(type(self), include_extras=True).items():
            _check_bounds(hint, getattr(self, name), name)


def parse_table(cls: type[T], table: object, where: str, path: str = "") -> T:
    """Return an instance of the dataclass `cls` with the values of a TOML table.

    Errors name the file `where` and the dotted key `path` of the table in it. A `ValueError` that
    `cls` raises about its values becomes such an error; if it begins with a field's name and a
    colon, as in "rule: is empty", that is the key.
    """
    if not isinstance(table, Mapping):
        raise _wrong(where, path, f"expected a table, got {shown(table)}")
    fields = {f.name: f for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    hints = typing.get_type_hints(cls, include_extras=True)
    for key in table:
        if key not in fields:
            full = _joined(path, key)
            raise InputError(f"{where}: unknown key '{full}'; {nearest(str(key), fields)}")
    values: dict[str, Any] = {}
    for name, field in fields.items():
        if name in table:
            values[name] = _value(hints[name], table[name], where, _joined(path, name))
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            kind = _type_name(hints[name])
            raise InputError(f"{where}: missing key '{_joined(path, name)}' ({kind}); add it")
    try:
        return cls(**values)
    except InputError:
        raise
    except ValueError as error:
        key, colon, problem = str(error).partition(": ")
        if colon and key.partition(".")[0] in fields:
            raise _wrong(where, _joined(path, key), problem) from None
        raise _wrong(where, path, str(error)) from None


def _check_bounds(hint: Any, value: object, where: str) -> None:
    """Raise an `InputError` unless the value keeps the bounds that its annotation declares."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in _UNIONS and value is not None:
        _check_bounds(args[0], value, where)
    elif origin is typing.Literal and value not in args:
        options = ", ".join(map(repr, args))
        raise InputError(f"{where}: expected one of {options}, got {shown(value)}")
    elif origin is typing.Annotated:
        kind, *bounds = args
        for bound in bounds:
            bound.check(where, kind, value)


def _value(hint: Any, value: object, where: str, path: str) -> Any:
    """Return the value as the annotation `hint` wants it, such as a list as a tuple."""
    if hint is Any:
        return value
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        converted = _value(args[0], value, where, path)
        _check_bounds(hint, converted, f"{where}: {path}")
        return converted
    if dataclasses.is_dataclass(hint):
        return parse_table(typing.cast(type[Any], hint), value, where, path)
    if origin in _UNIONS:
        if value is None and type(None) in args:
            return None
        return _value(next(a for a in args if a is not type(None)), value, where, path)
    if origin is tuple and isinstance(value, list):
        return tuple(_value(args[0], item, where, f"{path}[{i}]") for i, item in enumerate(value))
    if origin is dict and isinstance(value, Mapping):
        return {str(k): _value(args[1], v, where, _joined(path, k)) for k, v in value.items()}
    if origin is typing.Literal:
        _check_bounds(hint, value, f"{where}: {path}")
        return value
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        # Whole numbers may be too large for a float.
        if abs(value) <= sys.float_info.max:
            return float(value)
    elif isinstance(hint, type) and type(value) is hint:
        return value
    quotes = "; write it in quotes" if hint is str and type(value) in (int, float) else ""
    raise _wrong(where, path, f"expected {_type_name(hint)}, got {shown(value)}{quotes}")


def _joined(path: str, key: object) -> str:
    return f"{path}.{key}" if path else str(key)


def _wrong(where: str, path: str, problem: str) -> InputError:
    return InputError(f"{where}: {path}: {problem}" if path else f"{where}: {problem}")


def _type_name(hint: Any) -> str:
    if typing.get_origin(hint) is typing.Annotated:
        return _type_name(typing.get_args(hint)[0])
    names = {int: "a whole number", float: "a finite number", str: "text", bool: "true or false"}
    if hint in names:
        return names[hint]
    if typing.get_origin(hint) is tuple:
        return "a list"
    return "a table" if dataclasses.is_dataclass(hint) else str(hint)


def read_toml(path: Path) -> dict[str, Any]:
    """Return the parsed file, or raise an `InputError` that says what is wrong with it."""
    where = shown_path(path)
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise InputError(f"{where}: more than {_MAX_BYTES >> 20} MiB; shorten it")
        text = path.read_text(encoding="utf-8")
        # The parser's time grows with the square of the parts of a dotted key.
        if any(piece.count(".") > _MAX_KEY_PARTS for piece in re.split(r"[\n=,\[\]{}]", text)):
            raise InputError(f"{where}: a key of more than {_MAX_KEY_PARTS} parts; shorten it")
        return tomllib.loads(text)
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: not valid TOML: {error}") from None
    except OSError as error:
        raise InputError(f"{where}: cannot be read: {error.strerror}") from None


def shown_path(path: Path) -> str:
    """Return how errors name a file: a shipped recipe by its short name, others by their path."""
    return f"recipes/{path.name}" if path.parent == shipped("recipes") else str(path)
