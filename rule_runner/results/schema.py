"""Schema of the results: the content of ``results.json`` and of ``--format json``."""

import operator
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from rule_core.model.secret_names import MASK, is_secret
from rule_core.model.segments import global_step, numbers_of, resumed_at, step_in_segment
from rule_core.rules.evidence import Finding
from rule_core.severity import Severity
from rule_runner.results.acknowledgements import Acknowledgement, AcknowledgementKind
from rule_runner.results.json_text import JsonScalar, json_scalar, rfc3339, text_or_none
from rule_runner.results.state import Coverage, RuleJobState, SegmentSteps, segment_steps
from rule_runner.results.status import FindingState, Outcome, RuleStatus

SCHEMA_VERSION: Final = 1
STEP: Final = "step"
WINDOW: Final = "window"
RULE_SCHEMA: Final = Path(__file__).with_name("rule_result.schema.json")
# The order in which reports list outcomes: issues first, then failed rules.
_ORDER: Final = {
    outcome: number
    for number, outcome in enumerate(
        ("IssuesFound", "Error", "Stopped", "NoIssuesFound", "NotEvaluated")
    )
}
EVALUATION_SCHEMA: Final = Path(__file__).with_name("evaluation_result.schema.json")


class RuleSource(msgspec.Struct, frozen=True, kw_only=True):
    """The file that a rule was loaded from.

    Attributes
    ----------
    location
        Absolute path, or address.
    sha256
        Of its bytes, in hexadecimal digits.
    version_id, etag
        Version and ETag of the object in S3; None for a local file.
    """

    location: str
    sha256: str
    version_id: str | None = None
    etag: str | None = None


class Evidence(msgspec.Struct, frozen=True):
    """One finding: where the condition was met, the measured value and its limit.

    Attributes
    ----------
    step
        The training's own step.
    summary, advice
        What is wrong, and the first remedy: one sentence each, unset if there is none.
    segment, resumed_from
        See `RuleResult`.
    severity
        ``error``, ``warning`` or ``note``.
    muted
        Why the finding is muted, by the job file or in `acknowledgement`; unset if it is not.
    acknowledgement
        What somebody said about the finding after the evaluation; unset in ``results.json``.
    mode
        The mode of the tensor at that step; unset in training, or if it is unknown.
    state, recovered_at
        Whether the condition still holds, and the training's own step since which it does not;
        unset in notes, and if rules end with their first finding. A note of a recovery has the
        step only.
    """

    step: int
    tensor: str | None
    worker: str | None
    measured: JsonScalar
    limit: JsonScalar
    note: str | None
    segment: int | msgspec.UnsetType = msgspec.UNSET
    resumed_from: int | msgspec.UnsetType = msgspec.UNSET
    severity: Severity = Severity.ERROR
    muted: str | msgspec.UnsetType = msgspec.UNSET
    acknowledgement: Acknowledgement | msgspec.UnsetType = msgspec.UNSET
    mode: str | msgspec.UnsetType = msgspec.UNSET
    state: FindingState | msgspec.UnsetType = msgspec.UNSET
    recovered_at: int | msgspec.UnsetType = msgspec.UNSET
    summary: str | msgspec.UnsetType = msgspec.UNSET
    advice: str | msgspec.UnsetType = msgspec.UNSET

    @property
    def sentences(self) -> str:
        """The summary and the advice; "" without them."""
        return " ".join(sentence for sentence in (self.summary, self.advice) if sentence)

    @property
    def global_step(self) -> int:
        """The global step, which differs between segments."""
        return global_step(self.segment or 0, self.step)

    @property
    def counts(self) -> bool:
        """Whether the finding meets the condition: it is neither a note nor muted."""
        return self.severity is not Severity.NOTE and self.muted is msgspec.UNSET


class ActionResult(msgspec.Struct, frozen=True):
    """One action: its name, masked target, state, outcome and time."""

    name: str
    target: str
    state: str
    detail: str
    at: str


class WindowTimes(msgspec.Struct, frozen=True):
    """When the windows of a profiler trial begin: window `k` at ``begin_us + k * length_us``.

    Attributes
    ----------
    begin_us
        The start of window 0, in microseconds since the epoch.
    length_us
        The length of each window, in microseconds.
    """

    begin_us: int
    length_us: int

    def span_us(self, window: int) -> tuple[int, int]:
        """Return the start and the end of a window.

        >>> WindowTimes(1_600_000_020_000_000, 60_000_000).span_us(2)
        (1600000140000000, 1600000200000000)
        """
        start = self.begin_us + window * self.length_us
        return start, start + self.length_us


class OtherTrial(msgspec.Struct, frozen=True):
    """A trial that a rule compares with.

    Attributes
    ----------
    path
        Real path or URI.
    whole
        Whether the rule sees the whole trial, because it had ended before the first step was
        judged. Otherwise it sees the steps up to the one that is judged.
    """

    path: str
    whole: bool


class RuleResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one rule job: an entry of ``results.json``.

    Attributes
    ----------
    unit
        The unit that is judged: ``step``, or ``window`` of time. The steps of `coverage` and
        `evidence` are numbers of such units.
    windows
        When the windows begin; unset if steps are judged, and before the start of the data is
        known.
    step
        Step at which the condition was first met: the training's own step.
    segment
        The segment of that step, if it is not the first one, which is 0; see
        `rule_core.model.segments`.
    resumed_from
        The step from which the run was resumed later, so that it repeated that step; unset if it
        did not as far as is known at the end of the evaluation.
    severity
        That of the most serious finding of the verdict, ``error`` or ``warning``; None without
        issues, and if all are muted.
    state, recovered_at
        Whether any of the findings still holds at the end, and since when none does; unset without
        findings, and if rules end with their first one.
    findings_count, notes_count, muted_count
        The number of warnings and errors, of notes, and of muted findings. Notes and muted findings
        are evidence only.
    mode
        ``enforce``, or ``observe``: a met condition is reported only.
    other_trials
        The trials that the rule compares with; unset if there are none, and before it is known how
        much of them it sees.
    trial_ended
        Whether the trial had its end mark; if not, more steps may have followed.
    ended_at
        None while the evaluation is running.
    source
        The rule's file; None for a built-in rule, and for a rule that could not be loaded.
    actions
        The actions that the first met condition triggered, in order.
    duration_s, rule_time_s
        Seconds from start to end, and the part of them spent in the rule's own code.
    run_id
        Unique ID of this evaluation: kept by a restart, replaced by `overwrite`.
    acknowledgement
        What somebody said about all findings after the evaluation; unset in ``results.json``.
    """

    schema_version: int = SCHEMA_VERSION
    configuration_name: str
    rule: str
    source: RuleSource | None = None
    unit: str = STEP
    windows: WindowTimes | msgspec.UnsetType = msgspec.UNSET
    outcome: str
    status: str
    status_details: str | None
    step: int | None
    segment: int | msgspec.UnsetType = msgspec.UNSET
    resumed_from: int | msgspec.UnsetType = msgspec.UNSET
    severity: Severity | None = None
    state: FindingState | msgspec.UnsetType = msgspec.UNSET
    recovered_at: int | msgspec.UnsetType = msgspec.UNSET
    evidence: list[Evidence]
    findings_count: int
    notes_count: int = 0
    muted_count: int = 0
    coverage: Coverage
    parameters: dict[str, JsonScalar]
    trial: str
    other_trials: list[OtherTrial] | msgspec.UnsetType = msgspec.UNSET
    trial_ended: bool
    mode: str
    started_at: str
    ended_at: str | None
    duration_s: float
    rule_time_s: float
    versions: dict[str, str]
    fingerprint: str
    run_id: str = ""
    actions: list[ActionResult] = []
    notes: list[str]
    acknowledgement: Acknowledgement | msgspec.UnsetType = msgspec.UNSET

    @property
    def global_step(self) -> int | None:
        """The global step at which the condition was first met."""
        return None if self.step is None else global_step(self.segment or 0, self.step)

    @property
    def findings(self) -> list[Evidence]:
        """The evidence that counts."""
        return [finding for finding in self.evidence if finding.counts]

    @property
    def main_finding(self) -> Evidence | None:
        """The first finding that still holds, of a recovered issue the first; None without one."""
        findings = self.findings
        if self.state != FindingState.RECOVERED:
            findings = [each for each in findings if each.state != FindingState.RECOVERED]
        return next(iter(findings), None)

    @property
    def since(self) -> int | None:
        """The global step of the main finding, or else that of the verdict."""
        return self.global_step if self.main_finding is None else self.main_finding.global_step

    @property
    def asides(self) -> list[Evidence]:
        """The notes and the muted findings of the evidence."""
        return [finding for finding in self.evidence if not finding.counts]

    @property
    def is_muted(self) -> bool:
        """Whether all findings of an issue were muted after the evaluation."""
        if self.outcome != Outcome.ISSUES_FOUND:
            return False
        muted = any(finding.acknowledgement and finding.muted for finding in self.evidence)
        return self._is_marked(AcknowledgementKind.MUTED) or (muted and not self.findings_count)

    @property
    def is_set_aside(self) -> bool:
        """Whether an issue does not count: it has recovered, or was muted after the evaluation."""
        return self.has_recovered or self.is_muted

    @property
    def has_recovered(self) -> bool:
        """Whether an issue has recovered, and was not muted."""
        return self.state == FindingState.RECOVERED and not self.is_muted

    @property
    def current_outcome(self) -> str:
        """The outcome, or ``recovered`` for an issue that does not hold any more."""
        return str(FindingState.RECOVERED) if self.has_recovered else self.outcome

    @property
    def is_acknowledged(self) -> bool:
        """Whether somebody has seen an issue, all of its findings that count, or an error."""
        if self.outcome == Outcome.ERROR:
            return self.acknowledgement is not msgspec.UNSET
        if self.outcome != Outcome.ISSUES_FOUND or self.is_muted:
            return False
        findings = self.findings
        every = len(findings) == self.findings_count and bool(findings)
        return self._is_marked(AcknowledgementKind.ACKNOWLEDGED) or (
            every and all(finding.acknowledgement is not msgspec.UNSET for finding in findings)
        )

    def _is_marked(self, kind: AcknowledgementKind) -> bool:
        mark = self.acknowledgement
        return mark is not msgspec.UNSET and mark.kind == kind

    def has_issues(self, severity: Severity = Severity.WARNING) -> bool:
        """Return whether the rule found an issue that is at least so serious and still counts."""
        found = self.counted_severity
        return found is not None and found.rank >= severity.rank

    @property
    def counted_severity(self) -> Severity | None:
        """The severity of an issue that is neither muted nor recovered; None otherwise."""
        if self.outcome != Outcome.ISSUES_FOUND or self.is_set_aside:
            return None
        return self.severity or Severity.ERROR  # results of versions without severities


class IncidentRecord(msgspec.Struct, frozen=True):
    """An incident in JSON: the configuration names of its rules.

    Attributes
    ----------
    id
        The same for the same root cause in the same trial, also after further steps.
    """

    id: str
    severity: Severity
    root: str
    consequences: list[str]


class TrialSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The trial that was judged.

    Attributes
    ----------
    first_step, last_step
        The training's own steps: of the first and of the last segment.
    segments
        The steps of each segment, if there are several.
    saved, not_saved
        Which of the inputs that most rules need the trial holds, and which it does not, such as
        ``losses`` and ``gradients``; both are empty for profiler data.
    """

    name: str
    path: str
    ended: bool
    steps: int
    first_step: int | None
    last_step: int | None
    segments: list[SegmentSteps] | msgspec.UnsetType = msgspec.UNSET
    workers: list[str]
    saved: list[str] = []
    not_saved: list[str] = []


class EvaluationResult(msgspec.Struct, frozen=True, kw_only=True):
    """The results of one evaluation: ``results.json``, and what ``--format json`` prints.

    Attributes
    ----------
    summary
        The number of rules with each outcome, as text: ``1 IssuesFound, 2 NotEvaluated``.
    trial, profiler_trial
        The tensor trial and the profiler trial if both were judged; otherwise the only trial.
    notes
        Notes that concern no single rule job, such as requested rules that were not evaluated.
    run_id
        See `RuleResult`; "" if there are several evaluations.
    ended_at
        When all rules had ended; None before. It is written last, and only to ``results.json``.
    left_out
        The reason why each of the other rules was not run, by name.
    incidents
        The issues that still hold: each root cause with what may follow from it.
    """

    schema_version: int = SCHEMA_VERSION
    summary: str = ""
    trial: TrialSummary
    profiler_trial: TrialSummary | None = None
    rules: list[RuleResult]
    notes: list[str] = []
    run_id: str = ""
    ended_at: str | None = None
    left_out: dict[str, str] = {}
    incidents: list[IncidentRecord] = []


def finding_rows(rules: Iterable[RuleResult]) -> list[dict[str, object]]:
    """Return a row for each finding that counts, and for each rule without one."""
    rows = []
    for rule in rules:
        findings: Sequence[Evidence | None] = rule.findings or (None,)
        rows += [_finding_row(rule, finding) for finding in findings]
    return rows


def _finding_row(rule: RuleResult, finding: Evidence | None) -> dict[str, Any]:
    names = ("severity", "state", "step", "tensor", "worker", "measured", "limit")
    row: dict[str, Any] = {"rule": rule.configuration_name, "outcome": rule.outcome}
    for name in (*names, "summary", "advice"):
        cell = getattr(finding or rule, name, None)
        row[name] = None if cell is msgspec.UNSET else cell
    for name in ("measured", "limit"):
        if row[name] in {"NaN", "Infinity", "-Infinity"}:
            row[name] = float(row[name])
    return row


@dataclass(frozen=True, slots=True)
class RuleJobFacts:
    """The properties of a rule job that are fixed before its first step.

    Attributes
    ----------
    trial
        Real path or URI.
    mode
        ``enforce`` or ``observe``.
    source
        The rule's file, if it is not a built-in rule.
    unit, run_id
        See `RuleResult`.
    """

    parameters: Mapping[str, object]
    trial: str
    mode: str
    fingerprint: str
    versions: Mapping[str, str]
    source: RuleSource | None = None
    unit: str = STEP
    run_id: str = ""


def rule_result(
    state: RuleJobState,
    facts: RuleJobFacts,
    *,
    trial_ended: bool,
    duration_s: float,
    rule_time_s: float,
    actions: Sequence[ActionResult] = (),
    segments: Sequence[int] = (),
    windows: WindowTimes | None = None,
    other_trials: Sequence[OtherTrial] = (),
) -> RuleResult:
    """Return the result of a rule job in its current state, finished or not.

    Parameters
    ----------
    segments
        The first global step of each segment of the trial, if there are several.
    windows
        When the judged windows begin, if that is known.
    other_trials
        The trials that the rule compares with, once it is known how much of them it sees.
    """
    where = numbers(state.step, segments)
    has_state = state.goes_on and state.status is RuleStatus.ISSUES_FOUND
    recovered_at = state.recovered_at() if has_state else None
    return RuleResult(
        configuration_name=state.configuration_name,
        rule=state.rule,
        source=facts.source,
        unit=facts.unit,
        windows=msgspec.UNSET if windows is None else windows,
        status=str(state.status),
        outcome=str(state.outcome),
        status_details=state.status_details,
        step=where.step,
        segment=where.segment,
        resumed_from=where.resumed_from,
        evidence=[
            _with_state(evidence(finding, segments), state.finding_recovered_at(finding))
            if state.goes_on and finding.counts
            else evidence(finding, segments)
            for finding in state.evidence
        ],
        severity=state.severity,
        state=_finding_state(recovered_at) if has_state else msgspec.UNSET,
        recovered_at=_own_step(recovered_at),
        findings_count=state.findings_count,
        notes_count=state.notes_count,
        muted_count=state.muted_count,
        coverage=_coverage(state),
        parameters={
            name: MASK if is_secret(name) else json_scalar(value)
            for name, value in facts.parameters.items()
        },
        trial=facts.trial,
        other_trials=[*other_trials] or msgspec.UNSET,
        trial_ended=trial_ended,
        mode=str(facts.mode),
        started_at=rfc3339(state.started_at),
        ended_at=None if state.ended_at is None else rfc3339(state.ended_at),
        duration_s=duration_s,
        rule_time_s=rule_time_s,
        versions=dict(facts.versions),
        fingerprint=facts.fingerprint,
        run_id=facts.run_id,
        actions=[*actions],
        notes=state.notes,
    )


def _with_state(found: Evidence, recovered_at: int | None) -> Evidence:
    """Return a finding with its state; `recovered_at` is a global step."""
    state = _finding_state(recovered_at)
    return msgspec.structs.replace(found, state=state, recovered_at=_own_step(recovered_at))


def _finding_state(recovered_at: int | None) -> FindingState:
    return FindingState.OPEN if recovered_at is None else FindingState.RECOVERED


def _own_step(step: int | None) -> int | msgspec.UnsetType:
    """Return the training's own step of a global one; unset without one."""
    return msgspec.UNSET if step is None else step_in_segment(step)


def _coverage(state: RuleJobState) -> Coverage:
    """Return the coverage of a rule job for a result."""
    current = state.coverage
    return replace(
        current,
        known=max(current.known, current.seen),
        skipped=dict(current.skipped),
        first=numbers(current.first).step,
        last=numbers(current.last).step,
        segments=segment_steps(state.ranges),
        missing_workers=dict(current.missing_workers),
    )


class ResultStep(NamedTuple):
    """A step in results; see the attributes of `RuleResult`."""

    step: int | None
    segment: int | msgspec.UnsetType = msgspec.UNSET
    resumed_from: int | msgspec.UnsetType = msgspec.UNSET


def numbers(step: int | None, segments: Sequence[int] = ()) -> ResultStep:
    """Return a global step as it is in results; for `segments` see `rule_result`."""
    if step is None:
        return ResultStep(None)
    segment, own = numbers_of(step)
    resumed = resumed_at(step, segments) if segments else None
    return ResultStep(
        own,
        segment or msgspec.UNSET,
        msgspec.UNSET if resumed is None else step_in_segment(resumed),
    )


def in_order(rules: Iterable[RuleResult]) -> list[RuleResult]:
    """Return the results in the order of reports: issues first."""
    return sorted(rules, key=lambda rule: _ORDER.get(rule.outcome, 0))


def summary(rules: Iterable[RuleResult], left_out: Collection[str] = ()) -> str:
    """Return the number of rules with each outcome: ``1 IssuesFound, 2 NoIssuesFound``.

    The rules `left_out` were not evaluated either.
    """
    counts = Counter(rule.outcome for rule in in_order(rules))
    if left_out:
        counts[str(Outcome.NOT_EVALUATED)] += len(left_out)
    return ", ".join(f"{count} {outcome}" for outcome, count in counts.items())


def summary_of_trial(name: str, path: str, rules: Sequence[RuleResult]) -> TrialSummary:
    """Return what results say about the trial that they judged."""
    firsts = [rule.coverage.first for rule in rules if rule.coverage.first is not None]
    lasts = [rule.coverage.last for rule in rules if rule.coverage.last is not None]
    return TrialSummary(
        name=name,
        path=path,
        ended=bool(rules) and all(rule.trial_ended for rule in rules),
        steps=max((rule.coverage.known for rule in rules), default=0),
        first_step=min(firsts, default=None),
        last_step=max(lasts, default=None),
        workers=[],
    )


def evidence(finding: Finding, segments: Sequence[int] = ()) -> Evidence:
    """Return `finding` with its values as JSON scalars; for `segments` see `rule_result`."""
    step = operator.index(finding.step)
    where = numbers(step, segments)
    return Evidence(
        step=step if where.step is None else where.step,
        tensor=text_or_none(finding.tensor),
        worker=text_or_none(finding.worker),
        measured=json_scalar(finding.measured),
        limit=json_scalar(finding.limit),
        note=text_or_none(finding.note),
        segment=where.segment,
        resumed_from=where.resumed_from,
        severity=finding.severity,
        muted=_or_unset(finding.muted),
        mode=_or_unset(finding.mode),
        recovered_at=_own_step(finding.recovered_at),
        summary=_or_unset(finding.summary),
        advice=_or_unset(finding.advice),
    )


def _or_unset(label: str | None) -> str | msgspec.UnsetType:
    return msgspec.UNSET if label is None else label
