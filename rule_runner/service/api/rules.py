"""Rules: how many trials have which verdict of each rule."""

from collections.abc import Mapping

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from rule_runner.service.responses import MsgspecResponse, service_of


class RuleCounts(msgspec.Struct, frozen=True, kw_only=True):
    """A rule, and the number of its jobs by outcome."""

    rule: str
    outcomes: Mapping[str, int]


def list_rules(request: Request) -> Response:
    """Answer ``GET /api/v1/rules``."""
    with service_of(request).index() as index:
        counts = index.rule_counts()
    rules = [RuleCounts(rule=rule, outcomes=outcomes) for rule, outcomes in counts.items()]
    return MsgspecResponse({"rules": rules})


def show_rule(request: Request) -> Response:
    """Answer ``GET /api/v1/rules/{name}``."""
    name = request.path_params["name"]
    with service_of(request).index() as index:
        outcomes = index.rule_counts().get(name)
    if outcomes is None:
        raise HTTPException(404, f"No trial was judged by a rule {name!r:.200}.")
    return MsgspecResponse(RuleCounts(rule=name, outcomes=outcomes))
