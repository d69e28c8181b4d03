"""step_interval: from when to when some steps ran, by the events of Python timelines."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from smdebug.core.modes import ModeKeys
from smdebug.profiler.trace_event import Number, TraceEvent

_STEP: Final = "Step:ModeKeys."
_NUMBER: Final = re.compile(r"\d{1,18}")


def step_interval(
    events: Iterable[TraceEvent], start_step: int, end_step: int, mode: ModeKeys | None = None
) -> tuple[Number, Number]:
    """Return when the steps ``start_step <= step < end_step`` began and ended.

    Parameters
    ----------
    events
        In any order.
    start_step, end_step
        As the writer counts them: in most frameworks within a mode.
    mode
        Whose steps are meant; None, and `ModeKeys.GLOBAL`, are the first that have the numbers.

    Returns
    -------
    tuple
        Epoch microseconds: the first event of the start step, or of the first one after it that is
        known, and 1 us before the first later event of the end step; where that never began, the
        last end of an event of the steps. ``(0, 0)`` if none of the steps is known.
    """
    first: tuple[int, Number] | None = None
    ends: list[Number] = []
    last_end: Number = 0
    for step, event in _steps(events, mode):
        if start_step <= step < end_step:
            here = (step, event.start_time)
            first = here if first is None else min(first, here)
            last_end = max(last_end, event.end_time)
        if step == end_step:
            ends.append(event.start_time)
    if first is None:
        return 0, 0
    start = first[1]
    return start, min((end - 1 for end in ends if end > start), default=last_end)


def _steps(events: Iterable[TraceEvent], mode: ModeKeys | None) -> Iterator[tuple[int, TraceEvent]]:
    """Yield the events that name a step of a mode, with its number."""
    wanted = "" if mode is None or mode is ModeKeys.GLOBAL else f"{_STEP}{mode.name}"
    for event in events:
        if wanted and wanted not in {event.event_name, event.event_phase}:
            continue
        step = step_of(event.event_args)
        if step is not None:
            yield step, event


def step_of(args: dict[str, Any] | None) -> int | None:
    """Return the step that an event's args name, as a number or a text; None if they do not.

    >>> step_of({"step_num": "12"}), step_of({"step_num": 12}), step_of(None)
    (12, 12, None)
    """
    found = None if args is None else args.get("step_num")
    if isinstance(found, str) and _NUMBER.fullmatch(found):
        return int(found)
    return found if isinstance(found, int) and not isinstance(found, bool) else None
