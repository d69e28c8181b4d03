"""What is said when S3 does not do what it is asked, each in one sentence."""

import socket

import pytest
import s3_objects
from clocks import PatientClock
from faulty_s3 import Fault, FaultyS3, answers, says

from rule_core.storage.base import ObjectNotFoundError, StorageUnavailableError
from rule_core.storage.retrying_store import RetryingStore
from rule_core.storage.s3.bucket import Bucket
from rule_core.storage.s3.output import S3Output
from rule_core.storage.s3.store import S3Store
from rule_core.storage.uri import open_output, open_store

DENIED = says(403, "AccessDenied", "Access Denied")
KMS = says(403, "AccessDenied", "User: arn:aws:iam::1:user/x may not perform: kms:Decrypt")
READ = [
    pytest.param(
        says(403, "InvalidAccessKeyId", "It does not exist."),
        "InvalidAccessKeyId: the AWS access key is unknown. Check AWS_ACCESS_KEY_ID or AWS_PROFILE",
        id="unknown-key",
    ),
    pytest.param(
        says(403, "SignatureDoesNotMatch", "They differ."),
        "SignatureDoesNotMatch: the AWS secret key does not match its access key. "
        "Check AWS_SECRET_ACCESS_KEY or AWS_PROFILE",
        id="wrong-secret",
    ),
    pytest.param(
        says(400, "ExpiredToken", "The provided token has expired."),
        "ExpiredToken: the AWS session has expired. Get new credentials",
        id="expired",
    ),
    pytest.param(
        says(403, "RequestTimeTooSkewed", "Too large."),
        "RequestTimeTooSkewed: the clock of this machine is wrong. Correct it",
        id="clock",
    ),
    pytest.param(
        DENIED,
        "AccessDenied. The role needs s3:GetObject on bucket/t/*, "
        "and s3:ListBucket, without which an absent object is denied too",
        id="denied",
    ),
    pytest.param(
        KMS,
        "AccessDenied. The role needs kms:Decrypt and kms:GenerateDataKey on the key that "
        "encrypts the bucket",
        id="key-denied",
    ),
    pytest.param(
        says(403, "InvalidObjectState", "Not valid for its storage class."),
        "InvalidObjectState: the object is in an archive. Restore it first",
        id="archive",
    ),
    pytest.param(
        says(404, "NoSuchBucket", "It is not there."),
        "bucket 'bucket' does not exist. Check the address, and AWS_ENDPOINT_URL",
        id="no-bucket",
    ),
    pytest.param(
        says(400, "InvalidRequest", "Some  thing\nis odd."),
        "InvalidRequest: Some thing is odd",
        id="other",
    ),
    pytest.param(says(409, "Odd"), "Odd", id="without-words"),
]


@pytest.mark.parametrize(("fault", "reason"), READ)
def test_an_object_that_cannot_be_read(
    faulty: FaultyS3, store: RetryingStore, fault: Fault, reason: str
) -> None:
    faulty.due = [fault] * 9
    with pytest.raises(StorageUnavailableError) as raised:
        store.read("x")
    assert str(raised.value) == f"Cannot read 'x': {reason}."
    assert (raised.value.key, raised.value.transient) == ("x", False)
    assert len(faulty.asked) == 1


def test_a_listing_that_is_denied(faulty: FaultyS3, store: RetryingStore) -> None:
    faulty.due = [DENIED]
    with pytest.raises(StorageUnavailableError) as raised:
        list(store.list_keys("index/"))
    assert str(raised.value) == (
        "Cannot read 's3://bucket/t/index/': AccessDenied. The role needs s3:ListBucket on bucket."
    )


def test_a_bucket_that_does_not_exist(bucket: Bucket) -> None:
    store = S3Store(Bucket("s3://other/t", bucket.client))
    reason = "bucket 'other' does not exist. Check the address, and AWS_ENDPOINT_URL."
    with pytest.raises(StorageUnavailableError) as raised:
        store.read("x")
    assert str(raised.value) == f"Cannot read 'x': {reason}"
    with pytest.raises(StorageUnavailableError) as raised:
        list(store.list_keys(""))
    assert str(raised.value) == f"Cannot read 's3://other/t/': {reason}"
    with pytest.raises(
        OSError, match=r"^Cannot write 's3://other/t/x': bucket 'other' does not exist"
    ):
        S3Output(store.bucket, PatientClock()).open("x").publish()


def test_a_prefix_without_objects_is_an_empty_trial(store: RetryingStore) -> None:
    assert list(store.list_keys("")) == []
    with pytest.raises(ObjectNotFoundError, match=r"^File 'x' does not exist\.$"):
        store.read("x")


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        pytest.param(
            says(301, "PermanentRedirect", x_amz_bucket_region="eu-west-1"),
            "PermanentRedirect: the bucket is in region 'eu-west-1'. Set AWS_REGION to that region",
            id="named",
        ),
        pytest.param(
            says(301, "PermanentRedirect"),
            "PermanentRedirect: the bucket is in another region. Set AWS_REGION to that region",
            id="unnamed",
        ),
    ],
)
def test_a_bucket_of_another_region(faulty: FaultyS3, fault: Fault, said: str) -> None:
    due = [fault] * 9 if "eu-west-1" in said else [fault, says(403, "Forbidden")]
    faulty.due = due
    with pytest.raises(StorageUnavailableError) as raised:
        # The client remembers where a bucket is: it is used here only.
        S3Store(Bucket("s3://bucket/t")).read("x")
    assert str(raised.value) == f"Cannot read 'x': {said}."


def test_a_bucket_of_another_region_is_found(faulty: FaultyS3, aws_endpoint: str) -> None:
    s3_objects.put(aws_endpoint, "t/", {"x": b"here"})
    faulty.due = [says(301, "PermanentRedirect", x_amz_bucket_region="eu-west-1")]
    assert bytes(S3Store(Bucket("s3://bucket/t")).read("x")) == b"here"
    assert "/eu-west-1/s3/" in faulty.asked[-1][2]["authorization"]


@pytest.mark.parametrize(
    ("verb", "action"), [("publish", "PutObject"), ("remove", "DeleteObject")], ids=str
)
def test_a_write_that_is_denied(faulty: FaultyS3, bucket: Bucket, verb: str, action: str) -> None:
    output = S3Output(bucket, PatientClock())
    faulty.due = [DENIED]
    with pytest.raises(OSError, match="Cannot write") as raised:
        _ = output.remove("x") if verb == "remove" else output.open("x").publish()
    assert str(raised.value) == (
        f"Cannot write 's3://bucket/t/x': AccessDenied. The role needs s3:{action} on bucket/t/*."
    )


# -- before S3 is reached ---------------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as result:
        result.bind(("127.0.0.1", 0))
        port: int = result.getsockname()[1]
        return port


def said_of_opening() -> str:
    """Return what is said of a trial that cannot be reached, by readers and by writers."""
    with pytest.raises(StorageUnavailableError) as raised:
        list(open_store("s3://bucket/t").list_keys(""))
    with pytest.raises(OSError, match="Cannot write") as unwritten:
        open_output("s3://bucket/t").remove("x")
    reason = raised.value.reason
    assert str(unwritten.value) == f"Cannot write 's3://bucket/t/x': {reason}."
    return reason


@pytest.fixture
def _impatient(aws_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert aws_endpoint
    monkeypatch.setenv("RULE_RUNNER_S3_DEADLINE", "0")


@pytest.mark.usefixtures("_impatient")
def test_no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    assert said_of_opening() == (
        "no AWS credentials were found. Set AWS_PROFILE, or AWS_ACCESS_KEY_ID and its secret"
    )


@pytest.mark.usefixtures("_impatient")
def test_half_of_the_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    assert said_of_opening().startswith("no AWS credentials were found. Set AWS_PROFILE")


@pytest.mark.usefixtures("_impatient")
def test_a_profile_that_does_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    assert said_of_opening() == "ProfileNotFound: The config profile (nobody) could not be found"


@pytest.mark.usefixtures("_impatient")
def test_a_region_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "here!")
    monkeypatch.setenv("AWS_REGION", "here!")
    said = "InvalidRegionError: Provided region_name 'here!' doesn't match a supported format"
    assert said_of_opening() == said


@pytest.mark.usefixtures("_impatient")
def test_an_endpoint_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    host = f"127.0.0.1:{free_port()}"
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://user:secret@{host}")
    assert said_of_opening() == (
        f"endpoint '{host}' cannot be reached. Check AWS_ENDPOINT_URL and the network"
    )


@pytest.mark.usefixtures("_impatient")
@pytest.mark.parametrize("endpoint", ["localhost:9000", "http://", "http://me:key@h/?x"])
def test_an_endpoint_that_is_none(monkeypatch: pytest.MonkeyPatch, endpoint: str) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    assert said_of_opening() == "AWS_ENDPOINT_URL is not a URL such as https://host:port"


@pytest.mark.usefixtures("_impatient")
def test_a_server_that_speaks_no_s3(faulty: FaultyS3) -> None:
    store = open_store("s3://bucket/t")
    faulty.due = [answers(200, b"<html>Welcome</html>"), answers(200, b"Welcome")]
    with pytest.raises(
        StorageUnavailableError, match=r"/t/': the response is not a listing of S3\."
    ):
        list(store.list_keys(""))
    with pytest.raises(StorageUnavailableError, match=r"/t/': 500: Internal Server Error\.$"):
        list(store.list_keys(""))


def test_a_region_is_never_missing(aws_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    s3_objects.make_bucket(aws_endpoint)
    monkeypatch.delenv("AWS_REGION")
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    assert list(open_store("s3://bucket/t").list_keys("")) == []
