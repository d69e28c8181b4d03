"""Evaluations that start, end, die and are stopped."""

import os
from pathlib import Path
from typing import Any

import pytest
from watched import Watch, log, result, save

from rule_core.sources.options import SourceOptions
from rule_runner.errors import TemporaryError
from rule_runner.index.commands import Command, TrialAction
from rule_runner.index.reader import IndexReader
from rule_runner.index.states import RESTARTS
from rule_runner.watch.config import Assignment


def test_at_most_so_many_run_and_the_oldest_start_first(watch: Watch) -> None:
    trials = [log(watch.runs, name) for name in "abcd"]
    watch.tick()
    assert [watch.state(trial) for trial in trials] == ["running", "running", "queued", "queued"]
    watch.end(trials[1])
    watch.tick()
    assert [watch.state(trial) for trial in trials] == ["queued", "judged", "running", "running"]


def test_an_evaluation_that_dies_is_restarted_three_times_with_growing_pauses(watch: Watch) -> None:
    trial = log(watch.runs)
    pauses = []
    for _ in range(RESTARTS):
        watch.tick(0.0)
        assert watch.state(trial) == "running"
        died = watch.clock.now
        watch.evaluations.end(watch.trial(trial).output, -9)
        watch.tick(0.0)
        assert watch.state(trial) == "queued"
        pauses.append(watch.trial(trial).not_before - died)
        watch.tick(pauses[-1] - 1.0)
        assert watch.state(trial) == "queued"
        watch.clock.now += 1.0
    watch.tick(0.0)
    watch.evaluations.end(watch.trial(trial).output, 73, "Disk full.")
    watch.tick(0.0)
    record = watch.trial(trial)
    assert pauses == [15.0, 30.0, 60.0]
    assert (record.state, record.outcome) == ("judged", "Error")
    assert record.problem == "Its evaluation ended 4 times without a verdict: Disk full."


@pytest.mark.parametrize("outcome", [None, "Stopped"])
def test_an_evaluation_that_is_interrupted_starts_again_and_counts_no_restart(
    watch: Watch, outcome: str | None
) -> None:
    trial = log(watch.runs)
    watch.tick()
    output = watch.trial(trial).output
    if outcome:
        save(Path(output), result(trial, outcome=outcome, trial_ended=False))
    watch.evaluations.end(output, None, pause=60.0)
    watch.tick()
    record = watch.trial(trial)
    assert (record.state, record.restarts) == ("queued", 0)
    watch.tick(59.0)
    assert watch.state(trial) == "queued"
    watch.tick(1.0)
    assert watch.state(trial) == "running"


def test_trials_stay_queued_while_nothing_can_be_started(watch: Watch) -> None:
    trial = log(watch.runs)
    watch.evaluations.is_ready, watch.evaluations.problem = False, "Executor 'x' is away."
    watch.tick()
    assert watch.state(trial) == "queued"
    assert watch.options.commands.problem == "Executor 'x' is away."
    assert watch.controller.problems == ["Executor 'x' is away."]
    watch.evaluations.is_ready, watch.evaluations.problem = True, ""
    watch.tick()
    assert (watch.state(trial), watch.options.commands.problem) == ("running", "")


def test_nobody_waits_for_an_executor_with_once(tmp_path: Path, clock: Any) -> None:
    watch = Watch(tmp_path, clock, once=True)
    log(watch.runs)
    watch.evaluations.is_ready = False
    watch.tick()
    watch.evaluations.problem = "Executor 'x' is away."
    with pytest.raises(TemporaryError, match=r"Executor 'x' is away\."):
        watch.tick()


def test_a_restart_keeps_the_rules_that_had_begun(watch: Watch) -> None:
    trial = log(watch.runs)
    watch.tick()
    output = watch.trial(trial).output
    save(Path(output), result(trial, "Overfit", ended_at=None), result(trial, ended_at=None))
    watch.evaluations.end(output, -9)
    watch.tick()
    watch.tick(15.0)
    _, again = watch.evaluations.requests[output]
    assert sorted(rule.name for rule in again.rules) == ["LossSpike", "Overfit"]
    assert not again.overwrite


def test_results_of_another_version_are_replaced(watch: Watch) -> None:
    trial = log(watch.runs)
    watch.tick()
    output = watch.trial(trial).output
    save(Path(output), result(trial, ended_at=None, versions={"rule-runner": "0.0.1"}))
    watch.evaluations.end(output, -9)
    watch.tick()
    watch.tick(15.0)
    _, again = watch.evaluations.requests[output]
    assert (again.overwrite, [rule.name for rule in again.rules]) == (True, ["auto"])


def test_an_evaluation_killed_after_its_verdicts_is_started_to_report(watch: Watch) -> None:
    trial = log(watch.runs)
    watch.tick()
    output = watch.trial(trial).output
    save(Path(output), result(trial), report=False)
    watch.evaluations.end(output, -9)
    watch.tick()
    watch.tick(15.0)
    assert len(watch.evaluations.requests[output]) == 2
    watch.end(trial)
    watch.tick()
    assert watch.trial(trial).outcome == "NoIssuesFound"


def test_a_request_that_cannot_be_met_is_not_repeated(watch: Watch) -> None:
    trial = log(watch.runs)
    watch.tick()
    watch.evaluations.end(watch.trial(trial).output, 1, "No built-in rule fits trial 'a'.")
    watch.tick()
    record = watch.trial(trial)
    assert (record.outcome, record.problem) == ("Error", "No built-in rule fits trial 'a'.")


def test_a_trial_that_is_quiet_already_is_judged_as_it_is(watch: Watch) -> None:
    quiet, running = log(watch.runs, "quiet"), log(watch.runs, "running")
    for path in (quiet / "log.csv", quiet):
        os.utime(path, (watch.clock.now - 1000.0,) * 2)
    watch.tick()
    requests = [watch.evaluations.requests[_output(watch, path)][0] for path in (quiet, running)]
    assert [(request.wait, request.as_it_is) for request in requests] == [
        (False, True),
        (True, False),
    ]


def test_evaluations_of_a_killed_controller_are_adopted_or_resumed(watch: Watch) -> None:
    kept, lost = log(watch.runs, "kept"), log(watch.runs, "lost")
    watch.tick()
    watch.controller.database.close()
    watch.evaluations.held = {_output(watch, kept)}
    watch.evaluations.running.clear()
    watch.again().resume()
    assert [watch.state(trial) for trial in (kept, lost)] == ["running", "queued"]
    watch.tick(15.0)
    assert len(watch.evaluations.requests[_output(watch, kept)]) == 1
    assert len(watch.evaluations.requests[_output(watch, lost)]) == 2


def _output(watch: Watch, trial: Path) -> str:
    with IndexReader(watch.path) as reader:
        record = reader.trial_at(str(trial))
    assert record is not None
    return record.output


def test_an_evaluation_that_ended_without_a_controller_is_judged_by_the_next(watch: Watch) -> None:
    trial = log(watch.runs)
    watch.tick()
    watch.controller.database.close()
    save(Path(_output(watch, trial)), result(trial))
    watch.evaluations.running.clear()
    watch.again().resume()
    assert watch.trial(trial).outcome == "NoIssuesFound"


def test_a_stop_ends_evaluations_and_the_next_controller_continues_them(watch: Watch) -> None:
    trial, waiting = log(watch.runs, "a"), log(watch.runs, "b")
    watch.config = type(watch.config)(
        **{name: getattr(watch.config, name) for name in watch.config.__struct_fields__}
        | {"max_concurrent": 1}
    )
    watch.controller.database.close()
    watch.again()
    watch.tick()
    save(
        Path(watch.trial(trial).output),
        result(trial, outcome="Stopped", trial_ended=False),
    )
    watch.controller.stop()
    watch.controller.run()
    assert watch.evaluations.terminated
    assert [watch.state(path) for path in (trial, waiting)] == ["queued", "queued"]
    assert watch.trial(trial).restarts == 0


def test_trials_that_no_rules_are_for_are_ignored_until_the_configuration_changes(
    tmp_path: Path, clock: Any
) -> None:
    trial = log(tmp_path / "runs")
    watch = Watch(tmp_path, clock, judge=(Assignment(trials="*/b", rules=("auto",)),))
    watch.tick()
    assert watch.state(trial) == "ignored"
    watch.controller.database.close()
    watch.config = type(watch.config)(roots=watch.config.roots, output=watch.config.output)
    watch.again().resume()
    watch.tick()
    assert watch.state(trial) == "running"


def test_rules_that_do_not_fit_together_are_the_trials_error(tmp_path: Path, clock: Any) -> None:
    trial = log(tmp_path / "runs")
    judge = (Assignment(rules=("a=LossSpike", "a=Overfit")),)
    watch = Watch(tmp_path, clock, judge=judge)
    watch.tick()
    assert watch.trial(trial).outcome == "Error"
    assert "a" in watch.trial(trial).problem


@pytest.mark.parametrize(
    "steps", [(-300.0, 300.0), (-3 * 86400.0, 3 * 86400.0), (86400.0, -86400.0)]
)
def test_a_clock_that_is_set_delays_no_trial(
    watch: Watch, monkeypatch: pytest.MonkeyPatch, steps: tuple[float, ...]
) -> None:
    shift, clock = [0.0], watch.clock
    monkeypatch.setattr(clock, "time", lambda: clock.now + sum(shift))
    dying = log(watch.runs, "dying")
    watch.tick()
    for number, step in enumerate(steps):
        watch.evaluations.end(watch.trial(dying).output, -9)
        watch.tick()
        assert watch.state(dying) == "queued"
        shift.append(step)
        late = log(watch.runs, f"late-{number}")
        for _ in range(25):
            watch.tick()
        assert watch.trial(late).started_at is not None
        for _ in range(25):
            watch.tick()
            watch.end(late)
        assert watch.state(dying) == "running"


def test_a_judged_trial_is_judged_anew_once(watch: Watch) -> None:
    trial = log(watch.runs)
    watch.tick()
    watch.end(trial)
    watch.tick()
    number = watch.trial(trial).id
    watch.options.commands.send(Command(TrialAction.REEVALUATE, number))
    watch.tick()
    assert watch.state(trial) == "running"
    requests = watch.evaluations.requests[watch.trial(trial).output]
    assert [request.overwrite for request in requests[1:]] == [True]
    watch.options.commands.send(Command(TrialAction.REEVALUATE, number))
    watch.tick()
    watch.end(trial)
    watch.tick()
    watch.tick(3600.0)
    assert (watch.state(trial), len(requests)) == ("judged", 2)


def test_a_cancelled_evaluation_stays_stopped(watch: Watch) -> None:
    trial = log(watch.runs)
    watch.tick()
    number = watch.trial(trial).id
    watch.options.commands.send(Command(TrialAction.CANCEL, number))
    watch.tick()
    record = watch.trial(trial)
    assert (record.state, record.outcome, record.final) == ("judged", "Stopped", True)
    assert "cancelled" in record.problem
    (trial / "log.csv").write_text("step,loss\n1,0.5\n2,0.4\n")
    watch.tick(3600.0)
    watch.tick(3600.0)
    assert watch.state(trial) == "judged"
    watch.options.commands.send(Command(TrialAction.REEVALUATE, number))
    watch.tick()
    assert watch.state(trial) == "running"


def test_a_queued_trial_is_cancelled_before_it_starts(watch: Watch) -> None:
    trials = [log(watch.runs, name) for name in "abc"]
    watch.tick()
    assert watch.state(trials[2]) == "queued"
    watch.options.commands.send(Command(TrialAction.CANCEL, watch.trial(trials[2]).id))
    watch.tick()
    assert watch.trial(trials[2]).outcome == "Stopped"
    watch.end(trials[0])
    watch.tick()
    assert watch.trial(trials[2]).output not in watch.evaluations.requests


def test_evaluations_read_sources_as_the_configuration_says(tmp_path: Path, clock: Any) -> None:
    (tmp_path / "runs").mkdir()
    sources = SourceOptions(step_column="when")
    watch = Watch(tmp_path, clock, sources=sources)
    trial = log(watch.runs)
    watch.tick()
    (request,) = watch.evaluations.requests[watch.trial(trial).output]
    assert request.sources == sources
