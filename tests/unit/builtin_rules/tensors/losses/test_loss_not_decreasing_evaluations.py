"""LossNotDecreasing: what evaluations tell, alone and beside the training loss."""

from pathlib import Path

import numpy as np
import pytest
from judging import Judged, judge_to_the_end, save
from judging_rows import judge_rows

from builtin_rules import LossNotDecreasing
from smdebug.core.modes import ModeKeys


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
NOISE = [0.7 + 0.2 * float(np.sin(5.0 * row)) for row in range(25)]
FALL = [2.3 * 0.98**row for row in range(25)]


@pytest.mark.parametrize(
    ("training", "evaluation", "tensors"),
    [
        pytest.param(LEVEL, LEVEL, ["loss"], id="neither-learns"),
        pytest.param(LEVEL, FALL, [], id="the-evaluation-improves"),
        pytest.param([], LEVEL, ["val_loss"], id="only-evaluated"),
        pytest.param(FALL, LEVEL, [], id="the-evaluation-is-level"),
        pytest.param(NOISE, [0.6931] * 25, ["val_loss"], id="noise-hides-the-training"),
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


@pytest.mark.parametrize(("epochs", "note"), [(LEVEL, "Never learned"), (FALL, "")])
def test_means_of_epochs_decide_in_place_of_their_steps(epochs: list[float], note: str) -> None:
    rows: list[tuple[int, dict[str, float]]] = []
    for epoch, mean in enumerate(epochs):
        noisy = [(3 * epoch + at, {"train_loss_step": 3.0 - epoch % 3 - at / 2}) for at in (0, 1)]
        last = {"train_loss_step": 1.0, "train_loss_epoch": mean}
        rows += [*noisy, (3 * epoch + 2, last)]
    findings = [each for each in judge_rows(LossNotDecreasing, rows).findings if each.counts]
    assert [(each.note or "").partition(" for")[0] for each in findings] == [note] * bool(note)
    assert all(each.tensor == "train_loss_epoch" for each in findings)
