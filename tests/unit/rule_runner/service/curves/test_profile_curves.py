import shutil
from pathlib import Path
from typing import Any

import numpy as np
import profiler_writer
import pytest
import s3_objects
import timeline_writer
from kineto_writer import training, write_training
from profiler_writer import BEGIN_S, cpu, gpu, minute
from timeline_writer import Event, step

from rule_core.clock import SystemClock
from rule_runner.errors import TrialError
from rule_runner.service.curves import profile_curves
from rule_runner.service.curves.profile_curves import CURVES_KEPT, POINTS_KEPT, ProfileCurves

START_MS = BEGIN_S * 1000


class Ticking(SystemClock):
    """Each look at the time takes two seconds of it."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:  # type: ignore[override]
        self.now += 2.0
        return self.now


def curves_of(path: Path | str) -> ProfileCurves:
    curves = ProfileCurves(str(path), SystemClock())
    while not curves.complete:
        curves.read(10.0)
    return curves


def named(curves: ProfileCurves) -> dict[str, Any]:
    return {f"{item.kind} {item.name}": item.points for item in curves.items()}


def test_use_and_steps_become_curves_over_time(tmp_path: Path) -> None:
    profiler_writer.write(tmp_path, minute(0, cpu0=50.0, cpu1=70.0, gpu0=5.0))
    events = [Event("Forward", "Forward", 0, 200_000), step(1, 0, 500_000), step(2, 5e5, 7e5)]
    timeline_writer.write(tmp_path, events)
    curves = curves_of(tmp_path)
    assert {name: points.values[:2] for name, points in named(curves).items()} == {
        "step_time 11-algo-1 TRAIN": [0.5, 0.7],
        "phase 11-algo-1 forward": [0.2],
        "phase 11-algo-1 rest": [0.3],
        "gpu algo-1 gpu0": [5.0, 5.0],
        "cpu algo-1": [60.0, 60.0],
    }
    assert [item.unit for item in curves.items()] == ["s", "s", "s", "%", "%"]
    assert named(curves)["cpu algo-1"].steps[0] == START_MS
    assert (curves.problem, curves.left_out) == ("", 0)


def test_a_recording_that_grows_is_followed(tmp_path: Path) -> None:
    profiler_writer.write(tmp_path, minute(0))
    clock = Ticking()
    curves = ProfileCurves(str(tmp_path), clock)
    curves.read(100.0)
    assert (curves.complete, len(named(curves)["cpu algo-1"].steps)) == (True, 6)
    profiler_writer.write(tmp_path, minute(1))
    curves.read(100.0)
    points = named(curves)["cpu algo-1"]
    assert points.steps == [START_MS + 10_000 * number for number in range(12)]
    assert curves.last_step == points.steps[-1]


def test_a_file_that_is_appended_to_is_read_again(tmp_path: Path) -> None:
    [(key, content)] = minute(0).items()
    profiler_writer.write(tmp_path, {key: content[:400]})
    curves = ProfileCurves(str(tmp_path), Ticking())
    curves.read(100.0)
    profiler_writer.write(tmp_path, {key: content})
    curves.read(100.0)
    assert (len(named(curves)["cpu algo-1"].steps), curves.problem) == (6, "")


def test_a_read_ends_after_its_time_and_the_next_one_goes_on(tmp_path: Path) -> None:
    for number in range(5):
        profiler_writer.write(tmp_path, minute(number))
    curves = ProfileCurves(str(tmp_path), Ticking())
    lengths = []
    while not curves.complete:
        curves.read(5.0)
        lengths.append(len(named(curves).get("cpu algo-1", profile_curves.Points()).steps))
    assert lengths == sorted(lengths)
    assert (len(set(lengths)) > 2, lengths[-1]) == (True, 30)


def test_a_long_profile_stays_in_bounded_memory_and_keeps_peaks(tmp_path: Path) -> None:
    values = np.full(120 * 30, 10.0)
    values[777] = 99.0
    profiler_writer.write_samples(tmp_path, cpu(values, every_s=0.1), gpu(values))
    curves = named(curves_of(tmp_path))
    for points in curves.values():
        assert len(points.steps) <= POINTS_KEPT
        assert max(points.values) == 99.0
    assert curves["cpu algo-1"].steps[points.values.index(99.0) - 1] > START_MS


def test_devices_beyond_the_limit_are_counted(tmp_path: Path) -> None:
    many = [gpu([5.0] * 3, f"gpu{number}") for number in range(CURVES_KEPT + 3)]
    profiler_writer.write_samples(tmp_path, *many)
    curves = curves_of(tmp_path)
    assert (len(named(curves)), curves.left_out) == (CURVES_KEPT, 3)


def test_hostile_files_are_one_sentence(tmp_path: Path) -> None:
    name = "<img src=x onerror=hit()>"
    lines = [profiler_writer.line(float(n), BEGIN_S + n, node=name) for n in range(3)]
    broken = b"".join(lines) + b'{"Type": NaN}\n[[[[\n' + lines[0][:20]
    profiler_writer.write(tmp_path, {profiler_writer.key(BEGIN_S): broken, **minute(1)})
    curves = curves_of(tmp_path)
    assert named(curves)[f"cpu {name}"].values == [0.0, 1.0, 2.0]
    assert "2 of 5 lines are no system metrics" in curves.problem
    timeline_writer.write_text(tmp_path, timeline_writer.key(BEGIN_S * 1_000_000), b'[{"name": ')
    problem = curves_of(tmp_path).problem
    assert problem.endswith(": It is cut off. Files with other problems: 1.")


def test_a_large_file_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile_curves, "FILE_BYTES", 100)
    profiler_writer.write(tmp_path, minute(0))
    curves = curves_of(tmp_path)
    assert (named(curves), "left out of the charts" in curves.problem) == ({}, True)


def test_a_folder_that_vanishes_is_an_error_and_its_curves_stay(tmp_path: Path) -> None:
    profile = tmp_path / "profile"
    profiler_writer.write(profile, minute(0))
    curves = ProfileCurves(str(profile), Ticking())
    curves.read(100.0)
    shutil.rmtree(profile)
    with pytest.raises(TrialError, match="does not exist"):
        curves.read(100.0)
    assert curves.has_points
    with pytest.raises(TrialError, match="does not exist"):
        ProfileCurves(str(profile), Ticking()).read(1.0)


def test_traces_of_torch_profiler_grow_too(tmp_path: Path) -> None:
    first, second = training(2)
    first.write(tmp_path)
    curves = ProfileCurves(str(tmp_path), Ticking())
    curves.read(100.0)
    assert set(named(curves)) == {"step_time rank-0", "gpu rank-0 gpu0", "gpu_memory rank-0 gpu0"}
    second.write(tmp_path)
    curves.read(100.0)
    assert "step_time rank-1" in named(curves)


def test_large_traces_are_not_converted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile_curves, "TRACE_BYTES", 1000)
    write_training(tmp_path)
    curves = curves_of(tmp_path)
    assert (named(curves), "not drawn here" in curves.problem) == ({}, True)


def test_a_profile_in_s3(aws_endpoint: str) -> None:
    s3_objects.make_bucket(aws_endpoint)
    s3_objects.put(aws_endpoint, "job/", minute(0))
    curves = curves_of(f"s3://{s3_objects.BUCKET}/job")
    assert len(named(curves)["cpu algo-1"].steps) == 6
