"""Python profiles: a file for each phase of the steps in the range, read back by the analysis."""

import cProfile
import marshal
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rule_core.modes import ModeKeys
from rule_core.profiler.python_profiles.cprofile_file import parse_cprofile
from rule_core.profiler.python_profiles.span import StepPythonProfileStats
from rule_core.profiler.python_profiles.types import StepPhase, cProfileTimer
from rule_core.profiler.recording.config import PythonProfiling, RecordingConfig
from rule_core.profiler.recording.python_profiler import Files, PythonProfiler
from rule_core.profiler.recording.ranges import ProfilingRange
from rule_core.profiler.recording.step_profiler import StepPoint

Log = pytest.LogCaptureFixture
PHASES = (StepPhase.STEP_START, StepPhase.FORWARD_PASS_END, StepPhase.STEP_END)


class Saved:
    """Collects what a profiler saves."""

    def __init__(self) -> None:
        self.files: dict[str, Files] = {}

    def __call__(self, folder: str, make_files: Callable[[], Files]) -> None:
        self.files[folder] = make_files()

    def spans(self) -> list[StepPythonProfileStats]:
        return [StepPythonProfileStats(*folder.split("/")[1:], folder) for folder in self.files]


@pytest.fixture
def saved() -> Saved:
    return Saved()


@pytest.fixture
def profiler(saved: Saved) -> Iterator[PythonProfiler]:
    profiler = PythonProfiler("pytorch", "0-box", saved, iter(range(1, 1000)).__next__)
    yield profiler
    profiler.end_script()  # coverage needs the profiler's place


def config(profiler: str = "cprofile", timer: str = "total_time", **steps: Any) -> RecordingConfig:
    python = PythonProfiling(ProfilingRange(**steps), profiler, cProfileTimer(timer))
    return RecordingConfig(python=python)


def point(step: int, time_us: int | None = None) -> StepPoint:
    return StepPoint(ModeKeys.TRAIN, step, step, 1_000_000 * step if time_us is None else time_us)


def work() -> int:
    return sum(range(1000))


def run(profiler: PythonProfiler, settings: RecordingConfig, steps: int = 6) -> None:
    for step in range(steps):
        for phase in PHASES:
            profiler.reach(phase, point(step), settings)
            work()


def test_each_phase_in_the_range_has_a_profile(saved: Saved, profiler: PythonProfiler) -> None:
    run(profiler, config(start_step=2, num_steps=2))
    spans = [
        (span.start_step, span.start_phase, span.end_step, span.end_phase) for span in saved.spans()
    ]
    start, forward, end = PHASES
    assert spans == [
        (2, start, 2, forward),
        (2, forward, 2, end),
        (2, end, 3, start),
        (3, start, 3, forward),
        (3, forward, 3, end),
        (3, end, 4, start),
    ]
    assert sys.getprofile() is None


def test_a_profile_has_the_functions_of_its_phase(saved: Saved, profiler: PythonProfiler) -> None:
    run(profiler, config(start_step=0))
    for folder, files in saved.files.items():
        table = parse_cprofile(folder, files["python_stats"])
        assert any(name == "work" for _, _, name in table)


def test_time_outside_of_steps_is_profiled_too(saved: Saved, profiler: PythonProfiler) -> None:
    settings = config(start_step=50)
    profiler.begin_script(settings)
    run(profiler, settings, steps=2)
    profiler.close(point(1), settings)
    profiler.end_script()
    before, after = saved.spans()
    assert (before.start_mode.name, before.start_step, before.end_step) == ("PRE_STEP_ZERO", -1, 0)
    assert before.has_pre_step_zero_profile_stats()
    assert (after.start_mode.name, after.end_step) == ("POST_HOOK_CLOSE", math.inf)
    assert after.has_post_hook_close_profile_stats()


def test_without_a_configuration_nothing_is_profiled(
    saved: Saved, profiler: PythonProfiler
) -> None:
    settings = RecordingConfig()
    profiler.begin_script(settings)
    run(profiler, settings)
    profiler.close(point(5), settings)
    assert not saved.files


def test_the_default_takes_the_timers_in_turn(
    saved: Saved, profiler: PythonProfiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rule_core.profiler.recording import python_profiler as module

    timers: list[object] = []
    original = module.function_profile

    def noted(timer: cProfileTimer) -> Any:
        timers.append(timer.value)
        return original(timer)

    monkeypatch.setattr(module, "function_profile", noted)
    run(profiler, config(timer="default", start_step=1, num_steps=3))
    assert timers == [*["total_time"] * 3, *["cpu_time"] * 3, *["off_cpu_time"] * 3]
    assert len(saved.files) == 9


def test_time_off_the_processor_is_that_of_waiting(saved: Saved, profiler: PythonProfiler) -> None:
    import threading

    settings = config(timer="off_cpu_time", start_step=0)
    profiler.reach(StepPhase.STEP_START, point(0), settings)
    threading.Event().wait(0.05)
    profiler.reach(StepPhase.STEP_END, point(0), settings)
    (files,) = saved.files.values()
    table = marshal.loads(files["python_stats"])
    assert sum(row[2] for row in table.values()) > 0.04


def test_another_profiler_is_left_alone(
    saved: Saved, profiler: PythonProfiler, caplog: Log
) -> None:
    other = cProfile.Profile()
    other.enable()
    try:
        run(profiler, config(start_step=0, num_steps=3))
    finally:
        other.disable()
    assert not saved.files
    (message,) = [record.getMessage() for record in caplog.records]
    assert message.startswith("Python functions are not profiled with cprofile: Another profiling")


def test_a_missing_pyinstrument_is_told_once(
    saved: Saved, profiler: PythonProfiler, caplog: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyinstrument", None)
    run(profiler, config("pyinstrument", start_step=0, num_steps=3))
    assert not saved.files
    (message,) = [record.getMessage() for record in caplog.records]
    assert message.startswith("Python functions are not profiled with pyinstrument: ")


def test_pyinstrument_writes_a_tree_and_a_page(saved: Saved, profiler: PythonProfiler) -> None:
    pytest.importorskip("pyinstrument", reason="pyinstrument is not installed.")
    import msgspec

    settings = config("pyinstrument", start_step=0)
    profiler.reach(StepPhase.STEP_START, point(0), settings)
    for _ in range(2000):
        work()
    profiler.reach(StepPhase.STEP_END, point(0), settings)
    profiler.reach(StepPhase.STEP_START, point(1), settings)
    files = next(iter(saved.files.values()))
    assert set(files) == {"python_stats.json", "python_stats.html"}
    assert "root_frame" in msgspec.json.decode(files["python_stats.json"])
    assert all("/pyinstrument/0-box/" in folder for folder in saved.files)


def test_the_names_of_spans_are_unique_and_parse(
    saved: Saved, profiler: PythonProfiler, tmp_path: Path
) -> None:
    run(profiler, config(start_step=0, num_steps=6))
    assert len({*saved.files}) == len(saved.files) == 17
    for folder in saved.files:
        (tmp_path / folder).mkdir(parents=True)
