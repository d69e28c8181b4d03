"""What containers came to: exit codes, and unfinished results that are brought to an end."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import reports
import structlog

from rule_runner.config.defaults import RuleMode
from rule_runner.config.request import EvaluationRequest
from rule_runner.containers.results import (
    bring_to_an_end,
    combined,
    compose,
    exit_code,
    parsed,
    show,
    trouble,
)
from rule_runner.containers.supervisor import ContainerExit
from rule_runner.notify.event import EventSubject, RuleState, build_event
from rule_runner.notify.outbox import Outbox, read_events
from rule_runner.results.durable_files import make_folder
from rule_runner.results.json_text import dump_json
from rule_runner.results.output_folder import read_results_file
from rule_runner.results.schema import (
    EvaluationResult,
    RuleJobFacts,
    RuleResult,
    rule_result,
)
from rule_runner.results.state import RuleJobState
from rule_runner.results.status import RuleStatus

BEGAN = datetime(2026, 1, 1, 12, tzinfo=UTC)
OUT_OF_MEMORY = ContainerExit(137, out_of_memory=True)


def result(name: str = "Rule", **changes: Any) -> RuleResult:
    """Return the result of a rule job that has begun."""
    evaluation = RuleJobState(name, name, False, BEGAN)
    facts = RuleJobFacts({}, "/trial", RuleMode.ENFORCE, "print", {})
    begun = rule_result(evaluation, facts, trial_ended=True, duration_s=0.0, rule_time_s=0.0)
    return msgspec.structs.replace(begun, **changes)


def write(folder: Path, *rules: RuleResult) -> Path:
    make_folder(folder)
    reports.write(folder, *rules)
    return folder / "results.json"


@pytest.mark.parametrize(
    ("ending", "begun", "code"),
    [
        pytest.param(ContainerExit(0), True, 0, id="verdict"),
        pytest.param(ContainerExit(10), True, 10, id="issues"),
        pytest.param(ContainerExit(70), False, 70, id="our-bug"),
        pytest.param(ContainerExit(0, signalled=2), True, 0, id="verdict-before-signal"),
        pytest.param(ContainerExit(10, signalled=15), True, 10, id="issues-before-signal"),
        pytest.param(ContainerExit(143, signalled=2), True, 130, id="ctrl-c"),
        pytest.param(ContainerExit(143, signalled=15), True, 143, id="term"),
        pytest.param(ContainerExit(1, signalled=2), False, 130, id="ctrl-c-at-the-start"),
        pytest.param(ContainerExit(signalled=2), False, 130, id="never-started"),
        pytest.param(ContainerExit(137, signalled=2, killed=True), True, 130, id="killed-at-last"),
        pytest.param(ContainerExit(137, killed=True, timed_out=True), True, 124, id="killed-late"),
        pytest.param(ContainerExit(143, timed_out=True), True, 124, id="stopped-late"),
        pytest.param(ContainerExit(0, timed_out=True), True, 0, id="verdict-late"),
        pytest.param(OUT_OF_MEMORY, True, 1, id="out-of-memory"),
        pytest.param(ContainerExit(137), True, 1, id="killed-by-others"),
        pytest.param(ContainerExit(127), False, 1, id="no-rule-runner"),
        pytest.param(ContainerExit(lost="gone"), True, 1, id="lost"),
    ],
)
def test_exit_codes(ending: ContainerExit, begun: bool, code: int) -> None:
    assert exit_code(ending, has_results=begun) == code


@pytest.mark.parametrize(
    ("codes", "code"),
    [
        ([], 0),
        ([0, 0], 0),
        ([0, 10], 10),
        ([10, 1], 1),
        ([1, 124], 124),
        ([124, 130], 130),
        ([143, 73], 73),
        ([73, 70], 70),
        ([70, 2], 2),
        ([0, 99], 99),
    ],
)
def test_the_worst_code_of_several_containers_counts(codes: list[int], code: int) -> None:
    assert combined(codes) == code


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        pytest.param(ContainerExit(0), "", id="ended"),
        pytest.param(ContainerExit(0, out_of_memory=True), "", id="a-child-without-consequence"),
        pytest.param(
            OUT_OF_MEMORY,
            "The container needed more memory than --memory 4g. Increase it.",
            id="out-of-memory",
        ),
        pytest.param(
            ContainerExit(137),
            "The container was killed, probably because it needed more memory than "
            "--memory 4g. Increase it.",
            id="killed-by-others",
        ),
        pytest.param(
            ContainerExit(137, signalled=2, killed=True),
            "The container was killed after a signal, because it had not stopped by itself.",
            id="killed",
        ),
        pytest.param(
            ContainerExit(137, timed_out=True, killed=True),
            "The container was killed after its time limit, because it had not stopped by itself.",
            id="late",
        ),
        pytest.param(
            ContainerExit(127),
            "The image does not contain rule-runner. Choose another image: --image.",
            id="image",
        ),
    ],
)
def test_what_is_reported(ending: ContainerExit, said: str) -> None:
    assert trouble(ending, "4g") == said


def test_an_unfinished_result_ends_with_an_error(tmp_path: Path) -> None:
    write(tmp_path, result())
    (found,) = bring_to_an_end(tmp_path, OUT_OF_MEMORY, "It needed more.", BEGAN)
    assert (found.status, found.outcome) == ("Error", "Error")
    assert found.status_details == "ClientError: It needed more."
    assert found.ended_at is not None
    assert read_results_file(tmp_path).rules == [found]
    assert read_results_file(tmp_path).ended_at == found.ended_at


def test_an_unfinished_result_of_a_killed_container_is_stopped(tmp_path: Path) -> None:
    write(tmp_path, result("a"), result("b"))
    ending = ContainerExit(137, signalled=2, killed=True)
    found = bring_to_an_end(tmp_path, ending, "It was killed.", BEGAN)
    assert [(one.rule, one.status, one.status_details) for one in found] == [
        ("a", "Stopped", "It was killed."),
        ("b", "Stopped", "It was killed."),
    ]


def test_the_outbox_records_how_a_killed_container_ended(tmp_path: Path) -> None:
    prefix = "arn:aws:sagemaker:eu-west-1:111122223333"
    arns = {"a": f"{prefix}:processing-job/mine-a"}
    job = EventSubject.in_sagemaker("mnist", BEGAN, "mine", f"{prefix}:training-job/mnist", arns)
    begun = [RuleState(name, RuleStatus.IN_PROGRESS) for name in ("a", "b", "lost")]
    event = build_event(job, begun, training_ended=True, now=BEGAN, sequence=4)
    write(tmp_path, result("a"), result("b"))
    with Outbox(tmp_path) as outbox:
        outbox.publish(event)
    bring_to_an_end(tmp_path, OUT_OF_MEMORY, "It needed more.", BEGAN)
    (_, before), (_, last) = read_events(tmp_path / "events.jsonl")
    assert before == event
    assert {one: last[one] for one in ("source", "region", "account", "resources")} == {
        one: event[one] for one in ("source", "region", "account", "resources")
    }
    detail: Any = last["detail"]
    assert (detail["EventSequence"], detail["ChangedRules"]) == (5, ["a", "b"])
    assert (detail["TrainingJobStatus"], detail["CreationTime"]) == (
        "Completed",
        round(BEGAN.timestamp() * 1000),
    )
    states = detail["DebugRuleEvaluationStatuses"]
    assert states[0]["RuleEvaluationJobArn"] == arns["a"]
    assert [(one["RuleConfigurationName"], one["RuleEvaluationStatus"]) for one in states] == [
        ("a", "Error"),
        ("b", "Error"),
        ("lost", "InProgress"),
    ]
    assert states[0]["StatusDetails"] == "ClientError: It needed more."


def test_nobody_hears_of_the_end_who_did_not_hear_of_the_beginning(tmp_path: Path) -> None:
    write(tmp_path, result())
    bring_to_an_end(tmp_path, OUT_OF_MEMORY, "It needed more.", BEGAN)
    assert not (tmp_path / "events.jsonl").exists()


def test_an_outbox_that_cannot_be_written_costs_no_result(tmp_path: Path) -> None:
    write(tmp_path, result())
    (tmp_path / "events.jsonl").mkdir()
    with structlog.testing.capture_logs() as logs:
        (found,) = bring_to_an_end(tmp_path, OUT_OF_MEMORY, "It needed more.", BEGAN)
    assert (found.status, [one["event"] for one in logs]) == ("Error", ["result_not_written"])


def test_a_verdict_that_was_reached_stays(tmp_path: Path) -> None:
    write(tmp_path, result(status="IssuesFound", outcome="IssuesFound", step=3))
    (found,) = bring_to_an_end(tmp_path, OUT_OF_MEMORY, "It needed more.", BEGAN)
    assert (found.status, found.step, found.notes) == ("IssuesFound", 3, ["It needed more."])


@pytest.mark.parametrize("why", ["", "It needed more."])
def test_ended_results_stay_as_they_are(tmp_path: Path, why: str) -> None:
    content = result(status="NoIssuesFound", ended_at="2026-01-01T13:00:00.000Z")
    path = write(tmp_path, content)
    before = path.read_bytes()
    assert bring_to_an_end(tmp_path, OUT_OF_MEMORY, why, BEGAN) == [content]
    assert path.read_bytes() == before


def test_results_of_others_are_left_alone(tmp_path: Path) -> None:
    write(tmp_path / "old", result(started_at="2025-12-31T00:00:00.000Z"))
    write(tmp_path / "broken", result()).write_text("{", encoding="utf-8")
    for name in ("old", "broken", "missing"):
        assert bring_to_an_end(tmp_path / name, OUT_OF_MEMORY, "It needed more.", BEGAN) == []


def test_results_that_containers_printed_are_put_together() -> None:
    part = compose("/runs/t", [], [result("a")])
    printed = {"a": dump_json(part).encode(), "b": b"", "c": b"no JSON"}
    assert parsed(printed) == {"a": part}
    whole = compose("elsewhere", [part], [result("a"), result("b")])
    rules = [result("a"), result("b")]
    assert whole == EvaluationResult(summary="2 InProgress", trial=part.trial, rules=rules)


def test_of_a_trial_that_no_container_told_of_the_coverage_is_known() -> None:
    summary = compose("/runs/t", [], [result("a")]).trial
    assert (summary.name, summary.ended, summary.steps, summary.first_step) == ("t", True, 0, None)


@pytest.mark.parametrize(
    ("form", "begins"),
    [
        ("table", "Rule: InProgress"),
        ("json", '{\n  "schema_version": 1'),
        ("junit", "<?xml"),
    ],
)
def test_results_are_printed_in_the_form_asked_for(
    form: Any, begins: str, capsys: pytest.CaptureFixture[str]
) -> None:
    show(
        compose("/t", [], [result()]),
        EvaluationRequest(format=form),
        Path("/out"),
        Path("/out/report.html"),
    )
    printed = capsys.readouterr().out
    assert printed.startswith(begins)
    if form == "json":
        assert [rule["rule"] for rule in json.loads(printed)["rules"]] == ["Rule"]
    if form == "table":
        assert printed.endswith("Results: /out\nReport: /out/report.html\n")
