"""The OpenAPI document of the JSON API."""

from functools import cache
from importlib.metadata import version
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rule_runner.results.acknowledgements import Acknowledgement
from rule_runner.service.api.actions import AcknowledgeBody
from rule_runner.service.api.details import TrialDetail
from rule_runner.service.api.queries import TrialQuery
from rule_runner.service.api.rules import RuleCounts
from rule_runner.service.api.trials import SeriesParams, TrialPage
from rule_runner.service.curves.series import SeriesPage
from rule_runner.service.responses import ApiError, MsgspecResponse

_TYPES: Final = (
    *(TrialPage, TrialDetail, SeriesPage, RuleCounts, TrialQuery, SeriesParams),
    *(AcknowledgeBody, Acknowledgement, ApiError),
)
_PREFIX: Final = "#/components/schemas/"
_PATH: Final[dict[str, dict[str, Any]]] = {
    "trial": {"schema": {"type": "string", "pattern": "^[0-9]{1,18}$"}, "example": "1"},
    "name": {"schema": {"type": "string"}},
}
_TEXT: Final = {"type": "string"}
_NONE: Final = {"type": "null"}
_EITHER: Final = [  # the target of an acknowledgement
    {"required": ["finding"], "properties": {"finding": _TEXT, "rule": _NONE}},
    {"required": ["rule"], "properties": {"rule": _TEXT, "finding": _NONE}},
]


@cache
def openapi() -> dict[str, Any]:
    """Return the document."""
    schemas = msgspec.json.schema_components(_TYPES, ref_template=_PREFIX + "{name}")[1]
    schemas["AcknowledgeBody"]["oneOf"] = _EITHER
    trial_query = _query(schemas["TrialQuery"])
    series_query = _query(schemas["SeriesParams"])
    ok = "The result."
    paths = {
        "/api/v1/trials": {
            "get": _operation("List trials.", _ref("TrialPage"), ok, query=trial_query),
        },
        "/api/v1/trials/{trial}": {
            "get": _operation("Show a trial.", _ref("TrialDetail"), ok, path=["trial"]),
        },
        "/api/v1/trials/{trial}/series": {
            "get": _operation(
                "Return the curves of a trial.",
                _ref("SeriesPage"),
                ok,
                path=["trial"],
                query=series_query,
            ),
        },
        "/api/v1/trials/{trial}/profile": {
            "get": _operation(
                "Return the curves of a profile over time.",
                _ref("SeriesPage"),
                ok,
                path=["trial"],
                query=series_query,
            ),
        },
        "/api/v1/trials/{trial}/files/{name}": {
            "get": _operation("Return a file.", {}, ok, path=["trial", "name"], kind="text/plain"),
        },
        "/api/v1/trials/{trial}:acknowledge": {
            "post": _operation(
                "Acknowledge, mute, or take that back.",
                _ref("Acknowledgement"),
                ok,
                path=["trial"],
                body=_ref("AcknowledgeBody"),
                status="201",
            ),
        },
        **{
            f"/api/v1/trials/{{trial}}:{action}": {
                "post": _operation(summary, {}, "Accepted.", path=["trial"], status="202"),
            }
            for action, summary in (
                ("reevaluate", "Judge a trial again."),
                ("cancel", "Stop an evaluation."),
            )
        },
        "/api/v1/rules": {
            "get": _operation(
                "List rules.",
                {
                    "type": "object",
                    "properties": {"rules": {"type": "array", "items": _ref("RuleCounts")}},
                },
                ok,
            ),
        },
        "/api/v1/rules/{name}": {
            "get": _operation("Show a rule.", _ref("RuleCounts"), ok, path=["name"]),
        },
        "/api/v1/events": {
            "get": _operation("Follow what changes.", {}, "Events.", kind="text/event-stream"),
        },
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "rule-runner", "version": version("rule-runner")},
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _ref(name: str) -> dict[str, str]:
    return {"$ref": _PREFIX + name}


def _query(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the fields of a struct as parameters, which are left out instead of null."""
    parameters = []
    for name, field in schema["properties"].items():
        types = [type_ for type_ in field.get("anyOf", [field]) if type_ != _NONE]
        parameters.append({"name": name, "in": "query", "schema": types[0]})
    return parameters


def _operation(
    summary: str,
    schema: dict[str, Any],
    description: str,
    *,
    path: list[str] | None = None,
    query: list[dict[str, Any]] | None = None,
    body: dict[str, str] | None = None,
    status: str = "200",
    kind: str = "application/json",
) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "path", "required": True, **_PATH[name]} for name in path or ()
    ]
    parameters += query or []
    operation: dict[str, Any] = {
        "summary": summary,
        "parameters": parameters,
        "responses": {
            status: {"description": description, "content": {kind: {"schema": schema}}},
            "default": {
                "description": "An error, in a sentence.",
                "content": {"application/json": {"schema": _ref("ApiError")}},
            },
        },
    }
    if body is not None:
        content = {"application/json": {"schema": body}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def document(request: Request) -> Response:
    """Answer ``GET /api/v1/openapi.json``."""
    del request
    return MsgspecResponse(openapi())
