"""Webhooks: one signed POST to a checked address, within a strict time limit."""

import hashlib
import hmac
import os
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, urlsplit

from rule_core.clock import Clock, SystemClock
from rule_runner.logs import get_logger
from rule_runner.notify.webhook_addresses import (
    Address,
    effective_address,
    is_forbidden,
    resolve_host,
)

if TYPE_CHECKING:
    from urllib3.connection import HTTPConnection

_log: Final = get_logger(__name__)

SECRET: Final = "RULE_RUNNER_WEBHOOK_SECRET"  # noqa: S105 - the variable's name
SIGNATURE: Final = "RuleRunner-Signature"
TIMEOUT_S: Final = 10.0

_PORTS: Final = {"https": 443, "http": 80}
_ACCEPTED, _REDIRECTED = range(200, 300), range(300, 400)
_TRANSIENT: Final = {408, 425, 429, *range(500, 600)}  # a retry may succeed
# The address or the permission is wrong for every post, but users can correct it.
_WRONG_ADDRESS: Final = {401, 403, 404, 405, 407, 410}
_REFUSED: Final = {*range(400, 500)} - _TRANSIENT - _WRONG_ADDRESS
Resolver = Callable[[str, int], Sequence[str]]


class WebhookError(Exception):
    """A webhook was not accepted; the text is one sentence without secrets.

    Attributes
    ----------
    transient
        Whether the same post may succeed later.
    refused
        Whether the server rejects this post for good, but may accept others.
    """

    def __init__(self, text: str, *, transient: bool = False, refused: bool = False) -> None:
        super().__init__(text)
        self.transient = transient
        self.refused = refused


def masked(url: str) -> str:
    """Return `url` without the parts that may be secret: path, query and user information.

    >>> masked("https://user:pass@hooks.example.org:8443/services/T0/B1?token=x")
    'https://hooks.example.org:8443/...'
    """
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "..."
    if parts.scheme not in _PORTS:
        return "..."
    return f"{parts.scheme}://{_bracketed(parts.hostname or '')}{port}/..."


def secret_of_environment() -> str | None:
    """Return the secret for signatures; log a warning without one."""
    secret = os.environ.get(SECRET)
    if not secret:
        _log.warning("webhook_unsigned", reason=f"Environment variable {SECRET} is not set.")
    return secret or None


def signature(secret: str, body: bytes, timestamp: int) -> str:
    """Return the value of the header `SIGNATURE`.

    >>> signature("s", b"{}", 1700000000)[:30]
    't=1700000000,v1=e9232c9945da84'
    """
    digest = hmac.new(secret.encode(), b"%d." % timestamp + body, hashlib.sha256).hexdigest()
    return f"t={timestamp},v1={digest}"


def check(url: str) -> SplitResult:
    """Check an address without resolving it, and return its parts.

    Raises
    ------
    WebhookError
        If it is not https (http is for loopback addresses only), has user information, no host,
        a forbidden address as its host, or characters that URLs do not allow.
    """
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise WebhookError(f"Webhook address is not a URL, got {masked(url)!r}.") from None
    if parts.scheme not in _PORTS or not parts.hostname:
        raise WebhookError(
            f"Webhook address must begin with https:// and a host, got {masked(url)!r}."
        )
    if parts.username is not None or parts.password is not None:
        raise WebhookError(
            f"Webhook address must not hold a user or password, got {masked(url)!r}."
        )
    if not url.isascii() or not url.isprintable() or " " in url:
        raise WebhookError(
            f"Webhook address must be printable ASCII without spaces, got {masked(url)!r}."
        )
    with suppress(ValueError):  # a name, which is checked when it is resolved
        _check_address(
            effective_address(parts.hostname), masked(url), secure=parts.scheme == "https"
        )
    return parts


def _check_address(address: Address, url: str, *, secure: bool) -> None:
    """Raise if an address is forbidden, or is forbidden without TLS."""
    if is_forbidden(address):
        raise WebhookError(
            f"Webhook {url} resolves to {address}: link-local, metadata, multicast, reserved and "
            "translated addresses are not allowed."
        )
    if not secure and not address.is_loopback:
        raise WebhookError(f"Webhook {url} must be https: it does not resolve to this machine.")


def post(
    url: str,
    body: bytes,
    *,
    content_type: str,
    secret: str | None,
    timeout_s: float = TIMEOUT_S,
    clock: Clock | None = None,
    resolve: Resolver = resolve_host,
) -> None:
    """Post `body` once; return when the server has accepted it with a 2xx.

    The host is resolved once; all of its addresses must be allowed, and the connection goes to
    one of these addresses. No proxy is used, no redirect is followed, and only the head of the
    response is read.

    Parameters
    ----------
    secret
        Key of the `signature`; None sends no signature.
    timeout_s
        Seconds for everything, including resolving.
    clock
        Source of the signed time.
    resolve
        Returns the addresses of a host.

    Raises
    ------
    WebhookError
        If it was not accepted, or that is unknown.
    """
    parts = check(url)
    host = _bracketed(parts.hostname or "") + (f":{parts.port}" if parts.port else "")
    headers = {"Content-Type": content_type, "User-Agent": "rule-runner", "Connection": "close"}
    if secret:
        headers[SIGNATURE] = signature(secret, body, int((clock or SystemClock()).time()))
    exchange = _Exchange(parts, masked(url), body, headers | {"Host": host}, timeout_s, resolve)
    # A separate thread, because resolvers and slow servers have no time limit.
    thread = threading.Thread(target=exchange.run, name="webhook", daemon=True)
    thread.start()
    thread.join(timeout_s)
    exchange.result()


@dataclass(slots=True, repr=False)
class _Exchange:
    """One request and the head of its response."""

    parts: SplitResult
    url: str  # masked
    body: bytes
    headers: dict[str, str]
    timeout_s: float
    resolve: Resolver
    connection: "HTTPConnection | None" = None
    over: bool = False
    outcome: int | Exception | None = None

    @property
    def host(self) -> str:
        return self.parts.hostname or ""

    @property
    def port(self) -> int:
        return self.parts.port or _PORTS[self.parts.scheme]

    @property
    def secure(self) -> bool:
        return self.parts.scheme == "https"

    def run(self) -> None:
        """Make the request, and store its outcome."""
        from http.client import HTTPException

        from urllib3.exceptions import HTTPError

        try:
            self.outcome = self._answer()
        except (OSError, HTTPException, HTTPError, ValueError, WebhookError) as err:
            self.outcome = err  # `result` raises it
        finally:
            if self.connection is not None:
                self.connection.close()

    def result(self) -> None:
        """Return if the response was 2xx, raise otherwise."""
        self.over = True
        match self.outcome:
            case None:
                self._hang_up()
                raise self._late()
            case WebhookError() as error:
                raise error
            case Exception() as error:
                cause = error.__cause__ or error
                if isinstance(cause, TimeoutError):
                    raise self._late() from error
                msg = f"Webhook {self.url} could not be posted to: {_words(cause)}."
                certain = isinstance(cause, ssl.SSLCertVerificationError)
                raise WebhookError(msg, transient=not certain) from error
            case status:
                self._check_status(status)

    def _late(self) -> WebhookError:
        msg = f"Webhook {self.url} did not answer within {self.timeout_s:g} s."
        return WebhookError(msg, transient=True)

    def _check_status(self, status: int) -> None:
        if status in _ACCEPTED:
            return
        if status in _REDIRECTED:
            raise WebhookError(
                f"Webhook {self.url} answered with redirect {status}, which is not followed. "
                "Give the final address."
            )
        raise WebhookError(
            f"Webhook {self.url} answered with status {status}.",
            transient=status in _TRANSIENT,
            refused=status in _REFUSED,
        )

    def _answer(self) -> int:
        """Return the status of the response."""
        connection = self._connected(self._checked(self.resolve(self.host, self.port)))
        if self.over:  # the caller has given up, and may post it again
            raise TimeoutError
        path = (self.parts.path or "/") + (f"?{self.parts.query}" if self.parts.query else "")
        connection.request("POST", path, self.body, self.headers, preload_content=False)
        return connection.getresponse().status

    def _connected(self, addresses: Sequence[str]) -> "HTTPConnection":
        """Return a connection to the first address that accepts one."""
        from urllib3.exceptions import HTTPError

        *first, last = addresses
        limit = self.timeout_s / len(addresses)
        for address in first:
            with suppress(HTTPError, OSError):
                return self._connect(address, limit)
        return self._connect(last, limit)

    def _checked(self, addresses: Sequence[str]) -> list[str]:
        """Return the addresses if all are allowed."""
        if not addresses:
            raise WebhookError(f"Webhook {self.url} has no address.", transient=True)
        for address in map(effective_address, addresses):
            _check_address(address, self.url, secure=self.secure)
        return list(addresses)

    def _connect(self, address: str, limit: float) -> "HTTPConnection":
        """Return a connection to an address, whose certificate must match the host."""
        from urllib3 import connection

        if self.secure:
            context = ssl.create_default_context()
            self.connection = connection.HTTPSConnection(
                address,
                self.port,
                timeout=limit,
                ssl_context=context,
                server_hostname=self.host,
            )
        else:
            self.connection = connection.HTTPConnection(address, self.port, timeout=limit)
        self.connection.connect()
        self.connection.timeout = self.timeout_s  # of each read from now on
        return self.connection

    def _hang_up(self) -> None:
        """End a read that could otherwise block forever."""
        sock = getattr(self.connection, "sock", None)
        if isinstance(sock, socket.socket):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)


def _words(cause: BaseException) -> str:
    """Return why there was no response; the text of the error itself may contain the address."""
    match cause:
        case socket.gaierror():
            return "its host is unknown"
        case ConnectionRefusedError():
            return "the connection was refused"
        case ssl.SSLCertVerificationError():
            return f"its certificate is not valid ({cause.verify_message})"
        case ssl.SSLError():
            return f"TLS failed ({cause.reason})"
        case OSError() if cause.strerror:
            return cause.strerror
        case _:
            return type(cause).__name__


def _bracketed(host: str) -> str:
    """Return a host in the form that URLs need."""
    return f"[{host}]" if ":" in host else host
