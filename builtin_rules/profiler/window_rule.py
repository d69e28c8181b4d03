"""WindowRule: the base class of rules that judge a profiler trial, one window of time at a time."""

from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from builtin_rules.profiler.report_file import write_report
from smdebug.analysis.utils import snapshot
from smdebug.exceptions import RuleEvaluationConditionMet
from smdebug.rules import Rule
from smdebug.rules.params import set_parameters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from smdebug.profiler.system_samples import SystemSamples
    from smdebug.profiler.trace_event import TraceEvent


class WindowRule(Rule):
    """A rule whose steps are windows of time: the system samples and framework events of each.

    Window `k` begins at ``first_timestamp + k * scan_interval_us`` and ends where the next one
    begins; what lies on a border belongs to the later one. The answer is that of the window; what
    was seen before it is remembered. A window that brings nothing that the rule reads is skipped.

    Parameters
    ----------
    given
        The values of the declared parameters, by name.

    Attributes
    ----------
    REPORTED
        The names of the parameters that `report` names, in its order.
    """

    REPORTED: ClassVar[tuple[str, ...]] = ()
    scan_interval_us: int
    _report: dict[str, Any]
    _changed: bool

    def __init__(self, base_trial: Any, **given: Any) -> None:
        super().__init__(base_trial)
        set_parameters(self, **given)
        self._report["RuleParameters"] = self.rule_parameters()

    @property
    def report(self) -> dict[str, Any]:
        """What the rule found so far; ``Details`` are worked out when the report is asked for."""
        if self._changed:
            self._changed = False
            self._report["Details"] = self.details()
        return self._report

    @report.setter
    def report(self, report: dict[str, Any]) -> None:
        self._report = report
        self._changed = False

    def rule_parameters(self) -> str:
        """Return the parameters as the report has them: a line of name and value for each."""
        return "\n".join(f"{name}:{getattr(self, name)}" for name in self.REPORTED)

    def window_of(self, step: int) -> tuple[int, int]:
        """Return where window `step` begins and ends, in epoch microseconds."""
        start = self.base_trial.first_timestamp + step * self.scan_interval_us
        return start, start + self.scan_interval_us

    def samples(self, step: int) -> "SystemSamples":
        """Return the system samples of window `step`."""
        samples: SystemSamples = self.base_trial.system_samples(*self.window_of(step))
        return samples

    def events(self, step: int) -> "Sequence[TraceEvent]":
        """Return the framework events that end in window `step`."""
        events: Sequence[TraceEvent] = self.base_trial.framework_events(*self.window_of(step))
        return events

    def invoke(self, step: int) -> None:
        """Wait for the data of window `step` and judge it; the trial shows nothing new meanwhile.

        Raises
        ------
        RuleEvaluationConditionMet
            If the condition is met, after the rule's actions.
        NoMoreProfilerData
            If the training job has ended before the window.
        """
        start, end = self.window_of(step)
        self.base_trial.wait_for_data(end, start)
        with snapshot(self.trials, step):
            met = self._truth(self.invoke_at_step(step))
        if met:
            self.carry_out_actions(step)
            raise RuleEvaluationConditionMet(self.rule_name, step)

    def invoke_at_step(self, step: int) -> bool:
        """Judge window `step`, together with what is remembered of those before it."""
        self._changed = True
        return self.judge(step)

    @abstractmethod
    def judge(self, step: int) -> bool:
        """Say whether the condition is met in window `step`."""

    @abstractmethod
    def details(self) -> dict[str, Any]:
        """Return the report's ``Details`` of all windows so far."""

    def violated(self, violations: int = 1, triggered: int = 1) -> None:
        """Count in the report how often the condition was met, and how often the rule fired."""
        self._report["Violations"] += violations
        self._report["RuleTriggered"] += triggered

    def has_seen(self, points: int) -> None:
        """Tell the report how many data points there were so far."""
        self._report["Datapoints"] = max(points, self._report["Datapoints"])

    def invoke_at_end(self, step: int) -> bool:
        """Write the report to the rule's output folder, if it has one."""
        del step
        if self.output_dir is not None:
            try:
                write_report(Path(self.output_dir), self.rule_name, self.report)
            except OSError as err:
                self.logger.warning("Report not written: %s", err)
        return False
