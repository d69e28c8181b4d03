"""SNS: the message that a queue behind the topic gets, field by field."""

import json
from typing import Any

import evaluating
import pytest
from told import GOING, MET, START, many, told

from rule_core.storage import aws
from rule_runner.notify.event import EventSubject, RuleState
from rule_runner.notify.sinks import Refused, Sent, SinkError
from rule_runner.notify.sinks.sns import SnsSink, attributes, subject
from rule_runner.results.status import RuleStatus


@pytest.fixture(autouse=True)
def _quiet() -> None:
    evaluating.log_nothing()


def subscribed(name: str, policy: dict[str, Any] | None = None) -> tuple[str, str]:
    """Return the ARN of a topic, and the URL of a queue behind it."""
    fifo = {"FifoTopic": "true"} if name.endswith(".fifo") else {}
    topic = aws.client("sns").create_topic(Name=name, Attributes=fifo)["TopicArn"]
    queues = aws.client("sqs")
    queue = queues.create_queue(QueueName=name, Attributes={"FifoQueue": "true"} if fifo else {})[
        "QueueUrl"
    ]
    arn = queues.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])
    aws.client("sns").subscribe(
        TopicArn=topic,
        Protocol="sqs",
        Endpoint=arn["Attributes"]["QueueArn"],
        Attributes={"FilterPolicy": json.dumps(policy)} if policy else {},
    )
    return topic, queue


def received(queue: str) -> list[dict[str, Any]]:
    answer = aws.client("sqs").receive_message(QueueUrl=queue, MaxNumberOfMessages=10)
    return [json.loads(one["Body"]) for one in answer.get("Messages", [])]


@pytest.mark.usefixtures("aws_endpoint")
def test_the_message_is_the_event() -> None:
    topic, queue = subscribed("rules")
    assert SnsSink(topic).send([told()]) == Sent(1)
    (message,) = received(queue)
    assert json.loads(message["Message"]) == told()
    assert message["Subject"] == "LossCheck of mnist-42: IssuesFound"
    assert message["TopicArn"] == topic
    assert message["MessageAttributes"] == {
        "rule": {"Type": "String.Array", "Value": '["LossCheck"]'},
        "status": {"Type": "String.Array", "Value": '["IssuesFound"]'},
    }


@pytest.mark.usefixtures("aws_endpoint")
def test_a_filter_policy_finds_what_changed() -> None:
    topic, queue = subscribed("found", {"status": ["IssuesFound"]})
    going = told(MET, GOING, changed=["Overfit"], sequence=4)
    assert SnsSink(topic).send([told(), going]) == Sent(2)
    assert [json.loads(one["Message"])["detail"]["EventSequence"] for one in received(queue)] == [3]


@pytest.mark.usefixtures("aws_endpoint")
def test_a_fifo_topic_takes_them_in_order_and_once() -> None:
    topic, queue = subscribed("ordered.fifo")
    SnsSink(topic).send(many(3))
    SnsSink(topic).send(many(3)[2:])
    found = [json.loads(one["Message"])["detail"]["EventSequence"] for one in received(queue)]
    assert found[:3] == [1, 2, 3]


@pytest.mark.usefixtures("aws_endpoint")
def test_a_topic_that_does_not_exist_is_a_failure() -> None:
    sink = SnsSink("arn:aws:sns:us-east-1:123456789012:missing")
    with pytest.raises(SinkError, match="NotFound") as found:
        sink.send([told()])
    assert not found.value.transient


def test_an_event_that_is_too_large_is_refused() -> None:
    rules = [RuleState(f"rule-{at}", RuleStatus.IN_PROGRESS) for at in range(2000)]
    huge = told(*rules, changed=[])
    expected = Refused(huge["id"], "TooLarge: the event has more than 256 KiB even when shortened")
    assert SnsSink("arn:aws:sns:us-east-1:123456789012:x").send([huge]) == Sent(1, (expected,))


@pytest.mark.parametrize(
    ("name", "run", "expected"),
    [
        ("LossCheck", "mnist-42", "LossCheck of mnist-42: IssuesFound"),
        ("é\n", "m", "__ of m: IssuesFound"),
        ("x" * 200, "m", "x" * 86 + ": IssuesFound"),
    ],
)
def test_a_subject_is_what_the_service_takes(name: str, run: str, expected: str) -> None:
    state = RuleState(name, RuleStatus.ISSUES_FOUND, "x")
    event = told(state, changed=[name], job=EventSubject(run, START))
    assert subject(event) == expected
    assert len(expected) < 100


def test_more_than_one_change_is_counted() -> None:
    event = told(MET, GOING, changed=["LossCheck", "Overfit"])
    assert subject(event) == "LossCheck of mnist-42: IssuesFound, InProgress and 1 more"
    assert {name: json.loads(one["StringValue"]) for name, one in attributes(event).items()} == {
        "rule": ["LossCheck", "Overfit"],
        "status": ["IssuesFound", "InProgress"],
    }


def test_the_end_of_the_training_has_no_rule() -> None:
    event = told(changed=[], ended=True)
    assert subject(event) == "training of mnist-42: Completed"
    assert {name: one["StringValue"] for name, one in attributes(event).items()} == {
        "status": '["Completed"]'
    }
