"""RuleJobState: status, coverage and findings of one rule job, decided without any I/O."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, NamedTuple

import msgspec

from rule_core.model.segments import SEGMENT_STEPS, segment_of, step_in_segment
from rule_core.rules.evidence import Finding, Series, most_serious
from rule_core.severity import Severity
from rule_runner.results.status import (
    DETAILED,
    NO_DATA,
    NOT_ENOUGH,
    FindingState,
    Outcome,
    RuleStatus,
    StatusInput,
    advance,
    condition_text,
    for_people,
    wire_details,
)

REASON_LIMIT: Final = 50
WORKER_LIMIT: Final = 1000
NOTE_LIMIT: Final = 100
NOTE_LENGTH: Final = 1000
EVIDENCE_LIMIT: Final = 100
ASIDE_LIMIT: Final = 20  # notes, and as many muted findings
OTHER: Final = "other"


def _count(counts: dict[str, int], key: str, limit: int) -> str:
    """Increment the count of a key, or of `OTHER` at the limit; return the counted key."""
    if key not in counts and len(counts) >= limit:
        key = OTHER
    counts[key] = counts.get(key, 0) + 1
    return key


def _uncount(counts: dict[str, int], key: str) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]


class SegmentSteps(msgspec.Struct, frozen=True):
    """The first and the last step of a segment: the training's own steps."""

    segment: int
    first: int
    last: int


def segment_steps(
    ranges: Iterable[tuple[int, int]],
) -> list[SegmentSteps] | msgspec.UnsetType:
    """Return the ranges of global steps of several segments for a result; nothing for one."""
    steps = [
        SegmentSteps(segment_of(first), step_in_segment(first), step_in_segment(last))
        for first, last in ranges
    ]
    return steps if len(steps) > 1 else msgspec.UNSET


@dataclass(slots=True)
class Coverage:
    """The steps that a rule job judged or skipped.

    In a result, `first` and `last` are the training's own steps.

    Attributes
    ----------
    judged
        Number of steps judged.
    skipped
        Number of steps not judged, by reason; at most 50 reasons, then ``other``.
    known
        Number of steps of the trial within the range to judge.
    first, last
        First and last step judged.
    missing_workers
        Number of steps judged or skipped without a worker's data, by worker.
    segments
        In a result: the first and the last step judged of each segment, if there are several.
    """

    judged: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    known: int = 0
    first: int | None = None
    last: int | None = None
    missing_workers: dict[str, int] = field(default_factory=dict)
    segments: list[SegmentSteps] | msgspec.UnsetType = msgspec.UNSET

    @property
    def seen(self) -> int:
        """Number of steps judged or skipped."""
        return self.judged + sum(self.skipped.values())


class _Open(NamedTuple):
    """Since when a condition has been met for a tensor, when it was last, and how serious it is."""

    first: int
    last: int
    severity: Severity


class RuleJobState:
    """The state of one rule job, which turns events of its steps into a status and an outcome.

    Steps come in ascending order. Every method that can change the status returns whether it did.
    All times are aware and UTC.

    Parameters
    ----------
    rule
        Class name of the rule.
    configuration_name
        Name of the rule job.
    keep_going
        Whether to judge further steps after the condition is first met, and keep each finding.
    started_at
        When the rule job began.
    follows
        Whether to judge them to learn whether the condition recovers. What repeats an open finding
        is neither kept nor counted.

    Attributes
    ----------
    goes_on
        Whether further steps are judged after the condition is first met.
    done
        Whether the rule job judges no more steps.
    status_details
        ``StatusDetails`` of the current status; None if it has none.
    step
        Step at which the condition was first met.
    severity
        That of the most serious finding of the verdict; None if the condition is not met.
    evidence
        The first 100 findings that count, and the first 20 notes and muted findings each.
    findings_count, notes_count, muted_count
        The number of findings that count, of notes, and of muted findings.
    kept
        The latest findings, without notes and muted findings beyond their limits.
    finding_state, state_step
        Whether the findings still hold, None if it is not known; and the global step since which
        this is so, None before the first recovery. See `follow`.
    ended_at
        When the verdict became final: with `keep_going`, after the last step.
    """

    def __init__(
        self,
        rule: str,
        configuration_name: str,
        keep_going: bool,
        started_at: datetime,
        *,
        follows: bool = False,
    ) -> None:
        self.rule = rule
        self.configuration_name = configuration_name
        self.goes_on = keep_going or follows
        self._keeps_repeated = not follows
        self.started_at = started_at
        self.ended_at: datetime | None = None
        self.status = RuleStatus.IN_PROGRESS
        self.status_details: str | None = None
        self.step: int | None = None
        self.severity: Severity | None = None
        self.coverage = Coverage()
        self.evidence: list[Finding] = []
        self.findings_count = self.notes_count = self.muted_count = 0
        self.kept: list[Finding] = []
        self._notes: dict[str, None] = {}
        self._notes_lost = 0
        self._stop_reason = ""
        self._not_evaluated = False
        self._missing_at: int | None = None
        self._skipped_at: int | None = None
        self._skipped_for = ""
        self._ranges: list[tuple[int, int]] = []
        self._segment_began = 0
        self._open: dict[tuple[Series, str | None], _Open] = {}  # by quantity, too
        self._recovered_at: int | None = None  # the latest recovery
        self.finding_state: FindingState | None = None
        self.state_step: int | None = None
        self.done = False

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """The first and the last global step judged of each segment."""
        last = self.coverage.last
        return self._ranges if last is None else [*self._ranges, (self._segment_began, last)]

    @property
    def outcome(self) -> Outcome:
        """The status, or NotEvaluated if no step could be judged."""
        return Outcome.NOT_EVALUATED if self._not_evaluated else Outcome(self.status)

    @property
    def first_finding(self) -> Finding:
        """The first finding that counts; an empty one if there is none."""
        return next((finding for finding in self.evidence if finding.counts), Finding(0))

    @property
    def notes(self) -> list[str]:
        """Return the distinct notes in order; the last one counts the omitted ones."""
        lost = [f"{self._notes_lost} more notes were left out."] if self._notes_lost else []
        return [*self._notes, *lost]

    def note(self, text: str) -> None:
        """Add a note to the result; each text once, at most 100 of them."""
        text = text[:NOTE_LENGTH]
        if text in self._notes:
            return
        if len(self._notes) < NOTE_LIMIT:
            self._notes[text] = None
        else:
            self._notes_lost += 1

    def missing_workers(self, step: int, workers: Sequence[str]) -> None:
        """Count the `workers` that `step` lacks; a repeated call has no effect."""
        if self._missing_at == step:
            return
        self._missing_at = step
        for worker in workers:
            _count(self.coverage.missing_workers, worker, WORKER_LIMIT)

    def step_judged(self, step: int) -> None:
        """Count `step` as judged; a repeated call has no effect."""
        coverage = self.coverage
        if coverage.last == step:
            return
        if self._skipped_at == step:  # judged later, when no more data had arrived
            _uncount(coverage.skipped, self._skipped_for)
        coverage.judged += 1
        last, coverage.last = coverage.last, step
        if last is None:
            coverage.first = self._segment_began = step
        elif step // SEGMENT_STEPS != last // SEGMENT_STEPS:
            self._ranges.append((self._segment_began, last))
            self._segment_began = step

    def step_skipped(self, step: int, reason: str) -> None:
        """Count `step` as not judged for `reason`: a constant, or the rule's own words.

        A repeated call has no effect; a step that was judged stays judged.
        """
        if step in (self.coverage.last, self._skipped_at):
            return
        self._skipped_at = step
        self._skipped_for = _count(self.coverage.skipped, reason[:NOTE_LENGTH], REASON_LIMIT)

    def condition_met(
        self, step: int, findings: Sequence[Finding], now: datetime, *, end_of_rule: bool = False
    ) -> bool:
        """Count `step` as judged with the condition met; the first such step sets the verdict.

        A later step changes it only if its findings are more serious.

        Parameters
        ----------
        step
            Global step.
        findings
            One of them counts: a rule that only returned True has ``[Finding(step)]``.
        now
            The current time.
        end_of_rule
            Whether the rule judges no more steps.
        """
        self.step_judged(step)
        self._keep(findings)
        if self.step is None and not self.status.final:
            self.step = step
        changed = self._transition(StatusInput.CONDITION_MET, now, condition_text(self.rule, step))
        raised = self.status is RuleStatus.ISSUES_FOUND and self._raise_severity(findings)
        if end_of_rule:
            self._end(now)
        return changed or raised

    def _raise_severity(self, findings: Sequence[Finding]) -> bool:
        """Adopt the severity of findings if it is higher; return whether it is."""
        old = self.severity or Severity.NOTE
        self.severity = most_serious((finding for finding in findings if finding.counts), old)
        self.severity = max(old, self.severity, key=lambda severity: severity.rank)
        return self.severity is not old

    def finding_only(self, step: int, findings: Sequence[Finding]) -> None:
        """Count `step` as judged: the rule reported `findings` but its condition is not met.

        Notes and muted findings are kept. Others are kept only with `keep_going`: the rule returned
        False all the same, which a note reports.
        """
        self.step_judged(step)
        asides = [finding for finding in findings if not finding.counts]
        self._keep(findings if self.goes_on else asides)
        if len(asides) == len(findings):
            return
        fate = "listed" if self.goes_on else "dropped"
        self.note(
            f"Rule {self.rule!r} reported findings but returned False; they are {fate} and do not "
            "count."
        )

    def rule_failed(self, details: str, now: datetime) -> bool:
        """End the rule job with an error; after a verdict only add a note.

        `details` begins with `status.CLIENT_ERROR`, or is `status.INTERNAL_ERROR`.
        """
        if self.status.final:
            self.note(for_people(details))
            self._end(now)
        return self._transition(StatusInput.RULE_FAILED, now, details)

    def stop_requested(self, reason: str, now: datetime) -> bool:
        """Stop judging further steps; the current step still counts."""
        if self.done:
            return False
        self.note(reason)
        if self.status.final:
            self._end(now)
            return False
        self._stop_reason = self._stop_reason or reason
        return self._transition(StatusInput.STOP_REQUESTED, now, None)

    def ended(
        self,
        now: datetime,
        trial_ended: bool,
        contents: str = "",
        *,
        no_data: bool = False,
        expected: int = 0,
        min_coverage: float = 0.0,
    ) -> bool:
        """Give the verdict: no more steps will be judged.

        Parameters
        ----------
        now
            The current time.
        trial_ended
            Whether the trial had ended. If all known steps were judged or skipped too, a stop
            request has no effect on the verdict.
        contents
            A sentence on what the rule looked for and what the trial holds, used if no step
            was judged.
        no_data
            Whether the trial holds no data at all.
        expected, min_coverage
            How many steps the rule should judge, and the share of them that it must judge.
        """
        shortfall = self._shortfall(expected, min_coverage)
        status_input, details = self._verdict(trial_ended, no_data, contents, shortfall)
        changed = self._transition(status_input, now, details)
        if changed and self.status is RuleStatus.ERROR:
            self._not_evaluated = True
        self._end(now)
        return changed

    def restore(
        self,
        status: RuleStatus,
        details: str | None,
        step: int | None,
        ended_at: datetime,
        severity: Severity | None = None,
    ) -> None:
        """Adopt the verdict of an earlier process; no more steps will be judged."""
        self.status, self.status_details, self.step = status, details, step
        self.severity = severity
        self._end(ended_at)

    def _verdict(
        self, trial_ended: bool, no_data: bool, contents: str, shortfall: str
    ) -> tuple[StatusInput, str]:
        coverage = self.coverage
        if not coverage.judged:
            if self._stop_reason:
                return StatusInput.NOTHING_JUDGED, f"{self._stop_reason} Nothing was judged."
            return StatusInput.NOTHING_JUDGED, self._describe_no_steps(no_data, contents)
        complete = trial_ended and coverage.seen >= coverage.known
        if shortfall and (complete or not self._stop_reason):
            return StatusInput.RULE_FAILED, shortfall
        return StatusInput.TRIAL_ENDED if complete else StatusInput.DRAINED, self._stop_reason

    def _describe_no_steps(self, no_data: bool, contents: str) -> str:
        """Return the details of a rule job that judged no step."""
        if no_data:
            return f"{NO_DATA} {contents}".strip()
        coverage = self.coverage
        count = max(coverage.known, coverage.seen)
        judged = f"Rule {self.rule!r} judged none of {count} known steps{self._why_skipped()}."
        return f"{NOT_ENOUGH}{judged} {contents}".strip()

    def _why_skipped(self) -> str:
        skipped = self.coverage.skipped
        reasons = ", ".join(f"{reason}: {n}" for reason, n in skipped.items())
        return f" (skipped for {reasons})" if reasons else ""

    def _shortfall(self, expected: int, min_coverage: float) -> str:
        """Return why coverage is too low for a verdict; "" if it is sufficient."""
        judged = self.coverage.judged
        if judged >= min_coverage * expected:
            return ""
        return (
            f"{NOT_ENOUGH}Rule {self.rule!r} judged {judged} of {expected} steps"
            f"{self._why_skipped()}: {judged / expected:.1%}, and the minimum coverage is "
            f"{min_coverage:.1%}."
        )

    def follow(self, step: int) -> bool:
        """Decide whether the findings still hold at a global step; return whether that changed.

        That they hold at first is no change: the status has changed then.
        """
        if not self.goes_on or self.status is not RuleStatus.ISSUES_FOUND:
            return False
        recovered_at, before = self.recovered_at(), self.finding_state
        self.finding_state = FindingState.OPEN if recovered_at is None else FindingState.RECOVERED
        if before in {None, self.finding_state}:
            return False
        self.state_step = step if recovered_at is None else recovered_at
        return True

    def recovered_at(self) -> int | None:
        """Return the global step since which no condition is met that was; None without one.

        A run that was resumed before a step and has passed it again has recovered there, unless the
        condition is met again.
        """
        resumed = [self._repeated_from(each.last) for each in self._open.values()]
        steps = [step for step in (self._recovered_at, *resumed) if step is not None]
        return None if None in resumed else max(steps, default=None)

    def finding_recovered_at(self, finding: Finding) -> int | None:
        """Return the global step at which the condition of a finding recovered, if it did."""
        if finding.recovered_at is not None:
            return finding.recovered_at
        since = self._open.get((finding.series, finding.quantity))
        is_latest = since is not None and since.first <= finding.step
        return self._repeated_from(since.last if since and is_latest else finding.step)

    def _repeated_from(self, step: int) -> int | None:
        """Return where a later segment begins that has repeated a global step; None without one."""
        own = step_in_segment(step)
        return next(
            (
                first
                for first, last in self.ranges
                if first > step and step_in_segment(first) <= own <= step_in_segment(last)
            ),
            None,
        )

    def _keep(self, findings: Sequence[Finding]) -> None:
        self.kept = [each for each in findings if self._is_news(each) and self._count(each)]
        room = EVIDENCE_LIMIT - sum(finding.counts for finding in self.evidence)
        for finding in self.kept:
            if not finding.counts or room > 0:
                self.evidence.append(finding)
            room -= finding.counts

    def _is_news(self, finding: Finding) -> bool:
        """Return whether a finding is to be kept: it may repeat another, or recover from none."""
        series, step = finding.series, finding.step
        if finding.recovered_at is not None:
            recovered = [condition for condition in self._open if condition[0] == series]
            if not recovered:
                return False
            for condition in recovered:
                del self._open[condition]
            self._recovered_at = step
            self.evidence = [
                replace(each, recovered_at=step)
                if each.counts and each.recovered_at is None and each.series == series
                else each
                for each in self.evidence
            ]
            return True
        if not finding.counts or not self.goes_on:
            return True
        severity, condition = finding.severity, (series, finding.quantity)
        before = self._open.get(condition)
        if before is not None and segment_of(before.last) == segment_of(step):
            is_worse = severity.rank > before.severity.rank
            severity = severity if is_worse else before.severity
            self._open[condition] = _Open(before.first, step, severity)
            return is_worse or self._keeps_repeated or step == before.first
        self._open[condition] = _Open(step, step, severity)
        return True

    def _count(self, finding: Finding) -> bool:
        """Count a finding; return whether it is worth keeping."""
        if finding.counts:
            self.findings_count += 1
            return True
        if finding.muted is None:
            self.notes_count += 1
            return self.notes_count <= ASIDE_LIMIT
        self.muted_count += 1
        return self.muted_count <= ASIDE_LIMIT

    def _transition(self, status_input: StatusInput, now: datetime, details: str | None) -> bool:
        old, self.status = self.status, advance(self.status, status_input)
        if old is self.status:
            return False
        if self.status in DETAILED and details is not None:
            self.status_details = wire_details(details)
        if self.status.final and not (self.goes_on and self.status is RuleStatus.ISSUES_FOUND):
            self._end(now)
        return True

    def _end(self, now: datetime) -> None:
        self.done = True
        if self.ended_at is None:
            self.ended_at = now
