"""EventBridge: what arrives, field by field; requests within the limits; only what failed again."""

import json
from datetime import UTC, datetime
from typing import Any

import aws_server
import evaluating
import http_places
import pytest
from http_places import Answer, EventBus
from hypothesis import given
from hypothesis import strategies as st
from told import JOB, many, told

from rule_core.storage import aws
from rule_runner.notify.event import EventSubject, RuleState
from rule_runner.notify.sinks import Refused, Sent, SinkError, eventbridge
from rule_runner.notify.sinks.eventbridge import EventBridgeSink
from rule_runner.results.status import RuleStatus


@pytest.fixture(autouse=True)
def _quiet() -> None:
    evaluating.log_nothing()


@pytest.fixture
def bus(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return our stand-in for EventBridge, which clients of AWS find."""
    found = EventBus()
    for name, value in aws_server.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with http_places.serving(found.answer) as place:
        monkeypatch.setenv("AWS_ENDPOINT_URL", place.url)
        yield found


def sequences(entries: list[dict[str, Any]]) -> list[int]:
    return [json.loads(entry["Detail"])["EventSequence"] for entry in entries]


def test_what_arrives_field_by_field(bus: EventBus) -> None:
    event = told()
    assert EventBridgeSink("my-bus").send([event]) == Sent(1)
    ((entry,),) = bus.requests
    detail = json.loads(entry.pop("Detail"))
    arn = "arn:aws:sagemaker:us-east-1:000000000000:"
    assert entry == {
        "Time": datetime(2026, 3, 1, 12, 1, 30, tzinfo=UTC).timestamp(),
        "Source": "rule-runner",
        "Resources": [f"{arn}training-job/mnist-42"],
        "DetailType": "SageMaker Training Job State Change",
        "EventBusName": "my-bus",
    }
    key = detail.pop("EventKey")
    assert detail.pop("RunId") == ""
    assert detail == {
        "TrainingJobName": "mnist-42",
        "TrainingJobArn": f"{arn}training-job/mnist-42",
        "TrainingJobStatus": "InProgress",
        "SecondaryStatus": "Training",
        "CreationTime": 1772366400000,
        "LastModifiedTime": 1772366490000,
        "DebugRuleEvaluationStatuses": [
            {
                "RuleConfigurationName": "LossCheck",
                "RuleEvaluationJobArn": JOB.rule_job_arn("LossCheck"),
                "RuleEvaluationStatus": "IssuesFound",
                "RuleEvaluationMode": "enforce",
                "StepsEvaluated": 51,
                "LastStep": 500,
                "EvaluationLagSeconds": 1.25,
                "StatusDetails": "RuleEvaluationConditionMet: Evaluation of the rule "
                "LossNotDecreasing at step 500 resulted in the condition being met\n",
                "LastModifiedTime": 1772366490000,
            },
            {
                "RuleConfigurationName": "Overfit",
                "RuleEvaluationJobArn": JOB.rule_job_arn("Overfit"),
                "RuleEvaluationStatus": "InProgress",
                "RuleEvaluationMode": "enforce",
                "StepsEvaluated": 0,
                "EvaluationLagSeconds": 0.0,
                "LastModifiedTime": 1772366490000,
            },
        ],
        "ProfilerRuleEvaluationStatuses": [],
        "ChangedRules": ["LossCheck"],
        "EventSequence": 3,
    }
    assert len(key) == 64
    assert set(key) <= set("0123456789abcdef")


def test_the_default_bus_is_not_named(bus: EventBus) -> None:
    EventBridgeSink().send([told()])
    assert "EventBusName" not in bus.taken[0]


def test_at_most_ten_events_go_together_and_in_order(bus: EventBus) -> None:
    events = many(25)
    sink, at = EventBridgeSink(), 0
    while at < len(events):
        at += sink.send(events[at:]).done
    assert [len(entries) for entries in bus.requests] == [10, 10, 5]
    assert sequences(bus.taken) == list(range(1, 26))


def test_only_failed_entries_are_sent_again(bus: EventBus) -> None:
    failing = {3: "ThrottlingException", 5: "InternalFailure"}
    bus.code = lambda entry: failing.get(sequences([entry])[0])
    events, sink = many(6), EventBridgeSink()
    assert sink.send(events) == Sent(2, failure="ThrottlingException: As the test says")
    with pytest.raises(SinkError, match=r"^ThrottlingException: As the test says$") as found:
        sink.send(events[2:])
    assert found.value.transient
    failing.clear()
    assert sink.send(events[2:]) == Sent(4)
    assert [sequences(one) for one in bus.requests] == [[1, 2, 3, 4, 5, 6], [3, 5], [3, 5]]
    assert sequences(bus.taken) == [1, 2, 4, 6, 3, 5]


@pytest.mark.parametrize("code", sorted(eventbridge.REFUSALS))
def test_an_entry_that_is_refused_holds_up_nothing(bus: EventBus, code: str) -> None:
    bus.code = lambda entry: code if sequences([entry]) == [2] else None
    events = many(3)
    refused = Refused(events[1]["id"], f"{code}: As the test says")
    sink = EventBridgeSink()
    assert sink.send(events) == Sent(3, (refused,))
    assert sink.send(many(4)[3:]) == Sent(1)
    assert sequences(bus.taken) == [1, 3, 4]


@pytest.mark.parametrize("code", sorted(eventbridge.INVALID))
def test_an_entry_that_spoils_its_request_holds_up_nothing(
    bus: EventBus, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    def answer(request: http_places.Request) -> http_places.Answer:
        if 2 in sequences(json.loads(request.body)["Entries"]):
            body = json.dumps({"__type": code, "message": "No"}).encode()
            headers = {"Content-Type": "application/x-amz-json-1.1"}
            return http_places.Answer(400, body, headers)
        return bus.answer(request)

    events = many(3)
    with http_places.serving(answer) as place:
        monkeypatch.setenv("AWS_ENDPOINT_URL", place.url)
        sent = EventBridgeSink().send(events)
    assert sent == Sent(3, (Refused(events[1]["id"], f"{code}: No"),))
    assert sequences(bus.taken) == [1, 3]


def test_a_request_that_fails_is_a_sentence_without_the_endpoints_path(
    bus: EventBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    del bus
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1/secret")
    with pytest.raises(SinkError, match=r"127\.0\.0\.1:1") as found:
        EventBridgeSink().send([told()])
    assert (found.value.transient, "secret" in str(found.value)) == (True, False)


@pytest.mark.parametrize(
    ("code", "status", "transient"),
    [("AccessDeniedException", 400, False), ("ThrottlingException", 400, True), ("x", 503, True)],
)
def test_an_answer_for_all_is_a_failure_of_all(
    bus: EventBus, monkeypatch: pytest.MonkeyPatch, code: str, status: int, transient: bool
) -> None:
    del bus
    body = json.dumps({"__type": code, "message": "No."}).encode()
    with http_places.serving(lambda _: Answer(status, body)) as place:
        monkeypatch.setenv("AWS_ENDPOINT_URL", place.url)
        with pytest.raises(SinkError, match=f"^{code}: No$") as found:
            EventBridgeSink().send([told()])
    assert found.value.transient == transient


def test_without_credentials_the_remedy_is_reported(
    bus: EventBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    del bus
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    with pytest.raises(SinkError, match=r"no AWS credentials were found\. Set AWS_PROFILE"):
        EventBridgeSink().send([told()])


# --- sizes


def test_a_large_event_is_shortened_in_the_order_of_the_specification(bus: EventBus) -> None:
    event = told()
    event["detail"] |= {
        "HyperParameters": {"a": "x" * 200_000},
        "InputDataConfig": ["x" * 300_000],
        "Tags": {"a": "b"},
    }
    assert EventBridgeSink().send([event]) == Sent(1)
    detail = json.loads(bus.taken[0]["Detail"])
    assert detail.pop("Truncated") is True
    assert detail == {
        name: value
        for name, value in event["detail"].items()
        if name not in {"HyperParameters", "InputDataConfig"}
    } | {"Tags": {"a": "b"}}
    assert "HyperParameters" in event["detail"]


def test_details_are_cut_when_nothing_else_is_left_to_drop(bus: EventBus) -> None:
    details = "ClientError: " + "é" * 1000
    rules = [RuleState(f"rule-{at}", RuleStatus.ERROR, details) for at in range(150)]
    event = told(*rules, changed=[])
    assert EventBridgeSink().send([event]) == Sent(1)
    detail = json.loads(bus.taken[0]["Detail"])
    assert detail["Truncated"] is True
    found = {rule["StatusDetails"] for rule in detail["DebugRuleEvaluationStatuses"]}
    assert found == {details[:256]}


def test_an_event_that_stays_too_large_is_refused_and_holds_up_nothing(bus: EventBus) -> None:
    rules = [RuleState(f"rule-{at}", RuleStatus.IN_PROGRESS) for at in range(2000)]
    huge, small = told(*rules, changed=[]), told()
    refused = Refused(huge["id"], "TooLarge: the event has more than 256 KiB even when shortened")
    assert EventBridgeSink().send([huge, small]) == Sent(2, (refused,))
    assert sequences(bus.taken) == [3]
    assert EventBridgeSink().send([huge]) == Sent(1, (refused,))
    assert len(bus.requests) == 1


def counted(entry: dict[str, Any]) -> int:
    """Return the size of an entry by the formula of the service's documentation."""
    size = 14
    for text in [entry["Source"], entry["DetailType"], entry["Detail"], *entry["Resources"]]:
        size += len(text.encode("utf-8"))
    return size


@given(st.lists(st.integers(0, 300_000), min_size=1, max_size=14))
def test_every_request_is_within_the_limits(fillings: list[int]) -> None:
    events = many(len(fillings))
    for event, filling in zip(events, fillings, strict=True):
        event["detail"]["Filling"] = "é" * (filling // 2)
    requests: list[list[dict[str, Any]]] = []

    class Client:
        def put_events(self, Entries: list[dict[str, Any]]) -> Any:
            requests.append(Entries)
            return {"Entries": [{"EventId": "x"} for _ in Entries]}

    sink = EventBridgeSink()
    sink.__dict__["client"] = Client()
    at, refused = 0, []
    while at < len(events):
        sent = sink.send(events[at:])
        assert (sent.failure, sent.done > 0) == ("", True)
        refused += [one.event_id for one in sent.refused]
        at += sent.done
    for entries in requests:
        assert 1 <= len(entries) <= 10
        assert sum(map(counted, entries)) < 256 * 1024
    taken = [sequence for entries in requests for sequence in sequences(entries)]
    lost = [event["detail"]["EventSequence"] for event in events if event["id"] in refused]
    assert sorted(taken + lost) == list(range(1, len(events) + 1))
    assert taken == sorted(taken)


# --- a real bus, as far as moto goes


def test_moto_takes_the_events_and_archives_them(aws_endpoint: str) -> None:
    del aws_endpoint
    client = aws.client("events")
    arn = client.create_event_bus(Name="my-bus")["EventBusArn"]
    pattern = json.dumps({"source": ["rule-runner"]})
    client.create_archive(ArchiveName="all", EventSourceArn=arn, EventPattern=pattern)
    assert EventBridgeSink("my-bus").send(many(3)) == Sent(3)
    assert EventBridgeSink(arn).send([told(job=EventSubject("m", JOB.started_at, "io.x"))]) == Sent(
        1
    )
    assert client.describe_archive(ArchiveName="all")["EventCount"] == 3
