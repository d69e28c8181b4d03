"""StepTimelineChart: the duration of each step over time."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from rule_core.analysis.charts.chart import LineMark, Panel, PanelChart
from rule_core.analysis.charts.drawn import Drawn
from rule_core.analysis.charts.event_feed import EventFeed
from rule_core.profiler.readers.framework_reader import AlgorithmMetricsReader
from rule_core.profiler.traces.event import TraceEvent

if TYPE_CHECKING:
    from numpy.typing import NDArray

_US: Final = 1_000_000
_ROOM: Final = 1.05


class StepTimelineChart(Drawn):
    """A line of the durations of all steps except the first, which includes start-up costs.

    Parameters
    ----------
    metrics_reader
        Reader of the job's framework events.
    width
        Number of latest steps in the initial view.

    Attributes
    ----------
    last_timestamp
        Time up to which events were read, in microseconds since the epoch.
    steps_np
        Start and duration in seconds, and number of each step, sorted by start; shape ``(n, 3)``.
    metric_names
        The name of each step's event, such as ``Step:ModeKeys.TRAIN``.
    """

    def __init__(self, metrics_reader: AlgorithmMetricsReader, width: int = 1000) -> None:
        self.metrics_reader = metrics_reader
        self.width = width
        self._events = EventFeed(metrics_reader, _is_step)
        self._steps: list[TraceEvent] = []
        metrics_reader.refresh_event_file_list()
        self.last_timestamp = metrics_reader.get_timestamp_of_latest_available_file()
        self._add(self._events.between(0, self.last_timestamp))
        self.show()

    def update_data(self, current_timestamp: float) -> None:
        """Add data up to a time, in microseconds since the epoch."""
        self.last_timestamp = int(current_timestamp)
        self._add(self._events.later(current_timestamp))
        self._renew()

    def chart(self) -> PanelChart:
        """Return the chart of the line."""
        steps = self.steps_np
        start = steps[:, 0] - steps[0, 0] if len(steps) else steps[:, 0]
        duration = 1e3 * steps[:, 1]
        number = steps[:, 2].astype(np.int64)
        notes = {"step": [str(step) for step in number], "event": self.metric_names}
        line = LineMark(start, duration, np.arange(len(steps)), notes)
        view = slice(-self.width, None) if self.width > 0 else slice(0, 0)
        limits = (float(start[view][0]), float(start[-1])) if len(start[view]) > 1 else None
        top = (0.0, _ROOM * float(duration[view].max())) if len(start[view]) else None
        panel = Panel(
            "",
            "time since the second step (s)",
            "duration (ms)",
            line,
            x_range=limits,
            y_range=top if top != (0.0, 0.0) else None,
        )
        note = "" if len(steps) else "There are no steps after the first yet."
        return PanelChart("Duration of steps", (panel,), note=note)

    def _add(self, events: Sequence[TraceEvent]) -> None:
        self._steps = sorted([*self._steps, *events], key=lambda event: event.start_time)
        later = self._steps[1:]
        self.metric_names = [event.event_name for event in later]
        self.steps_np: NDArray[np.float64] = np.array(
            [
                (event.start_time / _US, event.duration / _US, _number(event) or 0)
                for event in later
            ],
            dtype=np.float64,
        ).reshape(-1, 3)


def _is_step(event: TraceEvent) -> bool:
    return event.event_name.startswith("Step") and _number(event) is not None


def _number(event: TraceEvent) -> int | None:
    try:
        return int((event.event_args or {})["step_num"])
    except (KeyError, TypeError, ValueError):
        return None
