"""UsualRows: the usual level of a series, and for how long its rows have left it."""

import statistics
from typing import Final

from builtin_rules.statistics.noise_levels import NOISE_ROWS, RobustWindow, spread

BACK_ROWS: Final = 20  # rows in a row at the usual level, after which a series has come back


class UsualRows:
    """The usual rows of a series, in bounded memory: those that have not left its level.

    Attributes
    ----------
    away
        How many latest rows in a row have left the level.
    """

    def __init__(self) -> None:
        self._usual = RobustWindow()
        self._back = 0
        self.away = 0

    def __len__(self) -> int:
        return len(self._usual)

    def add(self, value: float, *, is_away: bool) -> None:
        """Add a finite row, which has left the level or not."""
        self.away = self.away + 1 if is_away else 0
        self._back = 0 if is_away else self._back + 1
        if not is_away:
            self._usual.add(value)

    @property
    def is_back(self) -> bool:
        """Whether the latest rows, enough to be sure, are at the usual level."""
        return self._back >= BACK_ROWS

    def level(self) -> float:
        """Return the median of the usual rows, the latest 128; there must be one."""
        return statistics.median(self._usual.latest(NOISE_ROWS))

    def latest_level(self) -> float:
        """Return the median of the ten latest usual rows, which follows a growth."""
        return self._usual.level()

    def spread(self) -> float:
        """Return the robust deviation of a usual row, with or without a trend."""
        return spread(self._usual.latest(NOISE_ROWS))
