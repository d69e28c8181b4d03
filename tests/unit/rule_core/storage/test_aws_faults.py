"""What clients of AWS are made of; what they raise, in words that never name a secret."""

from typing import Any

import pytest
from boto3.exceptions import Boto3Error  # noqa: TID251 - what is put into words
from botocore import exceptions  # noqa: TID251 - likewise
from urllib3.exceptions import SSLError

from rule_core.storage import aws

URL = "https://user:secret@host:9000/bucket?token=secret"


def lost(kind: type[Exception], **more: Any) -> Exception:
    """Return an error of a connection to `URL`."""
    return kind(endpoint_url=URL, **more)


@pytest.mark.parametrize(
    ("err", "reason", "transient"),
    [
        (
            lost(exceptions.ConnectTimeoutError),
            "endpoint 'host:9000' cannot be reached. Check AWS_ENDPOINT_URL and the network",
            True,
        ),
        (lost(exceptions.ReadTimeoutError), "endpoint 'host:9000' did not respond in time", True),
        (
            lost(exceptions.ConnectionClosedError),
            "endpoint 'host:9000' closed the connection before it responded",
            True,
        ),
        (
            exceptions.ProxyConnectionError(proxy_url=URL),
            "the endpoint cannot be reached through the proxy. Check HTTPS_PROXY",
            True,
        ),
        (
            lost(exceptions.SSLError, error="[SSL: CERTIFICATE_VERIFY_FAILED] self-signed"),
            "endpoint 'host:9000' has an untrusted certificate. Set AWS_CA_BUNDLE",
            False,
        ),
        (
            lost(exceptions.SSLError, error="EOF occurred"),
            "endpoint 'host:9000' failed: SSLError",
            True,
        ),
        (
            exceptions.HTTPClientError(error=f"something about {URL}"),
            "the endpoint failed: HTTPClientError",
            True,
        ),
        (SSLError("bad record"), "the response was truncated", True),
        (
            exceptions.IncompleteReadError(actual_bytes=1, expected_bytes=2),
            "the response was",
            True,
        ),
        (
            exceptions.FlexibleChecksumError(error_msg="differs"),
            "the response was damaged in transit",
            True,
        ),
        (
            exceptions.InvalidRegionError(region_name="here!"),
            "InvalidRegionError: Provided region_name 'here!' doesn't match a supported format",
            False,
        ),
        (Boto3Error("Odd."), "Boto3Error: Odd", False),
    ],
)
def test_words(err: Exception, reason: str, transient: bool) -> None:
    assert isinstance(err, aws.errors())
    result = aws.fault(err)
    assert result == aws.AwsFault(type(err).__name__, result.reason, transient)
    assert result.reason.startswith(reason)
    assert "secret" not in result.reason


@pytest.mark.parametrize(
    ("code", "status", "transient"),
    [
        *(("SlowDown", 503, True), ("Whatever", 500, True), ("Whatever", 429, True)),
        *(("ThrottlingException", 400, True), ("TemporaryRedirect", 307, True)),
        *(("Whatever", 400, False), ("AccessDenied", 403, False), ("ExpiredToken", 400, False)),
    ],
)
def test_what_passes(code: str, status: int, transient: bool) -> None:
    response = {
        "Error": {"Code": code, "Message": "Why."},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    found = aws.fault(exceptions.ClientError(response, "GetObject"))
    assert (found.code, found.transient) == (code, transient)
    assert found.reason.startswith(f"{code}: ")


def test_an_answer_that_says_nothing() -> None:
    assert aws.fault(exceptions.ClientError({}, "GetObject")) == aws.AwsFault(
        "Unknown", "Unknown", transient=False
    )


@pytest.mark.parametrize(
    ("region", "default", "given", "expected"),
    [
        ("", "", None, "us-east-1"),
        (" ", "eu-west-1", None, "eu-west-1"),
        ("eu-west-2", "eu-west-1", None, "eu-west-2"),
        ("eu-west-2", "eu-west-1", "eu-west-3", "eu-west-3"),
    ],
)
def test_the_region_of_a_client(
    aws_endpoint: str,
    monkeypatch: pytest.MonkeyPatch,
    region: str,
    default: str,
    given: str | None,
    expected: str,
) -> None:
    monkeypatch.setenv("AWS_REGION", region)
    monkeypatch.setenv("AWS_DEFAULT_REGION", default)
    made = aws.client("sns", region=given)
    assert (made.meta.region_name, made.meta.endpoint_url) == (expected, aws_endpoint)
