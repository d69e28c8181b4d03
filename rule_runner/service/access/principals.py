"""Principals: who sends a request, known by a token, a session, a proxy, or as this machine."""

import hashlib
import hmac
import ipaddress
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple

from cachetools import TTLCache
from starlette.requests import Request

from rule_core.clock import Clock
from rule_runner.service.access.tokens import Role, TokenFile, digest_of
from rule_runner.service.settings import Network, ServiceSettings

_SESSIONS: Final = 10_000
SESSION_S: Final = 12 * 3600.0
_LONGEST_NAME: Final = 200


class Principal(NamedTuple):
    """Who sends a request.

    Attributes
    ----------
    identity
        What its CSRF token is bound to; "" for tokens in headers, which browsers never send by
        themselves.
    """

    name: str
    role: Role
    identity: str
    has_session: bool = False


class Principals:
    """Finds the principal of each request, and keeps the sessions of browsers."""

    def __init__(self, settings: ServiceSettings, clock: Clock) -> None:
        self._clock = clock
        self._settings = settings
        self._tokens = None if settings.tokens is None else TokenFile(settings.tokens)
        self._sessions: TTLCache[str, str] = TTLCache(_SESSIONS, SESSION_S, timer=clock.monotonic)
        self._key = secrets.token_bytes(32)

    @property
    def cookie(self) -> str:
        """The name of the cookie of a session."""
        return "__Host-rule-runner" if self._settings.is_encrypted else "rule-runner"

    def of(self, request: Request) -> Principal | None:
        """Return who sends a request; None: nobody who is known.

        Raises
        ------
        ClientError
            If the tokens cannot be read.
        """
        return (
            self._of_header(request.headers)
            or self._of_session(request)
            or self._of_proxy(request)
            or self._of_machine()
        )

    def _of_header(self, headers: Mapping[str, str]) -> Principal | None:
        scheme, _, secret = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        return self._with(digest_of(secret.strip()), "")

    def _of_session(self, request: Request) -> Principal | None:
        session = request.cookies.get(self.cookie, "")
        digest = self._sessions.get(session)
        found = None if digest is None else self._with(digest, session)
        return None if found is None else found._replace(has_session=True)

    def _with(self, digest: str, identity: str) -> Principal | None:
        if self._tokens is None:
            return None
        token = self._tokens.find(digest, datetime.fromtimestamp(self._clock.time(), UTC))
        return None if token is None else Principal(token.name, token.role, identity)

    def _of_proxy(self, request: Request) -> Principal | None:
        header = self._settings.user_header
        if header is None or not is_peer_in(request, self._settings.trusted_proxies):
            return None
        name = request.headers.get(header, "").strip()
        if not name or len(name) > _LONGEST_NAME or not name.isprintable():
            return None
        return Principal(name, Role.ACT, f"proxy {name}")

    def _of_machine(self) -> Principal | None:
        return Principal("local", Role.ACT, "local") if self._settings.is_open else None

    def log_in(self, secret: str) -> str | None:
        """Begin a session with a token, and return its cookie; None if the token is not valid."""
        digest = digest_of(secret.strip())
        if self._with(digest, "") is None:
            return None
        session = secrets.token_urlsafe(32)
        self._sessions[session] = digest
        return session

    def log_out(self, request: Request) -> None:
        """End the session of a request."""
        self._sessions.pop(request.cookies.get(self.cookie, ""), None)

    def csrf_token(self, principal: Principal) -> str:
        """Return what pages send with their actions, and pages of other sites do not know."""
        return hmac.new(self._key, principal.identity.encode(), hashlib.sha256).hexdigest()


def is_peer_in(request: Request, networks: tuple[Network, ...]) -> bool:
    """Return whether the other end of the connection is in one of some networks."""
    try:
        address = ipaddress.ip_address("" if request.client is None else request.client.host)
    except ValueError:
        return False
    return any(address in network for network in networks)
