"""step_interval: when a range of steps ran, by the events of Python timelines."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from rule_core.modes import ModeKeys
from rule_core.profiler.traces.event import Number, TraceEvent

_STEP: Final = "Step:ModeKeys."
_NUMBER: Final = re.compile(r"\d{1,18}")


def step_interval(
    events: Iterable[TraceEvent], start_step: int, end_step: int, mode: ModeKeys | None = None
) -> tuple[Number, Number]:
    """Return the start and end of the steps ``start_step <= step < end_step``.

    Parameters
    ----------
    events
        Events in any order.
    start_step, end_step
        Step numbers as the writer counts them, in most frameworks within a mode.
    mode
        Mode of the steps; None and `ModeKeys.GLOBAL` take the first steps with these numbers.

    Returns
    -------
    tuple
        Epoch microseconds. The start is the first event of the start step, or of the first later
        step with events. The end is 1 us before the first later event of the end step; if there is
        none, the last end of an event of the steps. ``(0, 0)`` if no step has events.
    """
    first: tuple[int, Number] | None = None
    ends: list[Number] = []
    last_end: Number = 0
    for step, event in _steps(events, mode):
        if start_step <= step < end_step:
            candidate = (step, event.start_time)
            first = candidate if first is None else min(first, candidate)
            last_end = max(last_end, event.end_time)
        if step == end_step:
            ends.append(event.start_time)
    if first is None:
        return 0, 0
    start = first[1]
    return start, min((end - 1 for end in ends if end > start), default=last_end)


def _steps(events: Iterable[TraceEvent], mode: ModeKeys | None) -> Iterator[tuple[int, TraceEvent]]:
    """Yield the step number and the event of each event with a step of a mode."""
    marker = "" if mode is None or mode is ModeKeys.GLOBAL else f"{_STEP}{mode.name}"
    for event in events:
        if marker and marker not in {event.event_name, event.event_phase}:
            continue
        step = step_of(event.event_args)
        if step is not None:
            yield step, event


def step_of(args: dict[str, Any] | None) -> int | None:
    """Return the step number in an event's args, given as int or text; None if missing.

    >>> step_of({"step_num": "12"}), step_of({"step_num": 12}), step_of(None)
    (12, 12, None)
    """
    value = None if args is None else args.get("step_num")
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
