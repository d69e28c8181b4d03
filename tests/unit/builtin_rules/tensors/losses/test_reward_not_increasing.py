"""RewardNotIncreasing: its cases in reward_not_increasing.rules.yaml, and rewards with noise."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from judging_rows import accused, first_of, judge_rows, rows_of
from list_source import Row

from builtin_rules import RewardNotIncreasing
from rule_core.model.segments import global_step
from rule_runner.commands.rule_tests import run_rule_tests
from rule_runner.config.defaults import Isolation
from smdebug.core.modes import ModeKeys
from smdebug.exceptions import SMDebugValueError

AT = np.arange(400)
LEARNS = np.minimum(AT, 200) / 2.0
LOSES = np.where(AT < 200, LEARNS, 20.0)


def test_the_cases_pass() -> None:
    cases = str(Path(__file__).with_name("reward_not_increasing.rules.yaml"))
    assert run_rule_tests([cases], None, Isolation.NONE, update=False) == 0


@pytest.mark.parametrize(
    ("values", "first"),
    [
        pytest.param(LEARNS, None, id="learns"),
        # The level is below the limit from row 205 on: at row 273 for 69 of 274 rows.
        pytest.param(LOSES, 273, id="loses-four-fifths"),
        pytest.param(np.where(AT < 200, LEARNS, 60.0), None, id="loses-two-fifths"),
        pytest.param(np.where((AT < 200) | (AT > 240), LEARNS, 20.0), None, id="comes-back"),
        pytest.param(LOSES[:240], 239, id="lost-at-the-end"),
        pytest.param(LOSES[:215], None, id="lost-for-too-few-rows"),
        pytest.param(-LEARNS, 399, id="falls"),
        # As blocks of rows, most of which are level: no test of a trend sees the rise.
        pytest.param(np.where(AT < 8, -50.0, 90.0 + 0.1 * (-1.0) ** AT), None, id="rises-early"),
        pytest.param(np.r_[np.zeros(300), LEARNS[:100]], None, id="rises-late"),
    ],
)
def test_verdicts(values: Sequence[float], first: int | None) -> None:
    judged = judge_rows(RewardNotIncreasing, rows_of(**{"rollout/ep_rew_mean": values}))
    assert first_of(judged) == first


def test_a_resumed_run_may_have_learned_before_and_can_lose_its_gain() -> None:
    def resumed(values: Sequence[float]) -> list[Row]:
        return [(global_step(1, 100 + row), {"reward": value}) for row, value in enumerate(values)]

    assert first_of(judge_rows(RewardNotIncreasing, resumed(-LEARNS))) is None
    assert first_of(judge_rows(RewardNotIncreasing, resumed(LOSES))) == global_step(1, 373)


def test_a_run_that_begins_anew_in_one_log_is_judged() -> None:
    anew = [(global_step(1, row), {"reward": value}) for row, value in enumerate(-LEARNS)]
    assert first_of(judge_rows(RewardNotIncreasing, anew)) == global_step(1, len(LEARNS) - 1)


def test_the_note_counts_the_rows_without_the_gain() -> None:
    live = judge_rows(RewardNotIncreasing, rows_of(reward=LOSES)).findings[0]
    assert live.note == "Lost 80 percent of its gain, for 69 rows."
    ended = judge_rows(RewardNotIncreasing, rows_of(reward=LOSES[:240])).findings[0]
    assert ended.note == "Lost 80 percent of its gain, for 35 rows."


def test_parameters() -> None:
    rows = rows_of(reward=np.where(AT < 200, LEARNS, 60.0))
    assert first_of(judge_rows(RewardNotIncreasing, rows, lost_share=0.3)) is not None
    rows = rows_of(reward=LOSES[:40].tolist() + [0.0] * 30)
    later = first_of(judge_rows(RewardNotIncreasing, rows, patience=25))
    sooner = first_of(judge_rows(RewardNotIncreasing, rows, patience=20))
    assert sooner is not None
    assert later == sooner + 5
    with pytest.raises(SMDebugValueError, match=r"^Parameter 'patience' must be"):
        RewardNotIncreasing(None, patience="0")


def test_one_reward_that_rises_excuses_the_others() -> None:
    rows = rows_of(**{"rewards": np.ones(400), "rollout/ep_rew_mean": LEARNS})
    assert first_of(judge_rows(RewardNotIncreasing, rows)) is None


def test_evaluations_are_judged_by_themselves() -> None:
    rows = [(step, {"reward": 5.0 if step % 2 else LEARNS[step]}) for step in range(len(AT))]
    modes = {step: ModeKeys.EVAL if step % 2 else ModeKeys.TRAIN for step in range(len(AT))}
    assert first_of(judge_rows(RewardNotIncreasing, rows, modes=modes)) is None


def test_a_score_is_a_reward_in_reinforcement_trainings_only() -> None:
    level = np.ones(50)
    assert first_of(judge_rows(RewardNotIncreasing, rows_of(score=2 * level))) is None
    rows = rows_of(score=2 * level, policy_loss=level)
    assert first_of(judge_rows(RewardNotIncreasing, rows)) == 49


def test_the_reward_of_a_monitor_stands_beside_length_and_time() -> None:
    level = np.ones(50)
    assert first_of(judge_rows(RewardNotIncreasing, rows_of(r=-level, l=level, t=AT[:50]))) == 49
    assert first_of(judge_rows(RewardNotIncreasing, rows_of(r=-level, p=level))) is None


@pytest.mark.parametrize(("rows", "gain", "most"), [(100, 2.0, 2), (20, 1.0, 10)])
def test_noise_hides_few_policies_that_learn(rows: int, gain: float, most: int) -> None:
    """Of 100 policies that gain so many deviations of a row few are accused."""

    def run(seed: int) -> list[Row]:
        noise = np.random.default_rng(seed).normal(size=rows)
        return rows_of(reward=noise + np.linspace(0.0, gain, rows))

    assert len(accused(RewardNotIncreasing, run, 100)) <= most


def test_a_gain_within_the_noise_is_not_lost() -> None:
    level = np.where((AT >= 100) & (AT < 200), 1.0, 0.0)
    noisy = rows_of(reward=level + np.random.default_rng(0).normal(size=len(AT)))
    assert "Lost" not in str(judge_rows(RewardNotIncreasing, noisy).findings)
    clear = judge_rows(RewardNotIncreasing, rows_of(reward=level)).findings
    assert "Lost" in str(clear)


def test_most_policies_that_never_learn_are_named() -> None:
    def run(seed: int) -> list[Row]:
        return rows_of(reward=np.random.default_rng(seed).normal(size=100))

    assert len(accused(RewardNotIncreasing, run, 100)) >= 65


@pytest.mark.parametrize(
    ("name", "is_reward"),
    [
        ("rollout/ep_rew_mean", True),
        ("eval/mean_reward", True),
        ("env_runners/episode_return_mean", True),
        ("Environment/Cumulative Reward", True),
        ("EpRewMean", True),
        ("critic/score/mean", True),
        ("mean 100 episode reward", True),
        ("average-episode-return", True),
        ("val_win_rate", True),
        ("rewards/chosen", False),
        ("rewards/margins", True),
        ("eval_rewards/accuracies", True),
        ("critic/rewards/max", False),
        ("reward_std", False),
        ("frac_reward_zero_std", False),
        ("timing_s/reward", False),
        ("reward_scale", False),
        ("ep" * 50 + "1" * 50 + "x", False),
    ],
)
def test_names_of_rewards(name: str, *, is_reward: bool) -> None:
    judged = judge_rows(RewardNotIncreasing, rows_of(**{name: np.ones(9), "policy_loss": AT[:9]}))
    assert (not judged.skipped) == is_reward
