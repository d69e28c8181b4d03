"""The controller with scripted evaluations and a clock of the test."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest
import structlog
from watched import Watch, log, result, save

from rule_runner.errors import OutputError
from rule_runner.index import outputs
from rule_runner.index.commands import Command, TrialAction
from rule_runner.index.reader import IndexReader
from rule_runner.index.states import RESTARTS
from rule_runner.watch.turns import ABSENT_S


def test_a_trial_from_its_discovery_to_its_verdict(watch: Watch) -> None:
    trial = log(watch.runs)
    with structlog.testing.capture_logs() as logs:
        watch.tick()
        assert watch.state(trial) == "running"
        (request,) = watch.evaluations.requests[watch.trial(trial).output]
        assert (request.trial, request.rules[0].name, request.wait) == (str(trial), "auto", True)
        assert request.idle_timeout == 900.0
        watch.end(trial, outcome="IssuesFound")
        watch.tick()
    record = watch.trial(trial)
    assert (record.state, record.outcome, record.final) == ("judged", "IssuesFound", True)
    with IndexReader(watch.path) as reader:
        assert [rule.name for rule in reader.rules_of(record.id)] == ["LossSpike"]
    assert [entry["event"] for entry in logs] == ["trial_queued", "trial_running", "trial_judged"]
    watch.tick(3600.0)
    assert len(watch.evaluations.requests[record.output]) == 1


def test_once_ends_when_all_is_judged(tmp_path: Path, clock: Any) -> None:
    trials = [log(tmp_path / "runs", name) for name in "abc"]
    watch = Watch(tmp_path, clock, once=True)
    start = watch.evaluations.start

    def judge(output: str, request: Any) -> None:
        start(output, request)
        assert (request.wait, request.as_it_is) == (False, True)
        save(Path(output), result(request.trial, trial_ended=False))
        watch.evaluations.end(output)

    watch.evaluations.start = judge  # type: ignore[method-assign]
    watch.controller.run()
    assert [watch.state(trial) for trial in trials] == ["judged"] * 3
    watch.controller.database.close()
    (trials[1] / "log.csv").write_text("step,loss\n1,0.5\n2,0.4\n")
    watch.again().run()
    assert [len(requests) for requests in watch.evaluations.requests.values()] == [1, 2, 1]


def test_a_root_that_vanishes_and_comes_back(watch: Watch, tmp_path: Path) -> None:
    waiting = [log(watch.runs, name) for name in "abc"][2]
    watch.tick()
    watch.runs.rename(tmp_path / "away")
    with structlog.testing.capture_logs() as logs:
        for _ in range(3):
            watch.tick(60.0)
        for output in watch.evaluations.outputs:
            watch.evaluations.end(output, -9)
        watch.tick(0.0)
        watch.tick(60.0)
        assert watch.state(waiting) == "queued"
        (tmp_path / "away").rename(watch.runs)
        watch.tick(60.0)
        watch.tick(ABSENT_S)
    events = [entry["event"] for entry in logs if entry["event"].startswith("root")]
    assert events == ["root_unavailable", "root_available"]
    assert len(watch.evaluations) == 2


def test_a_deleted_database_is_made_again_and_nothing_is_judged_twice(watch: Watch) -> None:
    judged, running = log(watch.runs, "judged"), log(watch.runs, "running")
    watch.tick()
    watch.end(judged)
    watch.tick()
    for path in watch.path.parent.glob("watch.sqlite*"):
        path.unlink()
    watch.tick(60.0)
    watch.tick(60.0)
    assert [watch.state(trial) for trial in (judged, running)] == ["judged", "running"]
    assert watch.path.exists()
    assert [len(requests) for requests in watch.evaluations.requests.values()] == [1, 1]
    watch.end(running)
    watch.tick()
    assert watch.state(running) == "judged"


def test_an_index_that_cannot_be_made_again_is_tried_again(watch: Watch, tmp_path: Path) -> None:
    trial = log(watch.runs)
    watch.tick()
    watch.end(trial)
    away = watch.path.parent.rename(tmp_path / "away")
    watch.path.parent.write_text("in the way")
    for _ in range(3):
        watch.tick()
        assert "out" in watch.options.commands.failure
    watch.path.parent.unlink()
    away.rename(watch.path.parent)
    watch.tick()
    assert watch.options.commands.failure == ""
    assert watch.trial(trial).outcome == "NoIssuesFound"


def test_a_locked_database_delays_and_loses_nothing(watch: Watch) -> None:
    trial = log(watch.runs)
    watch.tick()
    watch.controller.database.connection.execute("PRAGMA busy_timeout = 10")
    other = sqlite3.connect(watch.path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    watch.end(trial)
    late = log(watch.runs, "late")
    with structlog.testing.capture_logs() as logs:
        for _ in range(3):
            watch.tick(60.0)
        other.execute("ROLLBACK")
        other.close()
        watch.tick(60.0)
        watch.tick(60.0)
    assert [watch.state(path) for path in (trial, late)] == ["judged", "running"]
    events = [entry["event"] for entry in logs if entry["event"].startswith("controller")]
    assert events == ["controller_hindered", "controller_recovered"]


def test_on_a_full_disk_trials_wait_and_people_are_told_why(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged, dying = log(watch.runs, "judged"), log(watch.runs, "dying")
    watch.tick()
    monkeypatch.setattr(outputs, "SPACE_BYTES", 1 << 62)
    watch.end(judged, outcome="IssuesFound")
    with structlog.testing.capture_logs() as logs:
        for _ in range(2 * RESTARTS):
            if watch.state(dying) == "running":
                watch.evaluations.end(watch.trial(dying).output, 1)  # its log has no line
            waiting = log(watch.runs, "waiting")
            watch.tick(100.0)
    commands = watch.options.commands
    assert "is almost full" in commands.failure
    states = [watch.state(trial) for trial in (judged, dying, waiting)]
    assert states == ["judged", "queued", "queued"]
    assert watch.trial(dying).restarts == 0
    assert [entry["event"] for entry in logs].count("controller_hindered") == 1
    monkeypatch.undo()
    watch.tick()
    assert commands.failure == ""
    assert [watch.state(trial) for trial in (dying, waiting)] == ["running", "running"]
    assert watch.trial(dying).problem == ""


def test_a_command_waits_until_the_index_can_be_written(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*_: object, **__: object) -> None:
        raise OutputError

    trial = log(watch.runs)
    watch.tick()
    watch.end(trial)
    watch.tick()
    watch.options.commands.send(Command(TrialAction.REEVALUATE, watch.trial(trial).id))
    monkeypatch.setattr(watch.controller.database, "update", locked)
    watch.tick()
    assert watch.state(trial) == "judged"
    monkeypatch.undo()
    watch.tick()
    assert watch.state(trial) == "running"


def test_once_does_not_wait_for_a_database_that_cannot_be_used(tmp_path: Path, clock: Any) -> None:
    log(tmp_path / "runs")
    watch = Watch(tmp_path, clock, once=True)
    watch.controller.database.connection.execute("PRAGMA query_only = 1")
    with pytest.raises(OutputError, match=r"cannot be used: attempt to write a readonly database"):
        watch.tick()


def test_commands_for_trials_that_are_gone_are_left_out(watch: Watch) -> None:
    for action in TrialAction:
        watch.options.commands.send(Command(action, 99))
    watch.tick()
    assert [*watch.options.commands.taken()] == []
