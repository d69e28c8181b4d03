"""When steps ran: of a mode, with gaps, and without an end."""

from typing import Any

import pytest

from rule_core.modes import ModeKeys
from rule_core.profiler.readers.step_times import step_interval
from rule_core.profiler.traces.event import TraceEvent


def event(
    step: Any, start: float, dur: float, mode: str = "TRAIN", name: str | None = None
) -> TraceEvent:
    phase = f"Step:ModeKeys.{mode}"
    args = {} if step is None else {"step_num": step}
    return TraceEvent(start, name or phase, dur, 1, 1, args, "n", "X", "", phase)


# Out of order, as files of several nodes are; evaluation comes before training, once more.
EVENTS = [
    event("0", 0, 5, "EVAL"),
    event(2, 40, 9),
    event("0", 20, 9),
    event("1", 30, 9),
    event("1", 31, 30, name="Forward"),
    event("1", 6, 4, "EVAL"),
    event("x", 1, 1),
    event(True, 1, 1),
    event(None, 1, 1),
]


@pytest.mark.parametrize(
    ("start", "end", "mode", "expected"),
    [
        pytest.param(0, 1, ModeKeys.TRAIN, (20, 29), id="of-training"),
        pytest.param(0, 1, ModeKeys.EVAL, (0, 5), id="of-evaluation"),
        pytest.param(0, 1, None, (0, 5), id="of-any-mode-the-first"),
        pytest.param(0, 1, ModeKeys.GLOBAL, (0, 5), id="of-all"),
        pytest.param(1, 2, ModeKeys.TRAIN, (30, 39), id="two"),
        pytest.param(2, 3, ModeKeys.TRAIN, (40, 49), id="the-last-step-has-no-next"),
        pytest.param(1, 99, ModeKeys.TRAIN, (30, 61), id="last-end-of-all"),
        pytest.param(1, 2, None, (6, 39), id="an-end-before-the-start-is-none"),
        pytest.param(0, 1, ModeKeys.PREDICT, (0, 0), id="other-mode"),
        pytest.param(3, 9, None, (0, 0), id="unknown"),
        pytest.param(1, 1, None, (0, 0), id="no-step"),
    ],
)
def test_the_interval_of_steps(
    start: int, end: int, mode: ModeKeys | None, expected: tuple[int, int]
) -> None:
    assert step_interval(EVENTS, start, end, mode) == expected


def test_the_first_step_that_is_known_stands_for_those_before_it() -> None:
    assert step_interval([event(7, 70, 5), event(9, 90, 5)], 3, 9) == (70, 89)
