"""retry: makes a call again that failed for a reason that passes, for so long and no longer."""

import random
from collections.abc import Callable
from typing import Final, TypeVar

from smdebug.core.clock import Clock

T = TypeVar("T")
FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 5.0


def retry(
    call: Callable[[], T],
    *,
    passes: Callable[[Exception], bool],
    deadline_s: float,
    clock: Clock,
    random_part: Callable[[], float] = random.random,
) -> T:
    """Return what `call` returns; raise what it raised last once `deadline_s` is over.

    Pauses double from `FIRST_PAUSE_S` to `LONGEST_PAUSE_S`; each is drawn between its half and
    its whole, so that many callers do not come back together.

    Parameters
    ----------
    passes
        Whether an exception is worth another try.
    deadline_s
        Seconds from now; no pause goes beyond it.
    random_part
        Gives numbers from 0 to 1.
    """
    end = clock.monotonic() + deadline_s
    pause = FIRST_PAUSE_S
    while True:
        try:
            return call()
        except Exception as err:
            left = end - clock.monotonic()
            if left <= 0 or not passes(err):
                raise
        clock.sleep(min(left, pause * (0.5 + random_part() / 2)))
        pause = min(2 * pause, LONGEST_PAUSE_S)
