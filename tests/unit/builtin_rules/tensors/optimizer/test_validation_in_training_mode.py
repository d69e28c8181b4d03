"""ValidationInTrainingMode: the mode of modules in training and in evaluation."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from judging import Judged, judge, save

from builtin_rules import ValidationInTrainingMode
from smdebug.core.modes import ModeKeys
from smdebug.rules.extensions import Severity

WARNING, NOTE = Severity.WARNING, Severity.NOTE
LETTERS = {"T": ModeKeys.TRAIN, "E": ModeKeys.EVAL, "G": ModeKeys.GLOBAL}


def judged(
    root: Path, letters: str, shares: Sequence[float], factor: int = 1, **more: int
) -> Judged:
    """Judge a row for each letter, its mode, with its share."""
    steps = {
        row * factor: {"model/training_mode": np.asarray(share, "float32")}
        for row, share in enumerate(shares)
    }
    modes = {row * factor: LETTERS[letter] for row, letter in enumerate(letters)}
    return judge(ValidationInTrainingMode, save(root, steps, modes=modes), **more)


@pytest.mark.parametrize(
    ("letters", "shares", "expected"),
    [
        pytest.param("TTE", [1, 1, 0], [], id="healthy"),
        pytest.param("TTE", [1, 1, 1], [(2, WARNING)], id="evaluated-in-training-mode"),
        pytest.param("TEE", [1, 0.5, 0.5], [(1, NOTE)], id="some-modules"),
        pytest.param("TEE", [1, np.nan, 0], [], id="nan"),
        pytest.param("TTETTT", [1, 1, 0, 0, 0, 0], [(5, WARNING)], id="no-train-after-eval"),
        pytest.param("TTETT", [1, 1, 0, 0, 0], [], id="two-rows-after-eval"),
        pytest.param("TTTTTT", [1, 1, 1, 0, 0, 0], [], id="no-evaluation-between"),
        pytest.param("TTETTT", [1, 1, 0, 0.5, 0.5, 0.5], [], id="frozen-normalisation"),
        pytest.param("T" * 10, [0] * 10, [(9, WARNING)], id="trained-in-evaluation-mode"),
        pytest.param("T" * 9, [0] * 9, [], id="nine-rows"),
        pytest.param("TE" * 9, [0] * 18, [], id="evaluations-do-not-count"),
        pytest.param("G" * 10, [0] * 10, [], id="no-modes"),
    ],
)
def test_verdicts(
    letters: str, shares: list[float], expected: list[tuple[int, Severity]], tmp_path: Path
) -> None:
    findings = judged(tmp_path, letters, shares).findings
    assert [(finding.step, finding.severity) for finding in findings] == expected


def test_patience(tmp_path: Path) -> None:
    assert judged(tmp_path, "TTT", [0, 0, 0], patience=3).met == [2]


def test_the_numbers_of_steps_do_not_matter(tmp_path: Path) -> None:
    assert judged(tmp_path, "T" * 10, [0] * 10, factor=500).met == [4500]


def test_each_worker_is_judged_by_itself(tmp_path: Path) -> None:
    for worker, share in (("worker_0", 0.0), ("worker_1", 1.0)):
        steps = {0: {"model/training_mode": np.asarray(share)}}
        save(tmp_path, steps, modes={0: ModeKeys.EVAL}, worker=worker, num_workers=2)
    findings = judge(ValidationInTrainingMode, tmp_path).findings
    assert [finding.worker for finding in findings] == ["worker_1"]
