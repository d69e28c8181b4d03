"""Responses: JSON by msgspec, and errors as one sentence."""

from typing import Any, Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from rule_runner.errors import OutputError
from rule_runner.logs import get_logger
from rule_runner.service.pages.rendering import error_page
from rule_runner.service.service import Service

_log: Final = get_logger(__name__)
_API: Final = "/api/"


class ApiError(msgspec.Struct, frozen=True):
    """The body of an error: one sentence, with the remedy if there is one."""

    error: str


class MsgspecResponse(Response):
    """JSON."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the bytes of a struct or a value."""
        return msgspec.json.encode(content)


def service_of(request: Request) -> Service:
    """Return the service that a request is sent to."""
    service: Service = request.app.state.service
    return service


def error_response(request: Request, status: int, sentence: str) -> Response:
    """Return an error: JSON for the API, a page for browsers, else text."""
    if request.scope["path"].startswith(_API):
        return MsgspecResponse(ApiError(sentence), status)
    if "text/html" in request.headers.get("accept", ""):
        return error_page(request, status, sentence)
    return PlainTextResponse(f"{sentence}\n", status)


def too_many_response(request: Request, wait: int) -> Response:
    """Return the answer to a client that has to wait some seconds."""
    response = error_response(request, 429, f"Too many requests. Try again in {wait} s.")
    response.headers["Retry-After"] = str(wait)
    return response


def on_http_error(request: Request, error: Exception) -> Response:
    """Answer an error that a handler has raised for its client."""
    if not isinstance(error, HTTPException):
        raise error
    response = error_response(request, error.status_code, error.detail)
    response.headers.update(error.headers or {})
    return response


def on_index_error(request: Request, error: Exception) -> Response:
    """Answer while the index or an output cannot be read."""
    return error_response(request, 503, str(error))


def on_defect(request: Request, error: Exception) -> Response:
    """Answer after a defect of the service; the log has the details."""
    _log.error("request_failed", path=request.scope["path"], exc_info=error)
    return error_response(request, 500, "The service has a defect; its log has the details.")


HANDLERS: Final = {
    HTTPException: on_http_error,
    OutputError: on_index_error,
    Exception: on_defect,
}
