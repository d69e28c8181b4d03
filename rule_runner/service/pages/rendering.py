"""Rendering: templates, error pages, and static files at addresses that name their content."""

import hashlib
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

import jinja2
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from rule_core.model.segments import step_text
from rule_runner.report.html.trials import template_environment
from rule_runner.service.pages.words import short

TEMPLATES: Final = Path(__file__).with_name("templates")
STATIC: Final = Path(__file__).with_name("static")
_FOREVER: Final = "public, max-age=31536000, immutable"
_DIGEST_LENGTH: Final = 16


# The title of an error page, and what to do.
_WORDS: Final = {
    400: ("This address is not valid", ""),
    401: ("Log in first", ""),
    403: ("Not allowed", "Ask the person who runs this service for a token that may do this."),
    404: ("Not here", "A trial that was removed, or found again, has another number."),
    405: ("Not possible here", ""),
    409: ("Not possible now", ""),
    413: ("Too large", ""),
    429: ("Too many requests", "Wait a little, then reload this page."),
    503: ("Not available now", "Reload this page in a moment."),
}
_DEFECT: Final = ("Something went wrong", "Reload this page. If it stays, read the log.")


@cache
def static_digest() -> str:
    """Return a name for the content of all static files together."""
    digest = hashlib.sha256()
    for path in sorted(path for path in STATIC.rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(STATIC)}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:_DIGEST_LENGTH]


def static_url(name: str) -> str:
    """Return the address of a static file, which changes with the content of any of them."""
    return f"/static/{static_digest()}/{name}"


class ImmutableFiles(StaticFiles):
    """The static files, which browsers never need to ask for again."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Return a file below the digest of the current ones."""
        digest, _, name = path.partition("/")
        if digest != static_digest():
            raise HTTPException(404, "This version of the static files is not served. Reload.")
        response = await super().get_response(name, scope)
        response.headers["Cache-Control"] = _FOREVER
        return response


def _utc(seconds: float) -> str:
    """Return a time as text; scripts replace it by what has passed since."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


@cache
def _environment() -> jinja2.Environment:
    environment = template_environment(TEMPLATES, short=short, utc=_utc, step=step_text)
    environment.globals["static_url"] = static_url
    return environment


def render(request: Request, name: str, *, status: int = 200, **context: Any) -> Response:
    """Return a page from a template; everything in `context` is escaped.

    Access control stores the sender in the state of the request: `principal` with a name and a
    role, `csrf_token`, and `has_session` if there is a session to log out of.
    """
    state = request.state
    principal = getattr(state, "principal", None)
    page = (
        _environment()
        .get_template(name)
        .render(
            path=request.scope["path"],
            principal=principal,
            may_act=principal is not None and principal.role == "act",
            csrf_token=getattr(state, "csrf_token", ""),
            has_session=getattr(state, "has_session", False),
            **context,
        )
    )
    return HTMLResponse(page, status, headers={"Cache-Control": "no-store"})


def error_page(request: Request, status: int, sentence: str) -> Response:
    """Return the page of an error, with its sentence and what to do."""
    title, remedy = _WORDS.get(status, _DEFECT)
    page = {"code": status, "title": title, "message": sentence, "remedy": remedy}
    return render(request, "error.html.jinja", status=status, **page)
