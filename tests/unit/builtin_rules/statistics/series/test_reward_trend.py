"""RewardTrend: rewards that rise, that are lost, and whether there is a policy."""

from collections.abc import Sequence

import numpy as np
import pytest
from judging_rows import rows_of
from list_source import ListSource, source_index, source_trial

from builtin_rules.statistics.series.reward_trend import RewardTrend
from rule_core.trials.trial import Trial

AT = np.arange(100)


def trial_of(**columns: Sequence[float]) -> Trial:
    index = source_index(ListSource(*rows_of(**columns)))
    index.refresh()
    index.finish()
    return source_trial(index)


@pytest.mark.parametrize(
    ("reward", "rises"),
    [
        (AT / 100, True),
        (np.ones(100), False),
        (np.where(AT < 70, AT / 70, 0.3), False),
        (np.where(AT < 70, AT / 70, 0.8), True),
        (np.where(AT < 25, AT / 25, 1.125 - AT / 200), True),
    ],
)
def test_rewards(reward: Sequence[float], *, rises: bool) -> None:
    trial = trial_of(score=reward)
    trend = RewardTrend()
    assert not trend.is_of_policy(trial)
    for step in trial.steps():
        trend.add(trial, step)
    assert trend.rises() == rises
    assert trend.is_of_policy(trial)


def test_names_tell_a_policy() -> None:
    assert RewardTrend().is_of_policy(trial_of(approx_kl=AT))
    assert not RewardTrend().is_of_policy(trial_of(kl=AT))
