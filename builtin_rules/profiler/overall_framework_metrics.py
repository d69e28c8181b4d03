"""OverallFrameworkMetrics: summarises the time spent in the framework."""

from typing import Any, Final

from builtin_rules.profiler.statistics.parameters import SCAN_INTERVAL
from builtin_rules.profiler.statistics.window_rule import WindowRule
from smdebug.rules.extensions import FrameworkEvents, FrameworkTimes, Severity

NO_EVENTS: Final = "no framework events in this window"


class OverallFrameworkMetrics(WindowRule):
    """Never met: this rule summarises the framework's timelines in its report.

    The durations of all events are added up by phase and by operator. An operator on a processor
    counts without the operators that it calls; events that overlap otherwise each count in full.
    """

    READS = "every framework event."
    scan_interval_us = SCAN_INTERVAL
    SEVERITY = Severity.NOTE

    required_inputs = (FrameworkEvents(),)

    def _prepare(self) -> None:
        self._times: FrameworkTimes | None = None

    def judge(self, step: int) -> bool:
        """Add the framework events of the window; the condition is never met."""
        events = self.events(step)
        if not events:
            return self.not_judged(NO_EVENTS)
        if self._times is None:
            self._times = FrameworkTimes(self.base_trial.first_timestamp)
        self._times.add(events)
        self.record_points(self._times.count)
        return False

    def details(self) -> dict[str, Any]:
        """Return the shares of time; see `FrameworkTimes.details`."""
        return (self._times or FrameworkTimes()).details()
