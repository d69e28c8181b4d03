"""The only place that makes clients of AWS, and that puts what they raise into words."""

import os
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

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
        "TemporaryRedirect",
    }
)
_SERVER_FAULT: Final = 500
_TOO_MANY: Final = 429
_EXPIRED: Final = "the AWS session has expired. Get new credentials"
_UNKNOWN_KEY: Final = "the AWS access key is not known. Check AWS_ACCESS_KEY_ID or AWS_PROFILE"
# What a service says of credentials, and what to do then.
_CREDENTIALS: Final = {
    **dict.fromkeys(("ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"), _EXPIRED),
    **dict.fromkeys(("InvalidAccessKeyId", "InvalidClientTokenId"), _UNKNOWN_KEY),
    "UnrecognizedClientException": _UNKNOWN_KEY,
    "InvalidToken": "the AWS session token is not valid. Get new credentials",
    "SignatureDoesNotMatch": "the AWS secret key does not fit its access key. "
    "Check AWS_SECRET_ACCESS_KEY or AWS_PROFILE",
    "RequestTimeTooSkewed": "the clock of this machine is wrong. Set it",
}
_ELSEWHERE: Final = frozenset(
    {"PermanentRedirect", "301", "AuthorizationHeaderMalformed", "IncorrectEndpoint"}
)
_OUT_OF_REACH: Final = "cannot be reached. Check AWS_ENDPOINT_URL and the network"
# What the client says of a connection.
_LOST: Final = {
    "EndpointConnectionError": _OUT_OF_REACH,
    "ConnectTimeoutError": _OUT_OF_REACH,
    "ProxyConnectionError": "cannot be reached through the proxy. Check HTTPS_PROXY",
    "ReadTimeoutError": "does not answer in time",
    "ConnectionClosedError": "closed the connection before it had answered",
}
_CREDENTIALS_MISSING: Final = (
    "no AWS credentials were found. Set AWS_PROFILE, or AWS_ACCESS_KEY_ID and its secret"
)
_NO_ADDRESS: Final = "AWS_ENDPOINT_URL is no address such as https://host:port"
_CUT: Final = "the answer was cut short"
# What the client says of itself, and whether it passes.
_OWN_WORDS: Final = {
    "NoCredentialsError": (_CREDENTIALS_MISSING, False),
    "PartialCredentialsError": (_CREDENTIALS_MISSING, False),
    "InvalidEndpointConfigurationError": (_NO_ADDRESS, False),
    "EndpointResolutionError": (_NO_ADDRESS, False),
    "ResponseStreamingError": (_CUT, True),
    "IncompleteReadError": (_CUT, True),
    "ResponseParserError": (_CUT, True),
    "FlexibleChecksumError": ("the answer was damaged on its way", True),
}


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
        Instead of that of ``AWS_REGION``, then of ``AWS_DEFAULT_REGION`` or the profile, then
        `DEFAULT_REGION`.
    connect_timeout, read_timeout
        Seconds.

    Raises
    ------
    Exception
        One of `errors`, if the profile, the region or the endpoint is none.
    """
    import boto3  # noqa: PLC0415, TID251 - the one place; never at start-up
    from botocore.config import Config  # noqa: PLC0415, TID251 - likewise
    from botocore.exceptions import InvalidEndpointConfigurationError  # noqa: PLC0415, TID251

    config = Config(
        connect_timeout=connect_timeout,
        read_timeout=read_timeout,
        max_pool_connections=CONNECTIONS,
        retries={"mode": "standard", "total_max_attempts": 1},
        user_agent_extra="rule-runner",
    )
    session = boto3.session.Session()
    given = os.environ.get("AWS_REGION", "").strip()  # boto3 itself does not look at it
    name = region or given or session.region_name or DEFAULT_REGION
    try:
        return session.client(service, region_name=name, config=config)
    except ValueError as err:
        if isinstance(err, errors()):
            raise
        raise InvalidEndpointConfigurationError(msg=str(err)) from err


def errors() -> tuple[type[Exception], ...]:
    """Return what a client, or a body that it gave, raises, for an ``except``."""
    from boto3.exceptions import Boto3Error  # noqa: PLC0415, TID251 - the one place
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415, TID251 - likewise
    from urllib3.exceptions import HTTPError  # noqa: PLC0415 - as late as the others

    return (BotoCoreError, ClientError, Boto3Error, HTTPError)


def fault(err: Exception) -> AwsFault:
    """Return what an exception out of `errors` means."""
    from boto3.exceptions import Boto3Error  # noqa: PLC0415, TID251 - the one place
    from botocore import exceptions  # noqa: PLC0415, TID251 - likewise

    response = getattr(err, "response", None)
    if isinstance(err, exceptions.ClientError) and isinstance(response, dict):
        return _of_response(response)
    name = type(err).__name__
    if name in _OWN_WORDS:
        text, transient = _OWN_WORDS[name]
        return AwsFault(name, text, transient)
    if isinstance(err, exceptions.HTTPClientError | exceptions.ConnectionError):
        return _of_connection(name, err)
    if isinstance(err, exceptions.BotoCoreError | Boto3Error):
        return AwsFault(name, f"{name}: {err}".strip().rstrip("."), transient=False)
    return AwsFault(name, _CUT, transient=True)  # the body of an answer broke off


def _of_connection(name: str, err: Exception) -> AwsFault:
    """Return what became of a connection."""
    # Of the address the host only: the rest may hold secrets, and names what was asked for.
    parts = urlsplit(str(getattr(err, "kwargs", {}).get("endpoint_url") or ""))
    host = parts.netloc.rpartition("@")[2]
    endpoint = f"endpoint {host!r}" if host else "the endpoint"
    if "CERTIFICATE_VERIFY_FAILED" in str(err):
        text = f"{endpoint} has a certificate that is not trusted. Set AWS_CA_BUNDLE"
        return AwsFault(name, text, transient=False)
    return AwsFault(name, f"{endpoint} {_LOST.get(name, f'failed: {name}')}", transient=True)


def _of_response(response: dict[str, Any]) -> AwsFault:
    """Return what a service answered."""
    answer = response.get("Error", {})
    code = str(answer.get("Code") or "Unknown")
    meta = response.get("ResponseMetadata", {})
    status = meta.get("HTTPStatusCode", 0)
    if code in _CREDENTIALS:
        return AwsFault(code, f"{code}: {_CREDENTIALS[code]}", transient=False)
    if code in _ELSEWHERE:
        region = meta.get("HTTPHeaders", {}).get("x-amz-bucket-region") or answer.get("Region")
        text = f"{code}: it is in {f'region {region!r}' if region else 'another region'}"
        return AwsFault(code, f"{text}. Set AWS_REGION to that", transient=False)
    message = " ".join(str(answer.get("Message") or "").split()).rstrip(".")
    reason = f"{code}: {message}" if message and message != code else code
    transient = code in _TRANSIENT or status >= _SERVER_FAULT or status == _TOO_MANY
    return AwsFault(code, reason, transient)
