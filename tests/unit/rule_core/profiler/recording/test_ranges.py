"""Ranges of steps and of time, half open, whose missing ends have defaults."""

import pytest

from rule_core.profiler.recording.ranges import ProfilingRange


@pytest.mark.parametrize(
    ("steps", "profiled"),
    [
        (ProfilingRange(start_step=0), [0]),
        (ProfilingRange(start_step=2, num_steps=3), [2, 3, 4]),
        (ProfilingRange(num_steps=2), [0, 1]),
        (ProfilingRange(), [0]),
        (ProfilingRange(start_s=103.0, duration_s=2.0), [3, 4]),
        (ProfilingRange(duration_s=3.0), [0, 1, 2]),
        (ProfilingRange(start_s=104.0), [4]),
        (ProfilingRange(start_s=90.0), [0]),
        (ProfilingRange(start_s=90.0, duration_s=5.0), []),
    ],
)
def test_which_steps_are_profiled(steps: ProfilingRange, profiled: list[int]) -> None:
    assert [step for step in range(8) if steps.contains(step, 100.0 + step)] == profiled


def test_a_range_without_a_start_begins_where_it_is_first_looked_up() -> None:
    steps = ProfilingRange(num_steps=2)
    assert [step for step in range(5, 9) if steps.contains(step, 0.0)] == [5, 6]


@pytest.mark.parametrize(
    ("steps", "over"),
    [
        (ProfilingRange(start_step=2, num_steps=3), [5, 6, 7]),
        (ProfilingRange(start_s=103.0, duration_s=2.0), [5, 6, 7]),
        (ProfilingRange(num_steps=3), []),
    ],
)
def test_from_which_step_on_nothing_follows(steps: ProfilingRange, over: list[int]) -> None:
    assert [step for step in range(8) if steps.is_over(step, 100.0 + step)] == over
