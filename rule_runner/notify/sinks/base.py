"""EventSink: a receiver of events; its failures never change a verdict."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from rule_runner.notify.event import Event, statuses

T = TypeVar("T")

DROPPED: Final = ("HyperParameters", "InputDataConfig", "Tags")  # in this order
DETAILS_KEPT: Final = 256  # characters
TOO_LARGE: Final = "TooLarge: the event has more than 256 KiB even when shortened"


class SinkError(Exception):
    """No event was taken; the text is the reason, without secrets.

    Attributes
    ----------
    transient
        Whether a retry may succeed.
    """

    def __init__(self, text: str, *, transient: bool) -> None:
        super().__init__(text)
        self.transient = transient


class RefusedError(Exception):
    """The receiver rejects an event for good; the text is the reason."""


@dataclass(frozen=True, slots=True)
class Refused:
    """An event that its receiver refused for good."""

    event_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Sent:
    """The outcome of sending some events.

    Attributes
    ----------
    done
        Number of events, from the first, that were taken or refused for good.
    refused
        The refused events among them.
    failure
        Reason why the next event was not taken yet; "" if it was not tried.
    """

    done: int
    refused: tuple[Refused, ...] = ()
    failure: str = ""


class EventSink(ABC):
    """A receiver of events.

    Each event is sent at least once, in order; after a crash some are sent again, with the same
    ``id`` and ``EventKey``.

    Attributes
    ----------
    name
        Unique in an evaluation, stable across evaluations, and valid in a file name.
    label
        Name for users, without secrets.
    """

    name: str = ""
    label: str = ""

    @abstractmethod
    def send(self, events: Sequence[Event]) -> Sent:
        """Send the first of `events`, as many as fit into one request; `events` is not empty.

        Try once: the caller retries.

        Raises
        ------
        SinkError
            If none was taken. Any other exception means the same.
        """


def one_by_one(send: Callable[[Event], None], events: Sequence[Event]) -> Sent:
    """Send each event by itself, up to the first for which `send` raises `SinkError`.

    An event for which `send` raises `RefusedError` counts as refused.
    """
    refused: list[Refused] = []
    for done, event in enumerate(events):
        try:
            send(event)
        except RefusedError as err:
            refused.append(Refused(str(event["id"]), str(err)))
        except SinkError as err:
            if not done:
                raise
            return Sent(done, tuple(refused), str(err))
    return Sent(len(events), tuple(refused))


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
