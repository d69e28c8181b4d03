"""Axes have round ticks, contain all finite values and place any number a tensor holds."""

import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rule_core.analysis.axis import LENGTH, number, step_number, steps_axis, values_axis


@pytest.mark.parametrize(
    ("values", "log", "ticks"),
    [
        pytest.param([0, 1], False, [0, 0.2, 0.4, 0.6, 0.8, 1], id="unit"),
        pytest.param([-3, 7], False, [-4, -2, 0, 2, 4, 6, 8], id="both-signs"),
        pytest.param([5], False, [4.4, 4.6, 4.8, 5, 5.2, 5.4, 5.6], id="one-value"),
        pytest.param([0, 0], False, [-1, -0.5, 0, 0.5, 1], id="zero-alone"),
        pytest.param([], False, [0, 0.2, 0.4, 0.6, 0.8, 1], id="nothing"),
        pytest.param([math.nan, math.inf, 0, 1], False, [0, 0.2, 0.4, 0.6, 0.8, 1], id="odd"),
        pytest.param([1e-9, 0.5], True, [1e-10, 1e-8, 1e-6, 1e-4, 0.01, 1], id="decades"),
        pytest.param([0.3, 8], True, [0.2, 0.5, 1, 2, 5, 10], id="few-decades"),
        pytest.param([0, 3, 40], True, [2, 5, 10, 20, 50], id="zero-has-no-logarithm"),
        pytest.param([-1, 0], True, [-1, -0.8, -0.6, -0.4, -0.2, 0], id="nothing-positive"),
        pytest.param([1, 1], True, [0.5, 1, 2], id="one-value-log"),
    ],
)
def test_ticks_are_round(values: list[float], log: bool, ticks: list[float]) -> None:
    axis = values_axis(values, log=log)
    assert [round(tick, 12) for tick in axis.ticks] == ticks


@given(st.lists(st.floats()), st.booleans())
def test_every_value_has_a_position(values: list[float], log: bool) -> None:
    axis = values_axis(values, log=log)
    assert 1 <= len(axis.ticks) <= 12
    for value in values:
        position = axis.position(value)
        assert (position is None) == math.isnan(value)
        assert position is None or 0 <= position <= LENGTH
        if axis.contains(value) and math.isfinite(value):
            assert axis.low <= value <= axis.high


@given(st.floats(allow_nan=False), st.floats(allow_nan=False), st.booleans())
def test_positions_are_in_the_order_of_the_values(a: float, b: float, log: bool) -> None:
    axis = values_axis([a, b], log=log)
    low, high = axis.position(min(a, b)), axis.position(max(a, b))
    assert low is not None
    assert high is not None
    assert low <= high


def test_values_beyond_the_axis_are_clipped() -> None:
    axis = values_axis([1, 100], log=True)
    assert [axis.position(value) for value in (0, -5, -math.inf, math.inf)] == [0, 0, 0, LENGTH]
    assert [axis.contains(value) for value in (0, math.inf, math.nan, 10)] == [
        False,
        False,
        False,
        True,
    ]


def test_the_largest_numbers_have_an_axis() -> None:
    axis = values_axis([-sys.float_info.max, sys.float_info.max], log=False)
    ends = -sys.float_info.max, 0, sys.float_info.max
    assert [axis.position(value) for value in ends] == [0, 500, 1000]


@pytest.mark.parametrize(
    ("steps", "ticks"),
    [
        pytest.param([0, 100], [0, 20, 40, 60, 80, 100], id="hundred"),
        pytest.param([0, 3], [0, 1, 2, 3], id="whole-steps-only"),
        pytest.param([7], [6, 7, 8], id="one-step"),
        pytest.param([], [-1, 0, 1], id="none"),
        pytest.param([0, 2_000_000_000], [0, 5e8, 1e9, 1.5e9, 2e9], id="far"),
    ],
)
def test_steps_are_whole(steps: list[int], ticks: list[float]) -> None:
    assert list(steps_axis(steps).ticks) == ticks


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-12.5, "-12.5"),
        (999_999.0, "999,999"),
        (1e6, "1e6"),
        (1.23456789e-8, "1.23457e-8"),
        (math.nan, "NaN"),
        (-math.inf, "-Infinity"),
    ],
)
def test_numbers_for_people(value: float, text: str) -> None:
    assert number(value) == text


def test_large_steps_are_short() -> None:
    assert step_number(1_500_000) == "1.5M"
