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


def _counts(request: Request) -> dict[str, RuleCounts]:
    with service_of(request).index() as index:
        counts = index.rule_counts()
    outcomes: dict[str, dict[str, int]] = {}
    for (rule, outcome), number in sorted(counts.items()):
        outcomes.setdefault(rule, {})[outcome] = number
    return {rule: RuleCounts(rule=rule, outcomes=each) for rule, each in outcomes.items()}


def list_rules(request: Request) -> Response:
    """Answer ``GET /api/v1/rules``."""
    return MsgspecResponse({"rules": [*_counts(request).values()]})


def show_rule(request: Request) -> Response:
    """Answer ``GET /api/v1/rules/{name}``."""
    name = request.path_params["name"]
    counts = _counts(request).get(name)
    if counts is None:
        raise HTTPException(404, f"No trial was judged by a rule {name!r:.200}.")
    return MsgspecResponse(counts)
