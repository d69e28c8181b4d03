"""Rendering: templates, and static files at addresses that name their content."""

import hashlib
from functools import cache
from pathlib import Path
from typing import Any, Final

import jinja2
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

TEMPLATES: Final = Path(__file__).with_name("templates")
STATIC: Final = Path(__file__).with_name("static")
_FOREVER: Final = "public, max-age=31536000, immutable"
_DIGEST_LENGTH: Final = 16


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


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["static_url"] = static_url
    return environment


def render(request: Request, name: str, *, status: int = 200, **context: Any) -> Response:
    """Return a page from a template; everything in `context` is escaped."""
    page = _environment().get_template(name).render(request=request, **context)
    return HTMLResponse(page, status, headers={"Cache-Control": "no-store"})
