"""The page of a trial: its rule jobs, findings and files, prepared for the template."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec
from markupsafe import Markup

from rule_core.analysis.axis import number
from rule_core.severity import Severity
from rule_runner.index.records import RECOVERED, RuleRecord, TrialRecord
from rule_runner.report.text import coverage, mark, recovery
from rule_runner.results.issues.acknowledged import finding_ids
from rule_runner.results.json_text import JsonScalar
from rule_runner.results.schema import Evidence, RuleResult
from rule_runner.results.status import FindingState, Outcome, for_people
from rule_runner.service.pages.moments import Moment, Moments
from rule_runner.service.pages.rule_page import rule_text
from rule_runner.service.pages.words import VERDICTS, Verdict, short, split_path, verdict

FINDINGS_SHOWN: Final = 200
QUIET: Final = frozenset({Outcome.NO_ISSUES_FOUND, Outcome.NOT_EVALUATED, Outcome.IN_PROGRESS})
MAX_RUNS: Final = 8
_RANKS: Final = {verdict: rank for rank, verdict in enumerate(VERDICTS)}


class FindingView(NamedTuple):
    """A finding in the list beside the charts.

    Attributes
    ----------
    id
        Names it when it is acknowledged.
    values
        What was measured, against which limit.
    mark
        What was said about it, or "".
    is_marked
        Whether that was said about this finding alone, and can be withdrawn.
    is_fixed
        Whether the job file mutes it, which this service cannot change.
    moment
        When it was; None if its step is no window of time.
    """

    id: str
    job: str
    verdict: Verdict
    step: int
    where: str
    values: str
    note: str
    mark: str
    is_marked: bool
    is_fixed: bool
    moment: Moment | None


class JobView(NamedTuple):
    """A rule job on the page.

    Attributes
    ----------
    mark, incident
        What people said about all of its findings, or ""; and the root cause, if they said it
        about an incident.
    place
        Where its condition was met first, or "".
    reason
        Why there is no verdict, or what failed; "" otherwise.
    source
        The file of a rule that is not built in, or "".
    """

    record: RuleRecord
    verdict: Verdict
    is_quiet: bool
    place: str
    reason: str
    coverage: str
    remedy: Markup | None
    notes: Sequence[str]
    source: str
    parameters: Mapping[str, str]
    mark: str
    incident: str | None


class ProfileView(NamedTuple):
    """The profile of a training, on the page of either.

    Attributes
    ----------
    path, verdict, findings
        Of the profile, if it is another trial than that of the page; "", None and 0 otherwise.
    training, training_path
        The trial with the tensors, on the page of a profile; None and "" if there is none.
    """

    id: int
    path: str = ""
    verdict: Verdict | None = None
    findings: int = 0
    training: int | None = None
    training_path: str = ""


class RunView(NamedTuple):
    """A run on the charts: the trial itself, or one that is laid over it."""

    trial: TrialRecord
    name: str
    without: str


def job_views(rules: Iterable[RuleRecord], results: Iterable[RuleResult]) -> list[JobView]:
    """Return the rule jobs, those that need attention first.

    Parameters
    ----------
    rules
        What the index knows of them.
    results
        What their output folders say.
    """
    by_name = {result.configuration_name: result for result in results}
    ordered = sorted(rules, key=lambda rule: (_RANKS.get(rule.verdict, 0), rule.name))
    return [_job(rule, by_name.get(rule.name)) for rule in ordered]


def _job(rule: RuleRecord, result: RuleResult | None) -> JobView:
    text = rule_text(rule.rule)
    has_issue = rule.outcome == Outcome.ISSUES_FOUND
    details = "" if result is None or has_issue else for_people(result.status_details or "")
    parameters = {} if result is None else result.parameters
    return JobView(
        record=rule,
        verdict=verdict(rule.verdict, rule.severity),
        is_quiet=rule.outcome in QUIET,
        place="" if rule.step is None else _first_place(rule.step, result),
        reason=short(details) if rule.outcome != Outcome.NO_ISSUES_FOUND else "",
        coverage=f"judged {rule.judged:,} steps" if result is None else coverage(result),
        remedy=text.remedy if text and rule.verdict == Outcome.ISSUES_FOUND else None,
        notes=[] if result is None else [short(note) for note in result.notes],
        source="" if result is None else _source(result),
        parameters={short(name): _scalar(value) for name, value in parameters.items()},
        mark=_mark(result) if result else "",
        incident=result.acknowledgement.incident if result and result.acknowledgement else None,
    )


def _first_place(step: int, result: RuleResult | None) -> str:
    """Return the step at which a condition was met first, or when that was."""
    moment = None if result is None else Moments(result.trial).of(result, step)
    unit = "step" if result is None else result.unit
    first = f"{unit} {step:,}" if moment is None else f"{moment.clock} UTC"
    return ", ".join([first, *(recovery(result) if result else ())])


def _source(result: RuleResult) -> str:
    """Return where a rule's file was, and which version it was."""
    source = result.source
    return "" if source is None else f"{short(source.location)} (SHA-256 {source.sha256:.12})"


def _scalar(value: JsonScalar) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return number(value)
    return "" if value is None else short(value)


def finding_views(results: Iterable[RuleResult], path: str) -> list[FindingView]:
    """Return the findings of all rule jobs by step or time, at most `FINDINGS_SHOWN`.

    Parameters
    ----------
    path
        The trial.
    """
    moments = Moments(path)
    findings = [view for result in results for view in _findings(result, moments)]
    return sorted(findings, key=_place)[:FINDINGS_SHOWN]


def _place(finding: FindingView) -> tuple[int, int]:
    """Return a sort key: steps first, then windows of any length by their times."""
    moment = finding.moment
    return (0, finding.step) if moment is None else (1, moment.start_ms)


def _findings(result: RuleResult, moments: Moments) -> Iterator[FindingView]:
    for finding_id, finding in zip(finding_ids(result), result.evidence, strict=True):
        if finding.severity is not Severity.NOTE:
            yield _finding(finding_id, result, finding, moments)


def _finding(
    finding_id: str, result: RuleResult, finding: Evidence, moments: Moments
) -> FindingView:
    acknowledgement = finding.acknowledgement
    where = [
        finding.tensor or "",
        f"of {finding.worker}" if finding.worker else "",
        f"in mode {finding.mode}" if isinstance(finding.mode, str) else "",
    ]
    values = [
        f"measured {_scalar(finding.measured)}" if finding.measured is not None else "",
        f"limit {_scalar(finding.limit)}" if finding.limit is not None else "",
        *recovery(finding),
    ]
    return FindingView(
        id=finding_id,
        job=result.configuration_name,
        verdict=verdict(
            RECOVERED if finding.state == FindingState.RECOVERED else Outcome.ISSUES_FOUND,
            finding.severity,
        ),
        step=finding.step,
        where=short(" ".join(filter(None, where))),
        values=", ".join(filter(None, values)),
        note=short(finding.sentences or finding.note or ""),
        mark=_mark(finding),
        is_marked=acknowledgement is not msgspec.UNSET and acknowledgement.finding is not None,
        is_fixed=finding.muted is not msgspec.UNSET and acknowledgement is msgspec.UNSET,
        moment=moments.of(result, finding.step),
    )


def _mark(marked: Evidence | RuleResult) -> str:
    """Return what was said about a finding, or about all findings of a rule job; "" if nothing."""
    if marked.acknowledgement is not msgspec.UNSET:
        return mark(marked.acknowledgement)
    if isinstance(marked, Evidence) and marked.muted is not msgspec.UNSET:
        return f"muted by the job file ({short(marked.muted.rstrip('.'))})"
    return ""


def run_views(own: TrialRecord, others: Sequence[TrialRecord]) -> list[RunView]:
    """Return the runs on the charts; each has a link to the page without it."""
    views = []
    for trial in (own, *others):
        other_ids = ",".join(str(other.id) for other in others if other.id != trial.id)
        without = f"/trials/{own.id}?with={other_ids}" if other_ids else f"/trials/{own.id}"
        views.append(RunView(trial, split_path(trial.path).name, without))
    return views
