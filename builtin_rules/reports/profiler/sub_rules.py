"""The rules of the profiler report: how each judges its windows, and the window they share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any, Final, TypeVar

from builtin_rules.profiler.statistics.window_rule import WindowRule
from builtin_rules.profiler_table import PROFILER_RULES

REPORT: Final = "ProfilerReport"
SUB_RULES: Final = MappingProxyType[str, type[WindowRule]](
    {name: PROFILER_RULES[name] for name in PROFILER_RULES if name != REPORT}
)
MAX_FINDINGS: Final = 200  # per rule; further devices are only counted by the rule
MAX_FAILURE: Final = 500  # characters
T = TypeVar("T")
Place = tuple[str, str | None, str | None]  # quantity, tensor, worker


class SharedWindow:
    """A profiler trial that caches the samples and events of the latest window.

    Everything else is delegated to the trial, which is None while a rule is only asked what it
    requires.
    """

    def __init__(self, trial: Any) -> None:
        self._trial = trial

    @cached_property
    def system_samples(self) -> Any:
        """A function that returns the samples of ``start <= time < end``."""
        return lru_cache(maxsize=1)(self._trial.system_samples)

    @cached_property
    def framework_events(self) -> Any:
        """A function that returns the framework events with ``start <= end_time < end``."""
        return lru_cache(maxsize=1)(self._trial.framework_events)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._trial, name)

    def forget(self) -> None:
        """Clear the cache at the end of a window."""
        self.system_samples.cache_clear()
        self.framework_events.cache_clear()


@dataclass(slots=True)
class FindingSummary:
    """All findings of a rule at one place, with the latest measurement.

    Attributes
    ----------
    windows
        The number of windows in which the condition was met.
    step
        The last of these windows.
    first_us
        Start and end of the first of them, in epoch microseconds.
    """

    quantity: str
    tensor: str | None
    worker: str | None
    measured: float = 0.0
    limit: float = 0.0
    note: str = ""
    windows: int = 0
    step: int = 0
    first_us: tuple[int, int] = (0, 0)


@dataclass(slots=True)
class SubRule:
    """A rule of the report, with its progress and findings.

    Attributes
    ----------
    failure
        Why the rule failed and stopped judging; "" if it has not failed.
    judged, met
        The number of windows judged, and of those in which the condition was met.
    skipped
        The number of windows not judged, by reason.
    findings
        The findings by place.
    """

    name: str
    rule: WindowRule
    failure: str = ""
    judged: int = 0
    met: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    findings: dict[Place, FindingSummary] = field(default_factory=dict)
    _open: int | None = None  # a window that continues beyond the judged data
    _last_report: Mapping[str, Any] = field(default_factory=dict)

    @property
    def triggered(self) -> int:
        """How often the rule was triggered."""
        return int(self.report["RuleTriggered"])

    @property
    def report(self) -> Mapping[str, Any]:
        """The report of the rule; if building it fails, the previous one."""
        built = self._result_of(lambda: self.rule.report, "while building its report")
        counts = {"RuleTriggered": 0, "Violations": 0, "Details": {}, "Datapoints": 0}
        empty = counts | {"RuleParameters": self.rule.rule_parameters()}
        self._last_report = built or self._last_report or empty
        return self._last_report

    def judge(self, start_us: int, end_us: int) -> None:
        """Judge the windows of the rule that end in a window of the report.

        Parameters
        ----------
        start_us, end_us
            The window of the report, in epoch microseconds.
        """
        begin, length = self.rule.base_trial.first_timestamp, self.rule.scan_interval_us
        first, last = ((time_us - begin) // length for time_us in (start_us, end_us - 1))
        for step in range(first, last + 1):
            if self._open is not None and self._open < step:
                self.finish()
            self._open = step
            if begin + (step + 1) * length <= end_us:
                self.finish()

    def finish(self) -> None:
        """Judge the open window, if there is one, as no more data of it is expected."""
        step, self._open = self._open, None
        if step is None or self.failure:
            return
        met = self._result_of(lambda: bool(self.rule.invoke_at_step(step)), f"at window {step}")
        if met is not None:
            self._record(step, met=met)

    def _record(self, step: int, *, met: bool) -> None:
        findings, reason = self.rule.take_evidence()
        notes = {(finding.tensor, finding.worker): finding.note or "" for finding in findings}
        if reason and not findings:
            self.skipped[reason] = self.skipped.get(reason, 0) + 1
        else:
            self.judged += 1
            self.met += met
        for measured in self.rule.take_measurements():
            for (tensor, worker), value, is_met in measured.points:
                place = (measured.quantity, tensor, worker)
                if is_met and (place in self.findings or len(self.findings) < MAX_FINDINGS):
                    first = FindingSummary(*place, first_us=self.rule.window_of(step))
                    summary = self.findings.setdefault(place, first)
                    summary.measured, summary.limit, summary.step = value, measured.limit, step
                    summary.note = notes.get((tensor, worker), "")
                    summary.windows += 1

    def _result_of(self, call: Callable[[], T], where: str) -> T | None:
        """Return the result of a call of the rule; None if it fails, of which the first counts."""
        try:
            return call()
        except Exception as err:
            if not self.failure:
                text = " ".join(str(err).split())
                self.failure = f"{type(err).__name__} {where}{text and f': {text}'}"[:MAX_FAILURE]
                warning = "Rule %r failed: %s"
                self.rule.logger.warning(warning, self.name, self.failure, exc_info=err)
            return None
