"""Guard: the middleware that admits requests and protects the browsers of users."""

import hmac
from typing import Final
from urllib.parse import quote

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rule_core.clock import Clock
from rule_runner.errors import ClientError
from rule_runner.logs import get_logger
from rule_runner.service.access.forwarded import (
    client_of,
    duplicate_header,
    is_same_origin,
    peer_of,
)
from rule_runner.service.access.principals import Principal, Principals
from rule_runner.service.access.rate_limit import RateLimit
from rule_runner.service.access.tokens import Role
from rule_runner.service.responses import error_response, too_many_response
from rule_runner.service.settings import ServiceSettings

_log: Final = get_logger(__name__)
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; worker-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_HSTS: Final = "max-age=31536000"
_LOCAL: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
_SAFE: Final = frozenset({"GET", "HEAD"})
_HEALTH: Final = "/healthz"
_FOR_ALL: Final = frozenset({_HEALTH, "/login", "/readyz"})
_STATIC: Final = "/static/"
_LOGGED: Final = 200  # characters of a path
_MOST_BYTES: Final = 65_536  # of a body
_REQUESTS: Final = (50.0, 500)  # a second and at once, of a principal
_ACTIONS: Final = (2.0, 60)


class Guard:
    """Answers requests that must not reach the application, and adds headers to all answers.

    It sets `principal`, `csrf_token` and `has_session` in the state of a request, and `principals`,
    which can identify the sender again.
    """

    def __init__(
        self, app: ASGIApp, *, settings: ServiceSettings, principals: Principals, clock: Clock
    ) -> None:
        self._app = app
        self._settings = settings
        self._principals = principals
        self._requests = RateLimit(clock, *_REQUESTS)
        self._actions = RateLimit(clock, *_ACTIONS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        statuses: list[int] = []

        async def send_protected(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
                self._protect(request, MutableHeaders(scope=message))
            await send(message)

        refusal = self._refusal(request)
        if refusal is None:
            await self._app(scope, _limited(receive), send_protected)
        else:
            await refusal(scope, receive, send_protected)
        if request.method not in _SAFE:
            principal = getattr(request.state, "principal", None)
            _log.info(
                "request",
                method=request.method[:_LOGGED],
                path=scope["path"][:_LOGGED],
                client=client_of(request, self._settings),
                who=None if principal is None else principal.name,
                status=statuses[0] if statuses else None,
            )

    def _protect(self, request: Request, headers: MutableHeaders) -> None:
        for name, value in _HEADERS.items():
            headers.setdefault(name, value)
        headers.setdefault("Cache-Control", "no-store")
        if self._principals.is_encrypted(request):
            headers.setdefault("Strict-Transport-Security", _HSTS)

    def _refusal(self, request: Request) -> Response | None:
        """Return the answer to a request that is not let in; None: it is."""
        if name := duplicate_header(request, self._settings):
            return error_response(request, 400, f"Header {name!r} is given more than once.")
        if self._settings.is_open and not self._is_own_host(request):
            sentence = "This name is not served. Start 'serve' with --allowed-host NAME."
            return error_response(request, 421, sentence)
        try:
            principal = self._principals.of(request)
        except ClientError as err:
            if request.scope["path"] == _HEALTH or _is_static(request):
                return None
            return error_response(request, 503, str(err))
        if principal is not None:
            request.state.principal = principal
            request.state.principals = self._principals
            request.state.csrf_token = self._principals.csrf_token(principal)
            request.state.has_session = principal.has_session
        return self._too_many(request, principal) or self._not_allowed(request, principal)

    def _not_allowed(self, request: Request, principal: Principal | None) -> Response | None:
        """Return the answer to a request that its principal may not send; None: it may."""
        is_action = request.method not in _SAFE
        if _is_too_long(request):
            return error_response(request, 413, f"The body is longer than {_MOST_BYTES} bytes.")
        if is_action and not is_same_origin(request, self._settings):
            return error_response(request, 403, "Pages of other sites may not do this.")
        if request.scope["path"] in _FOR_ALL or _is_static(request):
            return None
        if principal is None:
            return _unknown(request)
        return self._forbidden(request, principal) if is_action else None

    def _is_own_host(self, request: Request) -> bool:
        """Return whether a request uses a name of this machine: another site's name may lead here.

        See DNS rebinding.
        """
        host = request.headers.get("host", "")
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
        return name.lower() in _LOCAL or name.lower() in self._settings.allowed_hosts

    def _too_many(self, request: Request, principal: Principal | None) -> Response | None:
        if principal is None:
            wait = self._principals.wait_after_failure(request)
        else:
            limit = self._requests if request.method in _SAFE else self._actions
            wait = limit.wait(f"{principal.name} {peer_of(request)}")
        return too_many_response(request, wait) if wait else None

    def _forbidden(self, request: Request, principal: Principal) -> Response | None:
        """Return the answer to an action that a principal may not take; None: it may."""
        if request.scope["path"] == "/logout":
            return None
        if principal.role is not Role.ACT:
            sentence = f"Token {principal.name!r} may read only. Ask for one with the role act."
            return error_response(request, 403, sentence)
        given = request.headers.get("x-csrf-token", "").encode()
        expected = self._principals.csrf_token(principal).encode()
        needs_token = bool(principal.identity) and _is_browser(request)
        if needs_token and not hmac.compare_digest(given, expected):
            sentence = "This page is too old to act. Reload it."
            return error_response(request, 403, sentence)
        return None


def is_let_in(request: Request) -> bool:
    """Return whether a request that the guard has let in would be let in now, if there is one."""
    principals: Principals | None = getattr(request.state, "principals", None)
    try:
        return principals is None or principals.of(request) is not None
    except ClientError:
        return False


def _unknown(request: Request) -> Response:
    """Return the response to an unauthenticated request."""
    if request.method in _SAFE and "text/html" in request.headers.get("accept", ""):
        query = request.scope["query_string"].decode("latin-1")
        address = request.scope["path"] + (f"?{query}" if query else "")
        return RedirectResponse(f"/login?next={quote(address)}", 303)
    response = error_response(request, 401, "A valid token is needed: Authorization: Bearer TOKEN.")
    response.headers["WWW-Authenticate"] = "Bearer"
    return response


def _is_browser(request: Request) -> bool:
    """Return whether a request may be from a browser, which can be led to send it."""
    return not {"cookie", "origin", "referer", "sec-fetch-site"}.isdisjoint(request.headers)


def _is_static(request: Request) -> bool:
    # Not of `request.url`, which is made from the Host header as well.
    path: str = request.scope["path"]
    return path.startswith(_STATIC)


def _is_too_long(request: Request) -> bool:
    length = request.headers.get("content-length", "0")
    return not length.isdecimal() or int(length) > _MOST_BYTES


def _limited(receive: Receive) -> Receive:
    """Return a source of messages that ends when a body without a length becomes too long."""
    total = 0

    async def receive_limited() -> Message:
        nonlocal total
        message = await receive()
        total += len(message.get("body", b""))
        return {"type": "http.disconnect"} if total > _MOST_BYTES else message

    return receive_limited
