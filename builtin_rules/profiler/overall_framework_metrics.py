"""OverallFrameworkMetrics: sums up what the framework spent its time on."""

from typing import Any, Final

from builtin_rules.profiler.parameters import MINUTE_US, SCAN_INTERVAL
from builtin_rules.profiler.window_rule import WindowRule
from smdebug.profiler.analysis.rules.utils import FrameworkTimes
from smdebug.rules import Page

NO_EVENTS: Final = "no framework events in this window"


class OverallFrameworkMetrics(WindowRule):
    """Met when never: it only sums up what the framework's timelines show, for its report.

    The durations of all events are added up by phase and by operator. Operators that run beside or
    within each other count each for itself.
    """

    READS = "every framework event."
    PARAMS = (SCAN_INTERVAL,)
    PAGE = Page(
        why="""
        Where the time of the steps goes, and how much of the job lies outside of steps: what there
        is to gain, before anybody optimises.
        """,
        save="""
        Framework profiling, which writes timelines of steps and operators.
        """,
        missing="""
        A window without framework events is skipped: a job without framework profiling is not
        judged at all.
        """,
        remedy="""
        It never fires. Its table is `Details` of
        `profiler-output/profiler-reports/OverallFrameworkMetrics.json`: a large share of `others`
        is time outside of steps (initialisation, checkpoints, evaluation without a mode); backward
        passes take about twice as long as forward ones.
        """,
    )

    def __init__(self, base_trial: Any, scan_interval_us: Any = MINUTE_US) -> None:
        super().__init__(base_trial, scan_interval_us=scan_interval_us)
        self._times: FrameworkTimes | None = None

    def judge(self, step: int) -> bool:
        """Take in the framework events of the window; the condition is never met."""
        events = self.events(step)
        if not events:
            return self.not_judged(NO_EVENTS)
        if self._times is None:
            self._times = FrameworkTimes(self.base_trial.first_timestamp)
        self._times.add(events)
        self.has_seen(self._times.count)
        return False

    def details(self) -> dict[str, Any]:
        """Return how the time divides; see `FrameworkTimes.details`."""
        return (self._times or FrameworkTimes()).details()
