"""RewardNotIncreasing: a reward never rises, or loses most of what it has gained."""

import math
import statistics
from typing import Final, NamedTuple

from builtin_rules.declared_rule import DeclaredRule
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
from builtin_rules.statistics.parameters import count, share
from builtin_rules.statistics.tensor_selection import TensorKey, any_met
from builtin_rules.statistics.training_kind import TrainingKind, training_kind
from builtin_rules.statistics.training_scalars import REWARDS, SCORE, finite_scalars
from smdebug.core.modes import ModeKeys
from smdebug.rules.extensions import Quantity

REWARD: Final = "reward"
MONITORED: Final = "r"  # in the files of Gym's Monitor, beside the length and the time
START_ROWS: Final = 5  # first rows whose median is the level at the start
NOISES: Final = 4.0  # of a row, that a gain exceeds
LIVE_SHARE: Final = 0.25  # of all rows, that a loss of the gain lasts
END_SHARE: Final = 0.125  # the same at the end of the data
SOLVED: Final = 0.8  # of the highest reward, if that is 1
MAX_REWARDS: Final = 64  # judged at the same time


class _Loss(NamedTuple):
    """A gain that was lost: the level, its limit, and for how many rows it has been below."""

    level: float
    limit: float
    rows: int
    share: float


class _Reward:
    """The rows of one reward, in bounded memory."""

    def __init__(self, lost_share: float) -> None:
        self._lost_share = lost_share
        self._first: list[float] = []
        self._levels = Levels(LEVEL_ROWS)
        self._window = RobustWindow()
        self._best = -math.inf
        self._highest = 0.0  # absolute value
        self._rows = 0
        self._loss: _Loss | None = None

    def add(self, value: float, patience: int) -> _Loss | None:
        """Add a finite row; return what was lost, if that lasts."""
        if len(self._first) < START_ROWS:
            self._first.append(value)
        self._rows += 1
        self._highest = max(self._highest, abs(value))
        self._levels.add(value)
        self._window.add(value)
        if len(self._window) >= LEVEL_ROWS:
            self._best = max(self._best, self._window.level())
        self._loss = self._lost()
        return self._lasting(max(patience, LIVE_SHARE * self._rows))

    @property
    def is_lost(self) -> bool:
        """Whether the level is below the limit, for however long."""
        return self._loss is not None

    def end(self) -> _Loss | None:
        """Return what was lost until the end of the data, if it lasts and does not come back."""
        loss = self._lasting(max(START_ROWS, END_SHARE * self._rows))
        return loss if loss and not rises(self._window.latest(loss.rows)) else None

    def _lasting(self, rows: float) -> _Loss | None:
        return self._loss if self._loss and self._loss.rows >= rows else None

    def _lost(self) -> _Loss | None:
        level, gain = self._window.level(), self._best - statistics.median(self._first)
        limit = self._best - self._lost_share * gain
        if gain <= 0 or level >= limit:
            return None  # as of most rows, whose noise is not needed
        margin = NOISES * max(self._window.noise(), noise(self._levels.blocks()))
        limit = min(limit, self._best - margin)
        if gain <= margin or level >= limit:
            return None
        rows = 1 + (self._loss.rows if self._loss else 0)
        return _Loss(level, limit, rows, (self._best - level) / gain)

    def has_risen(self) -> bool:
        """Return whether the reward has risen since the start."""
        return rises(self._levels.blocks())

    def stays(self) -> bool:
        """Return whether it has certainly not risen by the spread of a row, nor is at its best."""
        blocks = self._levels.blocks()
        if len(blocks) < LEVEL_ROWS // 2 or (self._highest <= 1 and mean(blocks) > SOLVED):
            return False
        rows = self._window.latest(NOISE_ROWS)
        least = max(spread(rows), 1e-6 * self._highest, 1e-300)
        return rises([-value for value in blocks], least)

    def ends(self) -> tuple[float, float]:
        """Return the mean of the last quarter of the rows, and of the first."""
        blocks = self._levels.blocks()
        width = max(1, len(blocks) // 4)
        return mean(blocks[-width:]), mean(blocks[:width])


class RewardNotIncreasing(DeclaredRule):
    """Met when a reward loses `lost_share` of its gain and stays there, or has never risen.

    It reports two states of a reward, judged by rows, its saved values, whatever their steps:

    - Lost: the level, the median of ten rows, has been below the best level less `lost_share` of
      the gain for `patience` rows, and for a quarter of all rows. At the end of the data an eighth
      of all rows is enough, if they do not rise. The gain is the best level above the median of the
      first five rows, and exceeds four times the noise of a row. It has recovered when the level
      is above that limit again.
    - Never rose: at the end of the data no reward has risen by the Mann-Kendall test, which is
      exact for few rows, and this one certainly not by the spread of a row. It takes five rows.
      Rewards of at most 1 that are above 0.8 on average have nothing to gain and are not reported.

    Rewards of evaluations are judged by themselves. A score, win rate or success rate is a reward
    in reinforcement trainings only, and `r` beside `l` and `t`, as Gym's Monitor writes them.
    Rewards of chosen and rejected answers, and statistics such as the highest reward of a batch,
    are not judged. NaN and infinity are left out.
    """

    READS = "the scalars named as the reward or return of episodes or answers."
    lost_share = share("Share of the gain that may be lost.", 0.5, "of the gain")
    patience = count("Rows for which it must be lost.", 50, "rows")
    QUANTITIES = (Quantity(REWARD, "level of the reward", worse="below"),)

    required_inputs = (REWARDS,)

    def _prepare(self) -> None:
        self._rewards: dict[tuple[ModeKeys, TensorKey], _Reward] = {}
        self._lost: set[TensorKey] = set()  # those reported, until they are back

    def invoke_at_step(self, step: int) -> bool:
        """Judge the rewards of global step `step`."""
        trial = self.base_trial
        answers: list[bool | None] = []
        for mode in (ModeKeys.TRAIN, ModeKeys.EVAL):
            for key, value in finite_scalars(trial, step, REWARDS, mode).items():
                if not self._is_reward(key[0]):
                    continue
                reward = self._rewards.get((mode, key))
                if reward is None and len(self._rewards) < MAX_REWARDS:
                    reward = self._rewards[mode, key] = _Reward(self.lost_share)
                if reward is not None:
                    answers.append(self._report(step, mode, key, reward.add(value, self.patience)))
        return any_met(self, answers, "no reward at this step")

    def invoke_at_end(self, step: int) -> bool:
        """Judge what the end of the data tells of each reward."""
        has_risen = any(reward.has_risen() for reward in self._rewards.values())
        answers = [False]
        for (mode, key), reward in self._rewards.items():
            loss = reward.end()
            if loss:
                answers.append(self._report(step, mode, key, loss))
            elif not has_risen and reward.stays():
                last, first = reward.ends()
                note = "Never rose."
                answers.append(self.record(key, step, REWARD, last, first, met=True, note=note))
        return any(answers)

    def _is_reward(self, name: str) -> bool:
        if name == MONITORED:
            return {"l", "t"}.issubset(self.base_trial.tensor_names())
        is_score = SCORE.search(name) is not None
        return not is_score or training_kind(self.base_trial) is TrainingKind.REINFORCEMENT

    def _report(self, step: int, mode: ModeKeys, key: TensorKey, loss: _Loss | None) -> bool:
        if loss is None:
            if key in self._lost and not self._rewards[mode, key].is_lost:
                self._lost.remove(key)
                self.found(step, *key, recovers=True)
            return False
        self._lost.add(key)
        note = f"Lost {100 * loss.share:.0f} percent of its gain, for {loss.rows} rows."
        return self.record(key, step, REWARD, loss.level, loss.limit, met=True, note=note)
