"""Checks of numbers that users pass."""

import math

import numpy as np
import pytest

from graphxai_data.errors import InputError, finite_number, known_name


@pytest.mark.parametrize(
    "value", [math.inf, math.nan, np.float32("inf"), np.float16("nan"), 10**400, True, "1", None]
)
def test_what_is_not_a_finite_number_is_refused(value: object) -> None:
    with pytest.raises(InputError, match="b: expected a finite number"):
        finite_number("b", value)


@pytest.mark.parametrize("value", [1.5, 2, np.float32(1.5), np.float16(1.5), np.int64(3)])
def test_a_finite_number_of_any_type_is_returned_as_a_float(value: float) -> None:
    number = finite_number("b", value, 1, 4)
    assert type(number) is float
    assert number == value


@pytest.mark.parametrize("name", ["quik", None, 2])
def test_a_name_of_any_type_that_is_not_known_is_refused(name: object) -> None:
    with pytest.raises(InputError, match=f"unknown depth '{name}'; (did you mean 'quick'|known: )"):
        known_name("depth", name, ("quick", "full"))  # type: ignore[arg-type]
