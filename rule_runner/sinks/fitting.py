"""Fitting: what is left out of an event that is larger than its receiver takes."""

import copy
from collections.abc import Callable
from typing import Any, Final

from rule_runner.events import Event, statuses

DROPPED: Final = ("HyperParameters", "InputDataConfig", "Tags")  # in this order
DETAILS_KEPT: Final = 256  # characters
TOO_LARGE: Final = "TooLarge: it has more than 256 KiB, also shortened"


def fitted(event: Event, fits: Callable[[Event], bool]) -> Event | None:
    """Return `event`, or what is left when it has been shortened until it `fits`.

    Whole fields go first, then the ends of ``StatusDetails``; ``Truncated`` says so.

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
