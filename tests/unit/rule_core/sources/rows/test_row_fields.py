"""The fields of rows: names of steps, numbers in any writing, and steps that fit together."""

import math

import pytest

from rule_core.sources.rows.row_fields import (
    COUNTER,
    MODE,
    TIME,
    brief,
    counts_of,
    field_role,
    mode_prefix,
    to_number,
    to_time,
)
from rule_core.sources.rows.row_steps import counter_rank


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("  Epoch ", COUNTER),
        ("Global Step", COUNTER),
        ("train/global_step", COUNTER),
        ("Wall time", TIME),
        ("split", MODE),
        ("loss", None),
        ("val/step", None),
        ("steps_per_second", None),
    ],
)
def test_roles(name: str, role: object) -> None:
    assert field_role(name) == role


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (3, 3.0),
        ("nan", math.nan),
        ("NaN", math.nan),
        ("-Infinity", -math.inf),
        ("inf", math.inf),
        ("1e400", math.inf),
        (10**400, math.inf),
        (-(10**400), -math.inf),
        ("tensor(0.5, device='cuda:0')", 0.5),
        ("tensor(nan)", math.nan),
        ("tensor([1., 2.])", None),
        (True, None),
        (None, None),
        ([1.0], None),
        ("", None),
        ("10:30", None),
    ],
)
def test_numbers(value: object, number: float | None) -> None:
    assert repr(to_number(value)) == repr(number)


def test_times_and_modes() -> None:
    assert to_time("1700000000.5") == 1700000000.5
    assert to_time(12.5) == to_time("today") == to_time(math.nan) == 0.0
    assert mode_prefix(" Valid ") == "valid/"
    assert mode_prefix("train") == mode_prefix(3) == ""
    assert len(brief(["x" * 10**6] * 10**4)) < 300


def test_counts_of_a_row() -> None:
    epoch = ("epoch", "1/30", counter_rank("epoch"))
    counts = counts_of([epoch, ("step", "500.0", 0), ("iter", None, counter_rank("iter"))])
    assert not isinstance(counts, str)
    assert [(count.value, count.total) for count in counts] == [(1, 30), (500, 0)]
    problem = "Its step '2024-01-01' is not a whole number >= 0. Such lines are skipped."
    assert counts_of([epoch, ("step", "2024-01-01", 0)]) == problem
    assert isinstance(counts_of([("step", 1, 0), ("epoch", "x", counter_rank("epoch"))]), list)


@pytest.mark.parametrize("value", [-1, 0.5, math.nan, math.inf, 2**48, "x", [], True])
def test_counts_that_are_none(value: object) -> None:
    assert isinstance(counts_of([("step", value, 0)]), str)
