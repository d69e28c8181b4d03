"""Pace: repeats work at intervals, less often if it takes long."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rule_core.clock import Clock

IDLE_SHARE: Final = 20.0  # ratio of a pause to the work before it
LONGEST_S: Final = 60.0  # a pause between looks, whatever they cost


class Pace:
    """When to do something again.

    Parameters
    ----------
    seconds
        The shortest pause.
    """

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._next = clock.monotonic()

    @property
    def is_due(self) -> bool:
        """Whether the pause is over."""
        return self._clock.monotonic() >= self._next

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Do the work in the block; the pause begins after it.

        After an exception it is the shortest one: the block has waited for something, not worked.
        """
        began, pause = self._clock.monotonic(), 0.0
        try:
            yield
            pause = min(IDLE_SHARE * (self._clock.monotonic() - began), LONGEST_S)
        finally:
            self._next = self._clock.monotonic() + max(self._seconds, pause)
