"""retry: repeats calls after transient errors, until a deadline."""

from collections.abc import Callable
from typing import Final, TypeVar

from rule_core.clock import Clock

T = TypeVar("T")
FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 5.0


def retry(
    call: Callable[[], T],
    *,
    is_transient: Callable[[Exception], bool],
    deadline_s: float,
    clock: Clock,
    random_part: Callable[[], float] | None = None,
) -> T:
    """Return the result of `call`, or raise its last error once `deadline_s` is over.

    Pauses double from `FIRST_PAUSE_S` to `LONGEST_PAUSE_S`, with random jitter between half and
    full length. A pause lasts at least the `retry_after` seconds of the exception; if that exceeds
    the deadline, the exception is raised at once.

    Parameters
    ----------
    is_transient
        Returns whether an exception is transient.
    deadline_s
        Seconds from now; pauses do not exceed it.
    random_part
        Returns numbers from 0 to 1; None: `random.random`.
    """
    end = clock.monotonic() + deadline_s
    pause = FIRST_PAUSE_S
    while True:
        try:
            return call()
        except Exception as err:
            remaining = end - clock.monotonic()
            least = getattr(err, "retry_after", 0.0)
            if remaining <= 0 or least > remaining or not is_transient(err):
                raise
        if random_part is None:
            from random import random

            random_part = random
        clock.sleep(max(least, min(remaining, pause * (0.5 + random_part() / 2))))
        pause = min(2 * pause, LONGEST_PAUSE_S)
