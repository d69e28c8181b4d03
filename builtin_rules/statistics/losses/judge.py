"""LossJudge: names the state that a loss is in, and the row where it began."""

import enum
import math
import statistics
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from builtin_rules.statistics.noise_levels import (
    LEVEL_ROWS,
    NOISE_ROWS,
    Levels,
    RobustWindow,
    falls,
    mean,
    rises,
)

# Why these, and how often they are wrong: docs/decisions/0047-one-judge-of-losses.md.
NEGLIGIBLE_FALL: Final = 0.1  # percent of the level over `LEVEL_ROWS`
TOLERATED_SHARE: Final = 0.05  # of the level, by which a loss may rise
START_ROWS: Final = 5  # first finite rows whose median is the level at the start
LEARNING_ROWS: Final = 100  # that tell whether it falls; language models begin after some 70
MIN_PLATEAU: Final = 200
SPIKE_ROWS: Final = 20  # before a spike can be told
SPIKE_NOISES: Final = 10.0
SPIKE_SHARE: Final = 0.2  # of the level
RECOVERY_ROWS: Final = 50  # rows after which a spike has not recovered
BACK_ROWS: Final = 3  # rows whose median ends a spike if it is near the level of before
BLOWN_UP: Final = 10.0  # times the level at the start
BLOWN_UP_ROWS: Final = 3
BLOWN_UP_END: Final = 3.0  # the same at the end of the data, if the loss has not come back since
ZERO_ROWS: Final = 3
NON_FINITE_ROWS: Final = 10
NON_FINITE_END: Final = 3  # at the end of the data
NEAR_ZERO: Final = 0.05  # of the level at the start; a loss that came so far down may reach 0
LEARNT_SHARE: Final = 0.01  # of the level at the start; nothing is left to learn but single samples
LOST_SHARE: Final = 0.5  # share of the fall
REGAINED_SHARE: Final = 0.1  # share of the fall that a slow rise takes back
NOISES: Final = 4.0
LEARNED_PERCENT: Final = 4.0  # of the level at the start
EQUAL_PERCENT: Final = 2.5
NEGLIGIBLE_PERCENT: Final = 1.0
PLATEAU_PERCENT: Final = 1.0
STUCK_ROWS: Final = 5
UNCONVERGED_SHARE: Final = 0.8  # of the level at the start
CHANCE_NOISES: Final = 1.5  # noises by which the first row may be above the others by chance
ONE_SIDED: Final = 1.64  # standard errors that chance exceeds in one of twenty cases
MIXED_SHARE: Final = 0.1  # share of rows below zero, and above: such a loss is a difference
TINY_VALUE: Final = 1e-300


class LossState(enum.StrEnum):
    """A state of a loss."""

    TOO_FEW = "too few rows"
    FALLING = "falling"
    CONVERGED = "converged"
    PLATEAU = "plateau"
    NEVER_LEARNED = "never learned"
    SPIKE = "spike"
    SPIKE_RECOVERED = "spike, recovered"
    SPIKE_LASTING = "spike, lasting"
    DIVERGED = "diverged"
    DEAD_AT_ZERO = "dead at zero"
    ABOUT_ZERO = "about zero"
    NON_FINITE_PASSING = "not finite, passing"
    NON_FINITE_LASTING = "not finite, lasting"


class StateVerdict(NamedTuple):
    """The state of a loss at its latest row.

    Attributes
    ----------
    row
        The row where the state began, counted from 0.
    measured, limit
        What was measured, and what it was compared with.
    note
        A sentence for users; empty if there is nothing to say.
    excess
        In a spike, how many times the tolerated distance the row is above the level from before.
    back
        The level to which a spike has to come back; infinite outside of one.
    """

    state: LossState
    row: int
    measured: float = math.nan
    limit: float = math.nan
    note: str = ""
    excess: float = 0.0
    back: float = math.inf


class _OpenSpike(NamedTuple):
    """A rise above the limit: where it began, its limits, and the level and noise before."""

    row: int
    level: float
    limit: float
    recovered: float  # the limit of a row that is back
    noise: float

    def verdict(
        self, state: LossState, value: float, measured: float, note: str = ""
    ) -> StateVerdict:
        """Return the verdict on a spike at a row with a value."""
        tolerated = self.limit - self.level
        excess = (value - self.level) / tolerated if tolerated > 0 else math.inf
        return StateVerdict(state, self.row, measured, self.limit, note, excess, self.recovered)


class LossJudge:
    """Takes the rows of one loss, one at a time, in bounded memory.

    It counts rows, never steps: how steps are numbered changes no verdict.
    """

    def __init__(self) -> None:
        self._rows = 0
        self._finite = 0
        self._non_finite = 0  # in a row
        self._zeros = 0  # in a row
        self._first: list[float] = []  # at most START_ROWS
        self._usual_start = math.nan  # their median
        self._latest: deque[tuple[int, float]] = deque(maxlen=2 * LEVEL_ROWS)
        self._window = RobustWindow()
        self._plain = RobustWindow()  # spikes replaced by the level
        self._levels = Levels(LEVEL_ROWS)
        self._best: tuple[float, int] | None = None  # lowest level, and its row
        self._spike: _OpenSpike | None = None
        self._peak = 0.0  # highest row of the spike
        self._diverged: int | None = None
        self._stuck = 0  # rows in a row that look stuck
        self._below_zero = 0  # rows

    @property
    def rows(self) -> int:
        """The number of rows so far."""
        return self._rows

    @property
    def start(self) -> float:
        """The level at the start: the median of the first rows, or the first one if higher."""
        return max(self._first[0], self._usual_start)

    def _learning_start(self) -> float:
        """Return the level at the start, without a first row that may be high by chance."""
        usual = self._usual_start
        return usual if self._first[0] < usual + CHANCE_NOISES * self._plain.noise() else self.start

    def level(self) -> float:
        """Return the median of the latest rows."""
        return self._window.level()

    def has_fallen(self) -> bool:
        """Return whether the loss has fallen by 4 %, or certainly by 1 %, from start to end."""
        total = self.total_fall()
        certain = total >= NEGLIGIBLE_PERCENT and falls(self._levels.blocks())
        return certain or total >= LEARNED_PERCENT

    def total_fall(self) -> float:
        """Return by how many percent the loss has fallen from the start to its last quarter.

        It is 0 without a finite row.
        """
        if not self._first:
            return 0.0
        blocks, start = self._levels.blocks(), self._learning_start()
        last = mean(blocks[-max(1, len(blocks) // 4) :]) if blocks else start
        return 100.0 * (start - last) / max(abs(start), TINY_VALUE)

    def still_falls(self) -> bool:
        """Return whether the loss falls by 1 % from start to end, and in the second half too."""
        blocks = self._levels.blocks()
        return self.total_fall() >= NEGLIGIBLE_PERCENT and falls(blocks[len(blocks) // 2 :])

    def is_outlier(self, value: float) -> bool:
        """Return whether a spike to `value` is worth counting.

        At a hundredth of the loss at the start, a single sample can lift a batch far above the
        level: there, a spike must cost half of the loss at the start.
        """
        return (
            self._plain.level() > LEARNT_SHARE * abs(self.start) or value > LOST_SHARE * self.start
        )

    def end(self) -> StateVerdict | None:
        """Return the verdict that only the end of the data allows, or None."""
        if NON_FINITE_END <= self._non_finite < NON_FINITE_ROWS:
            since = self._rows - self._non_finite
            note = f"Not finite for the last {self._non_finite} rows."
            return StateVerdict(LossState.NON_FINITE_LASTING, since, math.nan, math.nan, note)
        if not self._finite or self._non_finite or self._zeros or self._is_difference():
            return None
        rows = self._latest[-1][0]
        best, best_row = self._best or (self._window.level(), rows)
        risen = len(self._latest) == 2 * LEVEL_ROWS
        verdict = self._risen(best, best_row, LEVEL_ROWS) if risen else None
        return verdict or self._of_blow_up() or self._of_learning()

    def _of_blow_up(self) -> StateVerdict | None:
        """Return the verdict on a loss that blew up and is not back at the end, or None."""
        rows, first = self._window.latest(NOISE_ROWS), self._first[0]
        count = max(BLOWN_UP_ROWS, len(rows) // 8)  # more rows have more spikes
        least, best = min(rows[-count:]), min(rows)
        if self._finite < BLOWN_UP_ROWS or min(first, best) <= 0:
            return None
        peak, above = max(self._first), (1 + TOLERATED_SHARE) * first
        since = self._first.index(peak)
        blocks = self._levels.blocks()[since + 1 :]
        stays = bool(blocks) and min(blocks) > above and not falls(blocks)
        if peak > BLOWN_UP_END * first and stays:
            note = f"It rose to {peak / first:.3g} times the first loss and has not come back."
            return StateVerdict(LossState.DIVERGED, since, least, above, note)
        limit = max(BLOWN_UP_END * best, best + LOST_SHARE * (first - best))
        if least > limit and not falls(rows[rows.index(best) :]):
            note = f"It rose to {least / best:.3g} times the lowest loss."
            since = self._latest[-min(count, len(self._latest))][0]
            return StateVerdict(LossState.DIVERGED, since, least, limit, note)
        return None

    def _of_learning(self) -> StateVerdict | None:
        """Return the verdict on a loss that has not fallen from start to end, or None."""
        blocks, start, total = self._levels.blocks(), self._learning_start(), self.total_fall()
        learned = abs(start) * LEARNED_PERCENT / 100.0
        if self.has_fallen() or total <= -LEARNED_PERCENT or not rises(blocks, learned):
            return None
        return _never_learned(start * (1 - math.copysign(total / 100.0, start)), start, total)

    def add(self, value: float, *, warming: bool = False) -> StateVerdict:
        """Add the next row and return the state of the loss.

        Parameters
        ----------
        warming
            Whether the learning rate still rises: such rows tell nothing about a lack of decrease.
        """
        row = self._rows
        self._rows += 1
        if not math.isfinite(value):
            return self._of_non_finite(row, value)
        self._non_finite = 0
        if self._is_dead(value):
            return self._of_zero(row)
        self._zeros = 0
        self._finite += 1
        self._below_zero += value < 0
        if len(self._first) < START_ROWS:
            self._first.append(value)
            self._usual_start = statistics.median(self._first)
        self._latest.append((row, value))
        self._window.add(value)
        spike = self._of_spike(row, value)
        if not warming:
            usual = value if self._spike is None else self._plain.level()
            self._levels.add(usual)
        if self._is_difference():
            return spike or StateVerdict(LossState.ABOUT_ZERO, row)
        diverged = self._of_divergence(row)
        if diverged is not None:
            return diverged
        return spike or self._of_level(row)

    def _is_difference(self) -> bool:
        return MIXED_SHARE <= self._below_zero / self._finite <= 1 - MIXED_SHARE

    def _of_non_finite(self, row: int, value: float) -> StateVerdict:
        self._non_finite += 1
        lasting = self._non_finite >= NON_FINITE_ROWS
        state = LossState.NON_FINITE_LASTING if lasting else LossState.NON_FINITE_PASSING
        since = row + 1 - self._non_finite
        return StateVerdict(state, since, value, math.nan)

    def _is_dead(self, value: float) -> bool:
        """Return whether a loss is exactly 0 without having come near it."""
        if value != 0.0:
            return False
        return not self._first or self._window.level() > NEAR_ZERO * abs(self.start)

    def _of_zero(self, row: int) -> StateVerdict:
        self._zeros += 1
        if self._zeros < ZERO_ROWS:
            return StateVerdict(LossState.TOO_FEW, row)
        before = self._window.level() if self._first else math.nan
        note = f"Exactly 0 for {self._zeros} rows."
        return StateVerdict(LossState.DEAD_AT_ZERO, row + 1 - self._zeros, 0.0, before, note)

    def _of_spike(self, row: int, value: float) -> StateVerdict | None:
        """Return the verdict on a spike, or None outside of one."""
        spike = self._spike
        if spike is None:
            if len(self._plain) >= SPIKE_ROWS:
                level, noise = self._plain.level(), self._plain.noise()
                limit = level + max(SPIKE_NOISES * noise, SPIKE_SHARE * abs(level))
                if value > limit:
                    self._peak = value
                    recovered = level + max(NOISES * noise, SPIKE_SHARE * abs(level))
                    spike = self._spike = _OpenSpike(row, level, limit, recovered, noise)
                    return spike.verdict(LossState.SPIKE, value, value)
            self._plain.add(value)
            return None
        self._peak = max(self._peak, value)
        back = statistics.median(self._window.latest(BACK_ROWS)) <= spike.recovered
        if back and row - spike.row >= BACK_ROWS:
            self._end_spike(BACK_ROWS)
            length = row + 1 - BACK_ROWS - spike.row
            note = f"It began {row - spike.row} rows ago and was back after {length}."
            return spike.verdict(LossState.SPIKE_RECOVERED, value, self._peak, note)
        if row - spike.row >= RECOVERY_ROWS:
            self._end_spike(SPIKE_ROWS)
            note = f"It began {row - spike.row} rows ago and has not recovered."
            return spike.verdict(LossState.SPIKE_LASTING, value, value, note)
        return spike.verdict(LossState.SPIKE, value, value)

    def _end_spike(self, kept: int) -> None:
        """Go on from the latest `kept` rows."""
        self._spike = None
        for value in self._window.latest(kept):
            self._plain.add(value)

    def _of_divergence(self, row: int) -> StateVerdict | None:
        """Return the verdict on a loss that rose and stays up, or None."""
        level = self._window.level()
        early = self._blown_up()
        if early is not None:
            least = min(value for _, value in list(self._latest)[-BLOWN_UP_ROWS:])
            limit = BLOWN_UP * self._first[0]
            note = f"It rose to more than {BLOWN_UP:.0f} times the first loss."
            return StateVerdict(LossState.DIVERGED, early, least, limit, note)
        if len(self._latest) < 2 * LEVEL_ROWS:
            return None
        best, best_row = self._best or (level, row)
        verdict = self._risen(best, best_row, 2 * LEVEL_ROWS)
        if self._best is None or level < best:
            self._best = (level, row)
        return verdict

    def _risen(self, best: float, best_row: int, rows: int) -> StateVerdict | None:
        """Return the verdict on a loss whose latest `rows` are far above the best, or None."""
        values = sorted(self._window.latest(rows))
        lowest = values[len(values) // 10]  # a tenth of the rows may be lower
        level, before = self._window.level(), self._window.earlier_level()
        if before is None or level < before - TOLERATED_SHARE * abs(before):
            return None  # it falls again
        usual = self._usual_start  # the first row may be far above the others
        margin = self._margin(best)
        above_start = self.start + margin
        lost = best + max(LOST_SHARE * (usual - best), margin)
        if not lowest > min(above_start, lost):
            return None
        latest = list(self._latest)[-rows:]
        if lowest > above_start:
            note = "Above the loss at the start, and not falling."
            return StateVerdict(
                LossState.DIVERGED, _first_above(latest, above_start), level, above_start, note
            )
        if usual - best > margin and lowest > lost:
            note = f"It has lost {100 * (level - best) / (usual - best):.0f} percent of its fall."
            return StateVerdict(
                LossState.DIVERGED, max(best_row, _first_above(latest, lost)), level, lost, note
            )
        return None

    def _margin(self, best: float) -> float:
        """Return how far above the best level a loss may be."""
        noise = self._plain.noise() if self._spike is None else self._spike.noise
        usual = self._usual_start
        return TOLERATED_SHARE * max(abs(usual), abs(best)) + NOISES * noise

    def is_back(self) -> bool:
        """Return whether the level is the best one, but for what is tolerated."""
        if self._best is None or self._non_finite:
            return False
        best, _ = self._best
        return self._window.level() <= best + self._margin(best)

    def _blown_up(self) -> int | None:
        """Return the row where the latest rows began to exceed many times the start, or None."""
        if self._diverged is None:
            start = self.start
            latest = list(self._latest)[-BLOWN_UP_ROWS:]
            young = self._finite <= 2 * LEVEL_ROWS
            if not (young and len(latest) == BLOWN_UP_ROWS and start > 0):
                return None
            first = self._first[0]
            values = [value for _, value in latest]
            back = values == sorted(values, reverse=True)  # on its way down
            if min(values) > BLOWN_UP * first > 0 and not back:
                self._diverged = latest[0][0]
        return self._diverged

    def _of_level(self, row: int) -> StateVerdict:
        """Return whether the loss falls, has converged, or never began to fall."""
        quarters = self._levels.quarters()
        if quarters is None:
            return StateVerdict(LossState.TOO_FEW, row)
        first, second, third, last = quarters.means
        start, error = self._learning_start(), quarters.error
        percent = max(abs(start), TINY_VALUE) / 100.0
        fall = (second - last) / percent
        doubt = ONE_SIDED * error / percent
        equal = fall + doubt < EQUAL_PERCENT
        flat = fall < doubt and equal
        owed = NEGLIGIBLE_FALL * (self._finite / 2) / LEVEL_ROWS
        flat = flat or fall + doubt < min(NEGLIGIBLE_PERCENT, owed)
        total = (start - last) / percent
        stuck = flat and abs(total) < LEARNED_PERCENT
        stuck = stuck and (first - last) / percent < max(doubt, NEGLIGIBLE_PERCENT)
        self._stuck = self._stuck + 1 if stuck else 0
        if self._stuck > STUCK_ROWS and self._finite >= LEARNING_ROWS:
            return _never_learned(last, start, total)
        lowest = min(quarters.means)
        margin = TOLERATED_SHARE * abs(lowest) + NOISES * error
        rises = min(third, last) > lowest + margin and last - lowest > REGAINED_SHARE * (
            start - lowest
        )
        if rises and self._finite >= LEARNING_ROWS:
            note = f"It rose by {100 * (last - lowest) / max(abs(lowest), TINY_VALUE):.2g} percent."
            return StateVerdict(LossState.PLATEAU, row - self._finite // 2, last, lowest, note)
        falls = max(fall, (third - last) / percent) > doubt
        if falls or not flat:
            return StateVerdict(LossState.FALLING, 0, last, second)
        tight = abs(third - last) + 2 * error < PLATEAU_PERCENT / 100.0 * abs(last)
        tight = tight and abs(second - last) + 2 * error < PLATEAU_PERCENT / 100.0 * abs(last)
        since = row - 3 * self._finite // 4
        if tight and self._finite >= MIN_PLATEAU and last > UNCONVERGED_SHARE * start:
            note = f"Level for three quarters of {self._finite} rows."
            return StateVerdict(LossState.PLATEAU, since, last, second, note)
        return StateVerdict(LossState.CONVERGED, since, last, second)


def _never_learned(last: float, start: float, total: float) -> StateVerdict:
    """Return the verdict on a loss that fell by `total` percent from the start to its end."""
    note = f"It {'fell' if total >= 0 else 'rose'} by {abs(total):.2g} percent since the start."
    return StateVerdict(LossState.NEVER_LEARNED, 0, last, start, note)


def _first_above(rows: Sequence[tuple[int, float]], limit: float) -> int:
    """Return the first row that is above a limit."""
    return next(row for row, value in rows if value > limit)
