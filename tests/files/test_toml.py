import math
import re
from dataclasses import dataclass
from typing import Annotated

import pytest

from graphxai_data.errors import InputError
from graphxai_data.files.toml import Between, Checked, Names, parse_table


@dataclass(frozen=True)
class Numbers(Checked):
    count: Annotated[int, Between(1, 9)] = 1
    share: Annotated[float, Between(0, 1, excluded=(0, 1))] = 0.5
    size: Annotated[float, Between(2)] = 2.0
    limit: Annotated[int, Between(1, 9)] | None = None
    names: Annotated[tuple[str, ...], Names(("a", "b", "c"), 2, 2)] = ("a", "b")
    others: Annotated[tuple[str, ...], Names()] = ("x",)


WRONG = [
    ("count", 0, "count: expected a whole number from 1 to 9, got 0"),
    ("count", 10, "count: expected a whole number from 1 to 9, got 10"),
    ("count", 2**5000, "count: expected a whole number from 1 to 9, got a huge number"),
    ("share", 0.0, "share: expected a finite number from 0 to 1, but not 0 or 1, got 0.0"),
    ("share", 1.0, "but not 0 or 1, got 1.0"),
    ("size", 1.5, "size: expected a finite number of at least 2, got 1.5"),
    ("limit", 12, "limit: expected a whole number from 1 to 9, got 12"),
    ("names", ["a", "z"], "names: expected 2 different names of a, b, c, got ['a', 'z']"),
    ("names", ["a"], "names: expected 2 different names of a, b, c, got ['a']"),
    ("others", ["x", "x"], "others: expected different names, got ['x', 'x']"),
    ("others", [], "others: expected at least one name, got []"),
]


@pytest.mark.parametrize(("key", "value", "message"), WRONG)
def test_a_value_out_of_bounds_is_refused_in_a_file_and_in_a_call(
    key: str, value: object, message: str
) -> None:
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        parse_table(Numbers, {key: value}, "x.toml", "params")
    assert str(caught.value).startswith(f"x.toml: params.{key}: expected")
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        Numbers(**{key: value})
    assert str(caught.value).startswith(f"{key}: expected")


@pytest.mark.parametrize(
    ("key", "value"),
    [("count", True), ("count", 2.5), ("count", "2"), ("size", math.nan), ("size", math.inf)],
)
def test_a_call_with_a_value_of_another_type_is_refused(key: str, value: object) -> None:
    with pytest.raises(InputError, match=f"{key}: expected a .* number .*, got {value!r}"):
        Numbers(**{key: value})


def test_bounds_are_included_and_lists_become_tuples() -> None:
    numbers = parse_table(Numbers, {"count": 9, "limit": 1, "names": ["c", "a"]}, "x.toml")
    assert numbers == Numbers(count=9, limit=1, names=("c", "a"))


def test_a_subclass_checks_the_bounds_that_it_inherits() -> None:
    @dataclass(frozen=True)
    class More(Numbers):
        extra: Annotated[int, Between(0, 1)] = 0

    with pytest.raises(InputError, match="count: expected a whole number from 1 to 9, got 0"):
        More(count=0)
    with pytest.raises(InputError, match="extra: expected a whole number from 0 to 1, got 2"):
        parse_table(More, {"extra": 2}, "x.toml")
