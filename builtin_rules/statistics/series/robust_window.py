"""RobustWindow: the level and the noise of the latest values of a series."""

import math
import statistics
from collections import deque
from itertools import pairwise
from typing import Final

from builtin_rules.statistics.series.noise_levels import noise

LEVEL_ROWS: Final = 10  # values whose median is the level
NOISE_ROWS: Final = 128  # values whose differences estimate the noise


class RobustWindow:
    """The latest values of a series; single outliers affect neither its level nor its noise.

    Parameters
    ----------
    level, spread
        The numbers of latest values that tell the level and the noise.
    """

    def __init__(self, level: int = LEVEL_ROWS, spread: int = NOISE_ROWS) -> None:
        self._level = level
        self._values: deque[float] = deque(maxlen=max(level, spread))
        self._noise: float | None = None  # of these values, once it was asked for

    def __len__(self) -> int:
        return len(self._values)

    def add(self, value: float) -> None:
        """Add the next value, which must be finite."""
        self._values.append(value)
        self._noise = None

    def latest(self, count: int) -> list[float]:
        """Return at most `count` latest values, oldest first."""
        return list(self._values)[-count:]

    def level(self) -> float:
        """Return the median of the latest values; there must be one."""
        return statistics.median(self.latest(self._level))

    def earlier_level(self) -> float | None:
        """Return the median of as many values before those, or None if there are too few."""
        before = self.latest(2 * self._level)[: -self._level]
        return statistics.median(before) if len(before) == self._level else None

    def noise(self) -> float:
        """Return the robust deviation of a value, from differences; 0 below three values."""
        if self._noise is None:
            self._noise = noise(self._values)
        return self._noise

    def noise_about_trend(self) -> float:
        """Return the robust deviation of a value, which a trend that turns does not affect.

        It is from differences of differences; 0 below four values.
        """
        differences = [after - before for before, after in pairwise(self._values)]
        return noise(differences) / math.sqrt(3)
