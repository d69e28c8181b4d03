"""Events: the shape on the wire, one golden event per status, keys that tell news apart."""

import json
import os
import re
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rule_core.severity import Severity
from rule_runner.errors import UsageError
from rule_runner.notify.event import DecodedEvent, EventSubject, RuleState, build_event, statuses
from rule_runner.results.json_text import dump_json
from rule_runner.results.status import CLIENT_ERROR, RuleStatus, condition_text

GOLDEN = Path(__file__).parents[3] / "golden" / "events"
START = datetime(2026, 3, 1, 12, tzinfo=UTC)
NOW = START + timedelta(seconds=90, milliseconds=7)
JOB = EventSubject("mnist-42", START)
RUN = "0123456789abcdef0123456789abcdef"
JOB_ARN = re.compile(r"arn:aws[a-z\-]*:sagemaker:[a-z0-9\-]*:[0-9]{12}:processing-job/(.*)")
JOB_NAME = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")
DETAILS = {
    RuleStatus.ISSUES_FOUND: condition_text("LossNotDecreasing", 500),
    RuleStatus.ERROR: f"{CLIENT_ERROR}Rule 'MyRule' raised KeyError at step 40: 'conv1'.",
    RuleStatus.STOPPED: "Stopped by SIGTERM.",
}


def event(
    *rules: RuleState, job: EventSubject = JOB, ended: bool = False, run_id: str = RUN
) -> dict[str, Any]:
    return build_event(job, rules, training_ended=ended, now=NOW, sequence=3, run_id=run_id)


def key(*rules: RuleState, job: EventSubject = JOB, ended: bool = False, run_id: str = RUN) -> str:
    return str(event(*rules, job=job, ended=ended, run_id=run_id)["detail"]["EventKey"])


@pytest.mark.parametrize("status", list(RuleStatus), ids=str)
def test_golden_event(status: RuleStatus) -> None:
    """Set UPDATE_GOLDEN=1 to rewrite the expected events."""
    actual = event(
        RuleState("LossCheck", status, DETAILS.get(status)),
        RuleState("Overfit", RuleStatus.IN_PROGRESS),
        ended=status is RuleStatus.NO_ISSUES_FOUND,
    )
    path = GOLDEN / f"{status}.json"
    if os.environ.get("UPDATE_GOLDEN") == "1":
        path.write_text(dump_json(actual, indent=2) + "\n")
    assert json.loads(path.read_text()) == actual


def test_details_are_for_three_statuses_only() -> None:
    for status in RuleStatus:
        entry = event(RuleState("a", status, "Text.\n"))["detail"]["DebugRuleEvaluationStatuses"][0]
        assert entry.get("StatusDetails") == ("Text.\n" if status in DETAILS else None)


def test_the_key_is_that_of_evaluation_names_and_statuses() -> None:
    met = RuleState("a", RuleStatus.ISSUES_FOUND, "x")
    going = RuleState("b", RuleStatus.IN_PROGRESS)
    assert key(met, going) == key(RuleState("a", RuleStatus.ISSUES_FOUND, "y"), going)
    others = [
        key(going, met),
        key(met),
        key(met, going, ended=True),
        key(met, RuleState("b", RuleStatus.STOPPING)),
        key(met, RuleState("c", RuleStatus.IN_PROGRESS)),
        key(met, going, job=EventSubject("other", START)),
        key(met, going, run_id="another"),
    ]
    assert len({key(met, going), *others}) == 8


def test_an_event_has_the_severity_of_issues() -> None:
    old = RuleState("a", RuleStatus.ISSUES_FOUND, "x")
    serious, mild = replace(old, severity=Severity.ERROR), replace(old, severity=Severity.WARNING)
    assert key(old) == key(serious) != key(mild)
    sent = event(mild, old)
    entries = statuses(sent["detail"])
    assert [entry.get("RuleEvaluationSeverity") for entry in entries] == ["warning", None]
    decoded = msgspec.json.decode(json.dumps(sent), type=DecodedEvent)
    assert [state.severity for state in decoded.detail.states()] == ["warning", None]


def test_the_id_is_a_uuid_of_the_key() -> None:
    first, second = event(), event()
    assert uuid.uuid5(uuid.NAMESPACE_OID, key()) == uuid.UUID(first["id"])
    assert first == second


@pytest.mark.parametrize(
    ("training_job", "configuration", "name"),
    [
        ("mnist-42", "LossCheck", "mnist-42-losscheck-"),
        ("final-training-2025-01-22-15-01", "ProfilerReport", "final-training-2025-01-22--pro"),
        ("Läuft / nicht", "../x", "l-uft---nicht-x-"),
        ("\ud800", "", "unnamed-unnamed-"),
        ("x" * 300, "y" * 300, "x" * 26 + "-" + "y" * 26 + "-"),
    ],
)
def test_any_name_makes_an_arn_that_the_api_takes(
    training_job: str, configuration: str, name: str
) -> None:
    job = EventSubject(training_job, START)
    match = JOB_ARN.fullmatch(job.rule_job_arn(configuration))
    assert match
    assert JOB_NAME.fullmatch(match[1])
    assert match[1].startswith(name)
    assert re.search("-[0-9a-f]{8}$", match[1])
    assert len(match[1]) <= 62
    assert JOB_NAME.fullmatch(job.arn.rpartition("/")[2])


def test_names_that_look_alike_in_arns_have_different_arns() -> None:
    assert JOB.rule_job_arn("a b") != JOB.rule_job_arn("a-b")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"source": "aws.sagemaker"}, "must not .* begin with 'aws.', got 'aws.sagemaker'"),
        ({"source": "AWS.x"}, "got 'AWS.x'. That prefix is reserved for AWS services"),
        ({"source": ""}, "must not be empty"),
    ],
)
def test_what_cannot_stand_in_an_event_is_refused(settings: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        EventSubject("mnist-42", START, **settings)


def test_settings_go_into_the_event() -> None:
    job = EventSubject("m", START, source="io.example", region="eu-west-1", account="111122223333")
    actual = event(job=job)
    assert actual["source"] == "io.example"
    assert actual["resources"] == ["arn:aws:sagemaker:eu-west-1:111122223333:training-job/m"]


def test_times_are_milliseconds() -> None:
    detail = event(RuleState("a", RuleStatus.IN_PROGRESS))["detail"]
    assert detail["CreationTime"] == 1772366400000
    assert detail["LastModifiedTime"] == 1772366490007
    assert detail["DebugRuleEvaluationStatuses"][0]["LastModifiedTime"] == 1772366490007
