"""Actions: acknowledge findings, judge a trial again, cancel an evaluation."""

from datetime import UTC, date, datetime
from typing import Annotated, Final, TypeVar

import msgspec
from msgspec import Meta
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from rule_runner.index.commands import Command, TrialAction
from rule_runner.index.outputs import read_results
from rule_runner.index.records import TrialRecord
from rule_runner.index.states import WatchState
from rule_runner.results.acknowledgements import (
    Acknowledgement,
    AcknowledgementKind,
    append_acknowledgement,
)
from rule_runner.results.issues.acknowledged import finding_ids
from rule_runner.results.issues.incidents import root_of
from rule_runner.service.api.queries import converted, trial_of
from rule_runner.service.responses import MsgspecResponse, service_of

_STATES: Final = {
    TrialAction.REEVALUATE: frozenset({WatchState.JUDGED}),
    TrialAction.CANCEL: frozenset({WatchState.RUNNING, WatchState.QUEUED}),
}
T = TypeVar("T", bound=msgspec.Struct)
Text = Annotated[str, Meta(min_length=1, max_length=1000)]


class Nothing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A body without fields."""


class AcknowledgeBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What somebody says about a finding, all findings of a rule job, or an incident.

    Attributes
    ----------
    finding, rule, incident
        The ID of the finding, the name of the rule job, or the ID of the incident or the name of
        the rule job with its root cause.
    until
        The last day on which it holds, in UTC.
    mute
        Whether the findings no longer count.
    withdraw
        Whether to withdraw the earlier acknowledgement.
    """

    reason: Text
    finding: Text | None = None
    rule: Text | None = None
    incident: Text | None = None
    until: date | None = None
    mute: bool = False
    withdraw: bool = False


async def acknowledge(request: Request) -> Response:
    """Answer ``POST /api/v1/trials/{id}:acknowledge``."""
    body = await _body(request, AcknowledgeBody)
    return await run_in_threadpool(_acknowledge, request, body)


def _acknowledge(request: Request, body: AcknowledgeBody) -> Response:
    service = service_of(request)
    with service.index() as index:
        trial = trial_of(index, request.path_params["trial"])
        rules = {rule.name for rule in index.rules_of(trial.id)}
    incident = _check_target(trial, body, rules)
    kind = AcknowledgementKind.MUTED if body.mute else AcknowledgementKind.ACKNOWLEDGED
    acknowledgement = Acknowledgement(
        kind=AcknowledgementKind.WITHDRAWN if body.withdraw else kind,
        who=request.state.principal.name,
        reason=body.reason,
        at=datetime.fromtimestamp(service.clock.time(), UTC),
        finding=body.finding,
        rule=body.rule,
        incident=incident,
        until=body.until,
    )
    append_acknowledgement(trial.output, acknowledgement)
    if service.commands is not None:
        service.commands.send(Command(TrialAction.REFRESH, trial.id))
    return MsgspecResponse(acknowledgement, 201)


def _check_target(trial: TrialRecord, body: AcknowledgeBody, rules: set[str]) -> str | None:
    """Check what is acknowledged; return the name of the root cause of an incident."""
    targets = (body.finding, body.rule, body.incident)
    if sum(target is not None for target in targets) != 1:
        raise HTTPException(400, "Give one of 'finding', 'rule' and 'incident'.")
    if trial.removed:
        raise HTTPException(409, "The output of this trial was removed.")
    if body.rule is not None and body.rule not in rules:
        raise HTTPException(404, f"The trial has no rule {body.rule!r:.200}.")
    if body.finding is not None:
        results = read_results(trial.output)
        if not any(body.finding in finding_ids(result) for result in results):
            raise HTTPException(404, f"The trial has no finding {body.finding!r:.200}.")
    if body.incident is None:
        return None
    root = root_of(body.incident, read_results(trial.output))
    if root is None:
        raise HTTPException(404, f"The trial has no incident {body.incident!r:.200}.")
    return root.configuration_name


async def reevaluate(request: Request) -> Response:
    """Answer ``POST /api/v1/trials/{id}:reevaluate``."""
    await _body(request, Nothing)
    return await run_in_threadpool(_send, request, TrialAction.REEVALUATE)


async def cancel(request: Request) -> Response:
    """Answer ``POST /api/v1/trials/{id}:cancel``."""
    await _body(request, Nothing)
    return await run_in_threadpool(_send, request, TrialAction.CANCEL)


def _send(request: Request, action: TrialAction) -> Response:
    """Ask the controller for an action on a trial, which follows within a second or so."""
    service = service_of(request)
    with service.index() as index:
        trial = trial_of(index, request.path_params["trial"])
    if service.commands is None:
        raise HTTPException(
            409, "This service shows the index of another 'watch' and cannot act on evaluations."
        )
    if trial.state not in _STATES[action] or trial.removed:
        raise HTTPException(409, f"The trial is {trial.state}, which does not allow {action}.")
    service.commands.send(Command(action, trial.id))
    return MsgspecResponse({"accepted": action}, 202)


async def _body(request: Request, kind: type[T]) -> T:
    """Return the JSON body of a request.

    Raises
    ------
    HTTPException
        If it is not valid.
    """
    try:
        raw = msgspec.json.decode(await request.body() or b"{}")
    except ClientDisconnect as err:
        raise HTTPException(413, "The body is too long, or was cut off.") from err
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as err:
        raise HTTPException(400, f"The body is not JSON: {err}.") from err
    if not isinstance(raw, dict):
        raise HTTPException(400, "The body must be a JSON object.")
    return converted(raw, kind, "body")
