"""StepHistogram: the durations of steps and their phases."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from rule_core.analysis.charts.chart import Panel, PanelChart
from rule_core.analysis.charts.drawn import Drawn
from rule_core.analysis.charts.event_feed import EventFeed
from rule_core.analysis.charts.histograms import durations
from rule_core.model.patterns import flatten, matching
from rule_core.profiler.readers.framework_reader import AlgorithmMetricsReader
from rule_core.profiler.traces.event import TraceEvent

STEPS: Final = ("Step:ModeKeys", "Forward-node", r"Backward\(post-forward\)-node")
_COLUMNS: Final = 3
_US: Final = 1_000_000


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
