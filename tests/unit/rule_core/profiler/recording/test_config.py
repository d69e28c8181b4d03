"""Profiler configurations: those of the SDK, of people, and broken ones."""

import json
from pathlib import Path
from typing import Any

import pytest

from rule_core.exceptions import SMDebugTypeError, SMDebugValueError
from rule_core.profiler.python_profiles.types import cProfileTimer
from rule_core.profiler.recording import config as module
from rule_core.profiler.recording.config import (
    FileLimits,
    RecordingConfig,
    config_of,
    parse_config,
    read_config,
)
from rule_core.profiler.recording.ranges import ProfilingRange
from rule_runner.debugger import (
    DataloaderProfilingConfig,
    DetailedProfilingConfig,
    FrameworkProfile,
    ProfilerConfig,
    PythonProfilingConfig,
)

SECONDS = ProfilingRange(start_s=9.0, duration_s=3.0)


def parsed(**parameters: Any) -> RecordingConfig:
    """Parse a configuration with these `ProfilingParameters`."""
    return parse_config({"ProfilingParameters": parameters})


def of_sdk(profile: FrameworkProfile) -> RecordingConfig:
    """Parse what an SDK sends, as the training job finds it."""
    return config_of(
        json.loads(json.dumps(ProfilerConfig(framework_profile_params=profile)._to_request_dict()))
    )


def test_the_default_profile_has_the_documented_steps() -> None:
    config = of_sdk(FrameworkProfile())
    assert (config.framework, config.problems) == (True, ())
    assert config.detailed == ProfilingRange(5, 1)
    assert config.data_loader is not None
    assert config.data_loader.range == ProfilingRange(7, 1)
    assert config.python is not None
    assert config.python.range == ProfilingRange(9, 3)
    assert (config.python.profiler, config.python.timer) == ("cprofile", cProfileTimer.DEFAULT)
    assert (config.horovod, config.smdataparallel) == (ProfilingRange(13, 1), ProfilingRange(15, 1))


def test_one_range_for_all() -> None:
    config = of_sdk(FrameworkProfile(start_step=0, num_steps=10))
    assert config.detailed == config.horovod == ProfilingRange(0, 10)
    config = of_sdk(FrameworkProfile(start_unix_time=100, duration=600))
    assert config.detailed == ProfilingRange(start_s=100.0, duration_s=600.0)


def test_only_what_is_configured_is_profiled() -> None:
    profile = FrameworkProfile(
        local_path="/data/profile",
        file_max_size=1000,
        file_close_interval=7,
        file_open_fail_threshold=3,
        detailed_profiling_config=DetailedProfilingConfig(start_step=2, num_steps=4),
        dataloader_profiling_config=DataloaderProfilingConfig(metrics_regex=r'\bIter"x, y"'),
        python_profiling_config=PythonProfilingConfig(python_profiler="Pyinstrument", start_step=3),
    )
    config = of_sdk(profile)
    assert (config.folder, config.limits) == ("/data/profile", FileLimits(1000, 7.0, 3))
    assert (config.detailed, config.horovod) == (ProfilingRange(2, 4), None)
    assert config.data_loader is not None
    assert config.data_loader.pattern.match('iter"x, y"')
    assert config.python is not None
    assert config.python.profiler == "pyinstrument"


def test_a_config_of_an_sdk_is_taken_as_it_is() -> None:
    assert config_of(ProfilerConfig(system_monitor_interval_millis=1000)).interval_ms == 1000
    with pytest.raises(SMDebugTypeError, match="'profiler_config' must be a ProfilerConfig"):
        config_of(7)


def test_without_parameters_only_the_system_is_profiled() -> None:
    config = parse_config({"ProfilingIntervalInMilliseconds": "100"})
    assert (config.framework, config.interval_ms, config.is_disabled) == (False, 100, False)


@pytest.mark.parametrize(
    "document",
    [
        {"DisableProfiler": True},
        {"DISABLEPROFILER": "true"},
        {"ProfilingParameters": {"ProfilerEnabled": "False"}},
    ],
)
def test_it_can_be_disabled(document: dict[str, Any]) -> None:
    assert parse_config(document).is_disabled


def test_the_text_false_disables_nothing() -> None:
    assert not parse_config({"DisableProfiler": "false"}).is_disabled


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ('{"StartStep": 5, "NumSteps": 2, }', ProfilingRange(5, 2)),
        ('{"StartStep": "5", "NumSteps": "2"}', ProfilingRange(5, 2)),
        ({"startstep": 5, "NUMSTEPS": 2}, ProfilingRange(5, 2)),
        ("{'StartStep': 5, 'NumSteps': 2}", ProfilingRange(5, 2)),
        (
            '{"StartTimeInSecSinceEpoch": 9, "DurationInSeconds": 3}',
            ProfilingRange(None, None, 9, 3),
        ),
        ('{"StartTimeInSecSinceEpoch": 9, "Duration": 3, }', SECONDS),
        ("{}", ProfilingRange()),
        ('{"StartStep": 0, "Duration": 3.5}', ProfilingRange(duration_s=3.5)),
        ('{"DefaultProfiling": true}', ProfilingRange(5, 1)),
    ],
)
def test_forms_of_a_range(text: object, steps: ProfilingRange) -> None:
    config = parsed(DetailedProfilingConfig=text)
    assert (config.detailed, config.problems) == (steps, ())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"StartStep": 5, "Duration": 3}', "it has a range of steps and one of time"),
        ('{"StartStep": -1}', "a step must not be negative"),
        ('{"StartStep": "five"}', "it must be a number"),
        ('{"NumSteps": 0}', "it must be at least 1"),
        ('{"NumSteps": 1.5}', "it must be a whole number"),
        ('{"StartStep": true}', "it must be a number"),
        ('{"Duration": "inf"}', "it must be a positive number"),
        ('{"Duration": 1e999}', "it must be a positive number"),
        ("[]", "it must be an object"),
        ("__import__('os').abort()", "it must be an object"),
        ("{" * 9000, "it must be an object"),
        (7, "it must be an object"),
    ],
)
def test_a_bad_range_is_off_and_named(text: object, reason: str) -> None:
    config = parsed(DetailedProfilingConfig=text, PythonProfilingConfig='{"StartStep": 1}')
    assert config.detailed is None
    assert config.python is not None
    (problem,) = config.problems
    assert problem.startswith("DetailedProfilingConfig is ")
    assert reason in problem


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"MetricsRegex": "("}, "its pattern is invalid"),
        ({"ProfilerName": "perf"}, "its profiler must be cprofile or pyinstrument"),
        ({"cProfileTimer": "sundial"}, "'sundial' is not a valid cProfileTimer"),
    ],
)
def test_bad_settings_of_profilers(settings: dict[str, str], reason: str) -> None:
    name = "DataloaderProfilingConfig" if "MetricsRegex" in settings else "PythonProfilingConfig"
    config = parsed(**{name: settings})
    assert (config.data_loader, config.python) == (None, None)
    assert reason in config.problems[0]


def test_a_bad_number_costs_only_itself() -> None:
    config = parsed(LocalPath="/data", RotateMaxFileSizeInBytes="ten", FileOpenFailThreshold="4")
    assert (config.folder, config.limits) == ("/data", FileLimits(open_failures=4))
    assert config.problems == (
        "Profiler setting 'rotatemaxfilesizeinbytes' is 'ten': it must be a number. Ignored.",
    )


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "profilerconfig.json"
    assert read_config(path).is_disabled
    path.write_text('{"ProfilingParameters": {"LocalPath": "/Data/Mixed Case"}}')
    assert read_config(path).folder == "/Data/Mixed Case"
    path.write_text("")
    assert not read_config(path).framework


@pytest.mark.parametrize("text", ["{", "[]", '"text"', "[" * 100_000, b"\xff"])
def test_a_file_that_is_none(tmp_path: Path, text: str | bytes) -> None:
    path = tmp_path / "profilerconfig.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(SMDebugValueError, match=r"profilerconfig.json' is no JSON object: "):
        read_config(path)


def test_a_file_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LARGEST_FILE", 1)
    path = tmp_path / "profilerconfig.json"
    path.write_text("{}")
    with pytest.raises(SMDebugValueError, match="has more than 1 bytes"):
        read_config(path)
