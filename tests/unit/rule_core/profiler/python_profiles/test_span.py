"""Spans of Python profiles: what their names say, and which intervals they lie in."""

import math
import re

import pytest
from python_profile_writer import AFTER_STEPS, BEFORE_STEPS, span

from rule_core.exceptions import SMDebugValueError
from rule_core.profiler.python_profiles.span import StepPythonProfileStats
from rule_core.profiler.python_profiles.types import PythonProfileModes, StepPhase

TRAIN = PythonProfileModes.TRAIN
START, FORWARD, END = StepPhase.STEP_START, StepPhase.FORWARD_PASS_END, StepPhase.STEP_END


def stats(name: str, node: str = "11-algo-1") -> StepPythonProfileStats:
    return StepPythonProfileStats("pytorch", "cprofile", node, name, f"/p/{name}/python_stats")


def test_a_span_prints_as_a_dictionary_of_what_its_name_says() -> None:
    found = stats(
        "train-9-stepstart-1600000042500000.0_eval-12-forwardpassend-1600000043500000.5", "1-algo-1"
    )
    expected = {
        "profiler_name": "cprofile",
        "framework": "pytorch",
        "node_id": "1-algo-1",
        "start_mode": TRAIN,
        "start_step": 9,
        "start_phase": START,
        "start_time_since_epoch_in_micros": 1600000042500000.0,
        "end_mode": PythonProfileModes.EVAL,
        "end_step": 12,
        "end_phase": FORWARD,
        "end_time_since_epoch_in_micros": 1600000043500000.5,
        "stats_path": found.stats_path,
    }
    assert expected == vars(found)
    assert list(expected) == list(vars(found))
    assert repr(expected) == str(found)


def test_a_star_is_before_the_first_step_or_after_the_last() -> None:
    before, after = stats(BEFORE_STEPS), stats(AFTER_STEPS)
    assert (before.start_step, before.end_step) == (-1, 1)
    assert (-1, math.inf) == (after.start_step, after.end_step)
    for one, first in ((before, True), (after, False)):
        assert first == one.has_pre_step_zero_profile_stats()
        assert first != one.has_post_hook_close_profile_stats()


def test_modes_and_node_are_compared() -> None:
    one = stats(BEFORE_STEPS)
    assert one.has_start_and_end_mode(PythonProfileModes.PRE_STEP_ZERO, TRAIN)
    assert not one.has_start_and_end_mode(TRAIN, TRAIN)
    assert not one.has_start_and_end_mode(PythonProfileModes.PRE_STEP_ZERO, PythonProfileModes.EVAL)
    assert (one.has_node_id("11-algo-1"), one.has_node_id("11-algo-2")) == (True, False)


GOOD = "train-9-stepstart-1.0_train-9-stepend-2.0"
NAMES = [
    *("", "_", "python", "1600000042500000_1600000042400000_11-algo-1_9"),
    *(f"{GOOD}_x", f"x{GOOD}", f"{GOOD}\n", GOOD.replace("_", "-")),
    *(GOOD.replace("train", one, 1) for one in ("Train", "", "training", "tr-ain")),
    *(GOOD.replace("9", one, 1) for one in ("", "-1", "1_0", "²", "\uff19", "9.0", "inf", "**")),
    *(GOOD.replace("stepend", one) for one in ("", "STEP_END", "stepstop", "step-end")),
    *(GOOD.replace("2.0", one) for one in ("", "nan", "inf", "1e9", "-2.0", "2.", "0x2", " 2")),
    *(GOOD.replace("9", one) for one in ("9" * 20, str(2**63))),
    GOOD.replace("train-9-stepend", f"train-{2**63}-stepend"),
]


@pytest.mark.parametrize("name", NAMES)
def test_other_names_are_refused(name: str) -> None:
    text = re.escape(f"<mode>-<step>-<phase>-<time>, got {name!r}.")
    with pytest.raises(SMDebugValueError, match=f"^The folder of a Python profile .*{text}$"):
        stats(name)


def test_the_largest_step_has_a_number() -> None:
    assert stats(GOOD.replace("9", str(2**63 - 1))).end_step == 2**63 - 1


TIMES = [
    pytest.param(0, 99, False, id="before"),
    pytest.param(0, 100, True, id="touches-the-start"),
    pytest.param(50, 150, True, id="over-the-start"),
    pytest.param(120, 150, True, id="within: the older library missed it"),
    pytest.param(100, 200, True, id="same"),
    pytest.param(0, 300, True, id="around"),
    pytest.param(150, 300, True, id="over-the-end"),
    pytest.param(200, 300, True, id="touches-the-end"),
    pytest.param(201, 300, False, id="after"),
]


@pytest.mark.parametrize(("start", "end", "expected"), TIMES)
@pytest.mark.parametrize("ends", [(100, 200), (200, 100)], ids=["", "clock-went-back"])
def test_spans_overlap_intervals_of_time(
    start: int, end: int, expected: bool, ends: tuple[int, int]
) -> None:
    one = stats(f"train-9-stepstart-{ends[0]}.0_train-9-stepend-{ends[1]}.0")
    assert expected == one.in_time_interval(start, end)


# Which spans lie in which intervals of steps 9 to 11, both included.
INTERVALS = [
    (span(9), START, END, True),
    (span(10), FORWARD, START, True),
    (span(11), START, END, True),
    (span(9, end_step=11), START, END, True),
    (span(8), START, END, False),
    (span(12), START, END, False),
    (span(8, end_step=9), START, END, False),
    (span(11, end_step=12), START, END, False),
    (span(9, "stepstart"), FORWARD, END, False),
    (span(9, "forwardpassend"), FORWARD, END, True),
    (span(9, "stepend"), FORWARD, END, False),
    (span(9, "forwardpassend"), END, END, False),
    (span(9, "stepend", "stepstart", end_step=10), END, END, True),
    (span(9, "forwardpassend"), START, END, True),
    (span(10, "stepend", "stepstart", end_step=11), START, START, True),
    (span(10, "stepend", "forwardpassend", end_step=11), START, START, False),
    (span(10, "stepend", "stepend", end_step=11), START, START, False),
    (span(10, "stepend", "stepstart", end_step=11), START, FORWARD, True),
    (span(11, "stepstart", "forwardpassend"), START, FORWARD, True),
    # The older library did not heed this end.
    (span(11, "stepstart", "stepend"), START, FORWARD, False),
    (span(10, "stepstart", "stepend"), START, FORWARD, True),
    (BEFORE_STEPS, START, END, False),
    (AFTER_STEPS, START, END, False),
]


@pytest.mark.parametrize(("name", "start", "end", "expected"), INTERVALS)
def test_spans_lie_in_intervals_of_steps(
    name: str, start: StepPhase, end: StepPhase, expected: bool
) -> None:
    assert expected == stats(name).in_step_interval(9, 11, start, end)


# Which spans lie in 9 <= step < 11.
HALF_OPEN = [
    (span(8), START, END, False),
    (span(9), START, END, True),
    (span(10), START, END, True),
    (span(11), START, END, False),
    (span(9, end_step=10), START, END, True),
    (span(10, end_step=11), START, END, False),
    (span(10, "forwardpassend", "stepstart", end_step=11), START, END, True),
    (span(11, "stepstart", "stepstart"), START, END, False),
    (span(10, "forwardpassend", "forwardpassend", end_step=11), START, END, False),
    (span(8, "forwardpassend", "stepstart", end_step=9), START, END, False),
    (span(9, "stepstart"), FORWARD, END, False),
    (span(9, "forwardpassend"), FORWARD, END, True),
    (span(10, "stepstart", "forwardpassend"), START, FORWARD, True),
    (span(10, "forwardpassend", "stepstart", end_step=11), START, FORWARD, False),
    (span(9, "forwardpassend", "stepstart", end_step=10), START, START, True),
    (span(10, "forwardpassend", "stepstart", end_step=11), START, START, False),
]


@pytest.mark.parametrize(("name", "start", "end", "expected"), HALF_OPEN)
def test_spans_lie_in_half_open_intervals_of_steps(
    name: str, start: StepPhase, end: StepPhase, expected: bool
) -> None:
    assert expected == stats(name).in_half_open_steps(9, 11, start, end)


def test_an_empty_interval_holds_no_span() -> None:
    assert not stats(span(9)).in_half_open_steps(9, 9, START, END)
