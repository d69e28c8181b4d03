"""TrialRecord and RuleRecord: what the index of `watch` knows of a trial and of its rules."""

import msgspec

from rule_core.severity import Severity
from rule_runner.fleet.watch.states import WatchState


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
        What its data looked like when they were last seen; see `rule_runner.fleet.watch.growth`.
    final
        Whether more data cannot change the verdicts.
    removed
        Whether its output was removed.
    changed_at
        When its state changed last.
    started_at, ended_at
        Of its last evaluation.
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
    acknowledged
        Whether somebody has acknowledged its issue.
    counted_severity
        Of its most serious finding that is not muted; None without an issue, and if all are muted.
    """

    name: str
    rule: str
    mode: str
    outcome: str
    severity: Severity | None
    step: int | None
    judged: int
    findings: int
    acknowledged: bool = False
    counted_severity: Severity | None = None


class TrialFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which trials to list: those that fit every field that is set.

    Attributes
    ----------
    text
        A part of the trial's path.
    rule, rule_outcome
        A rule job that the trial has, and the outcome of that rule job.
    """

    state: WatchState | None = None
    outcome: str | None = None
    text: str | None = None
    rule: str | None = None
    rule_outcome: str | None = None
