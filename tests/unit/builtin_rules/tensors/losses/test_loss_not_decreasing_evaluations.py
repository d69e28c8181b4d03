"""LossNotDecreasing: what evaluations tell, alone and beside the training loss."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from judging import Judged, judge, judge_to_the_end, save

from builtin_rules import LossNotDecreasing
from smdebug.core.modes import ModeKeys

CHANCE = 0.693147182
EVERY = 8  # rows from one evaluation to the next
Loss = Callable[[int], float]


def noisy(row: int) -> float:
    """Return a training loss whose noise hides whether it falls."""
    return 0.7 + 0.2 * float(np.sin(5.0 * row))


def judged(
    root: Path, evaluation: Loss, *, rows: int = 80, every: int = EVERY, name: str = "val_loss"
) -> Judged:
    """Judge a training that is evaluated after each `every` rows."""
    steps: dict[int, dict[str, np.ndarray]] = {}
    modes: dict[int, ModeKeys] = {}
    for row in range(rows):
        steps[2 * row] = {"loss": np.array([noisy(row)])}
        modes[2 * row] = ModeKeys.TRAIN
        if row % every == 0:
            steps[2 * row + 1] = {name: np.array([evaluation(row // every)])}
            modes[2 * row + 1] = ModeKeys.EVAL
    root = save(root, steps, modes=modes, collections={"losses": "loss|error"})
    return judge(LossNotDecreasing, root)


def test_four_equal_evaluations_mean_that_nothing_is_learned(tmp_path: Path) -> None:
    found = judged(tmp_path, lambda number: CHANCE * (1 + 2e-7 * (number % 2)))
    assert found.met == [1 + 2 * EVERY * number for number in range(3, 10)]
    first = found.findings[0]
    assert first.tensor == "val_loss"
    assert first.note == "Never learned. All 4 evaluations gave the same loss."


@pytest.mark.parametrize(
    "evaluation",
    [
        pytest.param(lambda number: CHANCE * (1 + 3e-6 * number), id="they-change-a-little"),
        pytest.param(lambda number: CHANCE - 0.1 * (number == 0), id="the-first-differs"),
        pytest.param(lambda number: CHANCE - 0.1 * (number == 2), id="one-differs"),
        pytest.param(lambda _number: 0.6931, id="a-rounded-log"),
        pytest.param(lambda _number: 0.0, id="zero"),
        pytest.param(lambda _number: np.nan, id="not-a-number"),
    ],
)
def test_other_evaluations_do_not(evaluation: Loss, tmp_path: Path) -> None:
    assert judged(tmp_path, evaluation).met == []


def test_evaluations_in_quick_succession_do_not(tmp_path: Path) -> None:
    # As between two updates of an optimizer that accumulates gradients.
    assert judged(tmp_path, lambda _number: CHANCE, rows=24, every=1).met == []


def test_a_metric_may_stay_the_same(tmp_path: Path) -> None:
    assert judged(tmp_path, lambda _number: 0.123456789, name="validation_0-error").met == []


def at_the_end(root: Path, training: list[float], evaluation: list[float]) -> Judged:
    """Judge the end of a training that is evaluated after each row."""
    pairs = [*zip(training, evaluation, strict=True)] if training else [(e,) for e in evaluation]
    names = ("loss", "val_loss")[-len(pairs[0]) :]
    rows = [
        {name: np.array([one])} for pair in pairs for name, one in zip(names, pair, strict=True)
    ]
    modes = [ModeKeys.EVAL if "val_loss" in row else ModeKeys.TRAIN for row in rows]
    root = save(root, dict(enumerate(rows)), modes=dict(enumerate(modes)))
    return judge_to_the_end(LossNotDecreasing, root)


LEVEL = [2.3, 2.31, 2.29, 2.3, 2.32] * 5
FALL = [2.3 * 0.98**row for row in range(25)]


@pytest.mark.parametrize(
    ("training", "evaluation", "tensors"),
    [
        pytest.param(LEVEL, LEVEL, ["loss"], id="neither-learns"),
        pytest.param(LEVEL, FALL, [], id="the-evaluation-improves"),
        pytest.param([], LEVEL, ["val_loss"], id="only-evaluated"),
        pytest.param(FALL, LEVEL, [], id="the-evaluation-is-level"),
        pytest.param(FALL[:6], [0.7, 0.5, 30.0, 500.0, 900.0, 3360.0], ["val_loss"], id="blows-up"),
        pytest.param(FALL[:6], [0.7, 0.5, 30.0, 0.6, 0.5, 0.4], [], id="comes-back"),
        pytest.param(FALL[:6], [0.7, 0.5, 0.9, 1.3, 1.7, 2.1], [], id="overfits"),
    ],
)
def test_training_and_evaluation_are_judged_together(
    training: list[float], evaluation: list[float], tensors: list[str], tmp_path: Path
) -> None:
    found = at_the_end(tmp_path, training, evaluation)
    assert [finding.tensor for finding in found.findings] == tensors
