"""The loop of the sampler: ticks at a fixed rate, and one time for all rows of a tick."""

import os
from pathlib import Path
from typing import cast

import pytest

from rule_core.profiler.recording.sampler import sampling as module
from rule_core.profiler.recording.sampler.process import STOP
from rule_core.profiler.recording.sampler.sampling import Control, SamplerProcess, is_alone
from rule_core.profiler.recording.sampler.system_files import END_MARK, SystemFiles
from rule_core.trials.profiler_trial import ProfilerTrial


class Time:
    """A clock whose waits take as long as they should, and some longer; it ends the sampling."""

    def __init__(self, waits: int, late: dict[int, float]) -> None:
        self.now, self.count = 100.0, 0
        self.is_stopped = False
        self._waits, self._late = waits, late

    def monotonic(self) -> float:
        return self.now

    def wait(self, seconds: float) -> bool:
        if seconds:
            self.now += seconds + self._late.get(self.count, 0.0)
            self.count += 1
            self.is_stopped = self.count > self._waits
        return self.is_stopped


def ticks(
    folder: Path, monkeypatch: pytest.MonkeyPatch, waits: int, late: dict[int, float]
) -> list[float]:
    """Run a sampler with an interval of 0.5 s; return the times of its ticks since the start."""
    clock = Time(waits, late)
    monkeypatch.setattr(module.time, "monotonic", clock.monotonic)
    monkeypatch.setattr(module, "SteadyTime", lambda: lambda: int(clock.now * 1e6))
    SamplerProcess(SystemFiles(str(folder), 1), 0.5, cast("Control", clock)).run()
    trial = ProfilerTrial("job", str(folder))
    trial.refresh()
    times = {*trial.system_samples(0, 1 << 60).time_us.tolist()}
    return [round(time / 1e6 - 100.0, 3) for time in sorted(times)]


def test_ticks_have_a_fixed_rate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ticks(tmp_path, monkeypatch, 4, {}) == [0.5, 1.0, 1.5, 2.0]
    assert (tmp_path / END_MARK).exists()


def test_a_late_tick_does_not_move_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ticks(tmp_path, monkeypatch, 4, {1: 0.3}) == [0.5, 1.3, 1.5, 2.0]


def test_missed_ticks_are_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ticks(tmp_path, monkeypatch, 4, {1: 1.2}) == [0.5, 2.2, 2.5, 3.0]


def test_a_training_that_is_shorter_than_the_interval_has_one_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ticks(tmp_path, monkeypatch, 0, {}) == [0.5]


@pytest.mark.parametrize(
    ("text", "parent", "stopped"),
    [(STOP, os.getppid(), True), (b"", os.getppid(), False), (STOP, -1, False)],
    ids=["stopped", "closed", "orphaned"],
)
def test_only_a_stop_in_good_order_leaves_an_end_mark(
    tmp_path: Path, text: bytes, parent: int, stopped: bool
) -> None:
    reader, writer = os.pipe()
    os.write(writer, text)
    os.close(writer)
    control = Control(reader, parent)
    SamplerProcess(SystemFiles(str(tmp_path), 1), 0.01, control).run()
    os.close(reader)
    assert (control.is_stopped, (tmp_path / END_MARK).exists()) == (stopped, stopped)


def test_the_platform_marks_the_end_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(module.ON_SAGEMAKER, "job")
    ticks(tmp_path, monkeypatch, 1, {})
    assert not (tmp_path / END_MARK).exists()


def test_why_gpus_are_missing_is_told_where_there_are_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "open_gpus", lambda: "GPUs are not sampled: why.")
    for device in (tmp_path / "missing", tmp_path):
        monkeypatch.setattr(module, "DEVICE", str(device))
        SamplerProcess(SystemFiles(str(tmp_path), 1), 0.5, Control(0, os.getppid()))
    assert capsys.readouterr().err == "rule-runner: GPUs are not sampled: why.\n"


def test_a_node_has_one_sampler_in_a_folder(tmp_path: Path) -> None:
    assert is_alone(str(tmp_path), 1)
    assert not is_alone(str(tmp_path), 1)
    assert is_alone(str(tmp_path), 2)
    assert is_alone("s3://bucket/profile", 1)
