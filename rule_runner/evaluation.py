"""Evaluation: status, coverage and findings of one rule job; decides everything, does no I/O."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final

from rule_runner.status import (
    NO_DATA,
    NOT_ENOUGH,
    Happened,
    Outcome,
    RuleStatus,
    StatusChange,
    advance,
    condition_text,
    wire_details,
)

if TYPE_CHECKING:
    from smdebug.rules.evidence import Finding

REASON_LIMIT: Final = 50
WORKER_LIMIT: Final = 1000
NOTE_LIMIT: Final = 100
NOTE_LENGTH: Final = 1000
EVIDENCE_LIMIT: Final = 100
OTHER: Final = "other"
_DETAILED: Final = {RuleStatus.ISSUES_FOUND, RuleStatus.ERROR, RuleStatus.STOPPED}


def _count(counts: dict[str, int], key: str, limit: int) -> str:
    """Count one more, and return the key that it is counted under."""
    if key not in counts and len(counts) >= limit:
        key = OTHER
    counts[key] = counts.get(key, 0) + 1
    return key


def _uncount(counts: dict[str, int], key: str) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]


@dataclass(slots=True)
class Coverage:
    """What a rule job looked at.

    Attributes
    ----------
    judged
        Number of steps judged.
    skipped
        Number of steps not judged, by reason; at most 50 reasons, then ``other``.
    known
        Number of steps that the trial holds within the range to judge.
    first, last
        First and last step judged.
    missing_workers
        Number of steps that were judged or skipped without a worker, by worker.
    """

    judged: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    known: int = 0
    first: int | None = None
    last: int | None = None
    missing_workers: dict[str, int] = field(default_factory=dict)

    @property
    def seen(self) -> int:
        """Number of steps judged or skipped."""
        return self.judged + sum(self.skipped.values())


class Evaluation:
    """One rule job, told step by step what happened; it decides status and outcome.

    Steps come in ascending order. Every method that can move the status returns the change,
    or None if the status stayed. All times are aware and UTC.

    Parameters
    ----------
    rule
        Class name of the rule.
    configuration_name
        Name of the rule job.
    keep_going
        Whether the walk goes on after the first condition met.
    started_at
        When the rule job began.

    Attributes
    ----------
    status_details
        ``StatusDetails`` of the present status, None where the wire has none.
    step
        Step of the first condition met.
    evidence
        The first 100 findings; `findings_count` counts all.
    ended_at
        When the verdict was final: with `keep_going`, when the walk was over.
    """

    def __init__(
        self, rule: str, configuration_name: str, keep_going: bool, started_at: datetime
    ) -> None:
        self.rule = rule
        self.configuration_name = configuration_name
        self.keep_going = keep_going
        self.started_at = started_at
        self.ended_at: datetime | None = None
        self.status = RuleStatus.IN_PROGRESS
        self.status_details: str | None = None
        self.step: int | None = None
        self.coverage = Coverage()
        self.evidence: list[Finding] = []
        self.findings_count = 0
        self._notes: dict[str, None] = {}
        self._notes_lost = 0
        self._stop_reason = ""
        self._not_evaluated = False
        self._missing_at: int | None = None
        self._skipped_at: int | None = None
        self._skipped_for = ""
        self._over = False  # nothing more is to be judged, whatever keep_going says

    @property
    def done(self) -> bool:
        """Whether this rule job wants no further step."""
        goes_on = self.keep_going and self.status is RuleStatus.ISSUES_FOUND
        return self._over or (self.status.final and not goes_on)

    @property
    def outcome(self) -> Outcome:
        """The status, or NotEvaluated if no step could be judged."""
        return Outcome.NOT_EVALUATED if self._not_evaluated else Outcome(self.status)

    @property
    def notes(self) -> list[str]:
        """Return the distinct notes in order; the last one counts those that were left out."""
        lost = [f"{self._notes_lost} more notes were left out."] if self._notes_lost else []
        return [*self._notes, *lost]

    def note(self, text: str) -> None:
        """Keep a remark for the result; each text once, at most 100 of them."""
        text = text[:NOTE_LENGTH]
        if text in self._notes:
            return
        if len(self._notes) < NOTE_LIMIT:
            self._notes[text] = None
        else:
            self._notes_lost += 1

    def steps_known(self, count: int) -> None:
        """Set how many steps within the range to judge the trial holds by now."""
        self.coverage.known = count

    def missing_workers(self, step: int, workers: Sequence[str]) -> None:
        """Count the `workers` that `step` has to do without; saying so twice counts once."""
        if self._missing_at == step:
            return
        self._missing_at = step
        for worker in workers:
            _count(self.coverage.missing_workers, worker, WORKER_LIMIT)

    def step_judged(self, step: int) -> None:
        """Count `step` as judged; saying so twice counts once."""
        coverage = self.coverage
        if coverage.last == step:
            return
        if self._skipped_at == step:  # it was judged later, when nothing more had come
            _uncount(coverage.skipped, self._skipped_for)
        coverage.judged += 1
        coverage.last = step
        if coverage.first is None:
            coverage.first = step

    def step_skipped(self, step: int, reason: str) -> None:
        """Count `step` as not judged for `reason`: a constant, or the rule's own words.

        Saying so twice counts once; a step that was judged stays judged.
        """
        if step in (self.coverage.last, self._skipped_at):
            return
        self._skipped_at = step
        self._skipped_for = _count(self.coverage.skipped, reason[:NOTE_LENGTH], REASON_LIMIT)

    def condition_met(
        self, step: int, findings: "Sequence[Finding]", at: datetime, *, end_of_rule: bool = False
    ) -> StatusChange | None:
        """Count `step` as judged with the condition met; the first time decides the verdict.

        Parameters
        ----------
        step
            Global step.
        findings
            Never empty: a rule that only answered True has ``[Finding(step)]``.
        at
            Now.
        end_of_rule
            Whether the rule asked to end with this.
        """
        self.step_judged(step)
        self._keep(findings)
        if self.step is None and not self.status.final:
            self.step = step
        change = self._see(Happened.CONDITION_MET, at, condition_text(self.rule, step))
        if end_of_rule:
            self._end(at)
        return change

    def finding_only(self, step: int, findings: "Sequence[Finding]") -> bool:
        """Count `step` as judged: the rule reported `findings` but answered False.

        Returns
        -------
        bool
            Whether the findings are kept: only with `keep_going`. A note says so either way.
        """
        self.step_judged(step)
        fate = "they are listed and do" if self.keep_going else "they are dropped and do"
        self.note(f"Rule {self.rule!r} reported findings and answered False; {fate} not count.")
        if self.keep_going:
            self._keep(findings)
        return self.keep_going

    def rule_failed(self, details: str, at: datetime) -> StatusChange | None:
        """End the rule job with an error; after a verdict it is a note.

        `details` begins with `status.CLIENT_ERROR`, or is `status.INTERNAL_ERROR`.
        """
        if self.status.final:
            self.note(details)
            self._end(at)
        return self._see(Happened.RULE_FAILED, at, details)

    def stop_requested(self, reason: str, at: datetime) -> StatusChange | None:
        """Note that no further step is to be judged; the step in hand still counts."""
        if self.done:
            return None
        if self.status.final:
            self.note(reason)
            self._end(at)
            return None
        self.note(reason)
        self._stop_reason = self._stop_reason or reason
        return self._see(Happened.STOP_REQUESTED, at, None)

    def ended(
        self, at: datetime, trial_ended: bool, held: str = "", *, no_data: bool = False
    ) -> list[StatusChange]:
        """Give the verdict: nothing more will be judged.

        Parameters
        ----------
        at
            Now.
        trial_ended
            Whether the trial had ended. With all known steps seen, a stop cut nothing short.
        held
            A sentence on what the rule looked for and what the trial holds, used if no step
            was judged.
        no_data
            Whether the trial holds no data at all.
        """
        happened, details = self._verdict(trial_ended, NO_DATA if no_data else "", held)
        change = self._see(happened, at, details)
        if change and change.new is RuleStatus.ERROR:
            self._not_evaluated = True
        self._end(at)
        return [change] if change else []

    def _verdict(self, trial_ended: bool, no_data: str, held: str) -> tuple[Happened, str]:
        coverage = self.coverage
        if not coverage.judged:
            silence = " Nothing was judged." if self._stop_reason else self._silence(no_data, held)
            return Happened.NOTHING_JUDGED, self._stop_reason + silence
        complete = trial_ended and coverage.seen >= coverage.known
        return Happened.TRIAL_ENDED if complete else Happened.DRAINED, self._stop_reason

    def _silence(self, no_data: str, held: str) -> str:
        if no_data:
            return f"{no_data} {held}".strip()
        coverage = self.coverage
        known = max(coverage.known, coverage.seen)
        reasons = ", ".join(f"{reason}: {n}" for reason, n in coverage.skipped.items())
        why = f" (skipped for {reasons})" if reasons else ""
        judged = f"Rule {self.rule!r} judged none of {known} known steps{why}."
        return f"{NOT_ENOUGH}{judged} {held}".strip()

    def _keep(self, findings: "Sequence[Finding]") -> None:
        self.findings_count += len(findings)
        self.evidence.extend(findings[: EVIDENCE_LIMIT - len(self.evidence)])

    def _see(self, happened: Happened, at: datetime, details: str | None) -> StatusChange | None:
        old, self.status = self.status, advance(self.status, happened)
        if old is self.status:
            return None
        if self.status in _DETAILED and details is not None:
            self.status_details = wire_details(details)
        if self.done:
            self._end(at)
        return StatusChange(old, self.status, at, self.status_details)

    def _end(self, at: datetime) -> None:
        self._over = True
        if self.ended_at is None:
            self.ended_at = at
