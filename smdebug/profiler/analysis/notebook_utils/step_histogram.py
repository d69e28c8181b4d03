"""StepHistogram: how long steps and their phases took."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from smdebug.core.patterns import flatten, matching
from smdebug.profiler.algorithm_metrics_reader import AlgorithmMetricsReader
from smdebug.profiler.analysis.notebook_utils.chart import Chart, Panel
from smdebug.profiler.analysis.notebook_utils.drawn import Drawn
from smdebug.profiler.analysis.notebook_utils.framework_events import FrameworkEvents
from smdebug.profiler.analysis.notebook_utils.histograms import durations
from smdebug.profiler.trace_event import TraceEvent

STEPS: Final = ("Step:ModeKeys", "Forward-node", r"Backward\(post-forward\)-node")
_COLUMNS: Final = 3
_US: Final = 1_000_000


class StepHistogram(Drawn):
    """Histograms of durations, one for each phase.

    Parameters
    ----------
    metrics_reader
        Of the job's framework events.
    width
        Taken as it always was, and of no effect: all durations count.

    Attributes
    ----------
    last_timestamp
        Up to when events are known, in microseconds since the epoch.
    step_metrics
        What is shown: durations in seconds by phase, in the order of their starts.
    """

    step_metrics: dict[str, list[float]]
    _events: FrameworkEvents | None

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
        """Read the events of a range of time, and show them in a notebook.

        Parameters
        ----------
        starttime, endtime
            Microseconds since the epoch; None is all there is.
        select_metrics
            Regular expressions: a phase is selected if one of them is found in its label.
        show_workers
            Whether nodes have histograms of their own: then labels are ``<phase>-nodeid:<node>``.

        Raises
        ------
        re.error
            If an expression is none.
        """
        self.clear()
        self._show_workers = show_workers
        patterns = flatten(list(select_metrics))
        self._events = FrameworkEvents(
            self.metrics_reader, lambda event: bool(matching([self._label(event)], patterns))
        )
        if endtime is None:
            self.metrics_reader.refresh_event_file_list()
            endtime = self.metrics_reader.get_timestamp_of_latest_available_file()
        self.last_timestamp = int(endtime)
        self._add(self._events.between(starttime, endtime))
        self.show()

    def update_data(self, current_timestamp: float) -> None:
        """Add what came up to a time, in microseconds since the epoch."""
        if self._events is not None:
            self.last_timestamp = int(current_timestamp)
            self._add(self._events.later(current_timestamp))
            self._renew()

    def clear(self) -> None:
        """Forget all that was read."""
        self.step_metrics = {}
        self._events = None
        self._show_workers = True

    def chart(self) -> Chart:
        """Return the histograms."""
        panels = []
        for label, seconds in sorted(self.step_metrics.items()):
            bars, longer = durations(1e3 * np.array(seconds))
            more = f", {longer} longer not shown" if longer else ""
            panels.append(Panel(label, f"duration (ms{more})", "events", bars))
        return Chart("Histograms of steps", tuple(panels), columns=_COLUMNS)

    def _label(self, event: TraceEvent) -> str:
        return (
            f"{event.event_phase}-nodeid:{event.node_id}"
            if self._show_workers
            else event.event_phase
        )

    def _add(self, events: Sequence[TraceEvent]) -> None:
        for event in events:
            self.step_metrics.setdefault(self._label(event), []).append(event.duration / _US)
