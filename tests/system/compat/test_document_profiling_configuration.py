"""Profiling options of the configuration API as they are documented."""

import ast
from typing import Any

import pytest

from rule_runner.debugger import (
    DataloaderProfilingConfig,
    DetailedProfilingConfig,
    FrameworkProfile,
    HorovodProfilingConfig,
    ProfilerConfig,
    PythonProfiler,
    PythonProfilingConfig,
    SMDataParallelProfilingConfig,
    cProfileTimer,
)

KINDS: dict[str, tuple[Any, str, int, int]] = {
    "DetailedProfilingConfig": (DetailedProfilingConfig, "detailed_profiling_config", 5, 1),
    "DataloaderProfilingConfig": (DataloaderProfilingConfig, "dataloader_profiling_config", 7, 1),
    "PythonProfilingConfig": (PythonProfilingConfig, "python_profiling_config", 9, 3),
    "HorovodProfilingConfig": (HorovodProfilingConfig, "horovod_profiling_config", 13, 1),
    "SMDataParallelProfilingConfig": (
        SMDataParallelProfilingConfig,
        "smdataparallel_profiling_config",
        15,
        1,
    ),
}
STEPS = {"StartStep": 6, "NumSteps": 2}
RANGES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "steps": ({"start_step": 6, "num_steps": 2}, STEPS),
    "start": ({"start_step": 6}, {"StartStep": 6, "NumSteps": 1}),
    "number": ({"num_steps": 2}, {"StartStep": 0, "NumSteps": 2}),
    "times": (
        {"start_unix_time": 1600000000, "duration": 2.5},
        {"StartTimeInSecSinceEpoch": 1600000000, "Duration": 2.5},
    ),
    "duration": ({"duration": 2}, {"Duration": 2}),
}


def range_of(text: str) -> dict[str, Any]:
    """Return the range in the text of a kind of metrics, without its extras."""
    options: dict[str, Any] = ast.literal_eval(text)
    return {
        key: value
        for key, value in options.items()
        if key not in {"MetricsRegex", "ProfilerName", "cProfileTimer"}
    }


def parameters(profile: FrameworkProfile) -> dict[str, Any]:
    request = ProfilerConfig(framework_profile_params=profile)._to_request_dict()
    result: dict[str, Any] = request["ProfilingParameters"]
    return result


@pytest.mark.parametrize("kind", KINDS)
def test_default_steps_of_a_kind(kind: str) -> None:
    start, steps = KINDS[kind][2:]
    assert range_of(parameters(FrameworkProfile())[kind]) == {"StartStep": start, "NumSteps": steps}


@pytest.mark.parametrize("range_name", RANGES)
@pytest.mark.parametrize("kind", KINDS)
def test_range_of_a_kind(kind: str, range_name: str) -> None:
    make, argument = KINDS[kind][:2]
    arguments, range_dict = RANGES[range_name]
    result = parameters(FrameworkProfile(**{argument: make(**arguments)}))
    assert range_of(result[kind]) == range_dict
    assert KINDS.keys() & result.keys() == {kind}


@pytest.mark.parametrize("range_name", RANGES)
def test_range_of_all_kinds(range_name: str) -> None:
    arguments, range_dict = RANGES[range_name]
    result = parameters(FrameworkProfile(**arguments))
    assert [range_of(result[kind]) for kind in KINDS] == [range_dict] * 5


@pytest.mark.parametrize("kind", KINDS)
def test_one_kind_wins_over_the_range_of_all(kind: str) -> None:
    make, argument = KINDS[kind][:2]
    profile = FrameworkProfile(
        start_step=1, num_steps=10, **{argument: make(start_step=6, num_steps=2)}
    )
    assert range_of(parameters(profile)[kind]) == STEPS


@pytest.mark.parametrize("kind", KINDS)
def test_default_steps_can_be_asked_for(kind: str) -> None:
    make, argument, start, steps = KINDS[kind]
    result = parameters(FrameworkProfile(**{argument: make(profile_default_steps=True)}))
    assert range_of(result[kind]) == {"StartStep": start, "NumSteps": steps}


@pytest.mark.parametrize("kind", [FrameworkProfile, *(row[0] for row in KINDS.values())])
def test_steps_and_times_conflict(kind: Any) -> None:
    with pytest.raises(AssertionError):
        kind(start_step=1, num_steps=2, start_unix_time=1600000000, duration=2)


def test_metrics_regex() -> None:
    profile = FrameworkProfile(
        dataloader_profiling_config=DataloaderProfilingConfig(metrics_regex=".*Worker")
    )
    text = parameters(profile)["DataloaderProfilingConfig"]
    assert ast.literal_eval(text)["MetricsRegex"] == ".*Worker"


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (PythonProfiler.CPROFILE, "cprofile"),
        (PythonProfiler.PYINSTRUMENT, "pyinstrument"),
        ("cProfile", "cprofile"),
        ("Pyinstrument", "pyinstrument"),
    ],
)
def test_python_profiler(value: Any, name: str) -> None:
    profile = FrameworkProfile(python_profiling_config=PythonProfilingConfig(python_profiler=value))
    assert ast.literal_eval(parameters(profile)["PythonProfilingConfig"])["ProfilerName"] == name


@pytest.mark.parametrize("as_text", [False, True])
@pytest.mark.parametrize("name", ["TOTAL_TIME", "CPU_TIME", "OFF_CPU_TIME"])
def test_timer_of_cprofile(name: str, as_text: bool) -> None:
    timer: Any = name.lower() if as_text else cProfileTimer[name]
    profile = FrameworkProfile(python_profiling_config=PythonProfilingConfig(cprofile_timer=timer))
    options = ast.literal_eval(parameters(profile)["PythonProfilingConfig"])
    assert options["cProfileTimer"] == name.lower()


@pytest.mark.parametrize("interval", [100, 200, 500, 1000, 5000, 60000])
def test_interval_of_system_metrics(interval: int) -> None:
    request = ProfilerConfig(system_monitor_interval_millis=interval)._to_request_dict()
    assert request["ProfilingIntervalInMilliseconds"] == interval


def test_where_profiles_go() -> None:
    assert ProfilerConfig(s3_output_path="s3://o")._to_request_dict()["S3OutputPath"] == "s3://o"


@pytest.mark.parametrize(
    ("argument", "key", "value"),
    [
        ("local_path", "LocalPath", "/elsewhere"),
        ("file_max_size", "RotateMaxFileSizeInBytes", 5),
        ("file_close_interval", "RotateFileCloseIntervalInSeconds", 7),
        ("file_open_fail_threshold", "FileOpenFailThreshold", 9),
    ],
)
def test_files_of_timelines(argument: str, key: str, value: Any) -> None:
    assert parameters(FrameworkProfile(**{argument: value}))[key] == str(value)
