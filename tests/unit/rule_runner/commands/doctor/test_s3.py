"""doctor of an address in S3: what is allowed, what is missing, and what to do about it."""

from collections.abc import Iterator
from typing import Any

import evaluating
import faulty_s3
import numpy as np
import pytest
import s3_objects

from rule_runner.commands.doctor.checks import good, wrong
from rule_runner.commands.doctor.s3 import examine_address
from rule_runner.commands.doctor.trial import examine_trial

URI = "s3://bucket/runs/mnist"
LOSSES = {step: {"loss": np.array([1.0 - step])} for step in range(2)}
LISTED = good("Credentials were found, and bucket 'bucket' can be listed.")
READ = good("Objects of bucket 'bucket' can be read.")
KEY_UNKNOWN = "the AWS access key is unknown. Check AWS_ACCESS_KEY_ID or AWS_PROFILE"


@pytest.fixture
def bucket(aws_endpoint: str) -> Any:
    return s3_objects.make_bucket(aws_endpoint)


@pytest.fixture
def faulty(
    bucket: Any, aws_endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[faulty_s3.FaultyS3]:
    """Return a server in front of S3, which has an object at the address."""
    bucket.put_object(Bucket="bucket", Key="runs/mnist/index/1", Body=b"1")
    monkeypatch.setenv("RULE_RUNNER_S3_DEADLINE", "0")
    with faulty_s3.serving(aws_endpoint) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
        yield server


def test_all_is_well_in_two_requests(faulty: faulty_s3.FaultyS3) -> None:
    assert [*examine_address(URI)] == [LISTED, READ]
    assert [verb for verb, _, _ in faulty.asked] == ["GET", "GET"]
    assert faulty.asked[1][2]["range"] == "bytes=0-0"


def test_an_empty_object_can_be_read_too(bucket: Any) -> None:
    bucket.put_object(Bucket="bucket", Key="runs/mnist/", Body=b"")
    bucket.put_object(Bucket="bucket", Key="runs/mnist/training_job_end.ts", Body=b"")
    assert [*examine_address(URI)] == [LISTED, READ]


def test_nothing_is_at_the_address(bucket: Any) -> None:
    bucket.put_object(Bucket="bucket", Key="runs/mnist2/x", Body=b"1")
    text = (
        "No objects exist at 's3://bucket/runs/mnist'. Give the address to which the training job "
        "saved its tensors; addresses are case-sensitive."
    )
    assert [*examine_address(URI)] == [LISTED, wrong(text)]


def test_listing_is_denied(faulty: faulty_s3.FaultyS3) -> None:
    faulty.due = [faulty_s3.says(403, "AccessDenied", "Access Denied")]
    assert [*examine_address(URI)] == [
        good("Credentials were found, and bucket 'bucket' is reachable."),
        wrong(
            "Its objects cannot be listed: AccessDenied. The role needs s3:ListBucket on bucket."
        ),
    ]


def test_reading_is_denied(faulty: faulty_s3.FaultyS3) -> None:
    faulty.due = [faulty_s3.passes, faulty_s3.says(403, "AccessDenied")]
    assert [*examine_address(URI)] == [
        LISTED,
        wrong(
            "Object 'index/1' cannot be read: AccessDenied. The role needs s3:GetObject on "
            "bucket/runs/mnist/*, and s3:ListBucket, without which an absent object is denied too."
        ),
    ]


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (faulty_s3.says(403, "InvalidAccessKeyId"), f"InvalidAccessKeyId: {KEY_UNKNOWN}"),
        (
            faulty_s3.says(404, "NoSuchBucket"),
            "bucket 'bucket' does not exist. Check the address, and AWS_ENDPOINT_URL",
        ),
        (faulty_s3.SLOW_DOWN, "SlowDown: Please reduce your request rate"),
    ],
)
def test_the_bucket_cannot_be_asked(
    faulty: faulty_s3.FaultyS3, fault: faulty_s3.Fault, reason: str
) -> None:
    faulty.due = [fault]
    assert [*examine_address(URI)] == [wrong(f"Bucket 'bucket' cannot be accessed: {reason}.")]


def test_there_are_no_credentials(bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    del bucket
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    assert [*examine_address(URI)] == [
        wrong(
            "Bucket 'bucket' cannot be accessed: no AWS credentials were found. Set AWS_PROFILE, "
            "or AWS_ACCESS_KEY_ID and its secret."
        )
    ]


def test_there_can_be_no_client(bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    del bucket
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    (check,) = examine_address(URI)
    assert check.text.startswith("Bucket 'bucket' cannot be accessed: ")
    assert "nobody" in check.text


@pytest.mark.parametrize("uri", ["s3://", "s3://x/y", "s3://bucket/../y"])
def test_there_can_be_no_such_address(uri: str) -> None:
    (check,) = examine_address(uri)
    assert check.grade == "wrong"
    assert repr(uri) in check.text


def test_the_trial_is_looked_at_then(bucket: Any, aws_endpoint: str) -> None:
    del bucket
    files = evaluating.trial(LOSSES, {"losses": ["loss"]})
    s3_objects.put(aws_endpoint, "runs/mnist/", files)
    texts = [check.text for check in examine_trial(URI)]
    assert texts[:3] == [
        LISTED.text,
        READ.text,
        "The training job has ended; the trial has 2 steps.",
    ]
    assert not any("damaged" in text or "missing" in text for text in texts)


def test_an_object_that_is_missing_is_named(bucket: Any, aws_endpoint: str) -> None:
    files = evaluating.trial(LOSSES, {"losses": ["loss"]})
    s3_objects.put(aws_endpoint, "runs/mnist/", files)
    key = next(one for one in sorted(files) if one.startswith("events/"))
    bucket.delete_object(Bucket="bucket", Key=f"runs/mnist/{key}")
    texts = [check.text for check in examine_trial(URI)]
    assert any(text.startswith(f"Event files are missing: {key!r}.") for text in texts)


def test_what_is_wrong_with_the_address_ends_it(
    faulty: faulty_s3.FaultyS3,
) -> None:
    faulty.due = [faulty_s3.says(403, "AccessDenied")]
    assert len([*examine_trial(URI)]) == 2
    assert len(faulty.asked) == 1
