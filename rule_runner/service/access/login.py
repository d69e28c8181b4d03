"""Login: a token is exchanged for the session of a browser."""

from typing import Any, Final
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from rule_runner.errors import ClientError
from rule_runner.service.access.principals import Principals
from rule_runner.service.pages.rendering import render
from rule_runner.service.responses import too_many_response

_FIELDS: Final = 5  # more than the form has


def login_routes(principals: Principals) -> list[Route]:
    """Return the routes to log in and out."""

    def cookie(request: Request) -> dict[str, Any]:
        secure = principals.is_encrypted(request)
        key = principals.cookie(request)
        return {"key": key, "httponly": True, "samesite": "strict", "secure": secure}

    async def log_in(request: Request) -> Response:
        try:
            fields = dict(parse_qsl((await request.body()).decode(), max_num_fields=_FIELDS))
        except (ClientDisconnect, ValueError) as err:
            raise HTTPException(400, "This is not the form of the login.") from err
        target = fields.get("next", "/")
        secret = fields.get("token", "").strip()
        try:
            session = principals.log_in(secret)
        except ClientError as err:
            raise HTTPException(503, str(err)) from err
        if session is None:
            if wait := principals.wait_after_failure(request, secret):
                return too_many_response(request, wait)
            error = "This token is not valid, or has expired."
            return render(request, "login.html.jinja", status=401, error=error, next=target)
        principals.log_out(request)
        response = RedirectResponse(_own_target(target), 303)
        response.set_cookie(value=session, **cookie(request))
        return response

    async def log_out(request: Request) -> Response:
        principals.log_out(request)
        response = RedirectResponse("/login", 303)
        response.delete_cookie(**cookie(request))
        return response

    return [
        Route("/login", log_in, methods=["POST"]),
        Route("/logout", log_out, methods=["POST"]),
    ]


def _own_target(target: str) -> str:
    """Return the page to open after the login; other sites are replaced by ``/``.

    >>> _own_target("/trials?page=2"), _own_target("//example.com"), _own_target("https://example.com")
    ('/trials?page=2', '/', '/')
    """
    is_own = (
        target.startswith("/") and not target.startswith(("//", "/\\")) and target.isprintable()
    )
    return target if is_own else "/"
