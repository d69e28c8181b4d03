"""The OpenAPI document of the JSON API."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import version
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rule_runner.results.acknowledgements import Acknowledgement
from rule_runner.service.api.actions import AcknowledgeBody
from rule_runner.service.api.queries import TrialQuery
from rule_runner.service.api.rules import RuleCounts
from rule_runner.service.api.trials import SeriesParams, TrialDetail, TrialPage
from rule_runner.service.curves.series import SeriesPage
from rule_runner.service.responses import ApiError, MsgspecResponse

_TYPES: Final = (
    *(TrialPage, TrialDetail, SeriesPage, RuleCounts, TrialQuery, SeriesParams),
    *(AcknowledgeBody, Acknowledgement, ApiError),
)
_PREFIX: Final = "#/components/schemas/"
_JSON: Final = "application/json"
_ANYTHING: Final[Mapping[str, Any]] = {}
_RULES: Final = {
    "type": "object",
    "properties": {"rules": {"type": "array", "items": {"$ref": f"{_PREFIX}RuleCounts"}}},
}
_FIELDS: Final[dict[str, dict[str, Any]]] = {  # of addresses
    "trial": {"schema": {"type": "string", "pattern": "^[0-9]{1,18}$"}, "example": "1"},
    "name": {"schema": {"type": "string"}},
}
_TEXT: Final = {"type": "string"}
_NONE: Final = {"type": "null"}
_TARGETS: Final = ("finding", "rule", "incident")  # of an acknowledgement
_EITHER: Final = [
    {"required": [name], "properties": dict.fromkeys(_TARGETS, _NONE) | {name: _TEXT}}
    for name in _TARGETS
]


@cache
def openapi() -> dict[str, Any]:
    """Return the document."""
    schemas = msgspec.json.schema_components(_TYPES, ref_template=_PREFIX + "{name}")[1]
    schemas["AcknowledgeBody"]["oneOf"] = _EITHER
    curves: dict[str, Any] = {"schema": "SeriesPage", "query": _query(schemas["SeriesParams"])}
    accepted: dict[str, Any] = {"verb": "post", "status": "202", "result": "Accepted."}
    paths = (
        _path("/trials", "List trials.", "TrialPage", query=_query(schemas["TrialQuery"])),
        _path("/trials/{trial}", "Show a trial.", "TrialDetail"),
        _path("/trials/{trial}/series", "Return the curves of a trial.", **curves),
        _path("/trials/{trial}/profile", "Return the curves of a profile over time.", **curves),
        _path("/trials/{trial}/files/{name}", "Return a file.", kind="text/plain"),
        _path(
            "/trials/{trial}:acknowledge",
            "Acknowledge, mute, or take that back.",
            "Acknowledgement",
            verb="post",
            body="AcknowledgeBody",
            status="201",
        ),
        _path("/trials/{trial}:reevaluate", "Judge a trial again.", **accepted),
        _path("/trials/{trial}:cancel", "Stop an evaluation.", **accepted),
        _path("/rules", "List rules.", _RULES),
        _path("/rules/{name}", "Show a rule.", "RuleCounts"),
        _path("/events", "Follow what changes.", result="Events.", kind="text/event-stream"),
    )
    return {
        "openapi": "3.1.0",
        "info": {"title": "rule-runner", "version": version("rule-runner")},
        "security": [{"token": []}],
        "paths": dict(paths),
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _content(schema: str | Mapping[str, Any], kind: str = _JSON, **facts: object) -> dict[str, Any]:
    """Return facts about a body with its content, whose schema may be the name of a struct."""
    schema = {"$ref": _PREFIX + schema} if isinstance(schema, str) else schema
    return {**facts, "content": {kind: {"schema": schema}}}


def _query(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the fields of a struct as parameters, which are left out instead of null."""
    return [
        {
            "name": name,
            "in": "query",
            "schema": next(type_ for type_ in field.get("anyOf", [field]) if type_ != _NONE),
        }
        for name, field in schema["properties"].items()
    ]


def _path(
    address: str,
    summary: str,
    schema: str | Mapping[str, Any] = _ANYTHING,
    *,
    verb: str = "get",
    query: Sequence[Mapping[str, Any]] = (),
    body: str = "",
    status: str = "200",
    result: str = "The result.",
    kind: str = _JSON,
) -> tuple[str, dict[str, Any]]:
    """Return an address with its operation; fields in braces are parameters."""
    names = re.findall(r"\{(\w+)\}", address)
    fields = [{"name": name, "in": "path", "required": True, **_FIELDS[name]} for name in names]
    operation: dict[str, Any] = {
        "summary": summary,
        "parameters": [*fields, *query],
        "responses": {
            status: _content(schema, kind, description=result),
            "default": _content("ApiError", description="An error, in a sentence."),
        },
    }
    if body:
        operation["requestBody"] = _content(body, required=True)
    return f"/api/v1{address}", {verb: operation}


def document(request: Request) -> Response:
    """Answer ``GET /api/v1/openapi.json``."""
    del request
    return MsgspecResponse(openapi())
