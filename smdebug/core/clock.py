"""Clock: the only place of the analysis core that tells the time or sleeps."""

import time
from typing import Protocol


class Clock(Protocol):
    """What waits take, so that tests need not wait."""

    def monotonic(self) -> float:
        """Return seconds that only ever grow, from an arbitrary zero."""
        ...

    def time(self) -> float:
        """Return the wall time in seconds since the epoch."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""
        ...


class SystemClock:
    """The machine's own clock."""

    def monotonic(self) -> float:
        """Return ``time.monotonic()``."""
        return time.monotonic()

    def time(self) -> float:
        """Return ``time.time()``."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""
        time.sleep(seconds)  # noqa: TID251 - this is the clock
