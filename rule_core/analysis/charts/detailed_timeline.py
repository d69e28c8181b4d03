"""DetailedTimeline: the events of data loaders and phases within a time range."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from rule_core.analysis.charts.chart import US_PER_MS, Panel, PanelChart, Spans
from rule_core.analysis.charts.drawn import Drawn
from rule_core.profiler.traces.event import TraceEvent

MOST_EVENTS: Final = 500  # per panel
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
