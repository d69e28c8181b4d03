"""Clock: the only module of the engine that reads the time or sleeps, and pauses that double."""

import math
import time
from collections.abc import Callable
from typing import Final, Protocol

_DOUBLINGS: Final = 60  # more exceed any limit
_NS: Final = 1000  # nanoseconds in a microsecond


class Clock(Protocol):
    """A source of time, which tests replace to avoid waiting."""

    def monotonic(self) -> float:
        """Return monotonic seconds from an arbitrary start."""
        ...

    def time(self) -> float:
        """Return the wall time in seconds since the epoch."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""
        ...


class SystemClock:
    """The clock of the machine."""

    monotonic = staticmethod(time.monotonic)  # no frame: every step of every rule asks

    def time(self) -> float:
        """Return ``time.time()``."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""
        time.sleep(seconds)  # noqa: TID251 - this is the clock


def pause_after(failures: int, first_s: float, longest_s: float = math.inf) -> float:
    """Return the pause after so many failures in a row: it doubles up to the longest.

    >>> [pause_after(failures, 0.5, 3.0) for failures in (1, 2, 3, 4)]
    [0.5, 1.0, 2.0, 3.0]
    """
    return min(first_s * 2.0 ** min(failures - 1, _DOUBLINGS), longest_s)


def jittered(pause_s: float, random_part: Callable[[], float] | None = None) -> float:
    """Return a random pause between half of `pause_s` and the whole.

    Parameters
    ----------
    random_part
        Returns numbers from 0 to 1; None: `random.random`.
    """
    if random_part is None:
        from random import random

        random_part = random
    return pause_s * (0.5 + random_part() / 2)


class SteadyTime:
    """Epoch microseconds that follow the clock of the machine as it was at the start.

    Later changes of that clock have no effect.
    """

    def __init__(self) -> None:
        self._offset_ns = time.time_ns() - time.perf_counter_ns()

    def __call__(self) -> int:
        """Return the time in epoch microseconds."""
        return (self._offset_ns + time.perf_counter_ns()) // _NS
