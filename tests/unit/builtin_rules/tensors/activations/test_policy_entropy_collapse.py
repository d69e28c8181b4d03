"""PolicyEntropyCollapse: entropies that have gone, and those that are another kind of entropy."""

from collections.abc import Sequence

import numpy as np
import pytest
from judging_rows import judge_rows, rows_of, verdicts

from builtin_rules import PolicyEntropyCollapse
from smdebug.core.modes import ModeKeys
from smdebug.rules.extensions import Severity

WARNING, NOTE = Severity.WARNING, Severity.NOTE
AT = np.arange(100)
COLLAPSED = np.where(AT < 50, 1.0, 0.04)


@pytest.mark.parametrize(
    ("name", "values", "first"),
    [
        pytest.param("losses/entropy", COLLAPSED, 79, id="cleanrl"),
        pytest.param("policy_entropy", COLLAPSED, 79, id="policy-entropy"),
        pytest.param("train/entropy_loss", -COLLAPSED, 79, id="stable-baselines"),
        pytest.param("objective/entropy", COLLAPSED, 79, id="trl"),
        pytest.param("policy/entropy_avg", COLLAPSED, 79, id="trl-of-ppo"),
        pytest.param("learners/default_policy/curr_entropy", COLLAPSED, 79, id="rllib"),
        pytest.param("learner_stats/entropy", COLLAPSED, 79, id="older-rllib"),
        pytest.param("PolicyEntropy_output_0", COLLAPSED, 79, id="a-module"),
        pytest.param("net.entropy_loss_output_0", -COLLAPSED, 79, id="a-module-of-a-loss"),
        pytest.param("net.entropy_output_1", COLLAPSED, None, id="another-output"),
        pytest.param("policy_entropy", COLLAPSED[:79], None, id="29-rows"),
        pytest.param("policy_entropy", np.where(AT < 50, 1.0, 0.05), None, id="at-the-limit"),
        pytest.param("policy_entropy", np.where(AT < 50, 1.0, 0.0), 79, id="zero"),
        pytest.param("policy_entropy", 0.9**AT, 58, id="decays"),
        pytest.param("policy_entropy", [np.nan, *COLLAPSED], 80, id="nan"),
        pytest.param("policy_entropy", 0.98 ** (AT / 2), None, id="falls-slowly"),
        pytest.param(
            "policy_entropy", np.where((AT < 50) | (AT == 69), 1.0, 0.04), 99, id="comes-back"
        ),
        pytest.param("train/entropy_loss", -8.5 + 0.012 * 10 * AT, None, id="continuous"),
        pytest.param("policy_entropy", np.r_[1 - AT / 60], None, id="passes-zero"),
        pytest.param("policy_entropy", np.linspace(1, -0.2, 2000), None, id="passes-zero-slowly"),
        pytest.param("policy_entropy", -COLLAPSED, None, id="negative"),
        pytest.param("cross_entropy", COLLAPSED, None, id="cross-entropy"),
        pytest.param("attention/layer/entropy", COLLAPSED, None, id="attention"),
        pytest.param("entropy_coef", COLLAPSED, None, id="coefficient"),
    ],
)
def test_verdicts(name: str, values: Sequence[float], first: int | None) -> None:
    rows = rows_of(**{name: values, "losses/policy_loss": np.zeros(len(values))})
    judged = judge_rows(PolicyEntropyCollapse, rows)
    assert verdicts(judged)[:1] == ([] if first is None else [(first, WARNING)])


def test_a_solved_task_is_a_note() -> None:
    rows = rows_of(**{"losses/entropy": COLLAPSED, "rollout/ep_rew_mean": np.minimum(AT, 60)})
    assert verdicts(judge_rows(PolicyEntropyCollapse, rows))[0] == (79, NOTE)
    rows = rows_of(**{"losses/entropy": COLLAPSED, "rollout/ep_rew_mean": np.abs(AT - 40)})
    assert verdicts(judge_rows(PolicyEntropyCollapse, rows[:95]))[0] == (79, WARNING)


def test_continuous_actions_are_not_judged() -> None:
    rows = rows_of(**{"train/entropy_loss": -COLLAPSED, "train/std": AT})
    assert judge_rows(PolicyEntropyCollapse, rows).findings == []


def test_an_entropy_of_a_supervised_training_is_not_judged() -> None:
    rows = rows_of(entropy=COLLAPSED, loss=COLLAPSED)
    judged = judge_rows(PolicyEntropyCollapse, rows)
    assert (judged.findings, set(judged.skipped)) == ([], set(AT))
    rows = rows_of(entropy=COLLAPSED, policy_loss=COLLAPSED)
    assert judge_rows(PolicyEntropyCollapse, rows).met


def test_parameters_workers_and_modes() -> None:
    rows, steady = rows_of(policy_entropy=COLLAPSED), rows_of(policy_entropy=np.ones(100))
    assert judge_rows(PolicyEntropyCollapse, rows, patience=10).met[0] == 59
    assert not judge_rows(PolicyEntropyCollapse, rows, threshold=0.04).met
    findings = judge_rows(PolicyEntropyCollapse, rows, steady).findings
    assert len({finding.worker for finding in findings}) == 1
    assert not judge_rows(PolicyEntropyCollapse, rows, modes={0: ModeKeys.EVAL}).findings


def test_the_numbers_of_steps_do_not_matter() -> None:
    rows = [(2048 * step + 7, values) for step, values in rows_of(policy_entropy=COLLAPSED)]
    assert judge_rows(PolicyEntropyCollapse, rows).met[0] == 2048 * 79 + 7


@pytest.mark.parametrize("keep", [1, 5, 10])
def test_healthy_policies_are_not_accused(keep: int) -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        entropy = 1.4 * np.exp(-np.arange(500) / 400) * (1 + 0.2 * rng.random(500))
        rows = rows_of(policy_entropy=entropy[::keep])
        assert judge_rows(PolicyEntropyCollapse, rows).findings == []


def test_an_entropy_that_stays_above_the_limit_has_recovered() -> None:
    back = np.r_[COLLAPSED, np.full(29, 0.06), 0.01, np.full(40, 0.06)]
    rows = rows_of(**{"losses/entropy": back, "losses/policy_loss": np.zeros(len(back))})
    findings = judge_rows(PolicyEntropyCollapse, rows).findings
    assert [found.step for found in findings if found.recovered_at is not None] == [159]
