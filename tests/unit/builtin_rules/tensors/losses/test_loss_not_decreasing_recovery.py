"""Recoveries: where LossNotDecreasing and other rules over losses say that a finding is over."""

import numpy as np
import pytest
from judging import Judged
from judging_rows import judge_rows, rows_of
from numpy.typing import NDArray

from builtin_rules import LossNotDecreasing, LossSpike, Overfit, Overtraining, RewardNotIncreasing
from rule_core.model.segments import global_step
from smdebug.core.modes import ModeKeys
from smdebug.rules import Rule

FALL = np.linspace(3.0, 1.0, 100)
LEVEL = np.tile([1.0, 1.01, 0.99, 1.005, 0.995], 60)
SPIKED = np.r_[[3.0] * 5, LEVEL[:55], [1.9] * 80]
NOISY = np.tile([1.0, 1.2, 0.85, 1.1, 0.9], 60)
LASTING = np.r_[[9.0] * 5, NOISY[:55], [3.0] * 80]
TWICE = np.r_[[9.0] * 5, LEVEL[:55], [1.9] * 80, [3.5] * 80]
AT = np.arange(400)
LEARNS = np.minimum(AT, 200) / 2.0


def recoveries(judged: Judged) -> tuple[int | None, list[int]]:
    """Return the first step of a finding that counts, and the steps of recoveries after it."""
    first = next((each.step for each in judged.findings if each.counts), None)
    steps = [each.step for each in judged.findings if each.recovered_at is not None]
    assert steps == [each.recovered_at for each in judged.findings if each.recovered_at is not None]
    return first, steps


@pytest.mark.parametrize(
    ("losses", "first", "back"),
    [
        pytest.param(np.r_[FALL, [2.9] * 40, LEVEL], 117, [145], id="diverged-and-is-back"),
        pytest.param(np.r_[FALL, [2.9] * 40, [1.4] * 300], 117, [], id="diverged-and-is-better"),
        pytest.param(np.r_[[3.0, 3.1] * 60, FALL, LEVEL], 99, [135], id="learned-late"),
        pytest.param(np.r_[[3.0, 3.1] * 60, [3.03] * 60], 99, [], id="learned-too-little"),
        pytest.param(np.r_[FALL, [np.nan] * 10, LEVEL], 109, [110], id="finite-again"),
    ],
)
def test_a_loss(losses: NDArray[np.float64], first: int, back: list[int]) -> None:
    assert recoveries(judge_rows(LossNotDecreasing, rows_of(loss=losses))) == (first, back)


@pytest.mark.parametrize(
    ("losses", "first", "back"),
    [
        pytest.param(np.r_[LEVEL[:40], [9.0, *LEVEL[:9]] * 3, LEVEL], 60, [189], id="outliers"),
        pytest.param(np.r_[SPIKED, LEVEL], 110, [239], id="lasting-and-is-back"),
        pytest.param(np.r_[SPIKED, LEVEL * 1.9], 110, [], id="stays-up"),
        pytest.param(np.r_[TWICE, LEVEL * 1.9], 110, [], id="back-from-the-second-only"),
        pytest.param(np.r_[LASTING, NOISY * 1.9], 110, [], id="below-the-limit-only"),
    ],
)
def test_a_spike(losses: NDArray[np.float64], first: int, back: list[int]) -> None:
    assert recoveries(judge_rows(LossSpike, rows_of(loss=losses))) == (first, back)


def judge_evaluated(
    rule: type[Rule], training: NDArray[np.float64], validation: NDArray[np.float64]
) -> Judged:
    """Judge a training loss at even steps, and that of an evaluation at odd ones."""
    trained = [(2 * at, {"loss": float(loss)}) for at, loss in enumerate(training)]
    validated = [(2 * at + 1, {"loss": float(loss)}) for at, loss in enumerate(validation)]
    return judge_rows(rule, trained, validated, modes={1: ModeKeys.EVAL})


@pytest.mark.parametrize(("last", "back"), [(900.0, []), (1.0, [121])])
def test_an_evaluation_recovers_by_itself(last: float, back: list[int]) -> None:
    evaluated = np.r_[FALL[::4], [900.0] * 30, [last] * 45]
    judged = judge_evaluated(LossNotDecreasing, np.linspace(3.0, 1.0, 100), evaluated)
    assert recoveries(judged) == (85, back)


@pytest.mark.parametrize(("last", "back"), [(0.5, [104]), (1.1, [])])
def test_an_overfit_until_a_new_best_validation_loss(last: float, back: list[int]) -> None:
    humped = np.r_[np.linspace(2.2, 1.0, 20), np.linspace(1.0, 1.6, 20), np.linspace(1.5, last, 20)]
    judged = judge_evaluated(Overfit, np.linspace(2.0, 0.2, 60), humped)
    assert recoveries(judged) == (78, back)


@pytest.mark.parametrize(("last", "back"), [(0.2, [130]), (0.6, [])])
def test_an_overtraining_until_the_validation_loss_falls(last: float, back: list[int]) -> None:
    training = np.r_[np.linspace(2.0, 0.5, 20), [0.5] * 40, np.linspace(0.5, last - 0.1, 40)]
    validation = np.r_[np.linspace(2.0, 0.6, 20), [0.6] * 40, np.linspace(0.6, last, 40)]
    assert recoveries(judge_evaluated(Overtraining, training, validation)) == (102, back)


@pytest.mark.parametrize(("lasts", "back"), [(300, [305]), (400, [])])
def test_a_lost_reward_until_it_is_back(lasts: int, back: list[int]) -> None:
    rewards = np.where((AT < 200) | (lasts < AT), LEARNS, 20.0)
    judged = judge_rows(RewardNotIncreasing, rows_of(reward=rewards))
    assert recoveries(judged) == (273, back)


@pytest.mark.parametrize(("first", "is_met"), [(0, True), (1000, False)])
def test_a_level_loss_of_a_resumed_run_has_learned_before(first: int, is_met: bool) -> None:
    level = [
        (global_step(1, first + row), {"loss": 1.0 + 0.001 * (-1.0) ** row}) for row in range(40)
    ]
    assert bool(judge_rows(LossNotDecreasing, level).met) == is_met
