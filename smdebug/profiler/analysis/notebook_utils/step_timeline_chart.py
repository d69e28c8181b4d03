"""StepTimelineChart: how long each step took, over time."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from smdebug.profiler.algorithm_metrics_reader import AlgorithmMetricsReader
from smdebug.profiler.analysis.notebook_utils.chart import Chart, Line, Panel
from smdebug.profiler.analysis.notebook_utils.drawn import Drawn
from smdebug.profiler.analysis.notebook_utils.framework_events import FrameworkEvents
from smdebug.profiler.trace_event import TraceEvent

if TYPE_CHECKING:
    from numpy.typing import NDArray

_US: Final = 1_000_000
_ROOM: Final = 1.05


class StepTimelineChart(Drawn):
    """A line of the durations of all steps but the first, which is long for reasons of its own.

    Parameters
    ----------
    metrics_reader
        Of the job's framework events.
    width
        How many steps, the latest, are seen at first.

    Attributes
    ----------
    last_timestamp
        Up to when events are known, in microseconds since the epoch.
    steps_np
        Start and duration in seconds, and number of each step, by their starts; shape ``(n, 3)``.
    metric_names
        The name of each step's event, such as ``Step:ModeKeys.TRAIN``.
    """

    def __init__(self, metrics_reader: AlgorithmMetricsReader, width: int = 1000) -> None:
        self.metrics_reader = metrics_reader
        self.width = width
        self._events = FrameworkEvents(metrics_reader, _is_step)
        self._steps: list[TraceEvent] = []
        metrics_reader.refresh_event_file_list()
        self.last_timestamp = metrics_reader.get_timestamp_of_latest_available_file()
        self._add(self._events.between(0, self.last_timestamp))
        self.show()

    def update_data(self, current_timestamp: float) -> None:
        """Add what came up to a time, in microseconds since the epoch."""
        self.last_timestamp = int(current_timestamp)
        self._add(self._events.later(current_timestamp))
        self._renew()

    def chart(self) -> Chart:
        """Return the line."""
        steps = self.steps_np
        start = steps[:, 0] - steps[0, 0] if len(steps) else steps[:, 0]
        duration = 1e3 * steps[:, 1]
        number = steps[:, 2].astype(np.int64)
        notes = {"step": [str(one) for one in number], "event": self.metric_names}
        line = Line(start, duration, np.arange(len(steps)), notes)
        seen = slice(-self.width, None) if self.width > 0 else slice(0, 0)
        limits = (float(start[seen][0]), float(start[-1])) if len(start[seen]) > 1 else None
        top = (0.0, _ROOM * float(duration[seen].max())) if len(start[seen]) else None
        panel = Panel(
            "",
            "time since the second step (s)",
            "duration (ms)",
            line,
            x_range=limits,
            y_range=top if top != (0.0, 0.0) else None,
        )
        note = "" if len(steps) else "There are no steps after the first yet."
        return Chart("Duration of steps", (panel,), note=note)

    def _add(self, events: Sequence[TraceEvent]) -> None:
        self._steps = sorted([*self._steps, *events], key=lambda one: one.start_time)
        later = self._steps[1:]
        self.metric_names = [one.event_name for one in later]
        self.steps_np: NDArray[np.float64] = np.array(
            [(one.start_time / _US, one.duration / _US, _number(one) or 0) for one in later],
            dtype=np.float64,
        ).reshape(-1, 3)


def _is_step(event: TraceEvent) -> bool:
    return event.event_name.startswith("Step") and _number(event) is not None


def _number(event: TraceEvent) -> int | None:
    try:
        return int((event.event_args or {})["step_num"])
    except (KeyError, TypeError, ValueError):
        return None
