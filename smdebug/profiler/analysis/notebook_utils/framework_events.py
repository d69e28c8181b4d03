"""FrameworkEvents: the framework events that charts select, each read once."""

from collections.abc import Callable
from typing import Any, Final

from smdebug.profiler.algorithm_metrics_reader import AlgorithmMetricsReader
from smdebug.profiler.trace_event import TraceEvent

_BEHIND_US: Final = (
    180_000_000  # nodes write at their own pace: what is further behind is not looked for
)


class FrameworkEvents:
    """Reads what is selected of framework events, and what comes later.

    Parameters
    ----------
    reader
        Of the job's framework events.
    is_wanted
        Says whether an event is selected.
    """

    def __init__(
        self, reader: AlgorithmMetricsReader, is_wanted: Callable[[TraceEvent], bool]
    ) -> None:
        self._reader = reader
        self._is_wanted = is_wanted
        self._seen: dict[tuple[Any, ...], float] = {}  # until when each took
        self._start_us = 0.0

    def between(self, start_us: float, end_us: float) -> list[TraceEvent]:
        """Return the events that overlap a range of time, by their starts."""
        self._start_us = start_us
        return self._new(start_us, end_us)

    def later(self, end_us: float) -> list[TraceEvent]:
        """Return the events up to a time that were not returned before, by their starts."""
        known = max(self._seen.values(), default=self._start_us)
        start_us = max(known - _BEHIND_US, self._start_us)
        self._seen = {key: end for key, end in self._seen.items() if end >= start_us}
        return self._new(start_us, end_us)

    def _new(self, start_us: float, end_us: float) -> list[TraceEvent]:
        found = []
        for event in self._reader.get_events(start_us, end_us):
            key = _identity(event)
            if key not in self._seen and self._is_wanted(event):
                self._seen[key] = event.end_time
                found.append(event)
        return sorted(found, key=lambda one: one.start_time)


def _identity(event: TraceEvent) -> tuple[Any, ...]:
    thread = (event.node_id, event.pid, event.tid, event.phase_tid)
    return (event.start_time, event.end_time, event.event_name, event.event_phase, *thread)
