"""What the index says of trials and of their results."""

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import structlog
from watched import Watch, log, result, save

from rule_runner.errors import OutputError
from rule_runner.index.commands import Command, TrialAction
from rule_runner.index.outputs import SavedOutput, read_output
from rule_runner.index.reader import IndexReader
from rule_runner.results.acknowledgements import (
    ACKNOWLEDGEMENTS,
    Acknowledgement,
    AcknowledgementKind,
    append_acknowledgement,
)
from rule_runner.results.cursors import Cursor
from rule_runner.results.file_names import RESULTS
from rule_runner.watch import recorder

OLD = Path(__file__).parents[3] / "data" / "outputs-0.1.0"


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

    monkeypatch.setattr(recorder, "read_output", counted)

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

    monkeypatch.setattr(recorder, "read_output", failing_once)
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


def test_an_index_is_made_again_from_the_results_alone(watch: Watch) -> None:
    trial = log(watch.runs)
    watch.tick()
    watch.end(trial, outcome="IssuesFound")
    watch.tick()
    watch.controller.database.close()
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
    watch.controller.database.close()
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
    refresh(watch, watch.trial(trial).id)
    assert marks(watch, trial) == [(False, None)]

    watch.controller.database.close()
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


def test_issues_that_an_earlier_version_recorded_are_read_again(watch: Watch) -> None:
    trial = log(watch.runs)
    watch.tick()
    watch.end(trial, outcome="IssuesFound")
    watch.tick()
    watch.controller.database.execute("UPDATE rule_jobs SET root = NULL")
    watch.tick(60.0)
    (rule,) = watch.controller.database.rules_of(watch.trial(trial).id)
    assert rule.root == "LossSpike"


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
    refresh(watch, record.id)
    refresh(watch, record.id + 1)
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


def refresh(watch: Watch, number: int) -> None:
    watch.options.commands.send(Command(TrialAction.REFRESH, number))
    watch.tick(0.0)
