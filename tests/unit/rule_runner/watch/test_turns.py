"""Trials that wait get their turns while others grow."""

import os
from pathlib import Path
from typing import Any

import pytest
from watched import Watch, log, result, save

from rule_runner.index.commands import Command, TrialAction
from rule_runner.watch.pace import PROMPT_S
from rule_runner.watch.turns import ABSENT_S, TURN_S


def grow(trial: Path, rows: int = 1) -> None:
    with (trial / "log.csv").open("a") as file:
        file.write("2,0.4\n" * rows)


def begin(watch: Watch, trial: Path, rule_time: float = 0.0) -> None:
    """Write what an evaluation has judged so far."""
    begun = result(trial, ended_at=None, outcome="InProgress", rule_time_s=rule_time)
    save(Path(watch.trial(trial).output), begun, report=False)


def test_growing_trials_do_not_keep_faulty_ones_waiting(tmp_path: Path, clock: Any) -> None:
    watch = Watch(tmp_path, clock, max_concurrent=8)
    healthy = [log(watch.runs, f"healthy-{number:02}") for number in range(12)]
    watch.tick()
    faulty = [log(watch.runs, f"faulty-{number}") for number in range(4)]
    for _ in range(6):
        for trial in healthy:
            grow(trial)
        watch.tick()
    requests = watch.evaluations.requests
    assert [len(requests[watch.trial(trial).output]) for trial in faulty] == [1] * 4
    assert all(watch.trial(trial).outcome == "" for trial in healthy)
    assert all(watch.trial(trial).restarts == 0 for trial in healthy)
    for _ in range(int(2 * TURN_S)):
        for trial in healthy:
            grow(trial)
        watch.tick()
        assert len(watch.evaluations) <= 8
    starts = [len(requests[watch.trial(trial).output]) for trial in healthy]
    assert min(starts) >= 2, "all are continued"
    assert max(starts) <= 6, "none is continued all the time"


def test_an_evaluation_runs_on_while_nobody_waits(watch: Watch) -> None:
    trials = [log(watch.runs, name) for name in "ab"]
    for _ in range(3):
        watch.tick(1000.0)
    assert [watch.state(trial) for trial in trials] == ["running"] * 2
    assert [len(requests) for requests in watch.evaluations.requests.values()] == [1, 1]


def test_the_longer_the_rules_take_the_longer_is_a_turn(tmp_path: Path, clock: Any) -> None:
    watch = Watch(tmp_path, clock, max_concurrent=1)
    slow = log(watch.runs, "slow")
    watch.tick()
    begin(watch, slow, rule_time=60.0)
    watch.tick(10.0)
    other = log(watch.runs, "other")
    watch.tick(100.0)
    assert watch.state(slow) == "running", "a new trial waits for three times as long"
    watch.tick(100.0)
    watch.tick()
    assert [watch.state(trial) for trial in (slow, other)] == ["queued", "running"]
    grow(slow)
    watch.tick(TURN_S)
    watch.tick()
    assert [watch.state(trial) for trial in (slow, other)] == ["running", "queued"]
    grow(other)
    watch.tick(500.0)
    watch.tick()
    assert watch.state(slow) == "running", "a continued trial waits for ten times as long"
    watch.tick(200.0)
    watch.tick()
    assert watch.state(slow) == "queued"


def test_a_trial_without_new_data_takes_no_turn_from_others_until_it_is_quiet(
    tmp_path: Path, clock: Any
) -> None:
    watch = Watch(tmp_path, clock, max_concurrent=1)
    over, growing = log(watch.runs, "over"), log(watch.runs, "growing")
    for path in (over / "log.csv", over):
        os.utime(path, (clock.now, clock.now))
    for _ in range(10):
        watch.tick(TURN_S)
        grow(growing)
    requests = watch.evaluations.requests
    assert len(requests[watch.trial(over).output]) == 1
    watch.tick(watch.config.quiet_s)
    watch.tick()
    first, last = requests[watch.trial(over).output]
    assert (first.wait, last.wait) == (True, False)


def test_trials_without_new_data_are_followed_where_slots_are_free(watch: Watch) -> None:
    trials = [log(watch.runs, name) for name in "abcde"]
    for _ in range(10):
        watch.tick()
    running = [trial for trial in trials if watch.state(trial) == "running"]
    for trial in running:
        watch.end(trial)
    for _ in range(3):
        watch.tick(ABSENT_S)
    states = sorted(watch.state(trial) for trial in trials)
    assert states == ["judged", "judged", "queued", "running", "running"]


def test_an_evaluation_that_was_paused_and_continued_at_once_pauses_again(
    tmp_path: Path, clock: Any
) -> None:
    watch = Watch(tmp_path, clock, max_concurrent=1)
    growing = log(watch.runs, "growing")
    watch.tick()
    cancelled = log(watch.runs, "cancelled")
    watch.tick()
    watch.options.commands.send(Command(TrialAction.CANCEL, watch.trial(cancelled).id))
    watch.tick()
    assert len(watch.evaluations.requests[watch.trial(growing).output]) == 2
    late = log(watch.runs, "late")
    for _ in range(3):
        watch.tick()
    assert watch.state(late) == "running"


def test_an_evaluation_that_does_not_pause_is_asked_once(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(watch.evaluations, "pause_one", asked.append)
    trials = [log(watch.runs, name) for name in "abc"]
    for _ in range(5):
        watch.tick(TURN_S)
    assert len(asked) == 1
    assert watch.state(trials[2]) == "queued"


def test_turns_are_soon_looked_at_again_on_a_busy_machine(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    trials = [log(watch.runs, name) for name in "ab"]
    startable = watch.controller.database.startable

    def slow(*arguments: Any, **options: Any) -> Any:
        watch.clock.now += 2.0
        return startable(*arguments, **options)

    monkeypatch.setattr(watch.controller.database, "startable", slow)
    watch.tick()
    late = log(watch.runs, "late")
    for _ in range(25):
        watch.tick(0.1)
    watch.tick(PROMPT_S)
    watch.tick()
    assert watch.state(late) == "running"
    assert [watch.state(trial) for trial in trials].count("queued") == 1
