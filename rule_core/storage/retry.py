"""retry: repeats calls after transient errors, until a deadline."""

from collections.abc import Callable
from operator import attrgetter
from typing import Final, TypeVar

from rule_core.clock import Clock, jittered, pause_after

T = TypeVar("T")
E = TypeVar("E", bound=Exception)
FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 5.0


def retry(
    call: Callable[[], T],
    errors: type[E] | tuple[type[E], ...],
    *,
    is_transient: Callable[[E], bool] = attrgetter("transient"),
    deadline_s: float,
    clock: Clock,
) -> T:
    """Return the result of `call`, or raise its last error once `deadline_s` is over.

    Pauses double from `FIRST_PAUSE_S` to `LONGEST_PAUSE_S`, with random jitter between half and
    full length. A pause lasts at least the `retry_after` seconds of the exception; if that exceeds
    the deadline, the exception is raised at once.

    Parameters
    ----------
    errors
        The exceptions that may be transient; all others are raised at once.
    is_transient
        Returns whether one of these is transient; by default its attribute of this name.
    deadline_s
        Seconds from now; pauses do not exceed it.
    """
    end = clock.monotonic() + deadline_s
    failures = 0
    while True:
        try:
            return call()
        except errors as err:
            remaining = end - clock.monotonic()
            least = getattr(err, "retry_after", 0.0)
            if remaining <= 0 or least > remaining or not is_transient(err):
                raise
        failures += 1
        pause = jittered(pause_after(failures, FIRST_PAUSE_S, LONGEST_PAUSE_S))
        clock.sleep(max(least, min(remaining, pause)))
