"""MessageAction: what the topic, its subscriptions and its subscribers get, on moto's server."""

import json
from typing import Any

import pytest

from rule_core.rules.actions.actions import Actions
from rule_core.rules.actions.aws_calls import AwsCalls, CallError
from rule_core.rules.actions.base import ActionOutcome, ActionState, ActionTrigger, Deadline
from rule_core.rules.actions.message import MessageAction, subject
from rule_core.storage import aws

EMAIL = "First.Last@Mail.Example.museum"
SMS = "+15551234"
ARN = "arn:aws:sns:us-east-1:123456789012:SMDebugRules"
FIRED = ActionTrigger("VanishingGradient", "Step 7.")


@pytest.fixture(autouse=True)
def _aws(aws_endpoint: str) -> None:
    del aws_endpoint


def send(kind: str, endpoint: str, trigger: ActionTrigger = FIRED) -> ActionOutcome:
    return MessageAction("VanishingGradient", kind, endpoint).carry_out(trigger, Deadline(20))


def queue() -> tuple[Any, str]:
    """Return a queue that gets all that the topic gets."""
    sqs = aws.client("sqs")
    url = sqs.create_queue(QueueName="seen")["QueueUrl"]
    sns = aws.client("sns")
    topic = sns.create_topic(Name="SMDebugRules")["TopicArn"]
    sns.subscribe(
        TopicArn=topic, Protocol="sqs", Endpoint="arn:aws:sqs:us-east-1:123456789012:seen"
    )
    return sqs, url


def subscriptions() -> list[tuple[str, str, dict[str, Any]]]:
    sns = aws.client("sns")
    result = sns.get_paginator("list_subscriptions_by_topic").paginate(TopicArn=ARN)
    return [
        (
            one["Protocol"],
            one["Endpoint"],
            json.loads(
                sns.get_subscription_attributes(SubscriptionArn=one["SubscriptionArn"])[
                    "Attributes"
                ].get("FilterPolicy", "{}")
            ),
        )
        for page in result
        for one in page["Subscriptions"]
    ]


@pytest.mark.parametrize(
    ("kind", "endpoint", "attribute", "shown"),
    [
        ("email", EMAIL, "email", "F***@Mail.Example.museum"),
        ("sms", SMS, "phone_num", "+*****1234"),
    ],
)
def test_what_is_sent_field_by_field(kind: str, endpoint: str, attribute: str, shown: str) -> None:
    sqs, url = queue()
    assert send(kind, endpoint) == ActionOutcome(
        ActionState.DONE, f"Sent to {shown} through topic 'SMDebugRules'."
    )
    (message,) = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    body = json.loads(message["Body"])
    assert {key: body[key] for key in ("TopicArn", "Subject", "Message", "MessageAttributes")} == {
        "TopicArn": ARN,
        "Subject": "SMDebugRule:VanishingGradient fired",
        "Message": "SMDebugRule:VanishingGradient fired. Step 7.",
        "MessageAttributes": {attribute: {"Type": "String", "Value": endpoint}},
    }
    assert subscriptions()[1:] == [(kind, endpoint, {attribute: [endpoint]})]


def test_an_endpoint_is_subscribed_once() -> None:
    for _ in range(2):
        assert send("email", EMAIL).state is ActionState.DONE
    assert send("email", EMAIL.lower()).state is ActionState.DONE
    assert subscriptions() == [
        ("email", EMAIL, {"email": [EMAIL]}),
        ("email", EMAIL.lower(), {"email": [EMAIL.lower()]}),
    ]


def test_a_subscription_is_found_on_any_page(monkeypatch: pytest.MonkeyPatch) -> None:
    sns = aws.client("sns")
    topic = sns.create_topic(Name="SMDebugRules")["TopicArn"]
    for number in range(101):
        sns.subscribe(TopicArn=topic, Protocol="sms", Endpoint=f"+1555{number:04}")
    called: list[str] = []
    call = AwsCalls.call

    def noted(self: AwsCalls, operation: str, *args: Any, **more: Any) -> Any:
        called.append(operation)
        return call(self, operation, *args, **more)

    monkeypatch.setattr(AwsCalls, "call", noted)
    assert send("sms", "+15550100").state is ActionState.DONE
    assert called == [
        "CreateTopic",
        "ListSubscriptionsByTopic",
        "ListSubscriptionsByTopic",
        "Publish",
    ]


@pytest.mark.parametrize(
    ("listed", "made", "waits"),
    [
        ("PendingConfirmation", "", True),
        (f"{ARN}:1", "", False),
        ("", "pending confirmation", True),
        ("", f"{ARN}:1", False),
    ],
)
def test_who_has_not_confirmed_yet_gets_nothing_and_it_is_reported(
    monkeypatch: pytest.MonkeyPatch, listed: str, made: str, waits: bool
) -> None:
    one = {"Protocol": "email", "Endpoint": EMAIL, "SubscriptionArn": listed}
    answers: dict[str, dict[str, Any]] = {
        "CreateTopic": {"TopicArn": ARN},
        "ListSubscriptionsByTopic": {"Subscriptions": [one] if listed else []},
        "Subscribe": {"SubscriptionArn": made},
        "Publish": {},
    }
    monkeypatch.setattr(AwsCalls, "call", lambda _, operation, *__, **___: answers[operation])
    detail = send("email", EMAIL).detail
    assert ("until its owner confirms the subscription" in detail) is waits


def test_without_a_text_the_message_has_none() -> None:
    sqs, url = queue()
    send("sms", SMS, ActionTrigger("R"))
    (message,) = sqs.receive_message(QueueUrl=url)["Messages"]
    assert json.loads(message["Body"])["Message"] == "SMDebugRule:R fired."


def test_a_subject_is_short_and_one_line() -> None:
    assert subject("R" * 200) == "SMDebugRule:" + "R" * 87
    assert subject("a\r\nb") == "SMDebugRule:a b fired"


def test_a_long_text_is_cut() -> None:
    sqs, url = queue()
    assert send("sms", SMS, ActionTrigger("R", "\u20ac" * 100_000)).state is ActionState.DONE
    (message,) = sqs.receive_message(QueueUrl=url)["Messages"]
    assert len(json.loads(message["Body"])["Message"].encode()) <= 200_000


def test_region_is_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    assert send("sms", SMS).state is ActionState.DONE
    topics = aws.client("sns", region="eu-west-1").list_topics()["Topics"]
    assert topics == [{"TopicArn": ARN.replace("us-east-1", "eu-west-1")}]


def test_plan_sends_nothing() -> None:
    action = MessageAction("R", "email", EMAIL)
    assert action.resolve(Deadline(20)) is action
    assert action.plan(ActionTrigger("R")) == (
        "'SMDebugRule:R fired' would be sent to F***@Mail.Example.museum through topic "
        "'SMDebugRules'."
    )
    assert aws.client("sns").list_topics()["Topics"] == []


def test_nobody_is_raised_at_and_no_endpoint_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shown = ["F***@Mail.Example.museum", "+*****1234"]
    sent = "of rule 'R': done. Sent to {} through topic 'SMDebugRules'."
    text = json.dumps([{"name": "email", "endpoint": EMAIL}, {"name": "sms", "endpoint": SMS}])
    with caplog.at_level("INFO", "smdebug"):
        Actions(text, "R").invoke("Step 7.")
        monkeypatch.setenv("AWS_ENDPOINT_URL", "not an address")
        Actions(text, "R").invoke("Step 7.")
    records = [record for record in caplog.records if record.name.startswith("smdebug")]
    broken = "of rule 'R': failed. AWS cannot be called: AWS_ENDPOINT_URL is not a URL such as "
    broken += "https://host:port."
    assert [(record.levelname, record.getMessage()) for record in records] == [
        ("INFO", f"Action 'email' ({shown[0]}) {sent.format(shown[0])}"),
        ("INFO", f"Action 'sms' ({shown[1]}) {sent.format(shown[1])}"),
        ("WARNING", f"Action 'email' ({shown[0]}) {broken}"),
        ("WARNING", f"Action 'sms' ({shown[1]}) {broken}"),
    ]


def test_a_message_that_was_perhaps_sent_is_not_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = AwsCalls("sns", Deadline(20))
    tries: list[str] = []

    def answers(*codes: str) -> AwsFaults:
        return AwsFaults(codes, tries)

    monkeypatch.setattr(calls, "_client", answers("Throttling", "InternalError"))
    with pytest.raises(CallError) as raised:
        calls.call("Publish", {}, once=True)
    assert raised.value.outcome == ActionOutcome(
        ActionState.UNKNOWN,
        "sns:Publish failed: InternalError. It may have been done all the same.",
    )
    assert tries == ["Throttling", "InternalError"]


class AwsFaults:
    """A client whose calls fail, one code after another."""

    def __init__(self, codes: tuple[str, ...], tries: list[str]) -> None:
        self._codes, self._tries = list(codes), tries

    def publish(self) -> None:
        code = self._codes.pop(0)
        self._tries.append(code)
        (kind,) = [error for error in aws.errors() if error.__name__ == "ClientError"]
        response = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": 500}}
        raise kind(response, "Publish")
