"""GradientNormZero: its cases in gradient_norm_zero.rules.yaml, recovery, and trainings."""

from pathlib import Path

import numpy as np
import pytest
from judging_rows import first_of, judge_rows, rows_of

from builtin_rules import GradientNormZero
from rule_runner.commands.rule_tests import run_rule_tests
from rule_runner.config.defaults import Isolation

AT = np.arange(60)


def test_the_cases_pass() -> None:
    cases = str(Path(__file__).with_name("gradient_norm_zero.rules.yaml"))
    assert run_rule_tests([cases], None, Isolation.NONE, update=False) == 0


def test_it_recovers_at_the_next_norm_above_zero() -> None:
    norms = np.where((AT >= 20) & (AT < 40), 0.0, 1.0)
    findings = judge_rows(GradientNormZero, rows_of(loss=1.0 + AT, grad_norm=norms)).findings
    assert findings[0].step == 29
    assert findings[-1].recovered_at == 40


def test_a_short_pause_does_not_recover_anything() -> None:
    norms = np.where((AT >= 20) & (AT < 25), 0.0, 1.0)
    assert not judge_rows(GradientNormZero, rows_of(loss=1.0 + AT, grad_norm=norms)).findings


@pytest.mark.parametrize(("rate", "first"), [(0.01, None), (100.0, 15)])
def test_a_relu_that_dies(rate: float, first: int | None) -> None:
    """A unit of ReLU learns to return 2, from the fifth row on at this rate, and may die."""
    inputs = np.random.default_rng(0).uniform(0.5, 1.0, size=(60, 8))
    weight, rows = 1.0, []
    for step, batch in enumerate(inputs):
        outputs = np.maximum(weight * batch, 0.0)
        gradient = float((2.0 * (outputs - 2.0) * batch * (outputs > 0)).mean())
        loss = float(((outputs - 2.0) ** 2).mean())
        rows.append((step, {"loss": loss, "grad_norm": abs(gradient)}))
        weight -= gradient * (0.01 if step < 4 else rate)
    assert first_of(judge_rows(GradientNormZero, rows)) == first
