"""Principals: who sends a request, known by a token, a session, a proxy, or as this machine."""

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple

from cachetools import TTLCache
from starlette.requests import Request

from rule_core.clock import Clock
from rule_runner.errors import ClientError
from rule_runner.logs import get_logger
from rule_runner.service.access.forwarded import client_of, has_proxy, scheme_of
from rule_runner.service.access.rate_limit import RateLimit
from rule_runner.service.access.tokens import Role, TokenFile, digest_of
from rule_runner.service.settings import ServiceSettings

_log: Final = get_logger(__name__)
_UNUSABLE: Final = "The tokens cannot be used. The log of the service has the reason."
_SESSIONS: Final = 10_000
SESSION_S: Final = 12 * 3600.0
_LONGEST_NAME: Final = 200
_FAILURES: Final = (0.1, 10)  # a second and at once, of a client with tokens that begin alike
_PREFIX: Final = 4  # characters of a token


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
        self._failures = RateLimit(clock, *_FAILURES)
        self._logged_problem = ""  # of the tokens, while it lasts
        self._sessions: TTLCache[str, str] = TTLCache(_SESSIONS, SESSION_S, timer=clock.monotonic)
        self._key = secrets.token_bytes(32)

    def is_encrypted(self, request: Request) -> bool:
        """Return whether a request came over TLS, to this service or to a trusted proxy."""
        return scheme_of(request, self._settings) == "https"

    def cookie(self, request: Request) -> str:
        """Return the name of the cookie of a session."""
        return "__Host-rule-runner" if self.is_encrypted(request) else "rule-runner"

    def of(self, request: Request) -> Principal | None:
        """Return the sender of a request; None: the sender is unknown.

        Raises
        ------
        ClientError
            If the tokens cannot be read.
        """
        return (
            self._of_header(request.headers)
            or self._of_session(request)
            or self._of_proxy(request)
            or (Principal("local", Role.ACT, "local") if self._settings.is_open else None)
        )

    def _of_header(self, headers: Mapping[str, str]) -> Principal | None:
        secret = _bearer(headers)
        return None if secret is None else self._with(digest_of(secret), "")

    def _of_session(self, request: Request) -> Principal | None:
        session = request.cookies.get(self.cookie(request), "")
        digest = self._sessions.get(session)
        found = None if digest is None else self._with(digest, session)
        return None if found is None else found._replace(has_session=True)

    def _with(self, digest: str, identity: str) -> Principal | None:
        if self._tokens is None:
            return None
        now = datetime.fromtimestamp(self._clock.time(), UTC)
        try:
            token = self._tokens.find(digest, now)
        except ClientError as err:
            if str(err) != self._logged_problem:
                _log.error("tokens_unusable", reason=str(err))
            self._logged_problem = str(err)
            raise ClientError(_UNUSABLE) from err
        self._logged_problem = ""
        return None if token is None else Principal(token.name, token.role, identity)

    def _of_proxy(self, request: Request) -> Principal | None:
        header = self._settings.user_header
        if header is None or not has_proxy(request, self._settings):
            return None
        name = request.headers.get(header, "").strip()
        if not name or len(name) > _LONGEST_NAME or not name.isprintable():
            return None
        return Principal(name, Role.ACT, f"proxy {name}")

    def log_in(self, secret: str) -> str | None:
        """Begin a session with a token, and return its cookie; None if the token is not valid."""
        digest = digest_of(secret.strip())
        if self._with(digest, "") is None:
            return None
        session = secrets.token_urlsafe(32)
        self._sessions[session] = digest
        return session

    def wait_after_failure(self, request: Request, secret: str | None = None) -> int:
        """Count a token that was refused, and return the seconds to wait before the next; 0: none.

        Parameters
        ----------
        secret
            The token; None: that of the header, if there is one.
        """
        if secret is None and (secret := _bearer(request.headers)) is None:
            return 0
        return self._failures.wait(f"{client_of(request, self._settings)} {secret[:_PREFIX]}")

    def log_out(self, request: Request) -> None:
        """End the session of a request."""
        self._sessions.pop(request.cookies.get(self.cookie(request), ""), None)

    def csrf_token(self, principal: Principal) -> str:
        """Return what pages send with their actions, and pages of other sites do not know."""
        return hmac.new(self._key, principal.identity.encode(), hashlib.sha256).hexdigest()


def _bearer(headers: Mapping[str, str]) -> str | None:
    """Return the token in the headers of a request; None if there is none."""
    scheme, _, secret = headers.get("authorization", "").partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else None
