"""Incidents: the open issues of a run, each root cause with what may follow from it."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from operator import itemgetter
from typing import Final, NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from builtin_rules.causes import cause_rank
from rule_core.severity import Severity
from rule_runner.results.json_text import json_digest
from rule_runner.results.schema import IncidentRecord, RuleResult, in_order
from rule_runner.results.status import FindingState, Outcome

FACT: Final = 0  # the rank of rules whose findings follow from no other


class RunState(StrEnum):
    """The state of a run, as its rules see it, the worst first."""

    BROKEN = "broken"  # an error holds
    SUSPICIOUS = "suspicious"  # a warning holds
    UNKNOWN = "cannot tell"  # rules failed, or none judged a step
    HEALTHY = "looks healthy"


class Incident(NamedTuple):
    """Issues of one run that one fault may explain: its root cause first."""

    root: RuleResult
    consequences: tuple[RuleResult, ...] = ()

    @property
    def severity(self) -> Severity:
        """That of the most serious issue."""
        severities = (rule.counted_severity for rule in (self.root, *self.consequences))
        return max(filter(None, severities), key=lambda severity: severity.rank)

    @property
    def state(self) -> RunState:
        """What it makes of its run."""
        return RunState.BROKEN if self.severity is Severity.ERROR else RunState.SUSPICIOUS

    def record(self) -> IncidentRecord:
        """Return the incident for JSON."""
        name = self.root.configuration_name
        names = [rule.configuration_name for rule in self.consequences]
        return IncidentRecord(incident_id(self.root), self.severity, name, names)


def incident_id(root: RuleResult) -> str:
    """Return the id of the incident with a root cause."""
    return json_digest([root.trial, root.configuration_name], 16)


def root_of(incident: str, rules: Iterable[RuleResult]) -> RuleResult | None:
    """Return the issue that is a root cause, by the incident's id or the name of its rule job."""
    return next(
        (
            rule
            for rule in rules
            if rule.outcome == Outcome.ISSUES_FOUND
            and incident in {rule.configuration_name, incident_id(rule)}
        ),
        None,
    )


def covered_by(root: str, rules: Sequence[RuleResult]) -> list[str]:
    """Return the rule jobs of an incident that somebody acknowledged by its root cause.

    They are the root cause and what may follow from it: not a cause that was found later, and not
    what was found after the root cause had recovered.
    """
    cause = root_of(root, rules)
    if cause is None:
        return [root]
    until = cause.recovered_at if cause.state == FindingState.RECOVERED else None
    followers = [
        rule for rule in rules if rule is not cause and (not until or (rule.step or 0) <= until)
    ]
    for incident in incidents([replace(cause, state=UNSET), *followers]):
        names = [rule.configuration_name for rule in (incident.root, *incident.consequences)]
        if root in names:
            return names[names.index(root) :]
    return [root]


def incidents(rules: Iterable[RuleResult]) -> list[Incident]:
    """Return the issues of a run that still hold as incidents, the most serious ones first.

    The root cause is the issue that comes first in the order of `builtin_rules.causes`, and of
    several the earliest. Facts about the wiring of a training, and rules that stand apart from
    that order, such as those of users, are incidents of their own.
    """
    issues = sorted(
        (rule for rule in rules if rule.has_issues()), key=lambda rule: rule.global_step or 0
    )
    ranked = [(_rank(rule), rule) for rule in issues]
    alone = [rule for rank, rule in ranked if rank is None]
    related = sorted(((rank, rule) for rank, rule in ranked if rank is not None), key=itemgetter(0))
    # The root causes come first: all facts, or else the first of the related issues.
    root_count = sum(rank == FACT for rank, _ in related) or len(related[:1])
    roots = [rule for _, rule in related[:root_count]]
    grouped = [Incident(rule) for rule in (*roots, *alone)]
    if roots:
        grouped[0] = Incident(roots[0], tuple(rule for _, rule in related[root_count:]))
    return sorted(grouped, key=lambda incident: -incident.severity.rank)


def incident_records(rules: Iterable[RuleResult]) -> list[IncidentRecord]:
    """Return the incidents of a run for JSON."""
    return [incident.record() for incident in incidents(rules)]


def run_state(rules: Sequence[RuleResult], problem: str = "") -> RunState:
    """Return the state of a run by the results of its rules.

    Parameters
    ----------
    problem
        Why the results are not complete; "" if they are.
    """
    severities = {rule.counted_severity for rule in rules}
    if Severity.ERROR in severities:
        return RunState.BROKEN
    if Severity.WARNING in severities:
        return RunState.SUSPICIOUS
    failed = any(rule.outcome in {Outcome.ERROR, Outcome.STOPPED} for rule in rules)
    judged = any(rule.outcome != Outcome.NOT_EVALUATED for rule in rules)
    return RunState.HEALTHY if judged and not failed and not problem else RunState.UNKNOWN


def in_causal_order(rules: Sequence[RuleResult]) -> list[tuple[RuleResult, RuleResult | None]]:
    """Return results in the order of reports, each with the root cause that it may follow from.

    Incidents come first, and in each the root cause, which follows from nothing, as do all
    results that are not of an incident.
    """
    pairs: list[tuple[RuleResult, RuleResult | None]] = []
    for root, consequences in incidents(rules):
        pairs += [(root, None), *((rule, root) for rule in consequences)]
    listed = {id(rule) for rule, _ in pairs}
    others = (rule for rule in in_order(rules) if id(rule) not in listed)
    return [*pairs, *((rule, None) for rule in others)]


def _rank(rule: RuleResult) -> int | None:
    return cause_rank(rule.rule) if rule.source is None else None
