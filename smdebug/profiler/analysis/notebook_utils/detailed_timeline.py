"""DetailedTimeline: what data loaders and phases of a framework did within a stretch of time."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from smdebug.profiler.analysis.notebook_utils.chart import Chart, Panel, Spans
from smdebug.profiler.analysis.notebook_utils.drawn import Drawn
from smdebug.profiler.trace_event import TraceEvent

MOST_EVENTS: Final = 500  # of a panel
_ROW: Final = 24  # pixels
_AXIS: Final = 90  # pixels
_HIGHEST: Final = 600  # pixels
_US_OF_MS: Final = 1000


class DetailedTimeline(Drawn):
    """Bars of events: a row for each worker of data loaders, and one for each phase; of each node.

    Parameters
    ----------
    events
        By their starts; the first `MOST_EVENTS` of each kind are shown.
    start_us, end_us
        What is seen at first, in microseconds since the epoch.
    """

    def __init__(self, events: Sequence[TraceEvent], start_us: int, end_us: int) -> None:
        several = len({one.node_id for one in events}) > 1
        self._kinds: dict[str, list[tuple[str, TraceEvent]]] = {"Data loaders": [], "Phases": []}
        for one in events:
            worker = _worker(one)
            row = one.event_phase if worker is None else worker
            kind = "Phases" if worker is None else "Data loaders"
            self._kinds[kind].append((f"{row}, {one.node_id}" if several else row, one))
        self._limits = (start_us / _US_OF_MS, end_us / _US_OF_MS)

    def chart(self) -> Chart:
        """Return the bars."""
        return Chart(
            "Framework events",
            tuple(self._panel(kind, events) for kind, events in self._kinds.items() if events),
            note="" if any(self._kinds.values()) else "There are no events in this time.",
        )

    def _panel(self, kind: str, events: Sequence[tuple[str, TraceEvent]]) -> Panel:
        some = events[:MOST_EVENTS]
        more = "" if len(some) == len(events) else f": the first {len(some)} of {len(events)}"
        rows = sorted({row for row, _ in some})
        number = {row: len(rows) - 1 - at for at, row in enumerate(rows)}  # the first one on top
        spans = Spans(
            np.array([one.start_time for _, one in some], dtype=np.float64) / _US_OF_MS,
            np.array([one.end_time for _, one in some], dtype=np.float64) / _US_OF_MS,
            np.array([number[row] for row, _ in some]),
            [one.event_name for _, one in some],
            rows[::-1],
        )
        limits = self._limits if self._limits[0] < self._limits[1] else None
        height = min(_AXIS + _ROW * len(rows), _HIGHEST)
        return Panel(
            kind + more, "time (UTC)", "", spans, in_time=True, x_range=limits, height=height
        )


def _worker(event: TraceEvent) -> str | None:
    """Return which worker or thread of a data loader an event is of; None if of none."""
    args = event.event_args or {}
    if "worker_id" in args:
        return f"worker {args['worker_id']}"
    return f"thread {event.tid}" if "bytes_fetched" in args else None
