"""The fields of rows: names of steps, numbers in any writing, and steps that fit together."""

import math

import pytest

from rule_core.sources.rows.row_fields import (
    MODE,
    STEP_NAMES,
    TIME,
    RowSteps,
    brief,
    field_role,
    mode_prefix,
    to_number,
    to_time,
)


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("  Epoch ", STEP_NAMES.index("epoch")),
        ("Global Step", STEP_NAMES.index("global_step")),
        ("train/global_step", STEP_NAMES.index("global_step")),
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


def test_steps_are_counted_by_the_most_precise_name() -> None:
    step, epoch = STEP_NAMES.index("step"), STEP_NAMES.index("epoch")
    steps = RowSteps()
    assert steps.step_of({epoch: 0}) == 0
    assert steps.step_of({epoch: 1, step: "500.0"}) == 500
    assert steps.step_of({epoch: 2}) == 500  # an evaluation, say
    assert "no step" in str(steps.step_of({}))
    assert "'2024-01-01'" in str(steps.step_of({step: "2024-01-01"}))


@pytest.mark.parametrize("value", [-1, 0.5, math.nan, math.inf, 2**48, "x", [], True])
def test_steps_that_are_none(value: object) -> None:
    assert isinstance(RowSteps().step_of({0: value}), str)
