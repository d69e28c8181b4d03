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
        """Do the work in the block; the pause begins after it, also after an exception."""
        began = self._clock.monotonic()
        try:
            yield
        finally:
            end = self._clock.monotonic()
            long_pause = min(IDLE_SHARE * (end - began), LONGEST_S)
            self._next = end + max(self._seconds, long_pause)
