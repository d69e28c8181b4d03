"""RateLimit: how many requests a principal or an address may send."""

import math
from typing import Final

from cachetools import TTLCache

from rule_core.clock import Clock

_KEYS: Final = 10_000
_FORGET_S: Final = 3600.0


class RateLimit:
    """A token bucket for each key.

    Parameters
    ----------
    rate
        Requests a second, in the long run.
    burst
        The number of requests that may arrive in a burst.
    """

    def __init__(self, clock: Clock, rate: float, burst: int) -> None:
        self._clock = clock
        self._rate = rate
        self._burst = burst
        self._buckets: TTLCache[str, tuple[float, float]] = TTLCache(
            _KEYS, max(_FORGET_S, burst / rate), timer=clock.monotonic
        )

    def wait(self, key: str) -> int:
        """Count a request, and return the seconds to wait before it is let in; 0: none."""
        now = self._clock.monotonic()
        left, at = self._buckets.get(key, (float(self._burst), now))
        left = min(self._burst, left + (now - at) * self._rate)
        if left < 1:
            return math.ceil((1 - left) / self._rate)
        self._buckets[key] = (left - 1, now)
        return 0
