"""WindowRule: the base class of rules that judge a profiler trial window by window."""

from abc import abstractmethod
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.profiler.statistics.parameters import SCAN_INTERVAL
from builtin_rules.profiler.statistics.report_file import write_report
from builtin_rules.statistics.tensor_selection import LITERAL
from smdebug.exceptions import RuleEvaluationConditionMet
from smdebug.rules.extensions import snapshot

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from builtin_rules.profiler.statistics.samples import Device
    from smdebug.profiler.trace_event_file_parser import TraceEvent
    from smdebug.rules.extensions import SystemSamples


_NOT_REPORTED: Final = frozenset({SCAN_INTERVAL.param.name, LITERAL.name})


class WindowRule(DeclaredRule):
    """A rule whose steps are windows of time, each with system samples and framework events.

    Window `k` starts at ``first_timestamp + k * scan_interval_us`` and ends where the next one
    starts; a time on a border belongs to the later one. Answers take earlier windows into account.
    Windows without data that the rule reads are skipped.

    Attributes
    ----------
    REPORTED
        The names of the parameters in `report`, in its order; by default all but the length of
        windows and `literal`.
    DOCUMENTED
        Documented defaults that differ from those of the rule, by name of the parameter.
    window_start
        The start of the latest window, in epoch microseconds; 0 before the first one.
    """

    REPORTED: ClassVar[tuple[str, ...]] = ()
    DOCUMENTED: ClassVar["Mapping[str, float]"] = MappingProxyType({})
    scan_interval_us: int
    window_start: int = 0
    _report: dict[str, Any]
    _changed: bool

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "REPORTED" not in vars(cls) and cls.PARAMS:
            names = (param.name for param in cls.PARAMS)
            cls.REPORTED = tuple(name for name in names if name not in _NOT_REPORTED)

    def binds(self, *names: str) -> bool:
        """Return whether to judge as documented; see `DeclaredRule.binds`.

        A default counts as not given: the classes of SDKs write every default into a job.
        """
        defaults = [
            *self.DOCUMENTED.items(),
            *((param.name, param.default) for param in self.PARAMS),
        ]
        changed = {name for name in names if (name, getattr(self, name)) not in defaults}
        return self.literal or bool(changed)

    @property
    def report(self) -> dict[str, Any]:
        """The findings so far; ``Details`` are computed on access."""
        if self._report.get("RuleParameters") == "":  # as `Rule` leaves it
            self._report["RuleParameters"] = self.rule_parameters()
        if self._changed:
            self._changed = False
            self._report["Details"] = self.details()
        return self._report

    @report.setter
    def report(self, report: dict[str, Any]) -> None:
        self._report = report
        self._changed = False

    def rule_parameters(self) -> str:
        """Return the parameters for the report, one ``name:value`` per line."""
        return "\n".join(f"{name}:{getattr(self, name)}" for name in self.REPORTED)

    def window_of(self, step: int) -> tuple[int, int]:
        """Return the start and end of window `step`, in epoch microseconds."""
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
        """Wait for the data of window `step` and judge it on a snapshot of the trial.

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
            severity = self.met_severity(self.invoke_at_step, step)
        if severity is not None:
            self.carry_out_actions(step, severity)
            raise RuleEvaluationConditionMet(self.rule_name, step)

    def invoke_at_step(self, step: int) -> bool:
        """Judge window `step`, taking earlier windows into account."""
        self._changed = True
        self.window_start, _ = self.window_of(step)
        return self.judge(step)

    @abstractmethod
    def judge(self, step: int) -> bool:
        """Return whether the condition is met in window `step`."""

    @abstractmethod
    def details(self) -> dict[str, Any]:
        """Return the report's ``Details`` of all windows so far."""

    def any_met(self, judgements: "Sequence[bool]", reason: str) -> bool:
        """Return whether one of several judgements is met; without any, nothing is judged."""
        return any(judgements) if judgements else self.not_judged(reason)

    def details_of(self, values: "Mapping[Device, Any]") -> dict[str, Any]:
        """Return values by node and device, and the start of the latest window."""
        details: dict[str, Any] = {}
        for (node, name), value in values.items():
            details.setdefault(node, {})[name] = value
        return {**details, "last_timestamp": self.window_start}

    def measured_on(
        self,
        device: tuple[str, str],
        step: int,
        quantity: str,
        value: float,
        limit: float,
        *,
        met: bool,
        note: str | None = None,
    ) -> bool:
        """Record a measurement of a node's device and return `met`; see `Rule.measured`."""
        node, name = device
        return self.record((name, node), step, quantity, value, limit, met=met, note=note)

    def count_violations(self, violations: int = 1, triggered: int = 1) -> None:
        """Add to the counts of violations and of triggered findings in the report."""
        self._report["Violations"] += violations
        self._report["RuleTriggered"] += triggered

    def record_points(self, points: int) -> None:
        """Record the number of data points so far in the report."""
        self._report["Datapoints"] = max(points, self._report["Datapoints"])

    def invoke_at_end(self, step: int) -> bool:
        """Write the report to the rule's output folder, if it has one."""
        del step
        try:
            if self.output_dir is not None:
                write_report(Path(self.output_dir), self.rule_name, self.report)
        except OSError as err:
            self.logger.warning("Report not written: %s", err)
        return False
