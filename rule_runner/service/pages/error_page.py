"""Pages that say why there is no other."""

from typing import Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from rule_runner.service.pages.rendering import render


class _Words(NamedTuple):
    title: str
    remedy: str = ""


_WORDS: Final = {
    400: _Words("This address is not valid"),
    401: _Words("Log in first"),
    403: _Words(
        "Not allowed", "Ask the person who runs this service for a token that may do this."
    ),
    404: _Words("Not here", "A trial that was removed, or found again, has another number."),
    405: _Words("Not possible here"),
    409: _Words("Not possible now"),
    413: _Words("Too large"),
    429: _Words("Too many requests", "Wait a little, then reload this page."),
    503: _Words("Not available now", "Reload this page in a moment."),
}
_DEFECT: Final = _Words("Something went wrong", "Reload this page. If it stays, read the log.")


def error_page(request: Request, status: int, sentence: str) -> Response:
    """Return the page of an error, with its sentence and what to do."""
    words = _WORDS.get(status, _DEFECT)
    return render(
        request,
        "error.html.jinja",
        status=status,
        code=status,
        title=words.title,
        message=sentence,
        remedy=words.remedy,
    )
