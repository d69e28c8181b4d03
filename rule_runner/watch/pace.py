"""Pace: repeats work at intervals, less often if it takes long."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event
from typing import Final

from rule_core.clock import Clock
from rule_core.failures import attempt

IDLE_SHARE: Final = 20.0  # ratio of a pause to the work before it
LONGEST_S: Final = 60.0  # a pause between looks, whatever they cost
PROMPT_S: Final = 5.0  # the same, where somebody waits for what is seen


class Pace:
    """When to do something again.

    Parameters
    ----------
    seconds, longest
        The shortest pause, and the longest one. On a busy machine everything takes long.
    """

    def __init__(self, clock: Clock, seconds: float, longest: float = LONGEST_S) -> None:
        self._clock = clock
        self._seconds = seconds
        self._longest = longest
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
            pause = min(IDLE_SHARE * (self._clock.monotonic() - began), self._longest)
        finally:
            self._next = self._clock.monotonic() + max(self._seconds, pause)

    def shorten(self) -> None:
        """Shorten a long pause, after work that is not repeated."""
        self._next = min(self._next, self._clock.monotonic() + max(self._seconds, PROMPT_S))


def repeat(
    work: Callable[[], object],
    failed: Callable[[Exception], object],
    stopping: Event,
    pause_s: float = 0.0,
) -> None:
    """Do work in a thread of its own until an event is set, whatever it raises."""
    while not stopping.is_set():
        attempt(work, failed)
        stopping.wait(pause_s)
