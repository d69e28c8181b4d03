"""Series: numbers, gaps, repetitions as in promtool, arrays, and what is rejected."""

from typing import Any

import numpy as np
import pytest

from rule_runner.rule_tests.series import SeriesError, series, whole_numbers


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1 2.5 -3e-2", [1, 2.5, -0.03]),
        ("1+0.5x3", [1, 1.5, 2, 2.5]),
        ("10-4x2", [10, 6, 2]),
        ("-1*2x2", [-1, -2, -4]),
        ("7x2", [7, 7, 7]),
        ("1 _ 2", [1, None, 2]),
        ("_x2 5", [None, None, 5]),
        (["1", "1e3", "2x1"], [1, 1000, 2, 2]),
        (["nan", ".inf", "-inf"], [np.nan, np.inf, -np.inf]),
        ([1, 2.5, None], [1, 2.5, None]),
        ("3", [3]),
        ("", []),
    ],
)
def test_values_by_step(value: Any, expected: list[float | None]) -> None:
    values = [None if array is None else array.item() for array in series(value)]
    assert [value is None for value in values] == [number is None for number in expected]
    numbers = [value for value in values if value is not None]
    np.testing.assert_allclose(numbers, [number for number in expected if number is not None])


def test_nested_lists_are_arrays_by_step() -> None:
    first, second = series([[["1", "2"], ["3", "nan"]], np.ones(3)])
    assert first is not None
    assert second is not None
    assert (first.shape, first.dtype.kind, second.tolist()) == ((2, 2), "f", [1, 1, 1])


def test_whole_numbers_keep_their_type() -> None:
    (array,) = series([["1", "2"]])
    assert array is not None
    assert array.dtype.kind == "i"


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("1 two", "expected a number, such as 0.5, nan or 1+0.5x20, got 'two'"),
        ([[["1"], ["1", "2"]]], "the rows of an array must have equal lengths"),
        ({"a": 1}, "expected numbers, got"),
        ("1x200000", "a series has at most 100,000 values, got '1x200000'"),
    ],
)
def test_what_is_no_series_is_named(value: Any, sentence: str) -> None:
    with pytest.raises(SeriesError) as raised:
        series(value)
    assert str(raised.value).startswith(sentence)


def test_steps_are_whole_numbers() -> None:
    assert whole_numbers("0+10x3") == [0, 10, 20, 30]
    for value in ("1 _", "1.5", "nan", [["1", "2"]]):
        with pytest.raises(SeriesError):
            whole_numbers(value)
