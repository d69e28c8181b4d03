"""Login: a token is exchanged for the session of a browser."""

from typing import Final
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from rule_runner.service.access.principals import Principals
from rule_runner.service.pages.rendering import render

_FIELDS: Final = 5  # more than the form has


def login_routes(principals: Principals, *, is_encrypted: bool) -> list[Route]:
    """Return the routes to log in and out."""

    async def log_in(request: Request) -> Response:
        try:
            fields = dict(parse_qsl((await request.body()).decode(), max_num_fields=_FIELDS))
        except (ClientDisconnect, ValueError) as err:
            raise HTTPException(400, "This is not the form of the login.") from err
        place = fields.get("next", "/")
        session = principals.log_in(fields.get("token", ""))
        if session is None:
            error = "This token is not valid, or has expired."
            return render(request, "login.html.jinja", status=401, error=error, next=place)
        response = RedirectResponse(_own_place(place), 303)
        response.set_cookie(
            principals.cookie, session, httponly=True, samesite="strict", secure=is_encrypted
        )
        return response

    async def log_out(request: Request) -> Response:
        principals.log_out(request)
        response = RedirectResponse("/login", 303)
        response.delete_cookie(
            principals.cookie, httponly=True, samesite="strict", secure=is_encrypted
        )
        return response

    return [
        Route("/login", log_in, methods=["POST"]),
        Route("/logout", log_out, methods=["POST"]),
    ]


def _own_place(place: str) -> str:
    """Return where to go after the login: a place of this service.

    >>> _own_place("/trials?page=2"), _own_place("//example.com"), _own_place("https://example.com")
    ('/trials?page=2', '/', '/')
    """
    is_own = place.startswith("/") and not place.startswith(("//", "/\\")) and place.isprintable()
    return place if is_own else "/"
