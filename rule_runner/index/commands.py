"""Commands: requests of users to a controller, from another thread."""

import enum
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple


class TrialAction(enum.StrEnum):
    """What to do with a trial.

    ``refresh`` records its current results, ``reevaluate`` judges it from the start,
    ``cancel`` stops its evaluation, or removes it from the queue.
    """

    REFRESH = "refresh"
    REEVALUATE = "reevaluate"
    CANCEL = "cancel"


class Command(NamedTuple):
    """An action on a trial, by its id."""

    action: TrialAction
    trial: int


class Commands:
    """The commands that a controller has not carried out yet; safe to use in several threads.

    Attributes
    ----------
    failure
        Why no controller carries them out or can record anything, in a sentence; "" while one does.
    problem
        Why the controller can start no evaluations now, in a sentence; "" if it can.
    """

    def __init__(self) -> None:
        self._waiting: deque[Command] = deque()
        self.failure = ""
        self.problem = ""

    @property
    def hindrance(self) -> str:
        """Why no evaluation can be started now, in a sentence; "" if nothing is wrong."""
        return self.failure or self.problem

    def send(self, command: Command) -> None:
        """Ask for an action, once until it is carried out."""
        if command not in self._waiting:
            self._waiting.append(command)

    def taken(self) -> Iterator[Command]:
        """Take the commands one after the other, the oldest first.

        One that the caller could not carry out is taken again.
        """
        while self._waiting:
            yield self._waiting[0]
            self._waiting.popleft()
