"""The application: all routes and middleware."""

from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from rule_runner.service.api.trials import list_trials
from rule_runner.service.pages import views
from rule_runner.service.pages.rendering import STATIC, ImmutableFiles
from rule_runner.service.responses import HANDLERS
from rule_runner.service.service import Service

_API: Final = "/api/v1"


def healthz(request: Request) -> Response:
    """Answer that the process serves requests."""
    del request
    return PlainTextResponse("ok\n")


def build_application(service: Service) -> Starlette:
    """Return the application that serves an index."""
    routes: list[BaseRoute] = [
        Route("/healthz", healthz),
        Route(f"{_API}/trials", list_trials),
        Mount("/static", ImmutableFiles(directory=STATIC)),
        *views.ROUTES,
    ]
    application = Starlette(routes=routes, exception_handlers=dict(HANDLERS))
    application.state.service = service
    return application
