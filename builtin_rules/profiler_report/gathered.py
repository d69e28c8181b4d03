"""Gathered: all that the profiler report is made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from builtin_rules.profiler_report.step_history import StepHistory
from builtin_rules.profiler_report.sub_rules import SubRule
from builtin_rules.profiler_report.usage_history import UsageHistory


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What was gathered of a job so far.

    Attributes
    ----------
    trial, path
        Name of the trial, and where its data are.
    nodes
        The nodes that wrote data.
    begin_us, end_us
        When the data begin and end, in epoch microseconds.
    ended
        Whether all that will be judged is in here.
    made_at
        The time now; aware.
    rules
        The rules, with what they found.
    usage, steps
        For charts; None if there was no window yet.
    has_framework_data
        Whether there are timelines.
    problems
        What is wrong with the data: a sentence each.
    """

    trial: str
    path: str
    nodes: Sequence[str]
    begin_us: int
    end_us: int
    ended: bool
    made_at: datetime
    rules: Sequence[SubRule]
    usage: UsageHistory | None
    steps: StepHistory | None
    has_framework_data: bool
    problems: tuple[str, ...]

    def rule(self, name: str) -> SubRule:
        """Return a rule by its name."""
        return next(one for one in self.rules if one.name == name)

    def details(self, name: str) -> Mapping[str, Any]:
        """Return the details of a rule's report."""
        found: Mapping[str, Any] = self.rule(name).report["Details"]
        return found
