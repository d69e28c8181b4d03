"""WaitBudget: bounds the total time that an evaluation waits for its stores."""

import math
from collections.abc import Callable
from typing import Any, Final, TypeVar

from rule_core.clock import Clock
from rule_core.exceptions import SMDebugError
from rule_core.storage.read_pool import ReadPool

T = TypeVar("T")
THREADS: Final = 16
SLICE_S: Final = 0.1  # between two checks of the remaining time
# The current step may finish after the end if its reads take no longer than this.
GRACE_S: Final = 2.0


class WaitEndedError(SMDebugError):
    """The time to wait for stores is over."""

    def __str__(self) -> str:
        return "The evaluation ended before its storage responded."


class WaitBudget:
    """Bounds each wait for a store by the remaining time.

    Parameters
    ----------
    clock
        Measures and waits.
    remaining_s
        Returns the remaining seconds; a negative number means that the time is over. Unbounded by
        default.
    """

    def __init__(self, clock: Clock, remaining_s: Callable[[], float] = lambda: math.inf) -> None:
        self.remaining_s = remaining_s
        self._clock = clock
        self._pool = ReadPool[Any](THREADS)

    def monotonic(self) -> float:
        """Return the clock's time; see `Clock`."""
        return self._clock.monotonic()

    def time(self) -> float:
        """Return the clock's wall time; see `Clock`."""
        return self._clock.time()

    def sleep(self, seconds: float) -> None:
        """Return after `seconds`, or when no time remains."""
        end = self.monotonic() + seconds
        while (remaining := min(end - self.monotonic(), self.remaining_s())) > 0:
            self._clock.sleep(min(remaining, SLICE_S))

    def call(self, call: Callable[[], T]) -> T:
        """Return the result of `call`, which runs in another thread and is abandoned at the end.

        Raises
        ------
        WaitEndedError
            If it has not returned `GRACE_S` after the end.
        """
        future = self._pool.submit(call)
        while (remaining := self.remaining_s() + GRACE_S) > 0:
            try:
                return future.result(min(remaining, SLICE_S))  # type: ignore[no-any-return]
            except TimeoutError:
                if future.done():  # finished meanwhile, or raised TimeoutError itself
                    return future.result()  # type: ignore[no-any-return]
        future.cancel()
        raise WaitEndedError
