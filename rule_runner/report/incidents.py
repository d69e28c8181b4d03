"""Incidents: the open issues of a run, each root cause with what may follow from it."""

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from builtin_rules.causes import cause_rank
from rule_core.severity import Severity
from rule_runner.results.json_text import json_digest
from rule_runner.results.schema import RuleResult

FACT: Final = 0  # the rank of rules whose findings follow from no other


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


class Incident(NamedTuple):
    """Issues of one run that one fault may explain: its root cause first."""

    root: RuleResult
    consequences: tuple[RuleResult, ...] = ()

    @property
    def severity(self) -> Severity:
        """That of the most serious issue."""
        severities = (rule.counted_severity for rule in (self.root, *self.consequences))
        return max(filter(None, severities), key=lambda severity: severity.rank)

    def record(self) -> IncidentRecord:
        """Return the incident for JSON."""
        name = self.root.configuration_name
        names = [rule.configuration_name for rule in self.consequences]
        digest = json_digest([self.root.trial, name], 16)
        return IncidentRecord(digest, self.severity, name, names)


def incidents(rules: Iterable[RuleResult]) -> list[Incident]:
    """Return the issues of a run that still hold as incidents, the most serious ones first.

    The root cause is the issue that comes first in the order of `builtin_rules.causes`, and of
    several the earliest. Facts about the wiring of a training, and rules that stand apart from
    that order, such as those of users, are incidents of their own.
    """
    issues = sorted(
        (rule for rule in rules if rule.has_issues()), key=lambda rule: rule.global_step or 0
    )
    ranks = {id(rule): _rank(rule) for rule in issues}
    alone = [rule for rule in issues if ranks[id(rule)] is None]
    related = sorted(
        (rule for rule in issues if ranks[id(rule)] is not None),
        key=lambda rule: ranks[id(rule)] or FACT,
    )
    facts = [rule for rule in related if ranks[id(rule)] == FACT] or related[:1]
    grouped = [Incident(rule) for rule in (*facts, *alone)]
    if facts:
        grouped[0] = Incident(facts[0], tuple(rule for rule in related if rule not in facts))
    return sorted(grouped, key=lambda incident: -incident.severity.rank)


def _rank(rule: RuleResult) -> int | None:
    return cause_rank(rule.rule) if rule.source is None else None
