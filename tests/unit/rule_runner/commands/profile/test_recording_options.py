"""The configuration of a recording: from options, from JSON, and from a Python file."""

import json
from pathlib import Path
from typing import Any

import pytest

from rule_core.profiler.recording.config import RecordingConfig, parse_config
from rule_core.profiler.recording.ranges import ProfilingRange
from rule_runner.commands.profile.recording_options import RecordingOptions
from rule_runner.debugger import FrameworkProfile, ProfilerConfig
from rule_runner.errors import ClientError, RuleRunnerError, UsageError

PYTHON = """
from rule_runner.debugger import DetailedProfilingConfig, FrameworkProfile, ProfilerConfig
profile = FrameworkProfile(detailed_profiling_config=DetailedProfilingConfig(start_step=4))
config = ProfilerConfig("s3://bucket", 1000, framework_profile_params=profile)
"""


def config(**options: Any) -> RecordingConfig:
    return parse_config(RecordingOptions(**options).document("/runs/profile"))


def written(folder: Path, content: object, name: str = "config.json") -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_system_metrics_and_steps_are_the_default() -> None:
    assert config() == RecordingConfig(folder="/runs/profile", framework=True)


def test_options() -> None:
    options = config(interval="2s", operators="5:7", data_loaders="0", python="9:12")
    assert options.interval_ms == 2000
    assert options.detailed == ProfilingRange(5, 2)
    assert options.data_loader is not None
    assert options.data_loader.range == ProfilingRange(0, 1)
    assert options.python is not None
    assert options.python.range == ProfilingRange(9, 3)


def test_a_request_in_json(tmp_path: Path) -> None:
    request = ProfilerConfig(framework_profile_params=FrameworkProfile("/elsewhere"))
    file = written(tmp_path, request._to_request_dict())
    options = config(file=file, interval="100ms", operators="1:3")
    assert (options.folder, options.interval_ms) == ("/runs/profile", 100)
    assert options.detailed == ProfilingRange(1, 2)
    assert options.horovod == ProfilingRange(13, 1)


def test_keys_in_any_case_are_replaced_and_not_repeated(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        {"profilinginTERVALinmilliseconds": 5, "profilingparameters": {"localpath": "/else"}},
    )
    document = RecordingOptions(file=file, interval="2s").document("/runs")
    assert document == {
        "ProfilingIntervalInMilliseconds": 2000,
        "ProfilingParameters": {"LocalPath": "/runs"},
    }


def test_a_python_file_that_defines_a_config(tmp_path: Path) -> None:
    options = config(file=written(tmp_path, PYTHON, "job.py"))
    assert (options.folder, options.interval_ms) == ("/runs/profile", 1000)
    assert options.detailed == ProfilingRange(4, 1)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.json", "{", "is no JSON object"),
        ("a.json", "[]", "is no JSON object"),
        ("a.json", "[" * 5000, "is no JSON object"),
        ("a.json", {"ProfilingParameters": 3}, "must be an object, got 3"),
        ("a.json", {"ProfilingIntervalInMilliseconds": "x"}, "'x': it must be a number."),
        ("a.py", "x = 1", "defines no ProfilerConfig"),
        ("a.py", f"{PYTHON}\nother = ProfilerConfig()", "several ProfilerConfigs: config, other"),
        ("a.py", "1 / 0", "raised ZeroDivisionError at line 1"),
        ("a.py", "x =", "does not parse: line 1"),
    ],
)
def test_a_file_that_cannot_be_used(
    tmp_path: Path, name: str, content: object, reason: str
) -> None:
    with pytest.raises(ClientError, match=reason):
        config(file=written(tmp_path, content, name))


@pytest.mark.parametrize(
    "options",
    [
        *({"interval": text} for text in ("0s", "9ms", "5", "1h", "-1s", "NaNs", "9" * 20 + "s")),
        *({"operators": text} for text in ("x", "3:3", "5:4", "-1", "1:2:3", "")),
    ],
)
def test_an_option_that_is_wrong(options: dict[str, str]) -> None:
    (name,) = options
    with pytest.raises(UsageError, match=f"^Option --profile-{name} must"):
        config(**options, prefix="--profile-")


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(RuleRunnerError, match="does not exist"):
        config(file=tmp_path / "missing.json")
