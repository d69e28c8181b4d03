"""Collections, hooks and profiling: what requests hold of them, and what they refuse."""

import operator
from typing import Any

import pytest

from rule_runner.debugger import (
    CollectionConfig,
    DataloaderProfilingConfig,
    DebuggerHookConfig,
    DetailedProfilingConfig,
    FrameworkProfile,
    HorovodProfilingConfig,
    Profiler,
    ProfilerConfig,
    PythonProfiler,
    PythonProfilingConfig,
    SMDataParallelProfilingConfig,
    TensorBoardOutputConfig,
    cProfileTimer,
)
from rule_runner.debugger.metrics_config import StepRange, TimeRange


def test_collections_are_compared_with_each_other() -> None:
    assert CollectionConfig("a", {"b": 1, "c": 2}) == CollectionConfig("a", {"c": 2, "b": 1})
    assert CollectionConfig("a") != CollectionConfig("a", {})
    assert len({CollectionConfig("a"), CollectionConfig("a"), CollectionConfig("a", {})}) == 2
    with pytest.raises(TypeError, match=r"^CollectionConfig is comparable .* got None\."):
        operator.eq(CollectionConfig("a"), None)


def test_a_hook_sends_what_is_given_and_always_its_place() -> None:
    assert DebuggerHookConfig()._to_request_dict() == {"S3OutputPath": None}
    config = DebuggerHookConfig("s3://b", "/l", {"a": "b"}, [CollectionConfig("c", {})])
    assert config._to_request_dict() == {
        "S3OutputPath": "s3://b",
        "LocalPath": "/l",
        "HookParameters": {"a": "b"},
        "CollectionConfigurations": [{"CollectionName": "c", "CollectionParameters": {}}],
    }


def test_a_hook_refuses_other_collections_when_it_is_sent() -> None:
    config = DebuggerHookConfig(collection_configs=["a"])  # type: ignore[list-item]  # refused
    with pytest.raises(AttributeError, match="_to_request_dict"):
        config._to_request_dict()


def test_tensorboard() -> None:
    config = TensorBoardOutputConfig("s3://b", "/l")
    assert config._to_request_dict() == {"S3OutputPath": "s3://b", "LocalPath": "/l"}
    assert TensorBoardOutputConfig("s3://b")._to_request_dict() == {"S3OutputPath": "s3://b"}


@pytest.mark.parametrize(
    ("config", "text"),
    [
        (DetailedProfilingConfig(), '"StartStep": 5, "NumSteps": 1, '),
        (DetailedProfilingConfig(start_step=3), '"StartStep": 3, "NumSteps": 1, '),
        (DetailedProfilingConfig(num_steps=3), '"StartStep": 0, "NumSteps": 3, '),
        (HorovodProfilingConfig(3, 4, None, None, True), '"StartStep": 13, "NumSteps": 1, '),
        (SMDataParallelProfilingConfig(), '"StartStep": 15, "NumSteps": 1, '),
        (DetailedProfilingConfig(duration=2.5), '"Duration": 2.5, '),
        (
            HorovodProfilingConfig(start_unix_time=0, duration=1),
            '"StartTimeInSecSinceEpoch": 0, "Duration": 1, ',
        ),
        (
            DataloaderProfilingConfig(metrics_regex=r"\d"),
            '"StartStep": 7, "NumSteps": 1, "MetricsRegex": "\\d", ',
        ),
    ],
)
def test_kinds_of_metrics_have_their_ranges(config: Any, text: str) -> None:
    assert config.to_json_string() == f"{{{text}}}"


@pytest.mark.parametrize("profiler", ["cProfile", "CPROFILE", PythonProfiler.CPROFILE])
@pytest.mark.parametrize("timer", ["cpu_time", "CPU_TIME", cProfileTimer.CPU_TIME])
def test_profilers_and_timers_are_named_or_given(profiler: Any, timer: Any) -> None:
    config = PythonProfilingConfig(python_profiler=profiler, cprofile_timer=timer)
    expected = {"ProfilerName": "cprofile", "cProfileTimer": "cpu_time"}
    assert config._to_json() == {"StartStep": 9, "NumSteps": 3, **expected}


def test_pyinstrument_has_no_timer() -> None:
    config = PythonProfilingConfig(python_profiler="Pyinstrument")
    expected = {"StartStep": 9, "NumSteps": 3, "ProfilerName": "pyinstrument"}
    assert config._to_json() == expected


def test_default_steps_take_all_timers() -> None:
    config = PythonProfilingConfig(profile_default_steps=True, cprofile_timer="cpu_time")
    assert config._to_json()["cProfileTimer"] == "default"


def test_ranges_without_bounds_have_the_documented_defaults() -> None:
    assert StepRange(None, None).to_json() == {"StartStep": 0, "NumSteps": 1}
    assert StepRange(5, None).to_json() == {"StartStep": 5, "NumSteps": 1}
    assert TimeRange(0, None).to_json() == {"StartTimeInSecSinceEpoch": 0}
    assert TimeRange(None, 3.5).to_json() == {"StartStep": 0, "Duration": 3.5}
    assert DetailedProfilingConfig(duration=3.5)._to_json() == {"Duration": 3.5}


def test_a_configuration_is_sent_under_its_own_name_and_without_the_range() -> None:
    misplaced: Any = HorovodProfilingConfig()
    profile = FrameworkProfile("/p", 1, 2.5, 3, misplaced, start_step=-1)
    assert profile.profiling_parameters == {
        "LocalPath": "/p",
        "RotateMaxFileSizeInBytes": "1",
        "RotateFileCloseIntervalInSeconds": "2.5",
        "FileOpenFailThreshold": "3",
        "HorovodProfilingConfig": '{"StartStep": 13, "NumSteps": 1, }',
    }


def test_a_disabled_profiler_has_no_place() -> None:
    config = ProfilerConfig("s3://b", 500, disable_profiler=True)
    expected = {"DisableProfiler": True, "ProfilingIntervalInMilliseconds": 500}
    assert config._to_request_dict() == expected
    assert config._to_profiler_disabled_request_dict() == {"DisableProfiler": True}


def test_sagemaker_profiler() -> None:
    config = ProfilerConfig("s3://b", profile_params=Profiler(cpu_profiling_duration="60"))
    assert config._to_request_dict() == {
        "S3OutputPath": "s3://b",
        "DisableProfiler": False,
        "ProfilingParameters": {"CPUProfilingDuration": "60", "SMPFileRotationSecs": "600"},
    }


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("start_step", -1, "must be an integer >= 0, got -1"),
        ("start_step", 1.5, "must be an integer >= 0, got 1.5"),
        ("num_steps", 0, "must be an integer >= 1, got 0"),
        ("start_unix_time", 10**30, "must be an integer Unix time in seconds, got 10+"),
        ("start_unix_time", 1.5, "must be an integer Unix time in seconds, got 1.5"),
        ("duration", float("nan"), "must be a number > 0, got nan"),
        ("duration", "1", "must be a number > 0, got '1'"),
        ("profile_default_steps", 1, "must be a boolean, got 1"),
        ("metrics_regex", "(", r"must be a regular expression, got '\('"),
        ("metrics_regex", None, r"must be a regular expression, got None"),
    ],
)
def test_metrics_refuse(argument: str, value: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=rf"^Argument {argument} {message}\.$"):
        DataloaderProfilingConfig(**{argument: value})


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        (
            "python_profiler",
            "perf",
            "type PythonProfiler or one of 'cprofile', 'pyinstrument', got",
        ),
        ("cprofile_timer", 3, "of type cProfileTimer or one of 'total_time', .*, got 3"),
    ],
)
def test_python_profiling_refuses(argument: str, value: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=rf"^Argument {argument} must be .*{message}"):
        PythonProfilingConfig(**{argument: value})


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"local_path": 3}, AssertionError, r"local_path must be a string, got 3\."),
        ({"file_max_size": 0}, AssertionError, "file_max_size must be an integer >= 1, got 0"),
        ({"file_close_interval": 0}, AssertionError, "interval must be a number > 0, got 0"),
        ({"file_open_fail_threshold": 0}, AssertionError, "old must be an integer >= 1, got 0"),
        ({"start_step": 0, "duration": 1}, AssertionError, "of steps or of time, not of both"),
        (
            {"horovod_profiling_config": 3},
            AttributeError,
            r"^Argument horovod_profiling_config must be a configuration of metrics, got 3\.$",
        ),
    ],
)
def test_framework_profiles_refuse(
    arguments: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        FrameworkProfile(**arguments)


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"framework_profile_params": 3}, AssertionError, "of type FrameworkProfile if given, got"),
        ({"profile_params": 3}, AssertionError, r"profile_params must be of type Profiler if gi"),
        (
            {"profile_params": Profiler(), "framework_profile_params": FrameworkProfile()},
            ValueError,
            r"^Profiler does not work when framework profiling is on, .* Leave out one\.$",
        ),
    ],
)
def test_profiler_configurations_refuse(
    arguments: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        ProfilerConfig(**arguments)
