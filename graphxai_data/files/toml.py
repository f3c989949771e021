"""From a TOML table to a frozen dataclass; unknown and missing keys and wrong types are errors."""

import dataclasses
import re
import sys
import tomllib
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from graphxai_data.errors import InputError, nearest
from graphxai_data.files.shipped import shipped

T = TypeVar("T")

# Of a TOML file, and of a dotted key in it.
_MOST_BYTES, _MOST_PARTS = 2**20, 200


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


def read_toml(path: Path) -> dict[str, Any]:
    """The parsed file, or an `InputError` that says what is wrong with it."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InputError(f"{shown_path(path)}: more than {_MOST_BYTES >> 20} MiB; shorten it")
        text = path.read_text(encoding="utf-8")
        # The parser's time grows with the square of the parts of a dotted key.
        if any(piece.count(".") > _MOST_PARTS for piece in re.split(r"[\n=,\[\]{}]", text)):
            raise InputError(
                f"{shown_path(path)}: a key of more than {_MOST_PARTS} parts; shorten it"
            )
        return tomllib.loads(text)
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"{shown_path(path)}: not valid TOML: {error}") from None
    except OSError as error:
        raise InputError(f"{shown_path(path)}: cannot be read: {error.strerror}") from None


def shown_path(path: Path) -> str:
    """How errors name a file: a shipped recipe by its short name."""
    return f"recipes/{path.name}" if path.parent == shipped("recipes") else str(path)
