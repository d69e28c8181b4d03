"""The only place that makes clients of AWS, and that puts what they raise into words."""

from dataclasses import dataclass
from typing import Any, Final

DEFAULT_REGION: Final = "us-east-1"
CONNECT_TIMEOUT_S: Final = 5.0
READ_TIMEOUT_S: Final = 20.0
CONNECTIONS: Final = 16

_TRANSIENT: Final = frozenset(
    {
        *("Throttling", "ThrottlingException", "ThrottledException", "RequestThrottled"),
        *("RequestThrottledException", "TooManyRequestsException", "SlowDown"),
        *(
            "ProvisionedThroughputExceededException",
            "RequestLimitExceeded",
            "LimitExceededException",
        ),
        *("BandwidthLimitExceeded", "PriorRequestNotComplete", "TransactionInProgressException"),
        *("RequestTimeout", "RequestTimeoutException", "InternalError", "InternalFailure"),
        *("InternalServiceError", "InternalServerError", "ServiceUnavailable"),
        *("ServiceUnavailableException", "OperationAborted", "500", "502", "503", "504"),
    }
)
_SERVER_FAULT: Final = 500


@dataclass(frozen=True, slots=True)
class AwsFault:
    """What a client of AWS raised.

    Attributes
    ----------
    code
        The service's own, such as ``AccessDenied``; or the name of the client's exception.
    reason
        One sentence's end for people, with the remedy if there is one; without a full stop.
    transient
        Whether the same call may succeed later.
    """

    code: str
    reason: str
    transient: bool


def client(
    service: str,
    *,
    region: str | None = None,
    connect_timeout: float = CONNECT_TIMEOUT_S,
    read_timeout: float = READ_TIMEOUT_S,
) -> Any:
    """Return a client with the credentials, the region and the endpoint of boto3's own chain.

    It tries each call once: whoever calls knows how long it may be tried. It may be used by
    several threads.

    Parameters
    ----------
    service
        As boto3 calls it.
    region
        Instead of that of environment and profile; if they have none it is `DEFAULT_REGION`.
    connect_timeout, read_timeout
        Seconds.
    """
    import boto3  # noqa: PLC0415, TID251 - the one place; never at start-up
    from botocore.config import Config  # noqa: PLC0415, TID251 - likewise

    config = Config(
        connect_timeout=connect_timeout,
        read_timeout=read_timeout,
        max_pool_connections=CONNECTIONS,
        retries={"mode": "standard", "total_max_attempts": 1},
        user_agent_extra="rule-runner",
    )
    session = boto3.session.Session()
    name = region or session.region_name or DEFAULT_REGION
    return session.client(service, region_name=name, config=config)


def errors() -> tuple[type[Exception], ...]:
    """Return what a client raises, for an ``except``."""
    from boto3.exceptions import Boto3Error  # noqa: PLC0415, TID251 - the one place
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415, TID251 - likewise

    return (BotoCoreError, ClientError, Boto3Error)


def fault(err: Exception) -> AwsFault:
    """Return what an exception out of `errors` means."""
    from botocore import exceptions  # noqa: PLC0415, TID251 - the one place

    response = getattr(err, "response", None)
    if isinstance(err, exceptions.ClientError) and isinstance(response, dict):
        return _of_response(response)
    name = type(err).__name__
    if isinstance(err, exceptions.NoCredentialsError | exceptions.PartialCredentialsError):
        text = "no AWS credentials were found. Set AWS_PROFILE, or AWS_ACCESS_KEY_ID and its secret"
        return AwsFault(name, text, transient=False)
    transient = isinstance(err, exceptions.HTTPClientError | exceptions.ConnectionError)
    return AwsFault(name, f"{name}: {err}".strip().rstrip("."), transient)


def _of_response(response: dict[str, Any]) -> AwsFault:
    """Return what a service answered."""
    answer = response.get("Error", {})
    code = str(answer.get("Code") or "Unknown")
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    message = str(answer.get("Message") or "").strip().rstrip(".")
    reason = f"{code}: {message}" if message and message != code else code
    transient = code in _TRANSIENT or status >= _SERVER_FAULT
    return AwsFault(code, reason, transient)
