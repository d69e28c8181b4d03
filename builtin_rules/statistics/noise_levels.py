"""Levels and RobustWindow: levels and noise of a series of numbers, in bounded memory."""

import math
import statistics
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

NOISE_WINDOW: Final = 40  # latest differences that estimate the noise
LEVEL_ROWS: Final = 10  # values whose median is the level of a window
NOISE_ROWS: Final = 128  # values whose differences estimate the noise of a window
_BLOCKS: Final = 64
_PARTS: Final = 4  # a level is the mean of the latest quarter of a series
_DOUBT: Final = 8.0  # with so many differences, the noise may be twice its estimate
_MAD_TO_DEVIATION: Final = 1.4826  # of a normal distribution
ERROR_RATE: Final = 0.05  # how often a test calls chance a trend


class LevelProgress(NamedTuple):
    """How the latest level of a series compares with the best one before it.

    Attributes
    ----------
    level
        Mean of the latest values.
    best
        The lowest mean of values further back.
    error
        Standard error of their difference, enlarged while there are few values.
    noise
        Deviation of a single value, enlarged likewise.
    """

    level: float
    best: float
    error: float
    noise: float

    @property
    def fall(self) -> float:
        """How much the series has fallen; negative if it has risen."""
        return self.best - self.level


class Quarters(NamedTuple):
    """The means of the four quarters of a series.

    Attributes
    ----------
    error
        Standard error of the difference of two of them, enlarged while there are few values.
    """

    means: tuple[float, ...]
    error: float


class Levels:
    """A series of finite numbers as means of blocks of equal length.

    There are at most ``max(64, 4 * shortest)`` blocks. When all are full, neighbours are merged and
    the block length doubles. A level is the mean of the latest quarter of the series, so longer
    runs average out more noise.

    Parameters
    ----------
    shortest
        The minimum number of values of a level.
    earlier
        The minimum number of values of earlier levels, which grow in proportion. By default the
        same.

    Attributes
    ----------
    first
        The first value, or None.
    """

    def __init__(self, shortest: int, earlier: int | None = None) -> None:
        self._shortest = shortest
        self._earlier = min(shortest, earlier or shortest)
        self.first: float | None = None
        self._most = max(_BLOCKS, _PARTS * shortest)
        self._blocks: list[float] = []
        self._length = 1  # values in each block
        self._open: list[float] = []  # values of the block that is not full yet: at most _length
        self._latest = NoiseWindow(NOISE_WINDOW + 1)
        self._block_noise: float | None = None  # once it was asked for

    def add(self, value: float) -> None:
        """Add the next value."""
        self._latest.add(value)
        self.first = value if self.first is None else self.first
        self._open.append(value)
        if len(self._open) < self._length:
            return
        self._blocks.append(mean(self._open))
        self._open.clear()
        self._block_noise = None
        if len(self._blocks) == self._most:
            self._blocks = [
                mean(self._blocks[index : index + 2]) for index in range(0, self._most, 2)
            ]
            self._length *= 2

    def blocks(self) -> list[float]:
        """Return the means of the blocks; up to 64 values, the values themselves."""
        return [*self._blocks]

    def quarters(self) -> Quarters | None:
        """Return the means of the quarters of the series, or None below two values in each."""
        width = len(self._blocks) // _PARTS
        if width < 2:  # noqa: PLR2004 - two blocks
            return None
        blocks = self._blocks[len(self._blocks) - _PARTS * width :]
        means = [mean(blocks[start : start + width]) for start in range(0, len(blocks), width)]
        if self._block_noise is None:
            self._block_noise = noise(blocks)
        single = self._latest.noise() / math.sqrt(self._length)
        spread = max(single, self._block_noise)  # blocks differ by more if the noise is correlated
        doubt = 1 + _DOUBT / len(self._latest)
        return Quarters(tuple(means), spread * doubt * math.sqrt(2 / width))

    def progress(self) -> LevelProgress | None:
        """Return the progress of the series, or None before there are two levels."""
        count = len(self._blocks)
        width = max(-(-self._shortest // self._length), count // _PARTS)
        before = max(1, width * self._earlier // self._shortest)
        if count < width + before:
            return None
        level = mean(self._blocks[count - width :])
        ends = range(count - width, before - 1, -before)
        best = min(mean(self._blocks[end - before : end]) for end in ends)
        deviation = self._latest.noise() * (1 + _DOUBT / len(self._latest))
        averaged = math.sqrt((1 / width + 1 / before) / self._length)
        return LevelProgress(level, best, deviation * averaged, deviation)


class NoiseWindow:
    """The latest values of a series, and the robust deviation of a value; see `noise`.

    Parameters
    ----------
    size
        The number of values that count.
    """

    def __init__(self, size: int) -> None:
        self.values: deque[float] = deque(maxlen=size)
        self._differences: list[float] | None = None  # ascending, once the noise was asked for
        self._noise: float | None = None  # of these values, likewise
        self._latest_level: float | None = None

    def __len__(self) -> int:
        return len(self.values)

    def add(self, value: float) -> None:
        """Add the next value, which must be finite."""
        values, differences = self.values, self._differences
        if differences is not None and values:
            if len(values) == values.maxlen:
                del differences[bisect_left(differences, values[1] - values[0])]
            insort(differences, value - values[-1])
        values.append(value)
        self._noise = self._latest_level = None

    def noise(self) -> float:
        """Return the robust deviation of a value, from differences; 0 below three values."""
        if self._differences is None:
            self._differences = sorted([after - before for before, after in pairwise(self.values)])
        if self._noise is None:
            self._noise = _deviation(self._differences)
        return self._noise


class RobustWindow(NoiseWindow):
    """The latest values of a series; single outliers affect neither its level nor its noise.

    Parameters
    ----------
    level, spread
        The numbers of latest values that tell the level and the noise.
    """

    def __init__(self, level: int = LEVEL_ROWS, spread: int = NOISE_ROWS) -> None:
        super().__init__(max(level, spread))
        self._level = level

    def latest(self, count: int) -> list[float]:
        """Return at most `count` latest values, oldest first."""
        return list(self.values)[-count:]

    def level(self) -> float:
        """Return the median of the latest values; there must be one."""
        if self._latest_level is None:
            self._latest_level = statistics.median(self.latest(self._level))
        return self._latest_level

    def earlier_level(self) -> float | None:
        """Return the median of as many values before those, or None if there are too few."""
        before = self.latest(2 * self._level)[: -self._level]
        return statistics.median(before) if len(before) == self._level else None

    def noise_about_trend(self) -> float:
        """Return the robust deviation of a value, which a trend that turns does not affect.

        It is from differences of differences; 0 below four values.
        """
        differences = [after - before for before, after in pairwise(self.values)]
        return noise(differences) / math.sqrt(3)


def noise(latest: Iterable[float]) -> float:
    """Return the robust deviation of a value of a series, from step-to-step differences.

    A trend does not affect it. It is 0 for fewer than three values.
    """
    return _deviation(sorted([after - before for before, after in pairwise(latest)]))


def _deviation(differences: Sequence[float]) -> float:
    """Return the robust deviation of a value from differences between neighbours, ascending."""
    count = len(differences)
    if not count:
        return 0.0
    half = count // 2
    if count % 2:
        return _MAD_TO_DEVIATION * _nearest(differences, differences[half], half + 1) / math.sqrt(2)
    middle = (differences[half - 1] + differences[half]) / 2
    nearest = _nearest(differences, middle, half) + _nearest(differences, middle, half + 1)
    return _MAD_TO_DEVIATION * (nearest / 2) / math.sqrt(2)


def _nearest(ascending: Sequence[float], middle: float, count: int) -> float:
    """Return the largest distance from the middle among the `count` numbers nearest to it."""
    first, end = 0, len(ascending) - count
    while first < end:
        start = (first + end) // 2
        if middle - ascending[start] > ascending[start + count] - middle:
            first = start + 1
        else:
            end = start
    return max(middle - ascending[first], ascending[first + count - 1] - middle)


def rises(values: Sequence[float], fall: float = 0.0, error_rate: float = ERROR_RATE) -> bool:
    """Return whether values rise, or at least do not fall by `fall`, by the Mann-Kendall test.

    It counts the pairs that rise less those that fall. The distribution is exact for any number of
    values: without a trend, or with a steady fall by `fall` from the first to the last value, they
    pass in at most `error_rate` of all cases. Fewer than four values never pass at 5 %.

    >>> rises([1.0, 2.0, 3.0, 4.0]), rises([1.0, 2.0, 3.0]), rises([2.0, 2.0, 2.0, 2.0], fall=1.0)
    (True, False, True)
    """
    with np.errstate(over="ignore", invalid="ignore"):
        array = np.asarray(values, np.float64) + fall * np.linspace(0.0, 1.0, len(values))
    before, after = array[:, None], array[None, :]
    surplus = int(np.triu(after > before, 1).sum()) - int(np.triu(after < before, 1).sum())
    least = _surplus_by_chance(len(values), error_rate)
    return least is not None and surplus >= least


def falls(values: Sequence[float]) -> bool:
    """Return whether values fall; see `rises`."""
    return rises([-value for value in values])


@lru_cache(maxsize=256)
def _surplus_by_chance(count: int, error_rate: float) -> int | None:
    """Return the surplus of rising pairs that chance reaches at most so often; None for none."""
    pairs = count * (count - 1) // 2
    shares = np.ones(1)  # of the orders of the values, by falling pairs
    for size in range(2, count + 1):
        shares = np.convolve(shares, np.full(size, 1.0 / size))
    falling = int(np.searchsorted(np.cumsum(shares), error_rate, side="right")) - 1
    return pairs - 2 * falling if falling >= 0 else None


def spread(values: Collection[float]) -> float:
    """Return the robust deviation of values, with or without a trend, whichever is larger."""
    return max(noise(values), median_deviation(values))


def median_deviation(values: Collection[float]) -> float:
    """Return the median absolute deviation, scaled to the deviation of a normal distribution.

    >>> median_deviation([1.0, 2.0, 3.0])
    1.4826
    """
    middle = statistics.median(values)
    return _MAD_TO_DEVIATION * statistics.median([abs(value - middle) for value in values])


def mean(values: Collection[float]) -> float:
    """Return the mean of at least one value."""
    return sum(values) / len(values)
