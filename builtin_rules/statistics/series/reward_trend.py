"""RewardTrend: whether the rewards of a run show that its policy learns."""

from typing import Any, Final

from builtin_rules.statistics.series.rising_series import RisingSeries
from builtin_rules.statistics.training_kind import TrainingKind, training_kind
from builtin_rules.statistics.training_scalars import REWARDS, finite_scalars

LOST_SHARE: Final = 0.5


class RewardTrend:
    """The rewards of training so far."""

    def __init__(self) -> None:
        self._rewards: dict[tuple[str, str], RisingSeries] = {}  # by name and worker

    def add(self, trial: Any, step: int) -> None:
        """Add the rewards of a global step."""
        for key, reward in finite_scalars(trial, step, REWARDS).items():
            self._rewards.setdefault(key, RisingSeries(LOST_SHARE)).add(reward, 1)

    def rises(self) -> bool:
        """Return whether a reward has risen and not lost half of its gain."""
        return any(reward.has_gained() for reward in self._rewards.values())

    def is_of_policy(self, trial: Any) -> bool:
        """Return whether a policy is trained: there are rewards, or names that tell it."""
        return bool(self._rewards) or training_kind(trial) is TrainingKind.REINFORCEMENT
