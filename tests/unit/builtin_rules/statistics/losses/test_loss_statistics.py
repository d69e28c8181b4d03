"""Losses of steps that have several modes; the rules' own tests have those of one mode."""

from collections.abc import Iterator

from list_source import ListSource, Row, source_index, source_trial

from builtin_rules import LossNotDecreasing, Overfit, Overtraining
from builtin_rules.statistics.losses.loss_statistics import (
    EvaluationPhases,
    LossKey,
    StepLosses,
    losses_at,
)
from rule_core.modes import ModeKeys
from rule_core.rules.rule import Rule
from rule_core.trials.trial import Trial

MEAN = LossKey("", "")
NAMES = ["eval_loss", "loss"]


def trial_of(*rows: Row) -> Trial:
    index = source_index(ListSource(*rows, ended=True))
    index.refresh()
    index.finish()
    return source_trial(index)


def first_met(rule: Rule) -> int | None:
    return next((step for step in steps_of(rule) if rule.invoke_at_step(step)), None)


def steps_of(rule: Rule) -> Iterator[int]:
    for step in rule.base_trial.steps():
        rule.base_trial.horizon = step
        yield step


def test_a_step_of_both_modes_has_both_losses() -> None:
    trial = trial_of((1, {"loss": 2.0}), (2, {"loss": 1.0}), (2, {"eval_loss": 3.0}))
    assert trial.modes_at(2) == {ModeKeys.TRAIN: 2, ModeKeys.EVAL: 2}
    assert losses_at(trial, 1, ["loss"]) == StepLosses({"": 2.0}, {})
    assert losses_at(trial, 2, NAMES) == StepLosses({"": 1.0}, {MEAN: 3.0})
    assert losses_at(trial, 2, ["loss"]) == StepLosses({"": 1.0}, {})


def test_training_precedes_the_evaluation_of_its_step() -> None:
    trial = trial_of(
        (1, {"loss": 2.0}),
        (2, {"loss": 1.0}),
        (2, {"eval_loss": 3.0}),
        (3, {"loss": 0.5}),
        (3, {"eval_loss": 4.0}),
        (4, {"loss": 0.4}),
    )
    phases = EvaluationPhases()
    ended = [
        [phase[:3] for phase in phases.add(trial, step, losses_at(trial, step, NAMES))]
        for step in trial.steps()
    ]
    assert ended == [
        [],
        [],
        [(MEAN, 1.5, 3.0)],
        [(MEAN, 0.5, 4.0)],
    ]


def test_the_mean_of_an_epoch_counts_instead_of_single_steps_of_it() -> None:
    names = ["eval_loss", "train_loss_epoch", "train_loss_step"]
    trial = trial_of(
        (1, {"train_loss_step": 9.0}),
        (2, {"train_loss_epoch": 2.0}),
        (2, {"eval_loss": 3.0}),
        (3, {"train_loss_step": 7.0}),
        (3, {"eval_loss": 4.0}),
        (4, {"train_loss_step": 0.5}),
    )
    phases = EvaluationPhases()
    ended = [
        [phase[:3] for phase in phases.add(trial, step, losses_at(trial, step, names))]
        for step in trial.steps()
    ]
    assert ended == [[], [], [(MEAN, 2.0, 3.0)], [(MEAN, 7.0, 4.0)]]


def _epochs(count: int, loss: float, eval_loss: float) -> Iterator[Row]:
    for epoch in range(count):
        yield epoch, {"loss": 2.0 * loss**epoch}
        yield epoch, {"eval_loss": 2.0 * eval_loss**epoch}


def test_an_overfit_is_found_in_epochs_that_train_and_evaluate() -> None:
    assert first_met(Overfit(trial_of(*_epochs(30, 0.9, 1.05)))) is not None
    assert first_met(Overfit(trial_of(*_epochs(30, 0.9, 0.9)))) is None


def test_overtraining_is_found_in_epochs_that_train_and_evaluate() -> None:
    rows = [
        (step, {name: max(2.0 * 0.9**step, 0.5)})
        for step in range(120)
        for name in ("loss", "eval_loss")
    ]
    assert first_met(Overtraining(trial_of(*rows))) is not None
    falling = [(step, {"loss": 2.0 * 0.99**step, "eval_loss": 2.0}) for step in range(120)]
    assert first_met(Overtraining(trial_of(*falling))) is None


def test_a_rising_evaluation_loss_is_found_in_its_mode_beside_a_falling_one() -> None:
    assert first_met(LossNotDecreasing(trial_of(*_epochs(60, 0.95, 1.03)))) is None
    rule = LossNotDecreasing(trial_of(*_epochs(60, 0.95, 1.03)), mode="EVAL")
    assert first_met(rule) is not None
    assert {item.tensor for item in rule.take_evidence()[0]} == {"eval_loss"}


def test_the_mode_of_a_rule_selects_the_loss_of_a_step() -> None:
    rule = LossNotDecreasing(trial_of(*_epochs(60, 0.95, 1.05)), mode="TRAIN", num_steps=5)
    assert first_met(rule) is None
    both = LossNotDecreasing(trial_of(*_epochs(60, 0.95, 0.95)), num_steps=5)
    assert first_met(both) is None
