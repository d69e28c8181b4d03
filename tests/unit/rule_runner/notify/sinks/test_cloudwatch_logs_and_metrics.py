"""CloudWatch: metrics and logs as a server that speaks its protocols read them."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import evaluating
import pytest
from hypothesis import given
from hypothesis import strategies as st
from told import told

from rule_core.storage import aws
from rule_runner.notify.event import EventSubject, RuleState
from rule_runner.notify.sinks import Refused, Sent, SinkError, cloudwatch_logs, cloudwatch_metrics
from rule_runner.notify.sinks.cloudwatch_logs import (
    CloudWatchLogsSink,
    LogLine,
    log_batches,
    stream_name,
)
from rule_runner.notify.sinks.cloudwatch_metrics import CloudWatchMetricsSink, requests
from rule_runner.results.status import RuleStatus

NOW = datetime.now(UTC).replace(microsecond=0)  # the service takes no old ones
JOB = EventSubject("mnist-42", NOW)
MET = RuleState(
    "Loss:Check",
    RuleStatus.ISSUES_FOUND,
    "met\n",
    steps_evaluated=51,
    last_step=500,
    lag_s=1.25,
)
GOING = RuleState("Overfit", RuleStatus.IN_PROGRESS)


def event(**more: Any) -> dict[str, Any]:
    return told(MET, GOING, job=JOB, changed=more.pop("changed", ["Loss:Check"]), **more)


@pytest.fixture(autouse=True)
def _quiet() -> None:
    evaluating.log_nothing()


# --- metrics


def statistics(client: Any, namespace: str, rule: str) -> dict[str, float]:
    """Return the sum of every metric of a rule."""
    found = {}
    dimensions = [{"Name": "Run", "Value": "mnist-42"}, {"Name": "Rule", "Value": rule}]
    for metric in client.list_metrics(Namespace=namespace, Dimensions=dimensions)["Metrics"]:
        assert metric["Dimensions"] == dimensions
        answer = client.get_metric_statistics(
            Namespace=namespace,
            MetricName=metric["MetricName"],
            Dimensions=dimensions,
            StartTime=NOW - timedelta(minutes=5),
            EndTime=NOW + timedelta(minutes=5),
            Period=3600,
            Statistics=["Sum"],
        )
        found[metric["MetricName"]] = answer["Datapoints"][0]["Sum"]
    return found


@pytest.mark.usefixtures("aws_endpoint")
def test_metrics_are_what_the_event_says() -> None:
    assert CloudWatchMetricsSink().send([event()]) == Sent(1)
    client = aws.client("cloudwatch")
    assert statistics(client, "RuleRunner/Rules", "Loss:Check") == {
        "IssuesFound": 1,
        "StepsEvaluated": 51,
        "LastStep": 500,
        "EvaluationLagSeconds": 1.25,
        "EvaluatorErrors": 0,
    }
    assert statistics(client, "RuleRunner/Rules", "Overfit") == {
        "IssuesFound": 0,
        "StepsEvaluated": 0,
        "EvaluationLagSeconds": 0,
        "EvaluatorErrors": 0,
    }


@pytest.mark.usefixtures("aws_endpoint")
def test_metrics_of_hundreds_of_rules_take_several_requests() -> None:
    rules = [RuleState(f"rule-{at}", RuleStatus.ERROR, "x") for at in range(301)]
    sink, sent = CloudWatchMetricsSink("Mine"), []
    put = sink.client.put_metric_data

    def counting(**given_: Any) -> Any:
        sent.append(len(given_["MetricData"]))
        return put(**given_)

    sink.client.put_metric_data = counting
    assert sink.send([told(*rules, job=JOB)]) == Sent(1)
    assert (sum(sent), max(sent) <= 1000, len(sent) > 1) == (1204, True, True)
    client = aws.client("cloudwatch")
    assert statistics(client, "Mine", "rule-300")["EvaluatorErrors"] == 1


@given(st.lists(st.text(max_size=1024), min_size=1, max_size=40), st.integers(1, 40))
def test_requests_of_metrics_are_within_the_limits(names: list[str], times: int) -> None:
    data = [
        {"MetricName": "LastStep", "Dimensions": [{"Name": "Rule", "Value": name}]}
        for name in names * times
    ]
    sizes = {name: len(quote(name)) + 500 for name in names}
    found = list(requests(data))
    assert [datum for part in found for datum in part] == data
    for part in found:
        assert 1 <= len(part) <= 1000
        assert sum(sizes[one["Dimensions"][0]["Value"]] for one in part) <= 1_000_000


def failing(code: str, status: int = 400) -> Any:
    """Return what a client of AWS raises for an answer."""

    def fail(**_: object) -> None:
        response = {
            "Error": {"Code": code, "Message": "No."},
            "ResponseMetadata": {"HTTPStatusCode": status},
        }
        (*_, error) = [one for one in aws.errors() if one.__name__ == "ClientError"]
        raise error(response, "Call")

    return fail


class Client:
    """Follows a script."""

    def __init__(self, **calls: Any) -> None:
        self.__dict__.update(calls)


def test_a_metric_that_is_too_old_is_refused_and_holds_up_nothing() -> None:
    sink = CloudWatchMetricsSink()
    sink.__dict__["client"] = Client(put_metric_data=failing("InvalidParameterValue"))
    one = event()
    assert sink.send([one]) == Sent(1, (Refused(one["id"], "InvalidParameterValue: No"),))


@pytest.mark.parametrize(("code", "transient"), [("AccessDenied", False), ("Throttling", True)])
def test_metrics_that_cannot_be_put_are_kept(code: str, transient: bool) -> None:
    sink = CloudWatchMetricsSink()
    sink.__dict__["client"] = Client(put_metric_data=failing(code))
    with pytest.raises(SinkError, match=f"{code}: No") as found:
        sink.send([event()])
    assert found.value.transient == transient


# --- logs


def logged(group: str = cloudwatch_logs.GROUP) -> dict[str, list[Any]]:
    """Return what is in each stream: times and messages."""
    client = aws.client("logs")
    names = client.describe_log_streams(logGroupName=group)["logStreams"]
    found = {}
    for name in (one["logStreamName"] for one in names):
        lines = client.get_log_events(logGroupName=group, logStreamName=name)["events"]
        found[name] = [(one["timestamp"], json.loads(one["message"])) for one in lines]
    return found


@pytest.mark.usefixtures("aws_endpoint")
def test_each_rule_has_a_stream_of_its_changes() -> None:
    first = event(sequence=1, changed=["Loss:Check", "Overfit"], after_s=1)
    second = event(sequence=2, after_s=2, ended=True)
    sink = CloudWatchLogsSink()
    assert sink.send([first]) == Sent(1)
    assert sink.send([second]) == Sent(1)
    epoch, began = int(NOW.timestamp()), round(NOW.timestamp() * 1000)
    found = logged()
    assert sorted(found) == [f"mnist-42/Loss-Check/{epoch}", f"mnist-42/Overfit/{epoch}"]
    lines = found[f"mnist-42/Loss-Check/{epoch}"]
    assert [at for at, _ in lines] == [began + 1000, began + 2000]
    detail = second["detail"]
    assert lines[1][1] == {
        "TrainingJobName": "mnist-42",
        "TrainingJobStatus": "Completed",
        "RunId": "",
        "EventSequence": 2,
        "EventKey": detail["EventKey"],
        **detail["DebugRuleEvaluationStatuses"][0],
    }
    assert len(found[f"mnist-42/Overfit/{epoch}"]) == 1


@pytest.mark.usefixtures("aws_endpoint")
def test_a_group_that_is_there_is_used() -> None:
    aws.client("logs").create_log_group(logGroupName="mine")
    CloudWatchLogsSink("mine").send([event()])
    CloudWatchLogsSink("mine").send([event()])
    (lines,) = logged("mine").values()
    assert len(lines) == 2


def test_lines_that_are_rejected_are_refused() -> None:
    events = [event(sequence=at, after_s=at) for at in range(4)]
    answer = {"rejectedLogEventsInfo": {"tooOldLogEventEndIndex": 1, "tooNewLogEventStartIndex": 3}}
    sink = CloudWatchLogsSink()
    sink.__dict__["client"] = Client(put_log_events=lambda **_: answer)
    for at, one in enumerate(events):
        one["id"] = str(at)
    assert sink.send(events) == Sent(4, (Refused("0", "too old"), Refused("3", "too new")))


def test_a_batch_that_is_invalid_is_refused() -> None:
    sink = CloudWatchLogsSink()
    sink.__dict__["client"] = Client(put_log_events=failing("InvalidParameterException"))
    one = event()
    assert sink.send([one]) == Sent(1, (Refused(one["id"], "InvalidParameterException: No"),))


def test_a_line_that_is_invalid_costs_no_other_line_of_its_batch() -> None:
    events = [event(sequence=at, after_s=at) for at in range(3)]
    for at, one in enumerate(events):
        one["id"] = str(at)
    put: list[int] = []

    def only_valid(**given: Any) -> Any:
        sequences = [json.loads(one["message"])["EventSequence"] for one in given["logEvents"]]
        if 1 in sequences:
            failing("InvalidParameterException")()
        put.extend(sequences)
        return {}

    sink = CloudWatchLogsSink()
    sink.__dict__["client"] = Client(put_log_events=only_valid)
    assert sink.send(events) == Sent(3, (Refused("1", "InvalidParameterException: No"),))
    assert put == [0, 2]


def test_streams_that_were_written_are_not_written_again() -> None:
    one = event(changed=["Loss:Check", "Overfit"])
    puts: list[str] = []
    broken = [True]

    def put(**given_: Any) -> Any:
        if "Overfit" in given_["logStreamName"] and broken:
            failing("ThrottlingException")()
        puts.append(given_["logStreamName"].split("/")[1])
        return {}

    sink = CloudWatchLogsSink()
    sink.__dict__["client"] = Client(put_log_events=put)
    with pytest.raises(SinkError, match="ThrottlingException"):
        sink.send([one])
    broken.clear()
    assert sink.send([one]) == Sent(1)
    assert puts == ["Loss-Check", "Overfit"]


@given(
    st.lists(
        st.tuples(st.integers(0, 5 * 24 * 3600 * 1000), st.integers(0, 400_000)),
        min_size=1,
        max_size=20,
    ).map(sorted)
)
def test_batches_of_lines_are_within_the_limits(lines: list[tuple[int, int]]) -> None:
    given_ = [LogLine(at, "é" * (size // 2), "") for at, size in lines]
    found = list(log_batches(given_))
    assert [line for batch in found for line in batch] == given_
    for batch in found:
        assert sum(26 + len(line.message.encode()) for line in batch) <= 1_048_576
        assert batch[-1].at_ms - batch[0].at_ms <= 24 * 3600 * 1000


def test_batches_have_at_most_10000_lines() -> None:
    assert [len(one) for one in log_batches([LogLine(0, "", "")] * 20_001)] == [10_000, 10_000, 1]


@given(st.text(max_size=600), st.text(max_size=600))
def test_a_stream_has_a_name_that_the_service_takes(run: str, rule: str) -> None:
    name = stream_name(run, rule, 1772366400)
    assert 1 <= len(name) <= 512
    assert not set(name) & set(":*\n\0")
    assert name.count("/") == 2
    assert cloudwatch_metrics.METRICS == 1000
