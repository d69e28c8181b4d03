"""RewardNotIncreasing: a reward never rises, or loses most of what it has gained."""

from dataclasses import replace
from typing import Final

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.parameters import count, share
from builtin_rules.statistics.series.rising_series import LostGain, RisingSeries
from builtin_rules.statistics.tensor_selection import TensorKey, any_met
from builtin_rules.statistics.training_kind import TrainingKind, is_resumed, training_kind
from builtin_rules.statistics.training_scalars import REWARDS, SCORE, finite_scalars
from smdebug.core.modes import ModeKeys
from smdebug.rules.extensions import Quantity

REWARD: Final = "reward"
MONITORED: Final = "r"  # in the files of Gym's Monitor, beside the length and the time
SOLVED: Final = 0.8  # of the highest reward, if that is 1
JUDGED: Final = replace(
    REWARDS, patterns=(*REWARDS.patterns, r"(?i)(^|[/_])rewards?[-/_](margins?|accurac(y|ies))$")
)
MAX_REWARDS: Final = 64  # judged at the same time


class RewardNotIncreasing(DeclaredRule):
    """Met when a reward loses `lost_share` of its gain and stays there, or has never risen.

    It reports two states of a reward, judged by rows, its saved values, whatever their steps:

    - Lost: the level, the median of ten rows, has been below the best level less `lost_share` of
      the gain for `patience` rows, and for a quarter of all rows. At the end of the data an eighth
      of all rows is enough, if they do not rise. The gain is the best level above the median of the
      first five rows, and exceeds four times the noise of a row. It has recovered when the level
      is above that limit again.
    - Never rose: at the end of the data no reward has risen by the Mann-Kendall test, which is
      exact for few rows, or gained anything that it has kept, and this one has certainly not risen
      by the spread of a row. It takes five rows.
      Rewards of at most 1 that are above 0.8 on average have nothing to gain and are not reported,
      nor is a run that was resumed: it has learned before.

    Rewards of evaluations are judged by themselves. A score, win rate or success rate is a reward
    in reinforcement trainings only, and `r` beside `l` and `t`, as Gym's Monitor writes them.
    In preference trainings, the margins and accuracies of the rewards are judged, and not those of
    chosen and rejected answers. Statistics such as the highest reward of a batch are not judged.
    NaN and infinity are left out.
    """

    READS = "the scalars named as the reward or return of episodes or answers, or its margin."
    lost_share = share("Share of the gain that may be lost.", 0.5, "of the gain")
    patience = count("Rows for which it must be lost.", 50, "rows")
    QUANTITIES = (Quantity(REWARD, "level of the reward", worse="below"),)

    required_inputs = (JUDGED,)

    def _prepare(self) -> None:
        self._rewards: dict[tuple[ModeKeys, TensorKey], RisingSeries] = {}
        self._lost: set[TensorKey] = set()  # those reported, until they are back

    def invoke_at_step(self, step: int) -> bool:
        """Judge the rewards of global step `step`."""
        trial = self.base_trial
        answers: list[bool | None] = []
        for mode in (ModeKeys.TRAIN, ModeKeys.EVAL):
            for key, value in finite_scalars(trial, step, JUDGED, mode).items():
                if not self._is_reward(key[0]):
                    continue
                reward = self._rewards.get((mode, key))
                if reward is None and len(self._rewards) < MAX_REWARDS:
                    reward = self._rewards[mode, key] = RisingSeries(self.lost_share)
                if reward is not None:
                    answers.append(self._report(step, mode, key, reward.add(value, self.patience)))
        return any_met(self, answers, "no reward at this step")

    def invoke_at_end(self, step: int) -> bool:
        """Judge what the end of the data tells of each reward."""
        may_rise = is_resumed(self.base_trial, step) or any(
            reward.has_gained() for reward in self._rewards.values()
        )
        answers = [False]
        for (mode, key), reward in self._rewards.items():
            loss = reward.end()
            if loss:
                answers.append(self._report(step, mode, key, loss))
            elif not may_rise and reward.stays() and not _is_solved(reward):
                last, first = reward.ends()
                note = "Never rose."
                answers.append(self.record(key, step, REWARD, last, first, met=True, note=note))
        return any(answers)

    def _is_reward(self, name: str) -> bool:
        if name == MONITORED:
            return {"l", "t"}.issubset(self.base_trial.tensor_names())
        is_score = SCORE.search(name) is not None
        return not is_score or training_kind(self.base_trial) is TrainingKind.REINFORCEMENT

    def _report(self, step: int, mode: ModeKeys, key: TensorKey, loss: LostGain | None) -> bool:
        if loss is None:
            if key in self._lost and not self._rewards[mode, key].is_lost:
                self._lost.remove(key)
                self.found(step, *key, recovers=True)
            return False
        self._lost.add(key)
        note = f"Lost {100 * loss.share:.0f} percent of its gain, for {loss.rows} rows."
        return self.record(key, step, REWARD, loss.level, loss.limit, met=True, note=note)


def _is_solved(reward: RisingSeries) -> bool:
    return reward.highest <= 1 and reward.mean() > SOLVED
