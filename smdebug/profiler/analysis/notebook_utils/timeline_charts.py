"""TimelineCharts: system metrics over time, and what the framework did meanwhile."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from smdebug.exceptions import SMDebugValueError
from smdebug.profiler.algorithm_metrics_reader import AlgorithmMetricsReader
from smdebug.profiler.analysis.notebook_utils.chart import Chart, Line, Panel
from smdebug.profiler.analysis.notebook_utils.curves import Curve, moments, nearest_of
from smdebug.profiler.analysis.notebook_utils.detailed_timeline import DetailedTimeline
from smdebug.profiler.analysis.notebook_utils.drawn import Drawn
from smdebug.profiler.analysis.notebook_utils.system_curves import (
    TOTAL,
    SystemCurves,
    percent,
    selected,
)
from smdebug.profiler.system_metrics_reader import SystemMetricsReader
from smdebug.profiler.trace_event import TraceEvent
from smdebug.profiler.utils import us_since_epoch_to_human_readable_time

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_CPU: Final = "CPUUtilization"
_PERCENT: Final = (0.0, 102.0)
_HEIGHT: Final = 200  # pixels
_US_OF_MS: Final = 1000


class TimelineCharts(Drawn):
    """A line for each dimension and metric of the system, and for their mean (``total``).

    In a page, a stretch of time can be selected; its indexes are what the methods take.

    Parameters
    ----------
    system_metrics_reader, framework_metrics_reader
        Of one job. The other methods need the second one.
    starttime, endtime
        Microseconds since the epoch; None is all there is.
    select_dimensions, select_events
        Regular expressions: what is found in a dimension's or a metric's name is selected.
    x
        How many samples, the latest, are seen at first.
    show_workers
        Whether nodes have lines of their own; otherwise their mean has.

    Attributes
    ----------
    system_metrics
        What is shown: curves by dimension and metric.
    times_us
        What indexes count: the moments at which the CPUs were measured, in microseconds since the
        epoch; without CPUs, anything was.

    Raises
    ------
    re.error
        If an expression is none.
    """

    def __init__(
        self,
        system_metrics_reader: SystemMetricsReader,
        framework_metrics_reader: AlgorithmMetricsReader | None,
        starttime: float = 0,
        endtime: float | None = None,
        select_dimensions: Sequence[str] = (".*",),
        select_events: Sequence[str] = (".*",),
        x: int = 1000,
        show_workers: bool = True,
    ) -> None:
        self.system_metrics_reader = system_metrics_reader
        self.framework_metrics_reader = framework_metrics_reader
        self.width = x
        self.detailed: DetailedTimeline | None = None
        self._select_events = select_events
        self._source = SystemCurves(
            system_metrics_reader, starttime, endtime, select_dimensions, show_workers=show_workers
        )
        self._take()
        self.show()

    def update_data(self, current_timestamp: float) -> None:
        """Add what came up to a time, in microseconds since the epoch."""
        if self._source.update(current_timestamp):
            self._take()
            self._renew()

    def find_time_annotations(self, indexes: Sequence[int]) -> None:
        """Print how long each framework event took within a stretch of time, in all.

        Events of steps are told apart by their numbers; what runs at the same time counts as often
        as it runs.

        Parameters
        ----------
        indexes
            Of the stretch: all between the smallest and the largest, as a page tells them.

        Raises
        ------
        SMDebugValueError
            If an index is none, or there is no reader of framework events.
        """
        stretch = self._stretch(indexes)
        if stretch is None:
            return
        start, end = stretch
        spent: dict[str, float] = {}
        for event in self._events(start, end):
            number = (event.event_args or {}).get("step_num")
            name = event.event_name if number is None else f"{event.event_name}_{number}"
            within = min(event.end_time, end) - max(event.start_time, start)
            spent[name] = spent.get(name, 0.0) + within / _US_OF_MS
        for name, ms in sorted(spent.items(), key=lambda one: -one[1]):
            _say(f"Spent {ms:g} ms (cumulative time) in {name}")

    def plot_detailed_profiler_data(self, indexes: Sequence[int]) -> None:
        """Show what data loaders and phases did within a stretch of time.

        The chart is kept as `detailed`.

        Parameters
        ----------
        indexes
            As of `find_time_annotations`.

        Raises
        ------
        SMDebugValueError
            As by `find_time_annotations`.
        """
        stretch = self._stretch(indexes)
        if stretch is not None:
            self.detailed = DetailedTimeline(self._events(*stretch), *stretch)
            self.detailed.show()

    def chart(self) -> Chart:
        """Return the lines."""
        first = self.times_us[-self.width :][:1] if self.width > 0 else self.times_us[:1]
        seen = [float(one) / _US_OF_MS for one in (*first, *self.times_us[-1:])]
        panels = []
        for dimension, named in self.system_metrics.items():
            in_percent = percent(dimension, named.values())
            panels += [
                Panel(
                    f"{dimension} {name}",
                    "",
                    "%" if in_percent else "value",
                    self._line(curve),
                    in_time=True,
                    x_range=(seen[0], seen[1]) if len(set(seen)) > 1 else None,
                    y_range=_PERCENT if in_percent else None,
                    height=_HEIGHT,
                )
                for name, curve in named.items()
            ]
        panels[-1:] = [replace(one, x_label="time (UTC)") for one in panels[-1:]]
        note = "" if panels else "No metrics are selected."
        return Chart("System metrics over time", tuple(panels), linked=True, note=note)

    def _take(self) -> None:
        curves = self._source.curves()
        self.system_metrics = selected(curves, self._select_events)
        cpus = [named[TOTAL] for one, named in curves.items() if one.startswith(_CPU)]
        totals = cpus or [named[TOTAL] for named in curves.values()]
        self.times_us: NDArray[np.int64] = moments(totals)[0]

    def _line(self, curve: Curve) -> Line:
        index = nearest_of(self.times_us, curve.time_us)
        return Line(curve.time_us / _US_OF_MS, curve.value, index)

    def _stretch(self, indexes: Sequence[int]) -> tuple[int, int] | None:
        """Return when the selected stretch begins and ends, and say so."""
        if not len(indexes):
            _say("No selection was made.")
            return None
        first, last = int(min(indexes)), int(max(indexes))
        if first < 0 or last >= len(self.times_us):
            msg = (
                f"Indexes must be from 0 to {len(self.times_us) - 1}, got {first} to {last}."
                if len(self.times_us)
                else "There are no system metrics to select from."
            )
            raise SMDebugValueError(msg)
        start, end = int(self.times_us[first]), int(self.times_us[last])
        began, ended = map(us_since_epoch_to_human_readable_time, (start, end))
        _say(f"Selected: {began} to {ended} (UTC)")
        return start, end

    def _events(self, start_us: int, end_us: int) -> list[TraceEvent]:
        if self.framework_metrics_reader is None:
            msg = "Framework events need a framework_metrics_reader, got None."
            raise SMDebugValueError(msg)
        found = self.framework_metrics_reader.get_events(start_us, end_us)
        return sorted(found, key=lambda one: one.start_time)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
