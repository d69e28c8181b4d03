"""Webhooks: one signed POST to an address that was checked, in a time that no server extends."""

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

import structlog

from rule_runner.addresses import Address, is_closed, meant, resolved
from smdebug.core.clock import Clock, SystemClock

if TYPE_CHECKING:
    from urllib3.connection import HTTPConnection

_log: Final = structlog.get_logger()

SECRET: Final = "RULE_RUNNER_WEBHOOK_SECRET"  # noqa: S105 - the variable's name
SIGNATURE: Final = "RuleRunner-Signature"
TIMEOUT_S: Final = 10.0

_PORTS: Final = {"https": 443, "http": 80}
_TAKEN, _REDIRECTED = range(200, 300), range(300, 400)
_PASSING: Final = {408, 425, 429, *range(500, 600)}  # a later try may not meet them
Resolver = Callable[[str, int], Sequence[str]]


class WebhookError(Exception):
    """A webhook was not taken; the text is one sentence that shows no secret.

    Attributes
    ----------
    transient
        Whether the same post may succeed later.
    """

    def __init__(self, text: str, *, transient: bool = False) -> None:
        super().__init__(text)
        self.transient = transient


def masked(url: str) -> str:
    """Return `url` without what may be secret: path, query and user information.

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
    """Return the secret to sign with; without one say once that webhooks go unsigned."""
    secret = os.environ.get(SECRET)
    if not secret:
        _log.warning("webhook_unsigned", reason=f"Environment variable {SECRET} is not set.")
    return secret or None


def signature(secret: str, body: bytes, at: int) -> str:
    """Return what the header `SIGNATURE` holds.

    >>> signature("s", b"{}", 1700000000)[:30]
    't=1700000000,v1=e9232c9945da84'
    """
    digest = hmac.new(secret.encode(), b"%d." % at + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"


def check(url: str) -> SplitResult:
    """Return the parts of an address that can be posted to, as far as it alone can tell.

    Raises
    ------
    WebhookError
        If it is not https (or http, which only a loopback address may have), has user
        information, no host, an address as its host that must not be reached, or characters that
        have no place in it.
    """
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        msg = f"Webhook address is not a URL, got {masked(url)!r}."
        raise WebhookError(msg) from None
    if parts.scheme not in _PORTS or not parts.hostname:
        msg = f"Webhook address must begin with https:// and a host, got {masked(url)!r}."
        raise WebhookError(msg)
    if parts.username is not None or parts.password is not None:
        msg = f"Webhook address must not hold a user or password, got {masked(url)!r}."
        raise WebhookError(msg)
    if not url.isascii() or not url.isprintable() or " " in url:
        msg = f"Webhook address must be printable ASCII without spaces, got {masked(url)!r}."
        raise WebhookError(msg)
    with suppress(ValueError):  # a name: it is checked when it is resolved
        _check_address(meant(parts.hostname), masked(url), secure=parts.scheme == "https")
    return parts


def _check_address(address: Address, shown: str, *, secure: bool) -> None:
    """Raise if an address must not be reached, or not without TLS."""
    if is_closed(address):
        msg = (
            f"Webhook {shown} leads to {address}: link-local, metadata, multicast "
            "and unspecified addresses are not posted to."
        )
        raise WebhookError(msg)
    if not secure and not address.is_loopback:
        msg = f"Webhook {shown} must be https: it does not lead to this machine."
        raise WebhookError(msg)


def post(
    url: str,
    body: bytes,
    *,
    content_type: str,
    secret: str | None,
    timeout_s: float = TIMEOUT_S,
    clock: Clock | None = None,
    resolve: Resolver = resolved,
) -> None:
    """Post `body` once; return when the server has said with a 2xx that it took it.

    The host is resolved once; each of its addresses must be one that may be reached, and the
    connection is made to such an address itself. No proxy is used, no redirect followed, and of
    the answer only the head is read.

    Parameters
    ----------
    secret
        What to sign with, see `signature`; None is unsigned.
    timeout_s
        Seconds for everything, resolving included.
    clock
        Tells the time that is signed.
    resolve
        Returns a host's addresses.

    Raises
    ------
    WebhookError
        If it was not taken, or it is not known whether.
    """
    headers = {"Content-Type": content_type, "User-Agent": "rule-runner", "Connection": "close"}
    if secret:
        headers[SIGNATURE] = signature(secret, body, int((clock or SystemClock()).time()))
    exchange = _Exchange(check(url), masked(url), body, headers, timeout_s, resolve)
    # A thread of its own: neither a resolver nor a server that drips bytes knows an end.
    thread = threading.Thread(target=exchange.run, name="webhook", daemon=True)
    thread.start()
    thread.join(timeout_s)
    exchange.result(timeout_s)


@dataclass(frozen=True, slots=True)
class _Failed:
    error: Exception


class _Exchange:
    """One request and the head of its answer."""

    def __init__(
        self,
        parts: SplitResult,
        shown: str,
        body: bytes,
        headers: dict[str, str],
        timeout_s: float,
        resolve: Resolver,
    ) -> None:
        self._host = parts.hostname or ""
        self._port = parts.port or _PORTS[parts.scheme]
        self._secure = parts.scheme == "https"
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        port = f":{parts.port}" if parts.port else ""
        self._headers = headers | {"Host": _bracketed(self._host) + port}
        self._shown = shown
        self._body = body
        self._timeout_s = timeout_s
        self._resolve = resolve
        self._connection: HTTPConnection | None = None
        self._over = False
        self._outcome: int | _Failed | None = None

    def run(self) -> None:
        """Do it, and keep what came of it."""
        try:
            self._outcome = self._answer()
        except Exception as err:  # noqa: BLE001 - told by `result`, in the caller's thread
            self._outcome = _Failed(err)
        finally:
            if self._connection is not None:
                self._connection.close()

    def result(self, limit: float) -> None:
        """Return if the answer was 2xx; raise what else it was."""
        self._over = True
        match self._outcome:
            case None:
                self._hang_up()
                raise self._late(limit)
            case _Failed(WebhookError() as error):
                raise error
            case _Failed(error):
                cause = error.__cause__ or error
                if isinstance(cause, TimeoutError):
                    raise self._late(limit) from error
                msg = f"Webhook {self._shown} could not be posted to: {_words(cause)}."
                certain = isinstance(cause, ssl.SSLCertVerificationError)
                raise WebhookError(msg, transient=not certain) from error
            case status:
                self._check_status(status)

    def _late(self, limit: float) -> WebhookError:
        msg = f"Webhook {self._shown} did not answer within {limit:g} s."
        return WebhookError(msg, transient=True)

    def _check_status(self, status: int) -> None:
        if status in _TAKEN:
            return
        if status in _REDIRECTED:
            msg = (
                f"Webhook {self._shown} answered with redirect {status}; none is followed. "
                "Give the address that it leads to."
            )
            raise WebhookError(msg)
        msg = f"Webhook {self._shown} answered with status {status}."
        raise WebhookError(msg, transient=status in _PASSING)

    def _answer(self) -> int:
        """Return the status of the answer."""
        connection = self._connected(self._checked(self._resolve(self._host, self._port)))
        if self._over:  # nobody waits for it any more, and it may be posted again
            raise TimeoutError
        connection.request("POST", self._path, self._body, self._headers, preload_content=False)
        return connection.getresponse().status

    def _connected(self, addresses: Sequence[str]) -> "HTTPConnection":
        """Return a connection to the first address that has one."""
        from urllib3.exceptions import HTTPError  # noqa: PLC0415 - probes sockets when imported

        *first, last = addresses
        limit = self._timeout_s / len(addresses)
        for address in first:
            with suppress(HTTPError, OSError):
                return self._connect(address, limit)
        return self._connect(last, limit)

    def _checked(self, found: Sequence[str]) -> list[str]:
        """Return the addresses if all may be reached."""
        if not found:
            msg = f"Webhook {self._shown} has no address."
            raise WebhookError(msg, transient=True)
        for address in map(meant, found):
            _check_address(address, self._shown, secure=self._secure)
        return list(found)

    def _connect(self, address: str, limit: float) -> "HTTPConnection":
        """Return a connection to an address; the certificate must be the host's."""
        from urllib3 import connection  # noqa: PLC0415 - probes sockets when imported

        if self._secure:
            context = ssl.create_default_context()
            self._connection = connection.HTTPSConnection(
                address,
                self._port,
                timeout=limit,
                ssl_context=context,
                server_hostname=self._host,
            )
        else:
            self._connection = connection.HTTPConnection(address, self._port, timeout=limit)
        self._connection.connect()
        self._connection.timeout = self._timeout_s  # of each read from now on
        return self._connection

    def _hang_up(self) -> None:
        """End a read that may never end otherwise."""
        sock = getattr(self._connection, "sock", None)
        if isinstance(sock, socket.socket):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)


def _words(cause: BaseException) -> str:
    """Return why there was no answer; the text of an error itself may hold the address."""
    match cause:
        case socket.gaierror():
            return "its host is not known"
        case ConnectionRefusedError():
            return "nothing listens there"
        case ssl.SSLCertVerificationError():
            return f"its certificate is not valid ({cause.verify_message})"
        case ssl.SSLError():
            return f"TLS failed ({cause.reason})"
        case OSError() if cause.strerror:
            return cause.strerror
        case _:
            return type(cause).__name__


def _bracketed(host: str) -> str:
    """Return a host as URLs have it."""
    return f"[{host}]" if ":" in host else host
