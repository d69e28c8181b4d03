"""Shortening of events that are too large for their receiver."""

import copy
from collections.abc import Callable
from typing import Any, Final

from rule_runner.notify.event import Event, statuses

DROPPED: Final = ("HyperParameters", "InputDataConfig", "Tags")  # in this order
DETAILS_KEPT: Final = 256  # characters
TOO_LARGE: Final = "TooLarge: the event has more than 256 KiB even when shortened"


def shorten(event: Event, fits: Callable[[Event], bool]) -> Event | None:
    """Return `event`, shortened until it `fits`.

    Whole fields are removed first, then ``StatusDetails`` are cut; ``Truncated`` marks the event.

    Returns
    -------
    Event or None
        None if it cannot be made to fit.
    """
    if fits(event):
        return event
    short = copy.deepcopy(event)
    detail: Any = short["detail"]
    detail["Truncated"] = True
    for name in DROPPED:
        if detail.pop(name, None) is not None and fits(short):
            return short
    for rule in statuses(detail):
        if "StatusDetails" in rule:
            rule["StatusDetails"] = rule["StatusDetails"][:DETAILS_KEPT]
    return short if fits(short) else None
