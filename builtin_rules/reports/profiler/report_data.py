"""ReportData: the data that the profiler report is rendered from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from builtin_rules.reports.profiler.step_history import StepHistory
from builtin_rules.reports.profiler.sub_rules import SubRule
from builtin_rules.reports.profiler.usage_history import UsageHistory


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportData:
    """The data of a job so far.

    Attributes
    ----------
    trial, path
        Name of the trial and location of its data.
    nodes
        The nodes that wrote data.
    begin_us, end_us
        Start and end of the data, in epoch microseconds.
    ended
        Whether the data is complete.
    made_at
        The current time; aware.
    rules
        The rules with their findings.
    usage, steps
        Data of the charts; None before the first window.
    has_framework_data
        Whether there are timelines.
    problems
        Problems with the data, one sentence each.
    traces_between
        Returns the keys of the traces of torch.profiler in a time range, in epoch microseconds.
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
    traces_between: Callable[[int, int], Sequence[str]]

    def rule(self, name: str) -> SubRule:
        """Return the rule with this name."""
        return next(rule for rule in self.rules if rule.name == name)

    def details(self, name: str) -> Mapping[str, Any]:
        """Return the details in the report of a rule."""
        details: Mapping[str, Any] = self.rule(name).report["Details"]
        return details
