"""What smdebug's own tests of its writer, parser, profilers and clock ask for, asked of ours.

They are test_timeline_writer, test_profiler_config_parser, test_python_profiler, and the steady
clock in test_horovodprofiler_events; `docs/compatibility.md` lists the differences.
"""

import json
import multiprocessing
import os
import pstats
import time
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import s3_objects
from clocks import PatientClock

from rule_core.modes import ModeKeys
from rule_core.profiler.python_profiles.types import StepPhase, cProfileTimer
from rule_core.profiler.recording.config import FileLimits, RecordingConfig, parse_config
from rule_core.profiler.recording.config_file import ConfigFile
from rule_core.profiler.recording.python_profiler import Files, PythonProfiler
from rule_core.profiler.recording.step_profiler import StepPoint
from rule_core.profiler.recording.timelines import Timelines, TraceRecord
from rule_core.trials.profiler_trial import ProfilerTrial
from smdebug.profiler.analysis.python_profile_analysis import (
    PyinstrumentAnalysis,
    cProfileAnalysis,
)

STEP, NOW_S = 3, 1_700_000_000.0
NOW_US = int(NOW_S * 1e6)
START, END = StepPhase.STEP_START, StepPhase.STEP_END


# -- test_timeline_writer ----------------------------------------------------------------------


def write(folder: str, worker: int, count: int) -> None:
    """Write events as the process of a worker."""
    writer = Timelines(folder, f"{worker}-host", FileLimits(), PatientClock(), NOW_US)
    for number in range(count):
        start_us = NOW_US + number
        args = {"pid": os.getpid(), "step_num": str(number)}
        writer.add(
            TraceRecord("pythontimeline.json", "Test", f"event{number}", start_us, start_us, args)
        )
    writer.close()


def names_in(folder: Path) -> list[list[str]]:
    """Return the names of the events in each published timeline, by path."""
    documents = [
        json.loads(path.read_text())
        for path in sorted((folder / "framework" / "pevents").rglob("*.json"))
    ]
    return [[each["name"] for each in document if each["ph"] == "X"] for document in documents]


def test_a_timeline_is_one_json_file(tmp_path: Path) -> None:
    write(str(tmp_path), os.getpid(), 10)
    assert names_in(tmp_path) == [[f"event{number}" for number in range(10)]]


def test_a_timeline_in_s3(aws_endpoint: str) -> None:
    s3_objects.make_bucket(aws_endpoint)
    write("s3://bucket/old", 7, 10)
    trial = ProfilerTrial("job", "s3://bucket/old")
    trial.refresh()
    assert len(trial.framework_events(0, 2 * NOW_US)) == 10


def test_each_process_writes_a_file(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=write, args=(str(tmp_path), n, 5)) for n in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [len(names) for names in names_in(tmp_path)] == [5, 5, 5]


@pytest.mark.parametrize("limits", [FileLimits(max_bytes=300), FileLimits(max_age_s=1.0)])
def test_files_rotate_and_keep_all_events(tmp_path: Path, limits: FileLimits) -> None:
    clock = PatientClock()
    writer = Timelines(str(tmp_path), "0-host", limits, clock, NOW_US)
    for number in range(1, 5):
        clock.sleep(0.6)
        writer.tick()
        at_us = NOW_US + number
        writer.add(TraceRecord("pythontimeline.json", "Test", f"event{number}", at_us, at_us, {}))
    writer.close()
    names = names_in(tmp_path)
    assert len(names) >= 2
    assert sorted(chain.from_iterable(names)) == ["event1", "event2", "event3", "event4"]


# -- test_profiler_config_parser ---------------------------------------------------------------


def parsed(kind: str, as_text: Callable[[Any], Any] = str, **settings: Any) -> RecordingConfig:
    given = {key: value for key, value in settings.items() if value is not None}
    parameters = {"ProfilerEnabled": True, kind: as_text(given)}
    return parse_config({"ProfilingParameters": parameters})


@pytest.mark.parametrize("as_text", [str, json.dumps])
@pytest.mark.parametrize(
    ("start", "number", "start_s", "duration_s", "is_profiled"),
    [
        (STEP, 2, None, None, True),
        (STEP, None, None, None, True),
        (None, 2, None, None, True),
        (None, None, NOW_S, 500, True),
        (None, None, NOW_S, None, True),
        (None, None, None, 500, True),
        (1, None, None, None, False),
        (5, None, None, None, False),
        (None, None, NOW_S - 1000, 500, False),
        (STEP, 2, NOW_S, 500, None),
    ],
)
@pytest.mark.parametrize("kind", ["DetailedProfilingConfig", "SMDataparallelProfilingConfig"])
def test_ranges(
    kind: str,
    start: int | None,
    number: int | None,
    start_s: float | None,
    duration_s: float | None,
    is_profiled: bool | None,
    as_text: Callable[[Any], str],
) -> None:
    config = parsed(
        kind,
        as_text,
        StartStep=start,
        NumSteps=number,
        StartTimeInSecSinceEpoch=start_s,
        DurationInSeconds=duration_s,
    )
    steps = config.detailed or config.smdataparallel
    assert (None if steps is None else steps.contains(STEP, NOW_S)) is is_profiled
    if is_profiled:
        assert steps is not None
        length = number or 1
        is_over = steps.is_over(STEP + length, NOW_S + (duration_s or 0))
        assert is_over


@pytest.mark.parametrize(
    ("pattern", "is_recorded"),
    [("Dataloader:Event", True), ("Dataloader:Event2", False), (None, True), ("*", None)],
)
def test_events_of_data_loaders(pattern: str | None, is_recorded: bool | None) -> None:
    loader = parsed("DataloaderProfilingConfig", StartStep=STEP, MetricsRegex=pattern).data_loader
    if loader is None:
        assert is_recorded is None
    else:
        assert loader.range.contains(STEP, NOW_S)
        assert bool(loader.pattern.match("dataloader:event1")) is is_recorded


@pytest.mark.parametrize(
    ("name", "timer", "answer"),
    [
        ("cprofile", "off_cpu_time", ("cprofile", cProfileTimer.OFF_CPU_TIME)),
        (None, None, ("cprofile", cProfileTimer.TOTAL_TIME)),
        (None, "cpu_time", ("cprofile", cProfileTimer.CPU_TIME)),
        ("pyinstrument", None, ("pyinstrument", cProfileTimer.TOTAL_TIME)),
        ("bad_profiler_name", None, None),
        ("cprofile", "bad_cprofile_timer", None),
    ],
)
def test_profilers_of_functions(
    name: str | None, timer: str | None, answer: tuple[str, cProfileTimer] | None
) -> None:
    python = parsed(
        "PythonProfilingConfig", StartStep=STEP, NumSteps=2, ProfilerName=name, cProfileTimer=timer
    ).python
    assert (None if python is None else (python.profiler, python.timer)) == answer


def test_files_that_disable_the_profiler(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    assert ConfigFile(path, PatientClock()).config.is_disabled
    path.write_text('{"ProfilingParameters": {"ProfilerEnabled": false}}')
    assert ConfigFile(path, PatientClock()).config.is_disabled


def test_general_settings() -> None:
    defaults = parse_config({"ProfilingParameters": {"ProfilerEnabled": True}}).limits
    assert defaults == FileLimits(10485760, 60.0, 50)
    texts = {"RotateMaxFileSizeInBytes": "100", "RotateFileCloseIntervalInSeconds": "1"}
    folded = {key.lower(): value for key, value in texts.items()} | {"FILEOPENFAILTHRESHOLD": "5"}
    assert parse_config({"profilingparameters": folded}).limits == FileLimits(100, 1.0, 5)
    bad = parse_config({"ProfilingParameters": dict.fromkeys(texts, "bad")})
    assert bad.framework
    assert bad.limits == defaults


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"NumSteps": 2}, {"StartStep": 10, "NumSteps": 5}),
        ({"DurationInSeconds": 0.1}, {"StartTimeInSecSinceEpoch": NOW_S, "DurationInSeconds": 5}),
        (None, {"StartStep": 10, "NumSteps": 5}),
    ],
)
def test_a_changed_file_replaces_ranges_that_have_begun(
    tmp_path: Path, before: dict[str, Any] | None, after: dict[str, Any]
) -> None:
    path, clock = tmp_path / "config.json", PatientClock()

    def save(settings: dict[str, Any] | None) -> None:
        parameters = {"ProfilerEnabled": settings is not None}
        path.write_text(
            json.dumps({"ProfilingParameters": {**parameters, "DetailedProfilingConfig": settings}})
        )

    save(before)
    file = ConfigFile(path, clock)
    assert file.config.is_disabled is (before is None)
    detailed = file.config.detailed
    if detailed is not None:
        assert detailed.contains(5, NOW_S)
        clock.sleep(2.0)
        assert not file.has_changed()
        assert file.config.detailed is detailed  # its start is that of its first step
    clock.sleep(2.0)
    save(after)
    assert file.has_changed()
    assert file.config.detailed == parsed("DetailedProfilingConfig", **after).detailed


# -- test_python_profiler ----------------------------------------------------------------------


def start_end_step_function() -> None:
    work()


def end_start_step_function() -> None:
    work()


def time_function() -> None:
    work()


def work() -> None:
    """Be at work for some milliseconds, so that a sampling profiler sees it."""
    until = time.perf_counter() + 0.005
    while time.perf_counter() < until:
        pass


@pytest.fixture(params=["cprofile", "pyinstrument"])
def profiled(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[str, Path]]:
    """Profile a function in a step, one between two steps, and one in the second."""
    name = request.param
    if name == "pyinstrument":
        pytest.importorskip("pyinstrument", reason="pyinstrument is not installed.")

    def save(folder: str, make_files: Callable[[], Files]) -> None:
        (tmp_path / folder).mkdir(parents=True)
        for file, content in make_files().items():
            (tmp_path / folder / file).write_bytes(content)

    profiler = PythonProfiler("test-framework", "0-host", save, lambda: time.time_ns() // 1000)
    config = parsed("PythonProfilingConfig", StartStep=1, NumSteps=2, ProfilerName=name)
    calls = [
        (1, START, start_end_step_function),
        (1, END, end_start_step_function),
        (2, START, time_function),
    ]
    for step, phase, call in calls:
        now_us = time.time_ns() // 1000
        profiler.reach(phase, StepPoint(ModeKeys.TRAIN, step, step, now_us), config)
        call()
    last = StepPoint(ModeKeys.TRAIN, 2, 2, time.time_ns() // 1000)
    profiler.reach(END, last, RecordingConfig())
    yield name, tmp_path / "framework" / "test-framework" / name
    profiler.stop()


def test_profiles_have_files_and_functions(profiled: tuple[str, Path]) -> None:
    name, folder = profiled
    spans = sorted((folder / "0-host").iterdir())
    assert len(spans) == 3
    functions = ["start_end_step_function", "end_start_step_function", "time_function"]
    if name == "cprofile":
        assert all(pstats.Stats(str(span / "python_stats")) for span in spans)
        functions_of = _functions_of_cprofile(folder)
    else:
        assert all((span / "python_stats.html").stat().st_size for span in spans)
        functions_of = _functions_of_pyinstrument(folder)
    assert [[name in found for name in functions] for found in functions_of] == [
        [True, False, False],
        [False, True, False],
        [False, False, True],
    ]


def _functions_of_cprofile(folder: Path) -> list[str]:
    analysis = cProfileAnalysis(local_profile_dir=str(folder))
    assert len(analysis.python_profile_stats) == 3
    return [
        " ".join(stat.function_name for stat in part.function_stats_list)
        for part in _parts(analysis)
    ]


def _functions_of_pyinstrument(folder: Path) -> list[str]:
    parts = _parts(PyinstrumentAnalysis(local_profile_dir=str(folder)))
    assert [len(part) for part in parts] == [1, 1, 1]
    return [json.dumps(part[0].json_stats["root_frame"]) for part in parts]


def _parts(analysis: Any) -> list[Any]:
    """Return the profiles of a step, of the time after it, and of the time of the last."""
    # Spans of ours follow each other without a gap, so the time is one inside of the last.
    last_s = analysis.python_profile_stats[-1].start_time_since_epoch_in_micros / 1e6 + 1e-3
    return [
        analysis.fetch_profile_stats_by_step(1),
        analysis.fetch_profile_stats_by_step(1, end_step=2, start_phase=END, end_phase=START),
        analysis.fetch_profile_stats_by_time(last_s, time.time()),
    ]


# -- the steady clock --------------------------------------------------------------------------


def test_times_of_a_steady_clock_become_times_since_the_epoch(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed.")
    from rule_core.frameworks.pytorch.profiling.horovod import HorovodTimeline

    path = tmp_path / "horovod.json"
    began_us = time.monotonic_ns() // 1000
    path.write_text(
        '[\n{"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "tensor"}},\n'
        f'{{"ph": "B", "name": "ALLREDUCE", "ts": {began_us}, "pid": 1}},\n'
        f'{{"ph": "E", "ts": {began_us + 9}, "pid": 1}},\n'
    )
    (record,) = HorovodTimeline(path).new_records()
    assert abs(record.start_us / 1e6 - time.time()) < 3600
    assert record.end_us - record.start_us == 9
