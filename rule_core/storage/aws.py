"""AWS clients, calls with retries, and error messages; the only module that imports boto3."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from rule_core.clock import Clock
from rule_core.storage.retry import retry

T = TypeVar("T")

DEFAULT_REGION: Final = "us-east-1"
CONNECT_TIMEOUT_S: Final = 5.0
READ_TIMEOUT_S: Final = 20.0
CONNECTIONS: Final = 16

_TRANSIENT: Final = frozenset(
    {
        *("Throttling", "ThrottlingException", "ThrottledException", "RequestThrottled"),
        *("RequestThrottledException", "TooManyRequestsException", "SlowDown"),
        *("ProvisionedThroughputExceededException", "RequestLimitExceeded"),
        *(
            "LimitExceededException",
            "BandwidthLimitExceeded",
            "PriorRequestNotComplete",
            "TransactionInProgressException",
        ),
        *("RequestTimeout", "RequestTimeoutException", "InternalError", "InternalFailure"),
        *("InternalServiceError", "InternalServerError", "ServiceUnavailable"),
        *("ServiceUnavailableException", "OperationAborted", "500", "502", "503", "504"),
        "TemporaryRedirect",
    }
)
_SERVER_FAULT: Final = 500
_TOO_MANY: Final = 429
_EXPIRED: Final = "the AWS session has expired. Get new credentials"
_UNKNOWN_KEY: Final = "the AWS access key is unknown. Check AWS_ACCESS_KEY_ID or AWS_PROFILE"
# Error codes of services about credentials, with their remedies.
_CREDENTIALS: Final = {
    **dict.fromkeys(("ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"), _EXPIRED),
    **dict.fromkeys(("InvalidAccessKeyId", "InvalidClientTokenId"), _UNKNOWN_KEY),
    "UnrecognizedClientException": _UNKNOWN_KEY,
    "InvalidToken": "the AWS session token is not valid. Get new credentials",
    "SignatureDoesNotMatch": "the AWS secret key does not match its access key. "
    "Check AWS_SECRET_ACCESS_KEY or AWS_PROFILE",
    "RequestTimeTooSkewed": "the clock of this machine is wrong. Correct it",
}
_WRONG_REGION: Final = frozenset(
    {"PermanentRedirect", "301", "AuthorizationHeaderMalformed", "IncorrectEndpoint"}
)
_UNREACHABLE: Final = "cannot be reached. Check AWS_ENDPOINT_URL and the network"
# Exceptions of the client about a connection.
_CONNECTION_ERRORS: Final = {
    "EndpointConnectionError": _UNREACHABLE,
    "ConnectTimeoutError": _UNREACHABLE,
    "ProxyConnectionError": "cannot be reached through the proxy. Check HTTPS_PROXY",
    "ReadTimeoutError": "did not respond in time",
    "ConnectionClosedError": "closed the connection before it responded",
}
_CREDENTIALS_MISSING: Final = (
    "no AWS credentials were found. Set AWS_PROFILE, or AWS_ACCESS_KEY_ID and its secret"
)
_BAD_ENDPOINT: Final = "AWS_ENDPOINT_URL is not a URL such as https://host:port"
_TRUNCATED: Final = "the response was truncated"
# Other exceptions of the client: (reason, whether it is transient).
_CLIENT_ERRORS: Final = {
    "NoCredentialsError": (_CREDENTIALS_MISSING, False),
    "PartialCredentialsError": (_CREDENTIALS_MISSING, False),
    "InvalidEndpointConfigurationError": (_BAD_ENDPOINT, False),
    "EndpointResolutionError": (_BAD_ENDPOINT, False),
    "ResponseStreamingError": (_TRUNCATED, True),
    "IncompleteReadError": (_TRUNCATED, True),
    "ResponseParserError": (_TRUNCATED, True),
    "FlexibleChecksumError": ("the response was damaged in transit", True),
}


@dataclass(frozen=True, slots=True)
class AwsFault:
    """An error of an AWS client.

    Attributes
    ----------
    code
        The service's error code, such as ``AccessDenied``, or the name of the client's exception.
    reason
        The end of a sentence, with a remedy if there is one, without a full stop.
    transient
        Whether the same call may succeed later.
    retry_after
        Seconds that the service asks to wait before the next attempt.
    """

    code: str
    reason: str
    transient: bool
    retry_after: float = 0.0


def client(
    service: str,
    *,
    region: str | None = None,
    connect_timeout: float = CONNECT_TIMEOUT_S,
    read_timeout: float = READ_TIMEOUT_S,
) -> Any:
    """Return a client with boto3's default credentials, region and endpoint.

    Each call is attempted once; see `call` for retries. The client is thread-safe.

    Parameters
    ----------
    service
        The boto3 name of the service.
    region
        By default ``AWS_REGION``, then ``AWS_DEFAULT_REGION`` or the profile's region, then
        `DEFAULT_REGION`.
    connect_timeout, read_timeout
        Seconds.

    Raises
    ------
    Exception
        One of `errors`, if the profile, the region or the endpoint is invalid.
    """
    import boto3  # noqa: TID251 - the one importer, and not at start-up
    from botocore.config import Config  # noqa: TID251 - likewise
    from botocore.exceptions import InvalidEndpointConfigurationError  # noqa: TID251 - likewise

    config = Config(
        connect_timeout=connect_timeout,
        read_timeout=read_timeout,
        max_pool_connections=CONNECTIONS,
        retries={"mode": "standard", "total_max_attempts": 1},
        user_agent_extra="rule-runner",
    )
    session = boto3.session.Session()
    aws_region = os.environ.get("AWS_REGION", "").strip()  # boto3 ignores this variable
    region = region or aws_region or session.region_name or DEFAULT_REGION
    try:
        return session.client(service, region_name=region, config=config)
    except ValueError as err:
        if isinstance(err, errors()):
            raise
        raise InvalidEndpointConfigurationError(msg=str(err)) from err


class AwsCallError(Exception):
    """A call that failed for good."""

    def __init__(self, fault: AwsFault) -> None:
        super().__init__(fault.reason)
        self.fault = fault


def call(
    request: Callable[[], T],
    *,
    deadline_s: float,
    clock: Clock,
    is_retryable: Callable[[AwsFault], bool] = attrgetter("transient"),
) -> T:
    """Return the response to a request, which is retried for up to `deadline_s` seconds.

    Raises
    ------
    AwsCallError
        If it fails.
    """
    kinds = errors()
    try:
        return retry(
            request,
            kinds,
            is_transient=lambda err: is_retryable(fault(err)),
            deadline_s=deadline_s,
            clock=clock,
        )
    except kinds as err:
        raise AwsCallError(fault(err)) from err


def errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that clients and response bodies raise, for an ``except``."""
    from boto3.exceptions import Boto3Error  # noqa: TID251 - the one importer
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: TID251 - likewise
    from urllib3.exceptions import HTTPError

    return (BotoCoreError, ClientError, Boto3Error, HTTPError)


def fault(err: Exception) -> AwsFault:
    """Describe an exception that is one of `errors`."""
    from boto3.exceptions import Boto3Error  # noqa: TID251 - the one importer
    from botocore import exceptions  # noqa: TID251 - likewise

    response = getattr(err, "response", None)
    if isinstance(err, exceptions.ClientError) and isinstance(response, dict):
        return _response_fault(response)
    name = type(err).__name__
    if name in _CLIENT_ERRORS:
        text, transient = _CLIENT_ERRORS[name]
        return AwsFault(name, text, transient)
    if isinstance(err, exceptions.HTTPClientError | exceptions.ConnectionError):
        return _connection_fault(name, err)
    if isinstance(err, exceptions.BotoCoreError | Boto3Error):
        return AwsFault(name, f"{name}: {err}".strip().rstrip("."), transient=False)
    return AwsFault(name, _TRUNCATED, transient=True)  # raised by a response body


def _connection_fault(name: str, err: Exception) -> AwsFault:
    """Describe a connection error."""
    # Only the host of the URL: the rest may hold secrets.
    parts = urlsplit(str(getattr(err, "kwargs", {}).get("endpoint_url") or ""))
    host = parts.netloc.rpartition("@")[2]
    endpoint = f"endpoint {host!r}" if host else "the endpoint"
    if "CERTIFICATE_VERIFY_FAILED" in str(err):
        text = f"{endpoint} has an untrusted certificate. Set AWS_CA_BUNDLE"
        return AwsFault(name, text, transient=False)
    return AwsFault(
        name, f"{endpoint} {_CONNECTION_ERRORS.get(name, f'failed: {name}')}", transient=True
    )


def _response_fault(response: dict[str, Any]) -> AwsFault:
    """Describe an error response of a service."""
    error = response.get("Error", {})
    code = str(error.get("Code") or "Unknown")
    meta = response.get("ResponseMetadata", {})
    status = meta.get("HTTPStatusCode", 0)
    if code in _CREDENTIALS:
        return AwsFault(code, f"{code}: {_CREDENTIALS[code]}", transient=False)
    if code in _WRONG_REGION:
        region = meta.get("HTTPHeaders", {}).get("x-amz-bucket-region") or error.get("Region")
        text = f"{code}: the bucket is in {f'region {region!r}' if region else 'another region'}"
        return AwsFault(code, f"{text}. Set AWS_REGION to that region", transient=False)
    message = " ".join(str(error.get("Message") or "").split()).rstrip(".")
    reason = f"{code}: {message}" if message and message != code else code
    transient = code in _TRANSIENT or status >= _SERVER_FAULT or status == _TOO_MANY
    wait = str(meta.get("HTTPHeaders", {}).get("retry-after", "")).strip()
    return AwsFault(code, reason, transient, float(wait) if wait.isdecimal() else 0.0)
