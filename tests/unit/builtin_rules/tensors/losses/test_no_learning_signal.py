"""NoLearningSignal: its cases in no_learning_signal.rules.yaml, and rewards that rise."""

from pathlib import Path

import numpy as np
import pytest
from judging_rows import first_of, judge_rows, rows_of

from builtin_rules import NoLearningSignal
from rule_runner.commands.rule_tests import run_rule_tests
from rule_runner.config.defaults import Isolation

AT = np.arange(200)
LEVEL = np.ones(200)


def test_the_cases_pass() -> None:
    cases = str(Path(__file__).with_name("no_learning_signal.rules.yaml"))
    assert run_rule_tests([cases], None, Isolation.NONE, update=False) == 0


@pytest.mark.parametrize(
    ("reward", "first"),
    [
        pytest.param(LEVEL, 49, id="level"),
        pytest.param(AT / 200, None, id="rises"),
        pytest.param(np.where(AT < 100, AT / 100, 0.0), 104, id="rises-and-is-lost"),
    ],
)
@pytest.mark.parametrize(
    ("name", "bad"),
    [("frac_reward_zero_std", 1.0), ("reward_std", 0.0), ("completions/clipped_ratio", 1.0)],
)
def test_a_reward_that_rises_excuses_all(
    name: str, bad: float, reward: np.ndarray, first: int | None
) -> None:
    judged = judge_rows(NoLearningSignal, rows_of(**{name: bad * LEVEL, "reward": reward}))
    assert first_of(judged) == first


def test_the_value_function_is_judged_at_the_end_alone() -> None:
    late = np.where(AT < 140, 0.0, 0.7)
    assert not judge_rows(NoLearningSignal, rows_of(explained_variance=late)).met
    lost = np.where(AT < 140, 0.7, 0.0)
    assert judge_rows(NoLearningSignal, rows_of(explained_variance=lost)).met == [199]


def test_it_recovers_when_the_median_is_within_the_limit() -> None:
    shares = np.where(AT < 100, 1.0, 0.3)
    *_, last = judge_rows(NoLearningSignal, rows_of(frac_reward_zero_std=shares)).findings
    assert last.recovered_at == 124


@pytest.mark.parametrize(
    ("name", "is_judged"),
    [
        ("train/explained_variance", True),
        ("vf_explained_var", True),
        ("response_length/clip_ratio", True),
        ("completions/clipped_ratio", True),
        ("rewards/format/std", False),
        ("clip_ratio", False),
        ("explained_variance_ratio", False),
    ],
)
def test_names_of_measures(name: str, *, is_judged: bool) -> None:
    judged = judge_rows(NoLearningSignal, rows_of(**{name: LEVEL}))
    assert (199 not in judged.skipped) == is_judged
