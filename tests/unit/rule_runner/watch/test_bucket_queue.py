"""A queue of notifications of buckets, over HTTP from a server on this machine."""

import json
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from structlog.testing import capture_logs

from rule_core.storage import aws
from rule_runner.watch import bucket_queue
from rule_runner.watch.bucket_queue import QUEUE, BucketQueue, following, objects_of

PATIENCE_S = 30.0


def notification(key: str, name: str = "ObjectCreated:Put") -> str:
    """Return what a bucket sends."""
    record = {"eventName": name, "s3": {"bucket": {"name": "bucket"}, "object": {"key": key}}}
    return json.dumps({"Records": [record]})


BY_EVENTBRIDGE = {
    "source": "aws.s3",
    "detail-type": "Object Created",
    "detail": {"bucket": {"name": "bucket"}, "object": {"key": "runs/a b"}},
}


@pytest.mark.parametrize(
    ("body", "objects"),
    [
        (notification("runs/a+b%2Bc/%C3%A9"), ["s3://bucket/runs/a b+c/é"]),
        (
            notification("runs/a", "s3:ObjectCreated:CompleteMultipartUpload"),
            ["s3://bucket/runs/a"],
        ),
        (notification("runs/a", "ObjectRemoved:Delete"), []),
        (json.dumps({"Type": "Notification", "Message": notification("a")}), ["s3://bucket/a"]),
        (json.dumps(BY_EVENTBRIDGE), ["s3://bucket/runs/a b"]),
        (json.dumps(BY_EVENTBRIDGE | {"detail-type": "Object Deleted"}), []),
        (json.dumps({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "bucket"}), []),
        ("", None),
        ("no json", None),
        ("[]", None),
        ("[" * 100_000, None),
        ('{"Message": "x"}', None),
        ('{"Records": [{}]}', None),
        ('{"Records": [1]}', None),
        ('{"Records": [{"eventName": "ObjectCreated:Put", "s3": []}]}', None),
        ('{"source": "aws.s3", "detail-type": "Object Created", "detail": {"bucket": 1}}', None),
        ('{"source": "aws.ec2", "detail": {}}', None),
    ],
)
def test_messages_name_objects(body: str, objects: list[str] | None) -> None:
    assert objects_of(body) == objects


@pytest.mark.parametrize(
    ("url", "fits"),
    [
        ("https://sqs.us-east-1.amazonaws.com/123456789012/runs", True),
        ("https://sqs.us-east-1.amazonaws.com/123456789012/runs.fifo", True),
        ("http://127.0.0.1:5000/123456789012/runs", True),
        ("arn:aws:sqs:us-east-1:123456789012:runs", False),
        ("https://sqs.us-east-1.amazonaws.com/runs", False),
        ("runs", False),
    ],
)
def test_a_queue_is_named_by_its_address(url: str, fits: bool) -> None:
    assert (QUEUE.fullmatch(url) is not None) == fits


@pytest.fixture
def queue(aws_endpoint: str) -> Iterator[tuple[Any, str]]:
    """Return a client and the address of a queue."""
    assert aws_endpoint
    client = aws.client("sqs")
    url = client.create_queue(QueueName="runs", Attributes={"VisibilityTimeout": "0"})["QueueUrl"]
    yield client, url
    client.close()


def test_messages_are_handed_over_and_deleted_and_others_are_left(queue: tuple[Any, str]) -> None:
    client, url = queue
    for body in (notification("a"), notification("b"), "something else"):
        client.send_message(QueueUrl=url, MessageBody=body)
    arrived: list[str] = []
    with capture_logs() as logs:
        BucketQueue(url, arrived.extend).receive(0)
    assert sorted(arrived) == ["s3://bucket/a", "s3://bucket/b"]
    assert [log["event"] for log in logs] == ["message_left"]
    (left,) = client.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    assert left["Body"] == "something else"


def test_what_could_not_be_handed_over_stays_in_the_queue(queue: tuple[Any, str]) -> None:
    client, url = queue
    client.send_message(QueueUrl=url, MessageBody=notification("a"))

    def fail(_: Sequence[str]) -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        BucketQueue(url, fail).receive(0)
    assert len(client.receive_message(QueueUrl=url)["Messages"]) == 1


def test_a_queue_that_is_missing_is_logged_once_and_followed_when_it_is_there(
    queue: tuple[Any, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, url = queue
    other = url.replace("/runs", "/later")
    monkeypatch.setattr(bucket_queue, "RETRY_S", 0.02)
    monkeypatch.setattr(bucket_queue, "WAIT_S", 0)
    monkeypatch.setattr(BucketQueue.receive, "__defaults__", (0,))
    there = threading.Event()
    with capture_logs() as logs, following(other, lambda _: there.set()):
        while not logs:
            there.wait(0.01)
        there.wait(0.1)
        client.create_queue(QueueName="later")
        client.send_message(QueueUrl=other, MessageBody=notification("a"))
        assert there.wait(60)
    events = [log["event"] for log in logs]
    assert events[:1] == ["queue_unavailable"]
    assert events.count("queue_unavailable") == 1
    assert "NonExistentQueue" in logs[0]["reason"]


def test_a_queue_is_followed_after_a_defect(
    queue: tuple[Any, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, url = queue
    monkeypatch.setattr(bucket_queue, "RETRY_S", 0.02)
    client.send_message(QueueUrl=url, MessageBody=notification("a"))
    there = threading.Event()
    errors = [RuntimeError("defect")]

    def arrived(_: Sequence[str]) -> None:
        if errors:
            raise errors.pop()
        there.set()

    with capture_logs() as logs, following(url, arrived):
        assert there.wait(PATIENCE_S)
    assert [(log["event"], log["reason"]) for log in logs[:1]] == [
        ("queue_unavailable", "RuntimeError('defect')")
    ]


def test_without_a_queue_nothing_is_followed() -> None:
    before = threading.active_count()
    with following(None, print):
        assert threading.active_count() == before
