"""MetricNotImproving: its cases in metric_not_improving.rules.yaml, and metrics with noise."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from judging_rows import accused, judge_rows, rows_of
from list_source import Row

from builtin_rules import MetricNotImproving
from rule_core.model.segments import global_step
from rule_runner.commands.rule_tests import run_rule_tests
from rule_runner.config.defaults import Isolation

AT = np.arange(20)
LEVEL = np.ones(20)
WAVERS = 1.0 + 0.001 * (-1.0) ** AT
FALLS = 2.0 * 0.9**AT


def noisy(seed: int, deviation: float) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.0, deviation, len(AT))


def test_the_cases_pass() -> None:
    cases = str(Path(__file__).with_name("metric_not_improving.rules.yaml"))
    assert run_rule_tests([cases], None, Isolation.NONE, update=False) == 0


@pytest.mark.parametrize(
    ("name", "level", "is_met"),
    [
        ("val_accuracy", 0.5, True),
        ("val_accuracy", 50.0, True),  # percent
        ("val_accuracy", 81.0, False),
        ("val_f1", 0.6, True),
        ("val_auc", 0.5, True),
        ("val_auc", 0.54, True),
        ("val_auc", 0.56, False),  # better than chance
        ("eval_bleu", 28.0, False),  # as good as a pretrained model
        ("eval_bleu", 0.1, False),  # of 1
        ("metrics/mAP50-95(B)", 0.0, True),
        ("cohen_kappa", 0.2, False),
    ],
)
def test_levels(name: str, level: float, *, is_met: bool) -> None:
    judged = judge_rows(MetricNotImproving, rows_of(**{name: level * LEVEL}))
    assert judged.met == ([19] if is_met else [])


@pytest.mark.parametrize(
    ("name", "level", "loss", "is_met"),
    [
        pytest.param("val_acc", 0.5, 0.69 * LEVEL, True, id="level"),
        pytest.param("val_acc", 0.5, 0.69 - 1e-6 * AT, True, id="falls-by-nothing"),
        pytest.param("val_acc", 0.5, 0.69 - 0.002 * AT, False, id="still-falls"),
        pytest.param("val_acc", 0.5, np.where(AT < 9, 0.69, 0.5), False, id="has-fallen"),
        pytest.param("val_acc", 0.5, np.where(AT < 9, 0.69, 0.6), True, id="has-fallen-by-little"),
        pytest.param("val_dice", 0.5, FALLS, False, id="overlap"),
        pytest.param("val_dice", 0.0, FALLS, True, id="no-overlap"),
        pytest.param("val_acc", 0.01, FALLS, False, id="accuracy-of-many-classes"),
        pytest.param("val_auc", 0.5, FALLS, True, id="known-chance"),
        pytest.param("val_acc", 0.5, 0.0 * LEVEL, True, id="zero"),
    ],
)
def test_losses_that_fall(name: str, level: float, loss: Sequence[float], *, is_met: bool) -> None:
    judged = judge_rows(MetricNotImproving, rows_of(**{"loss": loss, name: level * WAVERS}))
    assert judged.met == ([19] if is_met else [])


@pytest.mark.parametrize(("level", "is_met"), [(0.2, True), (0.01, False), (0.9, False)])
def test_falling_losses_do_not_excuse_an_accuracy_that_is_constant(
    level: float, *, is_met: bool
) -> None:
    rows = rows_of(loss=FALLS, val_acc=level * LEVEL)
    assert judge_rows(MetricNotImproving, rows).met == ([19] if is_met else [])


def test_a_loss_of_its_mode_that_falls_excuses_an_accuracy_that_is_constant() -> None:
    rows = rows_of(val_loss=FALLS, val_acc=0.2 * LEVEL)
    assert not judge_rows(MetricNotImproving, rows).met


def test_a_metric_of_training_that_rises_does_not_excuse_one_of_evaluation() -> None:
    rows = rows_of(loss=FALLS, acc=1.0 - FALLS / 2, val_acc=0.2 * LEVEL)
    assert judge_rows(MetricNotImproving, rows).met == [19]


def test_a_resumed_run_may_have_learned_before() -> None:
    rows = [(global_step(1, 20 + row), {"val_accuracy": 0.5}) for row in range(20)]
    assert judge_rows(MetricNotImproving, rows).met == []


def test_a_run_that_begins_anew_in_one_log_is_judged() -> None:
    rows = [(global_step(1, 20 * row), {"val_accuracy": 0.5}) for row in range(1, 20)]
    assert judge_rows(MetricNotImproving, rows).met == [global_step(1, 380)]


def test_one_metric_that_rises_excuses_the_others() -> None:
    rows = rows_of(val_acc=0.5 * WAVERS, train_acc=0.5 + 0.01 * AT)
    assert not judge_rows(MetricNotImproving, rows).met


def test_most_metrics_at_chance_are_named() -> None:
    def run(seed: int) -> list[Row]:
        return rows_of(val_acc=0.1 + noisy(seed, 0.01))

    assert len(accused(MetricNotImproving, run, 100)) >= 85


@pytest.mark.parametrize("deviation", [0.005, 0.02, 0.05])
def test_noise_hides_few_metrics_that_rise(deviation: float) -> None:
    def run(seed: int) -> list[Row]:
        return rows_of(val_acc=0.4 + 0.3 * (1 - 0.8**AT) + noisy(seed, deviation))

    assert len(accused(MetricNotImproving, run, 100)) <= 1


@pytest.mark.parametrize("names", [("d_loss", "g_loss"), ("policy_loss", "value_loss")])
def test_adversarial_and_reinforcement_trainings_are_not_judged(names: tuple[str, str]) -> None:
    rows = rows_of(d_real_accuracy=0.5 * LEVEL, **dict.fromkeys(names, LEVEL))
    judged = judge_rows(MetricNotImproving, rows)
    assert len(judged.skipped) == len(AT)
    assert not judged.met


@pytest.mark.parametrize(
    ("name", "is_metric"),
    [
        ("val_acc", True),
        ("valacc", True),
        ("trainAcc", True),
        ("sparse_categorical_accuracy", True),
        ("Acc@1", True),
        ("top5", True),
        ("macro_f1", True),
        ("F1-score", True),
        ("validation_0-auc", True),
        ("mIoU", True),
        ("eval_matthews_correlation", True),
        ("mAP50", True),
        ("losses/accuracy", True),
        ("loss_dice", False),
        ("feature_importance/cover/f1", False),
        ("f12", False),
        ("best_acc", False),
        ("max_accuracy", False),
        ("mean_token_accuracy", False),
        ("rewards/accuracies", False),
        ("grad_acc_steps", False),
        ("acceleration", False),
        ("mape", False),
        ("precision_threshold", False),
    ],
)
def test_names_of_metrics(name: str, *, is_metric: bool) -> None:
    judged = judge_rows(MetricNotImproving, rows_of(**{name: LEVEL}))
    assert (not judged.skipped) == is_metric
