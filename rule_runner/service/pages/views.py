"""Views: the pages."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from rule_runner.service.api.queries import trial_query
from rule_runner.service.api.trials import trial_list
from rule_runner.service.pages.rendering import render
from rule_runner.service.responses import service_of


def start(request: Request) -> Response:
    """Lead from ``/`` to the table of trials."""
    del request
    return RedirectResponse("/trials")


def trials(request: Request) -> Response:
    """Show the table of trials."""
    query = trial_query(request.query_params)
    with service_of(request).index() as index:
        listed = trial_list(index, query)
    return render(request, "trials.html.jinja", trials=listed.trials, total=listed.total)


ROUTES = [Route("/", start), Route("/trials", trials)]
