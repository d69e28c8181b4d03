"""Each documented keyword of the profiling configuration, carried out on a PyTorch training."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed.")

from profiled_training import train
from recorded_profiles import end_script, events

from rule_core.profiler.python_profiles.cprofile_file import parse_cprofile
from rule_core.profiler.recording import trace_thread
from rule_core.profiler.recording.end_marks import SUPERVISED
from rule_runner.debugger import (
    DataloaderProfilingConfig,
    DetailedProfilingConfig,
    FrameworkProfile,
    HorovodProfilingConfig,
    ProfilerConfig,
    PythonProfilingConfig,
    SMDataParallelProfilingConfig,
)
from smdebug.pytorch import Hook

Log = pytest.LogCaptureFixture
pytestmark = pytest.mark.nightly  # the ranges themselves have tests that are faster
LOADING = "DataLoaderIter"
ALLREDUCE = '{"ph": "X", "name": "ALLREDUCE", "ts": %d, "dur": 5, "pid": 1},\n'


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Start no sampler, wait for the writer on a busy machine, and end what is profiled."""
    monkeypatch.setenv(SUPERVISED, str(tmp_path / "profile"))
    monkeypatch.setattr(trace_thread, "CLOSE_TIMEOUT_S", 60.0)
    yield
    end_script()


def recorded(folder: Path, **arguments: Any) -> Path:
    """Train for twenty steps with a profile; return its folder."""
    profile = folder / "profile"
    train(folder / "trial", FrameworkProfile(str(profile), **arguments))
    return profile


def traced_steps(profile: Path) -> list[int]:
    return sorted(int(path.parent.name) for path in profile.rglob("*.pt.trace.json.gz"))


def python_steps(profile: Path, profiler: str = "cprofile") -> set[tuple[str, str]]:
    """Return mode and mode step of the spans inside of the steps."""
    spans = [path.name.split("-") for path in profile.glob(f"framework/pytorch/{profiler}/*/*")]
    return {(words[0], words[1]) for words in spans if words[1] != "*"}


def loads(folder: Path) -> list[str]:
    return [event.event_name for event in events(folder) if LOADING in event.event_phase]


# Of the twenty steps each fourth is an evaluation: step 9 over all modes is training step 7.
STEPS_OF_NINE = {("train", "7"), ("train", "8"), ("eval", "2")}


def test_default_steps_of_all_kinds(tmp_path: Path) -> None:
    profile = recorded(tmp_path)
    assert traced_steps(profile) == [5]
    assert python_steps(profile) == STEPS_OF_NINE
    assert loads(tmp_path) == ["DataLoaderIter::GetNext"]


def test_a_range_of_steps_for_all_kinds(tmp_path: Path) -> None:
    profile = recorded(tmp_path, start_step=4, num_steps=2)
    assert traced_steps(profile) == [4, 5]
    assert python_steps(profile) == {("train", "3"), ("train", "4")}
    assert len(loads(tmp_path)) == 2


def test_a_range_of_time_for_all_kinds(tmp_path: Path) -> None:
    profile = recorded(tmp_path, start_unix_time=int(time.time()) - 10, duration=600)
    assert len(traced_steps(profile)) > 10  # steps that wait to be written are limited
    assert len(python_steps(profile)) == 20
    assert len(loads(tmp_path)) == 21  # with the creation of the iterator


def test_a_time_that_is_over(tmp_path: Path) -> None:
    profile = recorded(tmp_path, start_unix_time=1_600_000_000, duration=5)
    assert (traced_steps(profile), python_steps(profile), loads(tmp_path)) == ([], set(), [])


@pytest.mark.parametrize(
    ("arguments", "steps"),
    [
        ({"start_step": 6, "num_steps": 2}, [6, 7]),
        ({"start_step": 6}, [6]),
        ({"num_steps": 2}, [0, 1]),
        ({"profile_default_steps": True}, [5]),
        ({"start_unix_time": 1_600_000_000, "duration": 5.5}, []),
    ],
)
def test_ranges_of_a_kind(tmp_path: Path, arguments: dict[str, Any], steps: list[int]) -> None:
    config = DetailedProfilingConfig(**arguments)
    profile = recorded(tmp_path, detailed_profiling_config=config)
    assert traced_steps(profile) == steps
    assert (python_steps(profile), loads(tmp_path)) == (set(), [])


@pytest.mark.parametrize(
    ("pattern", "count"), [(".*", 3), (".*GetNext", 3), ("^dataloaderiter", 3), (".*Worker", 0)]
)
def test_metrics_of_data_loaders(tmp_path: Path, pattern: str, count: int) -> None:
    config = DataloaderProfilingConfig(start_step=5, num_steps=3, metrics_regex=pattern)
    recorded(tmp_path, dataloader_profiling_config=config)
    assert len(loads(tmp_path)) == count


@pytest.mark.parametrize("timer", ["total_time", "cpu_time", "off_cpu_time"])
def test_cprofile(tmp_path: Path, timer: str) -> None:
    config = PythonProfilingConfig(
        start_step=9, num_steps=3, python_profiler="cProfile", cprofile_timer=timer
    )
    profile = recorded(tmp_path, python_profiling_config=config)
    assert python_steps(profile) == STEPS_OF_NINE
    files = list(profile.rglob("python_stats"))
    assert all(parse_cprofile(path.name, path.read_bytes()) for path in files)


def test_pyinstrument(tmp_path: Path) -> None:
    pytest.importorskip("pyinstrument", reason="pyinstrument is not installed.")
    config = PythonProfilingConfig(start_step=9, num_steps=3, python_profiler="Pyinstrument")
    profile = recorded(tmp_path, python_profiling_config=config)
    assert python_steps(profile, "pyinstrument") == STEPS_OF_NINE
    assert list(profile.rglob("python_stats.html"))


def test_horovod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    timeline = tmp_path / "horovod.json"
    now_us = time.monotonic_ns() // 1000
    lines = [ALLREDUCE % (now_us + offset) for offset in (0, 3_600_000_000)]
    names = '{"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "weights"}},\n'
    timeline.write_text("[\n" + names + "".join(lines))
    monkeypatch.setenv("HOROVOD_TIMELINE", str(timeline))
    config = HorovodProfilingConfig(start_unix_time=int(time.time()) - 10, duration=600)
    recorded(tmp_path, horovod_profiling_config=config)
    assert "ALLREDUCE" in {event.event_name for event in events(tmp_path)}


def test_smdataparallel_is_named_where_it_is_missing(tmp_path: Path, caplog: Log) -> None:
    caplog.set_level("INFO", "smdebug")
    config = SMDataParallelProfilingConfig(start_step=2, num_steps=2)
    recorded(tmp_path, smdataparallel_profiling_config=config)
    assert "smdistributed" in caplog.text


def test_files_are_closed_by_size(tmp_path: Path) -> None:
    profile = recorded(tmp_path, file_max_size=2000, file_close_interval=1000.0)
    files = list(profile.rglob("*_pythontimeline.json"))
    assert len(files) > 3
    assert max(path.stat().st_size for path in files) < 4000


def test_files_that_cannot_be_opened(tmp_path: Path, caplog: Log) -> None:
    (tmp_path / "profile").mkdir()
    (tmp_path / "profile" / "framework").write_text("no folder")
    config = ProfilerConfig(
        framework_profile_params=FrameworkProfile(
            str(tmp_path / "profile"), file_open_fail_threshold=1
        )
    )
    hook = Hook(tmp_path / "trial", profiler_config=config)
    model = torch.nn.Linear(4, 2)
    hook.register_module(model)
    model(torch.ones(1, 4))
    hook.close()
    assert caplog.text.count("off for the rest of the training job") == 1


@pytest.mark.parametrize(
    ("arguments", "is_on"),
    [
        ({}, True),
        ({"s3_output_path": "s3://bucket", "system_monitor_interval_millis": 1000}, True),
        ({"disable_profiler": True}, False),
    ],
    ids=["framework", "all", "disabled"],
)
def test_profiler_config(tmp_path: Path, arguments: dict[str, Any], is_on: bool) -> None:
    profile = FrameworkProfile(str(tmp_path / "profile"))
    config = ProfilerConfig(framework_profile_params=profile, **arguments)
    hook = Hook(tmp_path / "trial", include_workers="none", profiler_config=config)
    model = torch.nn.Linear(4, 2)
    hook.register_module(model)
    model(torch.ones(1, 4))
    hook.close()
    assert (tmp_path / "profile" / "framework").exists() is is_on
