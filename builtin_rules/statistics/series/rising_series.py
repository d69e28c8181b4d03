"""RisingSeries: whether a series that has to rise has risen, or lost what it had gained."""

import math
import statistics
from typing import Final, NamedTuple

from builtin_rules.statistics.noise_levels import (
    LEVEL_ROWS,
    NOISE_ROWS,
    Levels,
    RobustWindow,
    mean,
    noise,
    rises,
    spread,
)

START_ROWS: Final = 5  # first rows whose median is the level at the start
NOISES: Final = 4.0  # of a row, that a gain exceeds
LIVE_SHARE: Final = 0.25  # of all rows, that a loss of the gain lasts
END_SHARE: Final = 0.125  # the same at the end of the data


class LostGain(NamedTuple):
    """A gain that was lost: the level, its limit, and for how many rows it has been below."""

    level: float
    limit: float
    rows: int
    share: float


class RisingSeries:
    """The rows of a series that has to rise, in bounded memory.

    Parameters
    ----------
    lost_share
        The share of its gain below which the series has lost it.

    Attributes
    ----------
    rows
        The number of rows.
    highest
        The highest absolute value.
    """

    def __init__(self, lost_share: float) -> None:
        self._lost_share = lost_share
        self._first: list[float] = []
        self._levels = Levels(LEVEL_ROWS)
        self._window = RobustWindow()
        self._best = -math.inf
        self.highest = 0.0
        self.rows = 0
        self._loss: LostGain | None = None

    def add(self, value: float, patience: int) -> LostGain | None:
        """Add a finite row; return what was lost, if that lasts."""
        if len(self._first) < START_ROWS:
            self._first.append(value)
        self.rows += 1
        self.highest = max(self.highest, abs(value))
        self._levels.add(value)
        self._window.add(value)
        if len(self._window) >= LEVEL_ROWS:
            self._best = max(self._best, self._window.level())
        self._loss = self._lost()
        return self._lasting(max(patience, LIVE_SHARE * self.rows))

    @property
    def is_lost(self) -> bool:
        """Whether the level is below the limit, for however long."""
        return self._loss is not None

    def end(self) -> LostGain | None:
        """Return what was lost until the end of the data, if it lasts and does not come back."""
        loss = self._lasting(max(START_ROWS, END_SHARE * self.rows))
        return loss if loss and not rises(self._window.latest(loss.rows)) else None

    def _lasting(self, rows: float) -> LostGain | None:
        return self._loss if self._loss and self._loss.rows >= rows else None

    def _lost(self) -> LostGain | None:
        level, gain = self._window.level(), self._best - statistics.median(self._first)
        limit = self._best - self._lost_share * gain
        if gain <= 0 or level >= limit:
            return None  # as of most rows, whose noise is not needed
        margin = self._margin()
        limit = min(limit, self._best - margin)
        if gain <= margin or level >= limit:
            return None
        rows = 1 + (self._loss.rows if self._loss else 0)
        return LostGain(level, limit, rows, (self._best - level) / gain)

    def _margin(self) -> float:
        return NOISES * max(self._window.noise(), noise(self._levels.blocks()))

    def has_gained(self) -> bool:
        """Return whether the series has risen since the start, and has not lost its gain."""
        gain = self._best - statistics.median(self._first)
        return not self.is_lost and (self.has_risen() or gain > self._margin())

    def has_risen(self) -> bool:
        """Return whether the series has risen since the start."""
        return rises(self._levels.blocks())

    def stays(self, rise: float = 0.0) -> bool:
        """Return whether it has certainly not risen by `rise`, or the spread of a row if larger."""
        blocks = self._levels.blocks()
        if len(blocks) < LEVEL_ROWS // 2:
            return False
        rows = self._window.latest(NOISE_ROWS)
        least = max(rise, spread(rows), 1e-6 * self.highest, 1e-300)
        return rises([-value for value in blocks], least)

    def is_constant(self) -> bool:
        """Return whether all rows are equal, but for the latest, which do not fill a block yet."""
        blocks = self._levels.blocks()
        return max(blocks) - min(blocks) <= 1e-9 * self.highest

    def mean(self) -> float:
        """Return the mean of all rows but the latest, which do not fill a block yet."""
        return mean(self._levels.blocks())

    def ends(self) -> tuple[float, float]:
        """Return the mean of the last quarter of the rows, and of the first."""
        blocks = self._levels.blocks()
        width = max(1, len(blocks) // 4)
        return mean(blocks[-width:]), mean(blocks[:width])
