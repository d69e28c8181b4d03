"""The controller with scripted evaluations and a clock of the test."""

import os
import shutil
import sqlite3
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import structlog
from kineto_writer import training
from watched import Watch, log, result, save

from rule_runner.errors import OutputError, TemporaryError
from rule_runner.index import outputs
from rule_runner.index.commands import Command, TrialAction
from rule_runner.index.outputs import SavedOutput, read_output
from rule_runner.index.reader import IndexReader
from rule_runner.index.states import RESTARTS
from rule_runner.results.acknowledgements import (
    ACKNOWLEDGEMENTS,
    Acknowledgement,
    AcknowledgementKind,
    append_acknowledgement,
)
from rule_runner.results.cursors import Cursor
from rule_runner.results.file_names import RESULTS
from rule_runner.watch import controller
from rule_runner.watch.config import Assignment
from rule_runner.watch.pace import PROMPT_S, Pace
from rule_runner.watch.retention import Expiry
from rule_runner.watch.turns import ABSENT_S

OLD = Path(__file__).parents[3] / "data" / "outputs-0.1.0"


@pytest.fixture
def watch(tmp_path: Path, clock: Any) -> Watch:
    (tmp_path / "runs").mkdir()
    return Watch(tmp_path, clock)


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


def test_at_most_so_many_run_and_the_oldest_start_first(watch: Watch) -> None:
    trials = [log(watch.runs, name) for name in "abcd"]
    watch.tick()
    assert [watch.state(trial) for trial in trials] == ["running", "running", "queued", "queued"]
    watch.end(trials[1])
    watch.tick()
    assert [watch.state(trial) for trial in trials] == ["queued", "judged", "running", "running"]


def test_verdicts_are_in_the_index_while_the_evaluation_runs(watch: Watch) -> None:
    trial = log(watch.runs)
    watch.tick()
    found = result(trial, outcome="IssuesFound", ended_at=None, step=20)
    save(Path(watch.trial(trial).output), found)
    with structlog.testing.capture_logs() as logs:
        watch.tick(10.0)
        watch.tick(10.0)
    assert [(entry["event"], entry["rule"]) for entry in logs] == [("issues_found", "LossSpike")]
    (rule,) = watch.controller.database.rules_of(watch.trial(trial).id)
    assert (rule.outcome, rule.step) == ("IssuesFound", 20)


def test_results_that_have_not_changed_are_not_read_again(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = log(watch.runs)
    watch.tick()
    output = Path(watch.trial(trial).output)
    reads: list[str] = []

    def counted(place: str) -> SavedOutput:
        reads.append(place)
        return read_output(place)

    monkeypatch.setattr(controller, "read_output", counted)

    def outcomes() -> dict[str, str]:
        watch.tick(10.0)
        rules = watch.controller.database.rules_of(watch.trial(trial).id)
        return {rule.name: rule.outcome for rule in rules}

    save(output, result(trial, ended_at=None), report=False)
    assert [outcomes() for _ in range(3)] == 3 * [{"LossSpike": "NoIssuesFound"}]
    assert len(reads) == 1
    both = result(trial, ended_at=None), result(trial, "Overfit", ended_at=None)
    save(output, *both, report=False)
    assert outcomes() == {"LossSpike": "NoIssuesFound", "Overfit": "NoIssuesFound"}
    save(output, result(trial, ended_at=None, outcome="IssuesFound"), report=False)
    assert outcomes()["LossSpike"] == "IssuesFound"
    for file in watch.path.parent.glob("watch.sqlite*"):
        file.unlink()
    assert outcomes()["LossSpike"] == "IssuesFound"
    append_acknowledgement(output, said("acknowledged"))
    outcomes()
    assert marks(watch, trial)[0] == (True, "error")


def test_results_that_could_not_be_read_once_are_read_again(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = log(watch.runs)
    watch.tick()
    output = watch.trial(trial).output
    failures: list[str] = []

    def failing_once(folder: str) -> SavedOutput:
        if not failures:
            failures.append(folder)
            msg = "Too many open files."
            raise OutputError(msg)
        return read_output(folder)

    monkeypatch.setattr(controller, "read_output", failing_once)
    save(Path(output), result(trial, outcome="IssuesFound", ended_at=None, step=20))
    watch.tick(10.0)
    assert (failures, marks(watch, trial)) == ([output], [])
    watch.tick(10.0)
    assert marks(watch, trial) == [(False, "error")]
    watch.end(trial, outcome="IssuesFound")
    watch.tick()
    failures.clear()
    append_acknowledgement(output, said("acknowledged"))
    watch.tick(60.0)
    assert marks(watch, trial) == [(False, "error")]
    watch.tick(60.0)
    assert marks(watch, trial) == [(True, "error")]


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


def test_verdicts_that_are_not_final_are_continued_when_data_arrive(watch: Watch) -> None:
    trial = log(watch.runs)
    watch.tick()
    watch.end(trial, 124, outcome="Stopped", trial_ended=False)
    watch.tick()
    assert (watch.trial(trial).outcome, watch.trial(trial).final) == ("Stopped", False)
    watch.tick(100.0)
    assert watch.state(trial) == "judged"
    (trial / "log.csv").write_text("step,loss\n1,0.5\n2,0.4\n")
    watch.tick(100.0)
    assert watch.state(trial) == "running"


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


def test_final_verdicts_are_not_continued(watch: Watch) -> None:
    trial = log(watch.runs)
    watch.tick()
    watch.end(trial)
    watch.tick()
    (trial / "log.csv").write_text("step,loss\n1,0.5\n2,0.4\n")
    watch.tick(100.0)
    assert watch.state(trial) == "judged"


def test_traces_are_judged_anew_when_others_arrive(watch: Watch) -> None:
    first, second = training(2)
    traces = watch.runs / "traces"
    first.write(traces)
    watch.tick()
    (request,) = watch.evaluations.requests[watch.trial(traces).output]
    assert (request.trial, request.profiler_trial) == (None, str(traces))
    watch.end(traces, outcome="IssuesFound")
    watch.tick()
    watch.tick(3600.0)
    assert watch.state(traces) == "judged"
    second.write(traces)
    watch.tick(3600.0)
    *_, again = watch.evaluations.requests[watch.trial(traces).output]
    assert (again is not request, again.overwrite) == (True, True)
    watch.end(traces, outcome="IssuesFound")
    watch.tick(3600.0)
    assert len(watch.evaluations.requests[watch.trial(traces).output]) == 2


def test_a_damaged_result_is_an_error_until_its_folder_is_removed(watch: Watch) -> None:
    trial = log(watch.runs)
    watch.tick()
    output = Path(watch.trial(trial).output)
    save(output, result(trial))
    (output / RESULTS).write_text('{"rules": [{"configuration_name": "Lo')
    watch.evaluations.end(str(output))
    watch.tick()
    record = watch.trial(trial)
    assert record.outcome == "Error"
    assert record.problem.startswith(f"Result '{output}/results.json' cannot be read: ")
    assert record.problem.endswith("Remove the output folder to have the trial judged again.")
    shutil.rmtree(output)
    watch.tick(100.0)
    assert watch.state(trial) == "running"


# -- controllers that come and go ----------------------------------------------------------------


def test_evaluations_of_a_killed_controller_are_adopted_or_resumed(watch: Watch) -> None:
    kept, lost = log(watch.runs, "kept"), log(watch.runs, "lost")
    watch.tick()
    watch.controller.close()
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
    watch.controller.close()
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
    watch.controller.close()
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
    watch.controller.close()
    (trials[1] / "log.csv").write_text("step,loss\n1,0.5\n2,0.4\n")
    watch.again().run()
    assert [len(requests) for requests in watch.evaluations.requests.values()] == [1, 2, 1]


# -- roots ---------------------------------------------------------------------------------------


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


def test_trials_that_no_rules_are_for_are_ignored_until_the_configuration_changes(
    tmp_path: Path, clock: Any
) -> None:
    trial = log(tmp_path / "runs")
    watch = Watch(tmp_path, clock, judge=(Assignment(trials="*/b", rules=("auto",)),))
    watch.tick()
    assert watch.state(trial) == "ignored"
    watch.controller.close()
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


# -- the database --------------------------------------------------------------------------------


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


def test_work_that_failed_is_soon_tried_again(watch: Watch) -> None:
    pace = Pace(watch.clock, 1.0)
    with suppress(OutputError), pace.measured():
        watch.clock.now += 5.0
        raise OutputError
    watch.clock.now += 1.0
    assert pace.is_due


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


def test_once_does_not_wait_for_a_database_that_cannot_be_used(tmp_path: Path, clock: Any) -> None:
    log(tmp_path / "runs")
    watch = Watch(tmp_path, clock, once=True)
    watch.controller.database.connection.execute("PRAGMA query_only = 1")
    with pytest.raises(OutputError, match=r"cannot be used: attempt to write a readonly database"):
        watch.tick()


def test_an_index_is_made_again_from_the_results_alone(watch: Watch) -> None:
    trial = log(watch.runs)
    watch.tick()
    watch.end(trial, outcome="IssuesFound")
    watch.tick()
    watch.controller.close()
    shutil.rmtree(trial)
    for path in watch.path.parent.glob("watch.sqlite*"):
        path.unlink()
    foreign = watch.path.parent / "foreign"
    save(foreign, result("/elsewhere"))
    damaged = watch.path.parent / "damaged"
    save(damaged, result(trial))
    (damaged / RESULTS).write_text("{")
    (watch.path.parent / "empty").mkdir()
    watch.again().rebuild()
    watch.tick()
    assert [record.path for record in watch.controller.database.trials()] == [str(trial)]
    assert watch.trial(trial).outcome == "IssuesFound"
    assert watch.evaluations.requests.keys() == {watch.trial(trial).output}


def test_an_index_is_made_from_results_of_version_0_1_0(watch: Watch) -> None:
    trial = log(watch.runs)
    watch.tick()
    output = Path(watch.trial(trial).output)
    watch.controller.close()
    for path in watch.path.parent.glob("watch.sqlite*"):
        path.unlink()
    shutil.copytree(OLD / "several", output)
    for path in output.glob("*/rule_result.json"):
        text = path.read_text().replace("/runs/mnist", str(trial))
        path.write_text(text.replace('"trial_ended": false', '"trial_ended": true'))
    (output / "report.html").touch()
    watch.again().rebuild()
    watch.tick()
    rules = watch.controller.database.rules_of(watch.trial(trial).id)
    assert [rule.outcome for rule in rules] == ["IssuesFound", "NoIssuesFound"]


def test_expired_outputs_are_removed_and_their_trials_not_judged_again(
    tmp_path: Path, clock: Any
) -> None:
    removed: list[Path] = []

    def remove(folder: Path) -> bool:
        removed.append(folder)
        shutil.rmtree(folder)
        return True

    log(tmp_path / "runs", "gone"), log(tmp_path / "runs", "kept")
    clock.now = 1_767_225_602.0  # the second after the results end
    watch = Watch(tmp_path, clock, expiry=Expiry(None, 86400, remove))
    gone, kept = (tmp_path / "runs" / name for name in ("gone", "kept"))
    watch.tick()
    for trial in (gone, kept):
        watch.end(trial)
    watch.tick()
    shutil.rmtree(gone)
    watch.tick(7 * 86400.0)
    assert len(removed) == 2
    assert [record.path for record in watch.controller.database.trials()] == [str(kept)]
    watch.tick(7 * 86400.0)
    assert watch.state(kept) == "judged"
    log(watch.runs, "gone")
    watch.tick()
    assert watch.state(gone) == "running"


def marks(watch: Watch, trial: Path) -> list[tuple[bool, object]]:
    with IndexReader(watch.path) as reader:
        return [
            (rule.acknowledged, rule.counted_severity)
            for rule in reader.rules_of(watch.trial(trial).id)
        ]


def test_acknowledgements_are_in_the_index_until_they_expire_and_after_it_is_made_again(
    watch: Watch,
) -> None:
    trial = log(watch.runs)
    watch.tick()
    watch.end(trial, outcome="IssuesFound")
    watch.tick()
    assert marks(watch, trial) == [(False, "error")]
    output = watch.trial(trial).output
    append_acknowledgement(output, said("acknowledged"))
    watch.tick(60.0)
    assert marks(watch, trial) == [(True, "error")]
    append_acknowledgement(output, said("muted", until=datetime.now(UTC).date()))
    watch.controller.refresh_rules_of(watch.trial(trial).id)
    assert marks(watch, trial) == [(False, None)]

    watch.controller.close()
    watch.path.unlink()
    watch.again().rebuild()
    watch.tick()
    assert marks(watch, trial) == [(False, None)]

    path = Path(output) / ACKNOWLEDGEMENTS
    status = path.stat()
    path.write_text(path.read_text().replace(str(datetime.now(UTC).date()), "2000-01-01"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))  # as if only time had passed
    watch.tick(60.0)
    assert marks(watch, trial) == [(False, None)]
    watch.tick(86400.0)
    assert marks(watch, trial) == [(False, "error")]


def test_undelivered_events_are_in_the_index_until_they_are_sent(watch: Watch) -> None:
    trial = log(watch.runs)
    watch.tick()
    watch.end(trial)
    output = Path(watch.trial(trial).output)
    (output / "events.jsonl").write_text("{}\n{}\n")
    cursor = Cursor(output, "webhook")
    cursor.write(0)
    watch.tick()
    assert watch.trial(trial).undelivered == 2
    cursor.write((output / "events.jsonl").stat().st_size)
    watch.tick(60.0)
    assert watch.trial(trial).undelivered == 0


def test_the_outputs_of_removed_trials_are_not_looked_at(watch: Watch) -> None:
    trial = log(watch.runs)
    watch.tick()
    watch.end(trial, outcome="IssuesFound")
    watch.tick()
    record = watch.trial(trial)
    watch.controller.database.update(record.id, removed=True)
    append_acknowledgement(record.output, said("muted"))
    watch.tick(60.0)
    watch.controller.refresh_rules_of(record.id)
    watch.controller.refresh_rules_of(record.id + 1)
    assert marks(watch, trial) == [(False, "error")]


def said(kind: str, **fields: Any) -> Acknowledgement:
    return Acknowledgement(
        kind=AcknowledgementKind(kind),
        who="ann",
        reason="known",
        at=datetime.now(UTC),
        rule="LossSpike",
        **fields,
    )


# -- commands ------------------------------------------------------------------------------------


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


def test_commands_for_trials_that_are_gone_are_left_out(watch: Watch) -> None:
    for action in TrialAction:
        watch.options.commands.send(Command(action, 99))
    watch.tick()
    assert [*watch.options.commands.taken()] == []
