"""OverallFrameworkMetrics: summarises the time spent in the framework."""

from typing import Any, Final

from builtin_rules.profiler.statistics.parameters import SCAN_INTERVAL
from builtin_rules.profiler.statistics.window_rule import WindowRule
from smdebug.rules.extensions import FrameworkEvents, FrameworkTimes, Page, Severity

NO_EVENTS: Final = "no framework events in this window"


class OverallFrameworkMetrics(WindowRule):
    """Never met: this rule summarises the framework's timelines in its report.

    The durations of all events are added up by phase and by operator. An operator on a processor
    counts without the operators that it calls; events that overlap otherwise each count in full.
    """

    READS = "every framework event."
    PARAMS = (SCAN_INTERVAL,)
    SEVERITY = Severity.NOTE
    PAGE = Page(
        why="""
        Shows where the time of the steps goes and how much of the job is outside of steps, so that
        you know what there is to gain before you optimise.
        """,
        save="""
        Framework profiling, which writes timelines of steps and operators.
        """,
        missing="""
        Windows without framework events are skipped: a job without framework profiling is never
        judged.
        """,
        remedy="""
        The rule never fires. Its table is in `Details` of
        `profiler-output/profiler-reports/OverallFrameworkMetrics.json`: a large share of `others`
        is time outside of steps (initialisation, checkpoints, evaluation without a mode); backward
        passes take about twice as long as forward passes.
        """,
        severity="""
        It finds nothing by itself. Its report is evidence only.
        """,
    )

    required_inputs = (FrameworkEvents(),)

    def _prepare(self) -> None:
        super()._prepare()
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
