"""Clock: the only module of the engine that reads the time or sleeps."""

import time
from typing import Final, Protocol

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


class SteadyTime:
    """Epoch microseconds that follow the clock of the machine as it was at the start.

    Later changes of that clock have no effect.
    """

    def __init__(self) -> None:
        self._offset_ns = time.time_ns() - time.perf_counter_ns()

    def __call__(self) -> int:
        """Return the time in epoch microseconds."""
        return (self._offset_ns + time.perf_counter_ns()) // _NS
