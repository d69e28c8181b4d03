"""Sums of the durations of events that run at given times, by phase and by name."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from smdebug.profiler.trace_event import Number, TraceEvent

Sums = dict[str, Number]


class EventSums(NamedTuple):
    """Microseconds by phase, and by the name of the event."""

    phases: Sums
    names: Sums

    def add(self, event: TraceEvent, times: int) -> None:
        """Count an event so many times; steps are left out of the names."""
        duration = times * (event.end_time - event.start_time)
        self.phases[event.event_phase] = self.phases.get(event.event_phase, 0) + duration
        if "Step" not in event.event_name:
            self.names[event.event_name] = self.names.get(event.event_name, 0) + duration


def sums_at(times_us: Sequence[int], events: Iterable[TraceEvent]) -> EventSums:
    """Return how long the events last that run at any of some times, once for each of these.

    Parameters
    ----------
    times_us
        Epoch microseconds, ascending; a time at which an event begins or ends is not within it.
    events
        Each event once.
    """
    sums = EventSums({}, {})
    for event in events:
        within = bisect_left(times_us, event.end_time) - bisect_right(times_us, event.start_time)
        if within > 0:
            sums.add(event, within)
    return sums


def sums_between(intervals: Sequence[tuple[int, int]], events: Iterable[TraceEvent]) -> EventSums:
    """Return how long the events last that overlap any of some intervals, once for each of these.

    Parameters
    ----------
    intervals
        Begins and ends in epoch microseconds; touching counts.
    events
        Each event once; steps are left out.
    """
    begins = sorted(begin for begin, _ in intervals)
    ends = sorted(end for _, end in intervals)
    sums = EventSums({}, {})
    for event in events:
        times = bisect_right(begins, event.end_time) - bisect_left(ends, event.start_time)
        if times > 0 and "Step" not in event.event_name:
            sums.add(event, times)
    return sums


def intervals_of(begins: Sequence[int], ends: Sequence[int]) -> list[tuple[int, int]]:
    """Return pairs of begins and ends.

    Raises
    ------
    ValueError
        If they are none.
    """
    found = list(zip(begins, ends, strict=False))
    if not found or len(begins) != len(ends) or any(end < begin for begin, end in found):
        msg = (
            "Intervals need as many begins as ends, one at least, and no end before its begin, "
            f"got {list(begins)!r} and {list(ends)!r} in epoch microseconds."
        )
        raise ValueError(msg)
    return found


def shares(sums: Sums) -> dict[str, float]:
    """Return sums as parts of the largest of them.

    >>> shares({"a": 5, "b": 20})
    {'a': 0.25, 'b': 1.0}
    """
    largest = float(max(sums.values(), default=0)) or 1.0
    return {name: value / largest for name, value in sums.items()}
