"""EventSink: what takes events; whatever it does changes no verdict."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rule_runner.events import Event


class SinkError(Exception):
    """No event was taken; the text says why, and holds no secret.

    Attributes
    ----------
    transient
        Whether it may pass by itself.
    """

    def __init__(self, text: str, *, transient: bool) -> None:
        super().__init__(text)
        self.transient = transient


@dataclass(frozen=True, slots=True)
class Refused:
    """An event that its receiver will never take."""

    event_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Sent:
    """What came of sending some events.

    Attributes
    ----------
    done
        How many of the first need not be sent again: they were taken, or refused for good.
    refused
        Those of them that were refused.
    failure
        Why the next one was not taken, though it may be later; "" if it was not tried.
    """

    done: int
    refused: tuple[Refused, ...] = ()
    failure: str = ""


class EventSink(ABC):
    """A receiver of events.

    An event comes at least once, in order; after a crash some come again, with the same ``id``
    and ``EventKey``.

    Parameters
    ----------
    name
        Unique in one evaluation, the same in the next one, and fit for a file name.
    label
        What people call it; holds no secret. By default the name.
    """

    def __init__(self, name: str, label: str = "") -> None:
        self.name = name
        self.label = label or name

    @abstractmethod
    def send(self, events: Sequence[Event]) -> Sent:
        """Send the first of `events`, as many as go together; at least one is there.

        Try once: whoever calls tries again, and knows for how long.

        Raises
        ------
        SinkError
            If none was taken. Any other exception means the same.
        """


def one_by_one(send: Callable[[Event], Refused | None], events: Sequence[Event]) -> Sent:
    """Send each event by itself, up to the first for which `send` raises `SinkError`."""
    refused: list[Refused] = []
    for done, event in enumerate(events):
        try:
            answer = send(event)
        except SinkError as err:
            if not done:
                raise
            return Sent(done, tuple(refused), str(err))
        refused += [answer] if answer else []
    return Sent(len(events), tuple(refused))
