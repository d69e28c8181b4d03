"""Files of speedscope: own amounts and those with callees, of samples and of events."""

from pathlib import Path
from typing import Any

import pytest
from tool_profile_writer import evented, sampled, write_speedscope

from rule_core.exceptions import CorruptFileError
from rule_core.profiler.python_profiles.measured_code import CodePlace, MeasuredCode
from rule_core.profiler.python_profiles.speedscope import parse_speedscope

MAIN, STEP, STEP_LATER, FIB = range(4)
FRAMES = [("main", "a.py", 1), ("step", "a.py", 5), ("step", "a.py", 9), ("fib", "b.py", 2)]


def parsed(folder: Path, *profiles: dict[str, Any], lines: bool = False) -> list[MeasuredCode]:
    path = write_speedscope(folder, FRAMES, *profiles)
    return list(parse_speedscope(path.name, path.read_bytes(), lines=lines))


def function(name: str) -> CodePlace:
    return CodePlace("b.py" if name == "fib" else "a.py", 0, name)


def test_a_function_counts_once_however_often_it_is_in_a_stack(tmp_path: Path) -> None:
    stacks = [[MAIN, FIB, FIB, FIB], [MAIN, STEP, FIB], [MAIN], [], [MAIN, STEP_LATER, STEP]]
    [code] = parsed(tmp_path, sampled(stacks, [1.0, 2.0, 4.0, 8.0, 16.0]))
    assert code.own == {function("fib"): 3.0, function("main"): 4.0, function("step"): 16.0}
    assert code.whole == {function("fib"): 3.0, function("main"): 23.0, function("step"): 18.0}
    assert (code.thread, code.unit) == ('Thread 7 "MainThread"', "s")


def test_events_give_what_samples_give(tmp_path: Path) -> None:
    events = [
        ("O", MAIN, 0.0), ("O", FIB, 1.0), ("O", FIB, 2.0), ("C", FIB, 4.0), ("C", FIB, 4.5),
        ("O", STEP, 4.5), ("C", STEP, 6.0), ("C", MAIN, 7.0),
    ]  # fmt: skip
    [code] = parsed(tmp_path, evented(events))
    assert code.own == {function("main"): 2.0, function("fib"): 3.5, function("step"): 1.5}
    assert code.whole == {function("main"): 7.0, function("fib"): 3.5, function("step"): 1.5}


def test_what_stays_open_lasts_to_the_end(tmp_path: Path) -> None:
    [code] = parsed(tmp_path, evented([("O", MAIN, 1.0), ("O", FIB, 2.0)], end=5.0))
    assert code.own == {function("main"): 1.0, function("fib"): 3.0}
    assert code.whole == {function("main"): 4.0, function("fib"): 3.0}


def test_the_self_of_pyinstrument_is_the_function_around_it(tmp_path: Path) -> None:
    frames = [*FRAMES, ("[self]", "", 0)]
    own = {function("main"): 3.0}
    events = evented([("O", MAIN, 0), ("O", 4, 1), ("C", 4, 2), ("C", MAIN, 3)])
    for profile in (events, sampled([[MAIN, 4]], [3.0])):
        path = write_speedscope(tmp_path, frames, profile)
        [code] = parse_speedscope(path.name, path.read_bytes())
        assert code.own == code.whole == own


def test_lines_are_told_apart_if_asked(tmp_path: Path) -> None:
    [code] = parsed(tmp_path, sampled([[MAIN, STEP], [STEP_LATER]], [1.0, 2.0]), lines=True)
    assert code.own == {CodePlace("a.py", 5, "step"): 1.0, CodePlace("a.py", 9, "step"): 2.0}


@pytest.mark.parametrize(
    ("unit", "amount", "of"),
    [
        ("seconds", 2.0, "s"),
        ("milliseconds", 0.002, "s"),
        ("microseconds", 2e-6, "s"),
        ("nanoseconds", 2e-9, "s"),
        ("bytes", 2.0, "bytes"),
        ("none", 2.0, ""),
    ],
)
def test_all_units(tmp_path: Path, unit: str, amount: float, of: str) -> None:
    for profile in (
        sampled([[MAIN]], [2.0], unit=unit),
        evented([("O", MAIN, 1), ("C", MAIN, 3)], unit=unit),
    ):
        [code] = parsed(tmp_path, profile)
        assert (code.unit, code.own) == (of, {function("main"): pytest.approx(amount)})


@pytest.mark.parametrize(
    ("profile", "got"),
    [
        (sampled([[9]], [1.0]), "a stack with frame 9 of 4"),
        (sampled([[-1]], [1.0]), "a stack with frame -1 of 4"),
        (sampled([["a"]], [1.0]), "Expected `int`, got `str`"),  # type: ignore[list-item]
        (sampled([[MAIN]], [1.0, 2.0]), "1 samples with 2 weights"),
        (sampled([[MAIN]], [-1.0]), "a weight of -1.0"),
        (sampled([[MAIN]], [1.0], unit="parsecs"), "one with the unit 'parsecs'"),
        (evented([("O", MAIN, 2.0), ("C", MAIN, 1.0)]), "an event at 1.0 after one at 2.0"),
        (evented([("O", MAIN, 1.0), ("C", FIB, 2.0)]), "an event that closes frame 3"),
        (evented([("C", MAIN, 1.0)]), "an event that closes frame 0"),
        (evented([("X", MAIN, 1.0)]), "Invalid enum value 'X'"),
        ({"type": "counted"}, "Invalid enum value 'counted'"),
    ],
)
def test_bad_profiles_are_one_error(tmp_path: Path, profile: dict[str, Any], got: str) -> None:
    with pytest.raises(CorruptFileError) as err:
        parsed(tmp_path, profile)
    assert "expected a profile of speedscope, got" in str(err.value)
    assert got in str(err.value)


def test_a_stack_without_end_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CorruptFileError, match="a stack of more than 100000 frames"):
        parsed(tmp_path, evented([("O", MAIN, 1.0)] * 100_001))
