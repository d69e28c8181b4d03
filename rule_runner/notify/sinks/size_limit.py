"""Limits of receivers: events are shortened, and requests are split."""

import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar

from rule_runner.notify.event import Event, statuses

T = TypeVar("T")

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


def batches(
    items: Iterable[T],
    size_of: Callable[[T], int],
    most_bytes: int,
    most: int,
    are_apart: Callable[[T, T], bool] = lambda _first, _item: False,
) -> Iterator[list[T]]:
    """Split items into one list per request.

    Parameters
    ----------
    size_of
        Returns the size of an item in bytes.
    most_bytes, most
        The limits of a request.
    are_apart
        Whether an item may not be in a request that begins with `first`.
    """
    batch: list[T] = []
    room = most_bytes
    for item in items:
        size = size_of(item)
        if batch and (size > room or len(batch) == most or are_apart(batch[0], item)):
            yield batch
            batch, room = [], most_bytes
        batch.append(item)
        room -= size
    if batch:
        yield batch
