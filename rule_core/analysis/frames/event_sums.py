"""Sums of the durations of events that run at certain times, by phase and name."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

from rule_core.profiler.traces.event import Number, TraceEvent

Sums = dict[str, Number]
EventSums = tuple[Sums, Sums]  # microseconds by phase, and by name of event without steps


def sums_at(times_us: Sequence[int], events: Iterable[TraceEvent]) -> EventSums:
    """Sum the durations of events that run at `times_us`, once per time.

    Parameters
    ----------
    times_us
        Ascending epoch microseconds; the start and end of an event are not within it.
    events
        Each event once.
    """
    return _sums(
        (event, bisect_left(times_us, event.end_time) - bisect_right(times_us, event.start_time))
        for event in events
    )


def sums_between(intervals: Sequence[tuple[int, int]], events: Iterable[TraceEvent]) -> EventSums:
    """Sum the durations of events that overlap `intervals`, once per interval.

    Parameters
    ----------
    intervals
        Starts and ends in epoch microseconds; touching counts as overlapping.
    events
        Each event once; steps are ignored.
    """
    begins, ends = map(sorted, zip(*intervals, strict=True))
    return _sums(
        (event, bisect_right(begins, event.end_time) - bisect_left(ends, event.start_time))
        for event in events
        if not _is_step(event)
    )


def _sums(counted_events: Iterable[tuple[TraceEvent, int]]) -> EventSums:
    """Sum the durations of events, each as many times as it counts."""
    phases: Sums = {}
    names: Sums = {}
    for event, count in counted_events:
        if count > 0:
            duration = count * (event.end_time - event.start_time)
            phases[event.event_phase] = phases.get(event.event_phase, 0) + duration
            if not _is_step(event):
                names[event.event_name] = names.get(event.event_name, 0) + duration
    return phases, names


def _is_step(event: TraceEvent) -> bool:
    return "Step" in event.event_name


def intervals_of(begins: Sequence[int], ends: Sequence[int]) -> list[tuple[int, int]]:
    """Return intervals from their starts and ends.

    Raises
    ------
    ValueError
        If they are not intervals.
    """
    intervals = list(zip(begins, ends, strict=False))
    if not intervals or len(begins) != len(ends) or any(end < begin for begin, end in intervals):
        msg = (
            "Intervals need as many begins as ends, one at least, and no end before its begin, "
            f"got {list(begins)!r} and {list(ends)!r} in epoch microseconds."
        )
        raise ValueError(msg)
    return intervals


def shares(sums: Sums) -> dict[str, float]:
    """Return sums as fractions of the largest one.

    >>> shares({"a": 5, "b": 20})
    {'a': 0.25, 'b': 1.0}
    """
    largest = float(max(sums.values(), default=0)) or 1.0
    return {name: value / largest for name, value in sums.items()}
