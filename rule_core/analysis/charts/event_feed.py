"""EventFeed: selected framework events for charts, each returned once."""

from collections.abc import Callable
from typing import Any

from rule_core.analysis.charts.curves import BEHIND_US
from rule_core.profiler.readers.framework_reader import AlgorithmMetricsReader
from rule_core.profiler.traces.event import TraceEvent


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
