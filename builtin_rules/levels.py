"""Levels: where a noisy series has been and where it is now, in bounded memory."""

import math
import statistics
from collections import deque
from collections.abc import Iterable
from itertools import pairwise
from typing import Final, NamedTuple

NOISE_WINDOW: Final = 40  # latest differences that tell the noise
_BLOCKS: Final = 64
_PARTS: Final = 4  # a level is the mean of the latest quarter of a series
_DOUBT: Final = 8.0  # a noise told from so many differences may be half of what it is
_MAD_TO_DEVIATION: Final = 1.4826  # of a normal distribution


class Progress(NamedTuple):
    """How the latest level of a series compares with the best one before it.

    Attributes
    ----------
    level
        Mean of the latest values.
    best
        The lowest mean of values further back.
    error
        Standard error of their difference, larger while there are few values to tell it.
    noise
        Deviation of a single value, likewise.
    """

    level: float
    best: float
    error: float
    noise: float

    @property
    def fall(self) -> float:
        """How much the series has fallen; below 0 it has risen."""
        return self.best - self.level


class Levels:
    """A series of finite numbers as means of blocks of equal length.

    There are at most ``max(64, 4 * shortest)`` blocks: when that many are full, neighbours are
    merged, and blocks are twice as long from then on. A level is the mean of the latest quarter of
    the series, so that the longer a run is the more noise is averaged out.

    Parameters
    ----------
    shortest
        How many values a level is the mean of at least.
    earlier
        How many values those before are means of while the level is as short as that; they grow
        with it. By default as many.

    Attributes
    ----------
    first
        The first value, or None before there is one.
    """

    def __init__(self, shortest: int, earlier: int | None = None) -> None:
        self._shortest = shortest
        self._earlier = min(shortest, earlier or shortest)
        self.first: float | None = None
        self._most = max(_BLOCKS, _PARTS * shortest)
        self._blocks: list[float] = []
        self._length = 1  # values in each block
        self._open: list[float] = []  # values of the block that is not full yet: at most _length
        self._latest: deque[float] = deque(maxlen=NOISE_WINDOW + 1)

    def add(self, value: float) -> None:
        """Add the next value."""
        self._latest.append(value)
        self.first = value if self.first is None else self.first
        self._open.append(value)
        if len(self._open) < self._length:
            return
        self._blocks.append(_mean(self._open))
        self._open.clear()
        if len(self._blocks) == self._most:
            self._blocks = [_mean(self._blocks[at : at + 2]) for at in range(0, self._most, 2)]
            self._length *= 2

    def progress(self) -> Progress | None:
        """Return how far the series has come, or None while two levels are not there yet."""
        count = len(self._blocks)
        width = max(-(-self._shortest // self._length), count // _PARTS)
        before = max(1, width * self._earlier // self._shortest)
        if count < width + before:
            return None
        level = _mean(self._blocks[count - width :])
        ends = range(count - width, before - 1, -before)
        best = min(_mean(self._blocks[end - before : end]) for end in ends)
        deviation = noise(self._latest) * (1 + _DOUBT / len(self._latest))
        averaged = math.sqrt((1 / width + 1 / before) / self._length)
        return Progress(level, best, deviation * averaged, deviation)


def noise(latest: Iterable[float]) -> float:
    """Return the robust deviation of one value of a series, from its step-to-step differences.

    A trend leaves it alone. Of fewer than three values it is 0.
    """
    differences = [after - before for before, after in pairwise(latest)]
    middle = statistics.median(differences or [0.0])
    spread = statistics.median([abs(one - middle) for one in differences] or [0.0])
    return _MAD_TO_DEVIATION * spread / math.sqrt(2)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
