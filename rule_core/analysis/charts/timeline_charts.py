"""TimelineCharts: system metrics over time, and what the framework did meanwhile."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from rule_core.analysis.charts.chart import US_PER_MS, LineMark, Panel, PanelChart, Spans
from rule_core.analysis.charts.curves import (
    TOTAL,
    Curve,
    SystemCurves,
    moments,
    nearest_of,
    percent,
    selected,
)
from rule_core.analysis.charts.drawn import Drawn
from rule_core.exceptions import SMDebugValueError
from rule_core.profiler.files.time_units import us_since_epoch_to_human_readable_time
from rule_core.profiler.readers.framework_reader import AlgorithmMetricsReader
from rule_core.profiler.readers.system_reader import SystemMetricsReader
from rule_core.profiler.traces.event import TraceEvent

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CPU: Final = "CPUUtilization"
_PERCENT: Final = (0.0, 102.0)
_HEIGHT: Final = 200  # pixels
MOST_EVENTS: Final = 500  # per panel of a detailed timeline
_ROW: Final = 24  # pixels
_AXIS: Final = 90  # pixels
_HIGHEST: Final = 600  # pixels


class DetailedTimeline(Drawn):
    """Bars of events, with a row for each data loader worker and each phase of each node.

    Parameters
    ----------
    events
        Events sorted by start; the first `MOST_EVENTS` of each kind are shown.
    start_us, end_us
        Initial range in microseconds since the epoch.
    """

    def __init__(self, events: Sequence[TraceEvent], start_us: int, end_us: int) -> None:
        has_nodes = len({event.node_id for event in events}) > 1
        self._kinds: dict[str, list[tuple[str, TraceEvent]]] = {"Data loaders": [], "Phases": []}
        for event in events:
            worker = _worker(event)
            row = event.event_phase if worker is None else worker
            kind = "Phases" if worker is None else "Data loaders"
            self._kinds[kind].append((f"{row}, {event.node_id}" if has_nodes else row, event))
        self._limits = (start_us / US_PER_MS, end_us / US_PER_MS)

    def chart(self) -> PanelChart:
        """Return the bars."""
        return PanelChart(
            "Framework events",
            tuple(self._panel(kind, events) for kind, events in self._kinds.items() if events),
            note="" if any(self._kinds.values()) else "There are no events in this time.",
        )

    def _panel(self, kind: str, events: Sequence[tuple[str, TraceEvent]]) -> Panel:
        first = events[:MOST_EVENTS]
        suffix = "" if len(first) == len(events) else f": the first {len(first)} of {len(events)}"
        rows = sorted({row for row, _ in first})
        number = {row: index for index, row in enumerate(reversed(rows))}  # the first one on top
        spans = Spans(
            np.array([event.start_time for _, event in first], dtype=np.float64) / US_PER_MS,
            np.array([event.end_time for _, event in first], dtype=np.float64) / US_PER_MS,
            np.array([number[row] for row, _ in first]),
            [event.event_name for _, event in first],
            rows[::-1],
        )
        limits = self._limits if self._limits[0] < self._limits[1] else None
        height = min(_AXIS + _ROW * len(rows), _HIGHEST)
        return Panel(
            kind + suffix, "time (UTC)", "", spans, in_time=True, x_range=limits, height=height
        )


def _worker(event: TraceEvent) -> str | None:
    """Return the data loader worker or thread of an event, or None."""
    args = event.event_args or {}
    if "worker_id" in args:
        return f"worker {args['worker_id']}"
    return f"thread {event.tid}" if "bytes_fetched" in args else None


class TimelineCharts(Drawn):
    """A line for each dimension and metric of the system, and for their mean (``total``).

    A time range can be selected on the page; the methods take its indexes.

    Parameters
    ----------
    system_metrics_reader, framework_metrics_reader
        Readers of one job. `find_time_annotations` and `plot_detailed_profiler_data` require the
        second one.
    starttime, endtime
        Time range in microseconds since the epoch; None is unbounded.
    select_dimensions, select_events
        Regular expressions that select dimensions or metrics by searching their names.
    x
        Number of latest samples in the initial view.
    show_workers
        Whether to show each node instead of their mean.

    Attributes
    ----------
    system_metrics
        The displayed curves by dimension and metric.
    times_us
        The times that indexes refer to, in microseconds since the epoch: those of CPU samples, or
        of all samples if there are none of CPUs.

    Raises
    ------
    re.error
        If a regular expression is invalid.
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
        self._load()
        self.show()

    def update_data(self, current_timestamp: float) -> None:
        """Add data up to a time, in microseconds since the epoch."""
        if self._source.update(current_timestamp):
            self._load()
            self._renew()

    def find_time_annotations(self, indexes: Sequence[int]) -> None:
        """Print the total time of each framework event within a time range.

        Events of steps are listed by step number; concurrent events count separately.

        Parameters
        ----------
        indexes
            Indexes of the range, from the smallest to the largest, as shown on the page.

        Raises
        ------
        SMDebugValueError
            If an index is out of range, or there is no reader of framework events.
        """
        selection = self._selection(indexes)
        if selection is None:
            return
        start, end = selection
        spent: dict[str, float] = {}
        for event in self._events(start, end):
            number = (event.event_args or {}).get("step_num")
            name = event.event_name if number is None else f"{event.event_name}_{number}"
            overlap = min(event.end_time, end) - max(event.start_time, start)
            spent[name] = spent.get(name, 0.0) + overlap / US_PER_MS
        for name, ms in sorted(spent.items(), key=lambda item: -item[1]):
            _print(f"Spent {ms:g} ms (cumulative time) in {name}")

    def plot_detailed_profiler_data(self, indexes: Sequence[int]) -> None:
        """Show the events of data loaders and phases within a time range.

        The chart is stored in `detailed`.

        Parameters
        ----------
        indexes
            See `find_time_annotations`.

        Raises
        ------
        SMDebugValueError
            See `find_time_annotations`.
        """
        selection = self._selection(indexes)
        if selection is not None:
            self.detailed = DetailedTimeline(self._events(*selection), *selection)
            self.detailed.show()

    def chart(self) -> PanelChart:
        """Return the chart of the lines."""
        first = self.times_us[-self.width :][:1] if self.width > 0 else self.times_us[:1]
        view = [float(time) / US_PER_MS for time in (*first, *self.times_us[-1:])]
        panels = []
        for dimension, curves in self.system_metrics.items():
            in_percent = percent(dimension, curves.values())
            panels += [
                Panel(
                    f"{dimension} {name}",
                    "",
                    "%" if in_percent else "value",
                    self._line(curve),
                    in_time=True,
                    x_range=(view[0], view[1]) if len(set(view)) > 1 else None,
                    y_range=_PERCENT if in_percent else None,
                    height=_HEIGHT,
                )
                for name, curve in curves.items()
            ]
        panels[-1:] = [replace(panel, x_label="time (UTC)") for panel in panels[-1:]]
        note = "" if panels else "No metrics are selected."
        return PanelChart("System metrics over time", tuple(panels), linked=True, note=note)

    def _load(self) -> None:
        curves = self._source.curves()
        self.system_metrics = selected(curves, self._select_events)
        cpus = [metrics[TOTAL] for name, metrics in curves.items() if name.startswith(_CPU)]
        totals = cpus or [metrics[TOTAL] for metrics in curves.values()]
        self.times_us: NDArray[np.int64] = moments(totals)[0]

    def _line(self, curve: Curve) -> LineMark:
        index = nearest_of(self.times_us, curve.time_us)
        return LineMark(curve.time_us / US_PER_MS, curve.value, index)

    def _selection(self, indexes: Sequence[int]) -> tuple[int, int] | None:
        """Return and print the selected time range."""
        if not len(indexes):
            _print("No selection was made.")
            return None
        first, last = int(min(indexes)), int(max(indexes))
        if first < 0 or last >= len(self.times_us):
            raise SMDebugValueError(
                f"Indexes must be from 0 to {len(self.times_us) - 1}, got {first} to {last}."
                if len(self.times_us)
                else "There are no system metrics to select from."
            )
        start, end = int(self.times_us[first]), int(self.times_us[last])
        first_time, last_time = map(us_since_epoch_to_human_readable_time, (start, end))
        _print(f"Selected: {first_time} to {last_time} (UTC)")
        return start, end

    def _events(self, start_us: int, end_us: int) -> list[TraceEvent]:
        if self.framework_metrics_reader is None:
            raise SMDebugValueError("Framework events need a framework_metrics_reader, got None.")
        events = self.framework_metrics_reader.get_events(start_us, end_us)
        return sorted(events, key=lambda event: event.start_time)


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
