"""TrialRecord and RuleRecord: what the index of `watch` knows of a trial and of its rules."""

from collections.abc import Sequence
from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta

from rule_core.severity import Severity
from rule_runner.index.states import WatchState
from rule_runner.results.status import Outcome

RECOVERED: Final = "Recovered"  # the verdict on issues that no longer hold
Text: TypeAlias = Annotated[str, Meta(max_length=1000)]


class TrialRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A trial in the index.

    Times are seconds since the epoch.

    Attributes
    ----------
    id
        Its number in this index; another index may number it differently.
    path
        Its canonical path or address.
    root
        The entry of `roots` below which it was found; "" if only its output was found.
    tensors, profiler
        The kinds of data that it holds.
    output
        Its output folder, or ``s3://`` address.
    outcome
        The outcome of its rules together; "" before the first verdicts.
    restarts
        How often its evaluation was restarted after it died.
    not_before
        When its evaluation may start.
    problem
        Why it could not be judged, in a sentence; "" otherwise.
    mark
        What its data looked like when they were last seen; see `rule_runner.watch.growth`.
    final
        Whether more data cannot change the verdicts.
    removed
        Whether its output was removed.
    changed_at
        When its state changed last.
    started_at, ended_at
        Of its last evaluation.
    revision
        The number of the change of the index that changed it, or its rules, last.
    undelivered
        The number of events of its last evaluation that a sink has not taken, or has refused.
    verdict
        The outcome that people see: `RECOVERED` if none of its issues holds.
    """

    id: int
    path: str
    root: str
    tensors: bool
    profiler: bool
    output: str
    state: WatchState
    outcome: str
    restarts: int
    not_before: float
    problem: str
    mark: str
    final: bool
    removed: bool
    discovered_at: float
    changed_at: float
    started_at: float | None
    ended_at: float | None
    revision: int
    undelivered: int = 0
    verdict: str = ""


class RuleRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A rule job of a trial in the index.

    Attributes
    ----------
    name
        The name of the rule job: that of its rule, unless the configuration gives another.
    severity
        Of its most serious finding; None without issues.
    step
        The step of its first finding.
    judged, findings
        The number of judged steps, and of findings.
    known, skipped
        The number of steps of the trial, and of those that were not judged for a reason.
    last_step
        The last judged step.
    rule_time
        Seconds spent in the rule's own code.
    acknowledged
        Whether somebody has acknowledged its issue.
    counted_severity
        Of its most serious finding that is not muted; None without an issue, and if all are muted
        or have recovered.
    since
        The global step of its first finding that counts and still holds; None without one.
    recovered_at
        The training's own step since which none of its findings holds; None if one does, or all
        are muted.
    root
        The name of the rule job with the root cause of its incident; "" without an issue that
        counts, and None if an earlier version recorded it.
    sentence
        What its first finding says that still holds.
    """

    name: str
    rule: str
    mode: str
    outcome: str
    severity: Severity | None
    step: int | None
    judged: int
    findings: int
    known: int = 0
    skipped: int = 0
    last_step: int | None = None
    rule_time: float = 0.0
    acknowledged: bool = False
    counted_severity: Severity | None = None
    since: int | None = None
    recovered_at: int | None = None
    root: str | None = ""
    sentence: str = ""

    @property
    def verdict(self) -> str:
        """The outcome that people see: `RECOVERED` if its issue does not hold."""
        return self.outcome if self.recovered_at is None else RECOVERED


def standing_of(rules: Sequence[RuleRecord]) -> str:
    """Return the verdict on a trial whose issues have recovered; "" if one counts, or none was."""
    verdicts = {rule.verdict for rule in rules}
    if RECOVERED not in verdicts or any(rule.counted_severity for rule in rules):
        return ""
    failures = (Outcome.ERROR, Outcome.STOPPED)
    return next((str(outcome) for outcome in failures if outcome in verdicts), RECOVERED)


class TrialFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which trials to list: those that fit every field that is set.

    Attributes
    ----------
    text
        A part of the trial's path.
    outcome
        The verdict: the outcome, or `RECOVERED`.
    rule, rule_outcome, severity
        The name of a rule job, its verdict, and the severity of its most serious finding, which
        has not recovered: the trial has a rule job that fits all of them that are set.
    """

    text: Text | None = None
    state: WatchState | None = None
    outcome: Text | None = None
    rule: Text | None = None
    rule_outcome: Text | None = None
    severity: Severity | None = None


class IndexChanges(msgspec.Struct, frozen=True):
    """What has changed in the index.

    Attributes
    ----------
    revision
        The number of the last change.
    removals
        A count of the trials that were removed from the index, which begins at a random number: it
        tells indexes apart as well.
    trials
        The trials that changed, in the order of their changes.
    """

    revision: int
    removals: int
    trials: tuple[TrialRecord, ...]
