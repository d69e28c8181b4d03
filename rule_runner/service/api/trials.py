"""Trials: the table of all trials, one trial with its findings and files, and its curves."""

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from rule_core.severity import Severity
from rule_runner.index.reader import IndexReader
from rule_runner.index.records import RuleRecord, TrialRecord
from rule_runner.service.api.queries import TrialQuery, checked_query, trial_of, trial_query
from rule_runner.service.curves.series import MAX_POINTS, POINTS, SeriesCache, SeriesQuery
from rule_runner.service.responses import MsgspecResponse, service_of


class RuleItem(msgspec.Struct, frozen=True, kw_only=True):
    """A rule job in the table of trials.

    Attributes
    ----------
    acknowledged
        Whether all its findings are acknowledged or muted.
    """

    name: str
    rule: str
    outcome: str
    severity: Severity | None
    step: int | None
    findings: int
    judged: int
    acknowledged: bool = False


class TrialItem(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table of trials; times are seconds since the epoch.

    Attributes
    ----------
    outcome
        That of its rules together; "" before the first verdicts.
    severity
        Of its most serious finding; None without issues.
    last_step
        The last step that a rule has judged.
    attempt
        The number of the evaluation, which is repeated after it died.
    reason
        Why it could not be judged, in a sentence; "" otherwise.
    """

    id: int
    path: str
    root: str
    state: str
    outcome: str
    severity: Severity | None
    started_at: float | None
    ended_at: float | None
    changed_at: float
    last_step: int | None
    attempt: int
    reason: str
    rules: list[RuleItem]


class TrialPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the trials that a query fits.

    Attributes
    ----------
    total
        How many trials there are on all pages.
    revision
        The revision of the index from which an event stream continues.
    """

    trials: list[TrialItem]
    total: int
    revision: str = ""


def trial_list(index: IndexReader, query: TrialQuery, revision: str = "") -> TrialPage:
    """Return the trials that a query fits, with a revision that is not later than they are."""
    trials = index.trials(query.filter, order=query.sort, limit=query.limit, offset=query.first)
    rules = index.rules_of_trials(trial.id for trial in trials)
    items = [trial_item(trial, rules[trial.id]) for trial in trials]
    return TrialPage(trials=items, total=index.total(query.filter), revision=revision)


def trial_item(trial: TrialRecord, rules: Sequence[RuleRecord]) -> TrialItem:
    """Return the row of a trial."""
    severities = [rule.severity for rule in rules if rule.severity is not None]
    steps = [rule.last_step for rule in rules if rule.last_step is not None]
    return TrialItem(
        id=trial.id,
        path=trial.path,
        root=trial.root,
        state=str(trial.state),
        outcome=trial.outcome,
        severity=max(severities, key=lambda severity: severity.rank, default=None),
        started_at=trial.started_at,
        ended_at=trial.ended_at,
        changed_at=trial.changed_at,
        last_step=max(steps, default=None),
        attempt=trial.restarts + 1,
        reason=trial.problem,
        rules=[rule_item(rule) for rule in rules],
    )


def rule_item(rule: RuleRecord) -> RuleItem:
    """Return a rule job in the form that the row of its trial uses."""
    return RuleItem(
        name=rule.name,
        rule=rule.rule,
        outcome=rule.outcome,
        severity=rule.severity,
        step=rule.step,
        findings=rule.findings,
        judged=rule.judged,
        acknowledged=rule.acknowledged
        or (rule.severity is not None and rule.counted_severity is None),
    )


def list_trials(request: Request) -> Response:
    """Answer ``GET /api/v1/trials``."""
    query = trial_query(request.query_params)
    service = service_of(request)
    with service.index() as index:
        revision = service.changes.revision(index)  # first: what changes meanwhile comes again
        return MsgspecResponse(trial_list(index, query, revision))


class SeriesParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The query of a trial's curves; see `SeriesQuery`. `names` are separated by commas."""

    names: Annotated[str, Meta(max_length=10_000)] = ""
    after: int | None = None
    points: Annotated[int, Meta(ge=2, le=MAX_POINTS)] = POINTS


def trial_series(request: Request) -> Response:
    """Answer ``GET /api/v1/trials/{id}/series``."""
    return _curves(request, service_of(request).series)


def trial_profile(request: Request) -> Response:
    """Answer ``GET /api/v1/trials/{id}/profile``; `after` is in milliseconds since the epoch."""
    return _curves(request, service_of(request).profiles)


def _curves(request: Request, cache: SeriesCache) -> Response:
    query = checked_query(request.query_params, SeriesParams)
    with service_of(request).index() as index:
        trial = trial_of(index, request.path_params["trial"])
    names = tuple(filter(None, query.names.split(",")))
    page = cache.page(trial, SeriesQuery(names, query.after, query.points))
    return MsgspecResponse(page)
