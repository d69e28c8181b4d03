"""The application: all routes and middleware."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from rule_runner.errors import OutputError
from rule_runner.service.access.guard import Guard
from rule_runner.service.access.login import login_routes
from rule_runner.service.access.principals import Principals
from rule_runner.service.api import actions, files, openapi, rules, streams, trials
from rule_runner.service.metrics import RequestCounter, metrics
from rule_runner.service.pages import views
from rule_runner.service.pages.rendering import STATIC, ImmutableFiles
from rule_runner.service.responses import HANDLERS, error_response, service_of
from rule_runner.service.service import Service

_API: Final = "/api/v1"
_TRIAL: Final = f"{_API}/trials/{{trial}}"


def healthz(request: Request) -> Response:
    """Answer that the process serves requests."""
    del request
    return PlainTextResponse("ok\n")


def readyz(request: Request) -> Response:
    """Answer whether the index can be followed and its controller works; reasons are for users."""
    service = service_of(request)
    commands = service.commands
    reason = (commands.failure if commands is not None else "") or service.changes.failure
    try:
        with service.index() as index:
            index.counts()
    except OutputError as err:
        reason = str(err)
    is_user = getattr(request.state, "principal", None) is not None
    if reason:
        return error_response(request, 503, reason if is_user else "Not ready.")
    problem = commands.problem if commands is not None and is_user else ""
    return PlainTextResponse(f"ready\n{problem}\n" if problem else "ready\n")


def build_application(service: Service, *, guarded: bool = True) -> Starlette:
    """Return the application that serves an index.

    Parameters
    ----------
    guarded
        Whether to control access; if not, whatever calls the application must do so.
    """
    principals = Principals(service.settings, service.clock)
    routes: list[BaseRoute] = [
        Route("/healthz", healthz),
        Route("/readyz", readyz),
        Route("/metrics", metrics),
        Route(f"{_API}/openapi.json", openapi.document),
        Route(f"{_API}/events", streams.events),
        Route(f"{_API}/rules", rules.list_rules),
        Route(f"{_API}/rules/{{name}}", rules.show_rule),
        Route(f"{_API}/trials", trials.list_trials),
        Route(f"{_TRIAL}:acknowledge", actions.acknowledge, methods=["POST"]),
        Route(f"{_TRIAL}:reevaluate", actions.reevaluate, methods=["POST"]),
        Route(f"{_TRIAL}:cancel", actions.cancel, methods=["POST"]),
        Route(f"{_TRIAL}/files/{{name:path}}", files.trial_file),
        Route(f"{_TRIAL}/series", trials.trial_series),
        Route(f"{_TRIAL}/profile", trials.trial_profile),
        Route(_TRIAL, trials.trial_detail),
        *login_routes(principals),
        Mount("/static", ImmutableFiles(directory=STATIC)),
        *views.ROUTES,
    ]

    guard = Middleware(Guard, settings=service.settings, principals=principals, clock=service.clock)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with service.changes.running():
            yield

    application = Starlette(
        routes=routes,
        exception_handlers=dict(HANDLERS),
        middleware=[Middleware(RequestCounter, counts=service.requests), *([guard] * guarded)],
        lifespan=lifespan,
    )
    application.router.redirect_slashes = False  # to an address made from the Host header
    application.state.service = service
    return application
