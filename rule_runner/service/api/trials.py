"""Trials: the table of all trials, one trial with its findings and files, and its curves."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Meta
from starlette.requests import Request
from starlette.responses import Response

from rule_core.severity import Severity
from rule_runner.errors import OutputError
from rule_runner.index.outputs import read_results
from rule_runner.index.reader import IndexReader
from rule_runner.index.records import RECOVERED, RuleRecord, TrialRecord
from rule_runner.report.text import sentence
from rule_runner.results.issues.acknowledged import finding_ids
from rule_runner.results.issues.incidents import Incident, incidents
from rule_runner.results.json_text import JsonScalar
from rule_runner.results.schema import IncidentRecord, RuleResult
from rule_runner.service.api.files import output_files
from rule_runner.service.api.queries import TrialQuery, checked_query, trial_of, trial_query
from rule_runner.service.curves.series import MAX_POINTS, POINTS, SeriesCache, SeriesQuery
from rule_runner.service.responses import MsgspecResponse, service_of

_MOST_FINDINGS: Final = 1000


class RuleItem(msgspec.Struct, frozen=True, kw_only=True):
    """A rule job in the table of trials.

    Attributes
    ----------
    acknowledged
        Whether all its findings are acknowledged or muted.
    verdict
        The outcome that people see: ``Recovered`` if its issue does not hold.
    recovered_at
        The step since which that is so; None otherwise.
    root
        The name of the rule job with the root cause of its incident; "" without one.
    """

    name: str
    rule: str
    outcome: str
    severity: Severity | None
    step: int | None
    findings: int
    judged: int
    verdict: str
    acknowledged: bool = False
    recovered_at: int | None = None
    root: str | None = ""


class IncidentItem(IncidentRecord, frozen=True, kw_only=True):
    """An incident of a trial.

    Attributes
    ----------
    state
        ``broken`` if anything of it is an error, otherwise ``suspicious``.
    since
        The global step since which its root cause holds.
    sentence, advice
        What the root cause is, and what to do first; the advice is "" if its rule has none.
    acknowledged
        Whether somebody has acknowledged its root cause.
    """

    state: str
    since: int | None
    sentence: str
    advice: str
    acknowledged: bool


class TrialItem(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table of trials; times are seconds since the epoch.

    Attributes
    ----------
    outcome
        That of its rules together; "" before the first verdicts.
    verdict
        The outcome that people see: ``Recovered`` if none of its issues holds.
    severity
        Of its most serious finding that has not recovered; None without issues.
    since, sentence
        Of the root cause of its most serious incident; None and "" without one.
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
    verdict: str = ""
    since: int | None = None
    sentence: str = ""


class FindingItem(msgspec.Struct, frozen=True, kw_only=True):
    """A finding of a rule job."""

    id: str
    rule: str
    step: int
    severity: Severity | None
    tensor: str | None
    worker: str | None
    measured: float | None
    limit: float | None
    note: str | None
    mode: str | None
    summary: str | None
    advice: str | None
    recovered_at: int | None


class TrialDetail(TrialItem, frozen=True, kw_only=True):
    """A trial with the details of its verdicts.

    Attributes
    ----------
    incidents
        The most serious ones first.
    findings
        The first thousand.
    configuration
        The parameters of each rule job.
    files
        Of its output folder; none if that is in S3.
    problem
        Why the results cannot be read, in a sentence; "" otherwise.
    """

    output: str
    incidents: list[IncidentItem]
    findings: list[FindingItem]
    configuration: Mapping[str, Mapping[str, JsonScalar]]
    files: list[str]
    problem: str


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
    trials = index.trials(query, order=query.sort, limit=query.limit, offset=query.first)
    rules = index.rules_of_trials(trial.id for trial in trials)
    items = [trial_item(trial, rules[trial.id]) for trial in trials]
    return TrialPage(trials=items, total=index.total(query), revision=revision)


def trial_item(trial: TrialRecord, rules: Sequence[RuleRecord]) -> TrialItem:
    """Return the row of a trial."""
    severities = [rule.severity for rule in rules if rule.severity and rule.verdict != RECOVERED]
    steps = [rule.last_step for rule in rules if rule.last_step is not None]
    issues = [rule for rule in rules if rule.counted_severity and rule.root]
    root = min(issues, key=_urgency).root if issues else None
    cause = next((rule for rule in rules if rule.name == root), None)
    return TrialItem(
        id=trial.id,
        path=trial.path,
        root=trial.root,
        state=str(trial.state),
        outcome=trial.outcome,
        verdict=trial.verdict,
        severity=max(severities, key=lambda severity: severity.rank, default=None),
        since=cause.since if cause else None,
        sentence=cause.sentence if cause else "",
        started_at=trial.started_at,
        ended_at=trial.ended_at,
        changed_at=trial.changed_at,
        last_step=max(steps, default=None),
        attempt=trial.restarts + 1,
        reason=trial.problem,
        rules=[*map(_rule_item, rules)],
    )


def _urgency(rule: RuleRecord) -> tuple[int, int]:
    """Return a sort key for issues that count: the most serious and then the earliest first."""
    rank = 0 if rule.counted_severity is None else rule.counted_severity.rank
    return -rank, rule.since or 0


def _rule_item(rule: RuleRecord) -> RuleItem:
    """Return a rule job in the form that the row of its trial uses."""
    item = msgspec.convert(rule, RuleItem, from_attributes=True)
    is_muted = rule.severity and rule.counted_severity is None and rule.verdict != RECOVERED
    return msgspec.structs.replace(item, acknowledged=rule.acknowledged or bool(is_muted))


def incident_items(results: Iterable[RuleResult]) -> list[IncidentItem]:
    """Return the incidents in the results of a trial."""
    return [*map(_incident, incidents(results))]


def _incident(incident: Incident) -> IncidentItem:
    root, finding = incident.root, incident.root.main_finding
    return IncidentItem(
        **msgspec.structs.asdict(incident.record()),
        state=str(incident.state),
        since=root.since,
        sentence=sentence(root),
        advice=(finding.advice or "") if finding else "",
        acknowledged=root.is_acknowledged,
    )


def list_trials(request: Request) -> Response:
    """Answer ``GET /api/v1/trials``."""
    query = trial_query(request.query_params)
    service = service_of(request)
    with service.index() as index:
        revision = service.changes.revision(index)  # first: what changes meanwhile comes again
        return MsgspecResponse(trial_list(index, query, revision))


def saved_results(trial: TrialRecord) -> tuple[list[RuleResult], str]:
    """Return the results of a trial, and why they cannot be read, in a sentence; "" if they can."""
    try:
        return read_results(trial.output), ""
    except OutputError as err:
        return [], str(err)


def trial_detail(request: Request) -> Response:
    """Answer ``GET /api/v1/trials/{id}``."""
    with service_of(request).index() as index:
        trial = trial_of(index, request.path_params["trial"])
        item = trial_item(trial, index.rules_of(trial.id))
    results, problem = saved_results(trial)
    findings = [finding for result in results for finding in _findings(result)]
    detail = TrialDetail(
        **msgspec.structs.asdict(item),
        output=trial.output,
        incidents=incident_items(results),
        findings=findings[:_MOST_FINDINGS],
        configuration={result.configuration_name: result.parameters for result in results},
        files=[file.name for file in output_files(trial.output)],
        problem=problem,
    )
    return MsgspecResponse(detail)


def _findings(result: RuleResult) -> Iterator[FindingItem]:
    for finding_id, evidence in zip(finding_ids(result), result.evidence, strict=True):
        yield FindingItem(
            id=finding_id,
            rule=result.configuration_name,
            step=evidence.step,
            severity=evidence.severity,
            tensor=evidence.tensor,
            worker=evidence.worker,
            measured=evidence.measured if isinstance(evidence.measured, float) else None,
            limit=evidence.limit if isinstance(evidence.limit, float) else None,
            note=evidence.note,
            mode=evidence.mode or None,
            summary=evidence.summary or None,
            advice=evidence.advice or None,
            recovered_at=None if evidence.recovered_at is UNSET else evidence.recovered_at,
        )


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
