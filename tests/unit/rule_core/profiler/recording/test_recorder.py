"""The recorder: steps and phases of a training loop, as the readers return them."""

import json
import multiprocessing
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from clocks import PatientClock

from rule_core.modes import ModeKeys
from rule_core.profiler.python_profiles.types import StepPhase
from rule_core.profiler.recording import recorder as module
from rule_core.profiler.recording.config import RecordingConfig
from rule_core.profiler.recording.config_file import PATH_VARIABLE, ConfigFile
from rule_core.profiler.recording.end_marks import SUPERVISED
from rule_core.profiler.recording.ranges import ProfilingRange
from rule_core.profiler.recording.recorder import (
    FORWARD,
    ProfilerRecorder,
    open_recorder,
)
from rule_core.profiler.recording.step_profiler import StepPoint
from rule_core.profiler.traces.event import TraceEvent
from rule_core.trials.profiler_trial import ProfilerTrial
from smdebug.core.hook import Hook

Log = pytest.LogCaptureFixture
TRAIN = ModeKeys.TRAIN


class FakeSampler:
    """Notes when samplers start and stop."""

    notes: ClassVar[list[tuple[Any, ...]]] = []

    def __init__(self, folder: str, interval_ms: int, node: int) -> None:
        self._arguments = (Path(folder).name, interval_ms, node)

    def start(self) -> None:
        self.notes.append(("start", *self._arguments))

    def stop(self) -> None:
        self.notes.append(("stop", *self._arguments))


@pytest.fixture(autouse=True)
def samplers(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Start no processes; return what samplers are told."""
    monkeypatch.setattr(FakeSampler, "notes", [])
    monkeypatch.setattr(module, "Sampler", FakeSampler)
    return FakeSampler.notes


def recorder(folder: Path, clock: PatientClock | None = None, **how: Any) -> ProfilerRecorder:
    clock = clock or PatientClock()
    config = how.pop("config", RecordingConfig(folder=str(folder), framework=True))
    return ProfilerRecorder(ConfigFile(None, clock, config), 0, 1, clock=clock, raises=True)


def events(folder: Path) -> list[TraceEvent]:
    trial = ProfilerTrial("job", str(folder))
    trial.refresh()
    return trial.framework_events(0, 1 << 60)


def write_config(path: Path, folder: Path, **settings: Any) -> None:
    document = {"ProfilingParameters": {"LocalPath": str(folder)}, **settings}
    path.write_text(json.dumps(document))


def test_steps_and_their_phases(tmp_path: Path) -> None:
    profiler = recorder(tmp_path)
    for step in range(3):
        profiler.begin_step(TRAIN, step, step)
        profiler.begin(FORWARD)
        profiler.end(FORWARD)
    profiler.close()
    found = [(event.event_phase, event.event_args) for event in events(tmp_path)]
    assert [phase for phase, _ in found].count("Step:ModeKeys.TRAIN") == 3
    assert [args["step_num"] for phase, args in found if phase == FORWARD and args] == [
        *("0", "1", "2")
    ]
    steps = [event for event in events(tmp_path) if event.event_name == "Step:ModeKeys.TRAIN"]
    forwards = [event for event in events(tmp_path) if event.event_name == FORWARD]
    # A step ends with its last event, not where the next one begins.
    assert [step.end_time for step in steps] == [forward.end_time for forward in forwards]
    assert (tmp_path / "framework" / "training_job_end.ts").exists()


def test_a_phase_outside_of_steps_is_ignored(tmp_path: Path) -> None:
    profiler = recorder(tmp_path)
    profiler.begin(FORWARD)
    profiler.end(FORWARD)
    profiler.begin_step(TRAIN, 0, 0)
    profiler.end("Backward")
    profiler.end_step()
    profiler.begin(FORWARD)
    profiler.close()
    assert [event.event_name for event in events(tmp_path)] == ["Step:ModeKeys.TRAIN"]


def test_a_hook_records_its_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "config.json"
    write_config(config, tmp_path / "profile")
    monkeypatch.setenv(PATH_VARIABLE, str(config))
    with Hook(tmp_path / "trial", on_error="raise") as hook:
        for step in range(4):
            hook.set_mode(ModeKeys.EVAL if step == 3 else TRAIN)
            hook.save_scalar("loss", np.float32(step))
            hook.step()
    names = [
        (event.event_name, (event.event_args or {})["step_num"])
        for event in events(tmp_path / "profile")
    ]
    assert names == [
        *(("Step:ModeKeys.TRAIN", str(step)) for step in range(3)),
        ("Step:ModeKeys.EVAL", "0"),
    ]


def test_steps_of_a_plain_loop_follow_each_other_without_a_gap(tmp_path: Path) -> None:
    parameters = {"ProfilingParameters": {"LocalPath": str(tmp_path / "profile")}}
    with Hook(tmp_path / "trial", profiler_config=parameters) as hook:
        for step in range(4):
            hook.save_scalar("loss", step)
            hook.step()
    spans = [(event.start_time, event.end_time) for event in events(tmp_path / "profile")]
    assert [start for start, _ in spans[1:]] == [end for _, end in spans[:-1]]


def test_a_hook_takes_a_configuration(tmp_path: Path) -> None:
    parameters = {"ProfilingParameters": {"LocalPath": str(tmp_path / "profile")}}
    with Hook(tmp_path / "trial", profiler_config=parameters) as hook:
        hook.step()
    assert len(events(tmp_path / "profile")) == 1


def test_only_one_hook_of_a_process_records(tmp_path: Path) -> None:
    parameters = {"ProfilingParameters": {"LocalPath": str(tmp_path / "profile")}}
    with Hook(tmp_path / "a", profiler_config=parameters) as first:
        second = Hook(tmp_path / "b", profiler_config=parameters)
        assert (first.profiler is None, second.profiler is None) == (False, True)
        second.close()
    with Hook(tmp_path / "c", profiler_config=parameters) as third:
        assert third.profiler is not None


def test_a_hook_that_saves_nothing_records_its_steps(tmp_path: Path) -> None:
    parameters = {"ProfilingParameters": {"LocalPath": str(tmp_path / "profile")}}
    with Hook(tmp_path / "trial", include_workers="none", profiler_config=parameters) as hook:
        hook.save_scalar("loss", 1.0)
        hook.step()
    assert len(events(tmp_path / "profile")) == 1
    assert not (tmp_path / "trial").exists()


def test_a_dry_run_records_nothing(tmp_path: Path) -> None:
    parameters = {"ProfilingParameters": {"LocalPath": str(tmp_path / "profile")}}
    with Hook(tmp_path / "trial", dry_run=True, profiler_config=parameters) as hook:
        hook.step()
    assert not (tmp_path / "profile").exists()


def test_without_a_file_nothing_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PATH_VARIABLE, str(tmp_path / "missing.json"))
    assert open_recorder(0, 1) is None


def test_a_broken_file_is_told_and_the_training_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Log
) -> None:
    config = tmp_path / "config.json"
    config.write_text("{")
    monkeypatch.setenv(PATH_VARIABLE, str(config))
    assert open_recorder(0, 1) is None
    assert "Nothing is profiled: Profiler configuration" in caplog.text


def test_problems_of_the_configuration_are_told(tmp_path: Path, caplog: Log) -> None:
    recorder(tmp_path, config=RecordingConfig(problems=("It is wrong.",))).close()
    assert [record.getMessage() for record in caplog.records] == ["It is wrong."]


def test_changes_of_the_file_take_effect_at_the_next_step(tmp_path: Path) -> None:
    path, clock = tmp_path / "config.json", PatientClock()
    write_config(path, tmp_path / "a")
    profiler = ProfilerRecorder(ConfigFile(path, clock), 0, 1, clock=clock, raises=True)
    changes: list[tuple[Path, dict[str, Any]]] = [
        (tmp_path / "b", {"DisableProfiler": True}),
        (tmp_path / "c", {}),
    ]
    for step in range(3):
        profiler.begin_step(TRAIN, step, step)
        profiler.end_step()
        if changes:
            folder, settings = changes.pop(0)
            write_config(path, folder, **settings)
            clock.sleep(1.0)
    profiler.close()
    steps = {name: [event.event_args for event in events(tmp_path / name)] for name in "abc"}
    assert [(name, args[0]["step_num"]) for name, args in steps.items() if args and args[0]] == [
        ("a", "0"),
        ("c", "2"),
    ]
    assert not (tmp_path / "b").exists()


def test_a_broken_change_is_told_and_keeps_recording(tmp_path: Path, caplog: Log) -> None:
    path, clock = tmp_path / "config.json", PatientClock()
    write_config(path, tmp_path / "a")
    profiler = ProfilerRecorder(ConfigFile(path, clock), 0, 1, clock=clock, raises=True)
    path.write_text("{")
    for step in range(3):
        clock.sleep(1.0)
        profiler.begin_step(TRAIN, step, step)
    profiler.close()
    assert len(events(tmp_path / "a")) == 3
    (message,) = [record.getMessage() for record in caplog.records]
    assert message.endswith("The profiler keeps its configuration.")


def test_an_error_of_the_disk_ends_the_recording_and_not_the_training(
    tmp_path: Path, caplog: Log
) -> None:
    config = RecordingConfig(folder=str(tmp_path), framework=True)
    clock = PatientClock()
    profiler = ProfilerRecorder(ConfigFile(None, clock, config), 0, 1, clock=clock)
    (tmp_path / "framework").write_text("in the way")
    for step in range(200):
        profiler.begin_step(TRAIN, step, step)
    profiler.close()
    assert profiler.is_off
    (message,) = {record.getMessage() for record in caplog.records}
    assert message.startswith("The profiler is off for the rest of the training job: ")


class Phases:
    """Collects the phases that a profiler is told of."""

    def __init__(self) -> None:
        self.reached: list[tuple[str, int]] = []
        self.closed_at: list[int] = []

    def reach(self, phase: StepPhase, point: StepPoint, config: RecordingConfig) -> None:
        assert config.framework
        self.reached.append((phase.value, point.step))

    def close(self, point: StepPoint, config: RecordingConfig) -> None:
        assert config.framework
        self.closed_at.append(point.step)


def test_profilers_follow_the_phases(tmp_path: Path) -> None:
    config = RecordingConfig(
        folder=str(tmp_path), framework=True, detailed=ProfilingRange(start_step=0)
    )
    profiler, phases = recorder(tmp_path, config=config), Phases()
    profiler.add_profiler(phases)
    for step in range(2):
        profiler.begin_step(TRAIN, step, step)
        profiler.begin(FORWARD)
        profiler.end(FORWARD)
        profiler.end_step()
    profiler.close()
    names = ("stepstart", "forwardpassend", "stepend")
    assert phases.reached == [(name, step) for step in range(2) for name in names]
    assert phases.closed_at == [1]


def record_in_child(profiler: ProfilerRecorder) -> None:
    profiler.begin_step(TRAIN, 7, 7)
    profiler.end_step()
    profiler.close()


def test_a_forked_process_records_nothing(tmp_path: Path) -> None:
    profiler = recorder(tmp_path)
    profiler.begin_step(TRAIN, 0, 0)
    child = multiprocessing.get_context("fork").Process(target=record_in_child, args=(profiler,))
    child.start()
    child.join()
    profiler.close()
    assert child.exitcode == 0
    assert [(event.event_args or {})["step_num"] for event in events(tmp_path)] == ["0"]


def test_the_system_is_sampled_from_the_start_to_the_end(
    tmp_path: Path, samplers: list[tuple[Any, ...]]
) -> None:
    recorder(tmp_path / "a", config=RecordingConfig(folder=str(tmp_path / "a"))).close()
    assert samplers == [("start", "a", 500, 1), ("stop", "a", 500, 1)]


def test_one_process_of_a_node_samples_and_none_if_it_is_disabled(
    samplers: list[tuple[Any, ...]],
) -> None:
    clock = PatientClock()
    for rank, config in ((1, RecordingConfig()), (0, RecordingConfig(is_disabled=True))):
        file = ConfigFile(None, clock, config)
        ProfilerRecorder(file, rank, 2, clock=clock, raises=True).close()
    assert not samplers


def test_a_supervising_command_samples_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, samplers: list[tuple[Any, ...]]
) -> None:
    monkeypatch.setenv(SUPERVISED, str(tmp_path))
    recorder(tmp_path).close()
    assert samplers == []


def test_a_new_interval_takes_effect(tmp_path: Path, samplers: list[tuple[Any, ...]]) -> None:
    path, clock = tmp_path / "config.json", PatientClock()
    path.write_text("{}")
    profiler = ProfilerRecorder(ConfigFile(path, clock), 0, 1, clock=clock, raises=True)
    changes = ('{"ProfilingIntervalInMilliseconds": 100}', '{"DisableProfiler": true}')
    for step, text in enumerate(changes):
        path.write_text(text)
        clock.sleep(1.0)
        profiler.begin_step(TRAIN, step, step)
    profiler.close()
    assert [(what, interval) for what, _, interval, _ in samplers] == [
        *(("start", 500), ("stop", 500), ("start", 100), ("stop", 100))
    ]


def test_a_sampler_that_cannot_start_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Log
) -> None:
    def fail(_: FakeSampler) -> None:
        raise OSError(11, "no more processes")

    monkeypatch.setattr(FakeSampler, "start", fail)
    recorder(tmp_path).close()
    (message,) = [record.getMessage() for record in caplog.records]
    assert message == "System metrics are not sampled: [Errno 11] no more processes."
