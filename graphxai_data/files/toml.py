"""From a TOML table to a frozen dataclass; unknown and missing keys and wrong types are errors."""

import dataclasses
import difflib
import sys
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from graphxai_data.errors import InputError

T = TypeVar("T")


def nearest(name: str, known: typing.Iterable[str]) -> str:
    """The end of an error message about an unknown name: the nearest known one, or all of them."""
    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    if close:
        return f"did you mean '{close[0]}'?"
    return f"known: {', '.join(known)}" if known else "none is known here"


def known_name(what: str, name: str, known: typing.Collection[str]) -> str:
    """The name itself, or an `InputError` unless it is among the known ones."""
    if name not in known:
        raise InputError(f"unknown {what} '{name}'; {nearest(name, known)}")
    return name


def parse_table(cls: type[T], table: object, where: str, path: str = "") -> T:
    """An instance of the dataclass `cls` from a TOML table.

    Args:
        cls: a dataclass; its `__post_init__` may raise ValueError about values.
        table: what the TOML parser gave.
        where: the file named in errors.
        path: dotted key of the table in that file.
    """
    if not isinstance(table, Mapping):
        raise _wrong(where, path, f"expected a table, got {_show(table)}")
    fields = {f.name: f for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    hints = typing.get_type_hints(cls)
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
        raise _wrong(where, path, str(error)) from None


def _value(hint: Any, value: object, where: str, path: str) -> Any:
    if hint is Any:
        return value
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        return parse_table(typing.cast(type[Any], hint), value, where, path)
    if origin is types.UnionType:
        if value is None and type(None) in args:
            return None
        return _value(next(a for a in args if a is not type(None)), value, where, path)
    if origin is tuple and isinstance(value, list):
        return tuple(_value(args[0], item, where, f"{path}[{i}]") for i, item in enumerate(value))
    if origin is dict and isinstance(value, Mapping):
        return {str(k): _value(args[1], v, where, _joined(path, k)) for k, v in value.items()}
    if origin is typing.Literal:
        if value in args:
            return value
        options = ", ".join(map(repr, args))
        raise _wrong(where, path, f"expected one of {options}, got {_show(value)}")
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        # Whole numbers may be too large for a float.
        if abs(value) <= sys.float_info.max:
            return float(value)
    elif isinstance(hint, type) and type(value) is hint:
        return value
    raise _wrong(where, path, f"expected {_type_name(hint)}, got {_show(value)}")


def _joined(path: str, key: object) -> str:
    return f"{path}.{key}" if path else str(key)


def _wrong(where: str, path: str, problem: str) -> InputError:
    return InputError(f"{where}: {path}: {problem}" if path else f"{where}: {problem}")


def _type_name(hint: Any) -> str:
    names = {int: "a whole number", float: "a finite number", str: "text", bool: "true or false"}
    if hint in names:
        return names[hint]
    if typing.get_origin(hint) is tuple:
        return "a list"
    return "a table" if dataclasses.is_dataclass(hint) else str(hint)


def _show(value: object) -> str:
    # repr refuses whole numbers of thousands of digits.
    huge = isinstance(value, int) and abs(value) > 10**60
    text = "a huge number" if huge else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
