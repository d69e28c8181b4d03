"""StepHistogram, StepTimelineChart: the durations of steps, and of their phases."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rule_core.analysis.charts.chart import Bars, LineMark, Panel, PanelChart
from rule_core.analysis.charts.curves import BEHIND_US
from rule_core.analysis.charts.drawn import Drawn
from rule_core.model.patterns import flatten, matching
from rule_core.profiler.readers.framework_reader import AlgorithmMetricsReader
from rule_core.profiler.readers.step_times import step_of
from rule_core.profiler.traces.event import TraceEvent

STEPS: Final = ("Step:ModeKeys", "Forward-node", r"Backward\(post-forward\)-node")
_COLUMNS: Final = 3
_US: Final = 1_000_000
_ROOM: Final = 1.05


class EventFeed:
    """Reads selected framework events, and later ones.

    Parameters
    ----------
    reader
        Reader of the job's framework events.
    is_selected
        Returns whether to include an event.
    """

    def __init__(
        self, reader: AlgorithmMetricsReader, is_selected: Callable[[TraceEvent], bool]
    ) -> None:
        self._reader = reader
        self._is_selected = is_selected
        self._seen: dict[tuple[Any, ...], float] = {}  # end of each returned event
        self._start_us = 0.0

    def between(self, start_us: float, end_us: float) -> list[TraceEvent]:
        """Return the events that overlap a time range, sorted by start."""
        self._start_us = start_us
        return self._new(start_us, end_us)

    def later(self, end_us: float) -> list[TraceEvent]:
        """Return new events up to a time, sorted by start."""
        last_us = max(self._seen.values(), default=self._start_us)
        start_us = max(last_us - BEHIND_US, self._start_us)
        self._seen = {key: end for key, end in self._seen.items() if end >= start_us}
        return self._new(start_us, end_us)

    def _new(self, start_us: float, end_us: float) -> list[TraceEvent]:
        events = []
        for event in self._reader.get_events(start_us, end_us):
            key = _identity(event)
            if key not in self._seen and self._is_selected(event):
                self._seen[key] = event.end_time
                events.append(event)
        return sorted(events, key=lambda event: event.start_time)


def _identity(event: TraceEvent) -> tuple[Any, ...]:
    thread = (event.node_id, event.pid, event.tid, event.phase_tid)
    return (event.start_time, event.end_time, event.event_name, event.event_phase, *thread)


class StepHistogram(Drawn):
    """Histograms of durations, one for each phase.

    Parameters
    ----------
    metrics_reader
        Reader of the job's framework events.
    width
        Ignored: all durations are counted.

    Attributes
    ----------
    last_timestamp
        Time up to which events were read, in microseconds since the epoch.
    step_metrics
        The displayed durations in seconds by phase, ordered by start.
    """

    step_metrics: dict[str, list[float]]
    _events: EventFeed | None

    def __init__(self, metrics_reader: AlgorithmMetricsReader, width: int = 500) -> None:
        self.metrics_reader = metrics_reader
        self.width = width
        self.last_timestamp = metrics_reader.get_timestamp_of_latest_available_file()
        self.clear()

    def plot(
        self,
        starttime: float = 0,
        endtime: float | None = None,
        select_metrics: Sequence[str] = STEPS,
        show_workers: bool = True,
    ) -> None:
        """Read the events of a time range, and show them in a notebook.

        Parameters
        ----------
        starttime, endtime
            Time range in microseconds since the epoch; None is unbounded.
        select_metrics
            Regular expressions that select phases by searching their labels.
        show_workers
            Whether to show each node, with labels ``<phase>-nodeid:<node>``.

        Raises
        ------
        re.error
            If a regular expression is invalid.
        """
        self.clear()
        self._show_workers = show_workers
        patterns = flatten(list(select_metrics))
        self._events = EventFeed(
            self.metrics_reader, lambda event: bool(matching([self._label(event)], patterns))
        )
        if endtime is None:
            self.metrics_reader.refresh_event_file_list()
            endtime = self.metrics_reader.get_timestamp_of_latest_available_file()
        self.last_timestamp = int(endtime)
        self._add(self._events.between(starttime, endtime))
        self.show()

    def update_data(self, current_timestamp: float) -> None:
        """Add data up to a time, in microseconds since the epoch."""
        if self._events is not None:
            self.last_timestamp = int(current_timestamp)
            self._add(self._events.later(current_timestamp))
            self._renew()

    def clear(self) -> None:
        """Remove all data."""
        self.step_metrics = {}
        self._events = None
        self._show_workers = True

    def chart(self) -> PanelChart:
        """Return the chart of the histograms."""
        panels = []
        for label, seconds in sorted(self.step_metrics.items()):
            bars, longer = durations(1e3 * np.array(seconds))
            suffix = f", {longer} longer not shown" if longer else ""
            panels.append(Panel(label, f"duration (ms{suffix})", "events", bars))
        return PanelChart("Histograms of steps", tuple(panels), columns=_COLUMNS)

    def _label(self, event: TraceEvent) -> str:
        node = f"-nodeid:{event.node_id}" if self._show_workers else ""
        return f"{event.event_phase}{node}"

    def _add(self, events: Sequence[TraceEvent]) -> None:
        for event in events:
            self.step_metrics.setdefault(self._label(event), []).append(event.duration / _US)


def durations(values: NDArray[np.float64]) -> tuple[Bars, int]:
    """Return bars of durations up to two standard deviations above the median; not empty.

    Returns
    -------
    tuple
        The bars, and the number of longer durations.
    """
    most = float(np.median(values) + 2 * np.std(values))
    inside = values[values <= most]
    return Bars.of(inside, float(inside.min()), most), len(values) - len(inside)


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
        top = _ROOM * float(duration[view].max(initial=0.0))
        labels = "time since the second step (s)", "duration (ms)"
        panel = Panel("", *labels, line, x_range=limits, y_range=(0.0, top) if top else None)
        note = "" if len(steps) else "There are no steps after the first yet."
        return PanelChart("Duration of steps", (panel,), note=note)

    def _add(self, events: Sequence[TraceEvent]) -> None:
        self._steps = sorted([*self._steps, *events], key=lambda event: event.start_time)
        later = self._steps[1:]
        self.metric_names = [event.event_name for event in later]
        self.steps_np: NDArray[np.float64] = np.array(
            [
                (event.start_time / _US, event.duration / _US, step_of(event.event_args) or 0)
                for event in later
            ],
            dtype=np.float64,
        ).reshape(-1, 3)


def _is_step(event: TraceEvent) -> bool:
    return event.event_name.startswith("Step") and step_of(event.event_args) is not None
