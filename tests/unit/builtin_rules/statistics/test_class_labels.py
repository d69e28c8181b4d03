"""Classes: which labels and predictions belong together, and the classes in them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from judging import opened, save

from builtin_rules.statistics.class_labels import (
    LABELS_OF_LOSS,
    NO_CLASSES,
    NO_CLASSES_PREDICTED,
    NO_NUMBERS,
    PREDICTIONS_OF_LOSS,
    classes,
    label_prediction_pairs,
)
from builtin_rules.statistics.tensor_selection import tensor_names

BFLOAT16 = ml_dtypes.bfloat16
SCORES = np.array([[3.0, 1.0, 2.0], [0.0, 5.0, 1.0], [0.0, 0.0, 0.5], [9.0, 1.0, 0.0]])
LABELS = np.array([0, 1, 2, 1])
TOLD = ([0, 1, 2, 1], [0, 1, 2, 0], 3)  # by both
EYE = np.eye(3)


def told(
    root: Path, labels: Any, predictions: Any, name: str = "predictions", **options: Any
) -> tuple[list[int], list[int], int] | str:
    """Return the classes of a pair, as lists."""
    trial = opened(save(root, {0: {"labels": labels, name: predictions}}))
    (pair,) = label_prediction_pairs(trial, 0, ["labels"], [name])
    found = classes(*pair, 0, **options)
    if isinstance(found, str):
        return found
    assert {found.labels.dtype, found.predictions.dtype} == {np.dtype(np.int64)}
    return found.labels.tolist(), found.predictions.tolist(), found.scored


def apart(labels: str, predictions: str) -> str:
    return f"labels of shape {labels}, predictions of shape {predictions} do not match"


SQUARE = SCORES.reshape(1, 2, 2, 3).transpose(0, 3, 1, 2)
PAIRS = {
    "scores": (LABELS, SCORES, TOLD),
    "a-column-of-labels": (LABELS[:, None], SCORES, TOLD),
    "pooled-to-1x1": (LABELS, SCORES[:, :, None, None], TOLD),
    "labels-of-floats": (LABELS.astype(np.float32), SCORES, TOLD),
    "labels-of-bytes": (LABELS.astype(np.uint8), SCORES, TOLD),
    "one-hot": (EYE[LABELS], SCORES, TOLD),
    "one-hot-of-bools": (EYE[LABELS].astype(bool), SCORES, TOLD),
    "bfloat16-scores": (LABELS, SCORES.astype(BFLOAT16), TOLD),
    "bfloat16-labels": (LABELS.astype(BFLOAT16), SCORES, TOLD),
    "ignored-are-left-out": (np.array([0, -100, 2, -100]), SCORES, ([0, 2], [0, 2], 3)),
    "masked-scores": (LABELS[:2], np.array([[-np.inf, 0.0], [np.inf, 0.0]]), ([0, 1], [1, 0], 2)),
    "sequences": (LABELS.reshape(2, 2), SCORES.reshape(2, 2, 3), TOLD),
    "classes-at-1": (LABELS.reshape(2, 2), SCORES.reshape(2, 2, 3).transpose(0, 2, 1), TOLD),
    "segmentation": (LABELS.reshape(1, 2, 2), SQUARE, TOLD),
    "segmentation-one-hot": (EYE[LABELS].reshape(1, 2, 2, 3).transpose(0, 3, 1, 2), SQUARE, TOLD),
    "probabilities": (LABELS[[0, 1, 1]], np.array([0.5, 0.51, 0.2]), ([0, 1, 1], [0, 1, 0], 0)),
    "logits": (np.array([0.0, 1.0]), np.array([[0.6], [-2.0]]), ([0, 1], [1, 0], 0)),
    "logits-of-pixels": (
        np.zeros((2, 1, 2, 2)),
        np.full((2, 1, 2, 2), -0.1),
        ([0] * 8, [0] * 8, 0),
    ),
    "classes-as-floats": (LABELS, np.array([0.0, 7.0, 2.0, 1.0]), (TOLD[0], [0, 7, 2, 1], 0)),
    "classes": (LABELS, LABELS[::-1], (TOLD[0], [1, 2, 1, 0], 0)),
    "classes-of-sequences": (LABELS.reshape(2, 2), LABELS.reshape(2, 2), (TOLD[0], TOLD[0], 0)),
    "bools": (np.array([True, False]), np.array([True, True]), ([1, 0], [1, 1], 0)),
    "0-d": (np.array(1), np.array(1), ([1], [1], 0)),
    "one-class": (np.array([1, 1]), np.array([5.0, 4.0]), ([1, 1], [5, 4], 0)),
    # no classes
    "regression": (np.array([0.5, 1.0]), np.array([0.5, 1.0]), NO_CLASSES),
    "regression-of-counts": (np.array([25, 7]), np.array([25.5, 7.0]), NO_CLASSES_PREDICTED),
    "label-below-0": (np.array([-1, 1]), np.array([1.0, 2.0]), NO_CLASSES),
    "label-nan": (np.array([0.0, np.nan]), EYE[:2], NO_CLASSES),
    "label-infinite": (np.array([0.0, np.inf]), EYE[:2], NO_CLASSES),
    "label-huge": (np.array([0.0, 1e300]), EYE[:2], NO_CLASSES),
    "label-overflows": (np.array([0, 2**63], np.uint64), EYE[:2], NO_CLASSES),
    "label-far-below-0": (np.array([0.0, -1e300]), EYE[:2], NO_CLASSES),
    "soft-labels": (np.array([[0.9, 0.1]]), np.array([[2.0, 1.0]]), NO_CLASSES),
    "predicted-below-0": (np.array([0, 2]), np.array([-1, 2]), NO_CLASSES_PREDICTED),
    "several-labels": (np.array([[1.0, 1.0], [0.0, 1.0]]), EYE[:2, :2], NO_CLASSES_PREDICTED),
    "nan": (LABELS[:2], np.array([[np.nan, 1.0], [0.0, 1.0]]), "predictions with NaN"),
    "without-score": (np.array([0, 3, 4]), EYE, "the label 4 has no score among 3"),
    "never-a-score": (np.array([3, 3]), EYE[:2], "the label 3 has no score among 3"),
    "all-ignored": (np.array([-100, -100]), EYE[:2], "all labels are ignored"),
    "lengths-differ": (LABELS, SCORES[:3], apart("(4,)", "(3, 3)")),
    "flat-lengths-differ": (LABELS, np.zeros(7), apart("(4,)", "(7,)")),
    "0-d-and-scores": (np.array(1), SCORES, apart("()", "(4, 3)")),
    "empty": (np.zeros(0), np.zeros((0, 3)), NO_NUMBERS),
    "text": (np.array(["a", "b"]), EYE[:2], NO_NUMBERS),
    "complex": (np.array([0, 1]), EYE[:2] + 1j, NO_NUMBERS),
}


@pytest.mark.parametrize(
    ("labels", "predictions", "expected"),
    [pytest.param(*pair, id=name) for name, pair in PAIRS.items()],
)
def test_what_labels_and_predictions_tell(
    labels: Any, predictions: Any, expected: Any, tmp_path: Path
) -> None:
    assert told(tmp_path, labels, predictions) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("predictions", [1, 0]),
        ("BCELoss_input_0", [1, 0]),
        ("BCEWithLogitsLoss_input_0", [1, 1]),
        ("logits", [1, 1]),
        ("MSELoss_input_0", None),
        ("SmoothL1Loss_input_0", None),
        ("HuberLoss_input_0", None),
    ],
)
def test_names_tell_logits_and_regressions(
    name: str, expected: list[int] | None, tmp_path: Path
) -> None:
    found = told(tmp_path, np.array([1.0, 0.0]), np.array([0.9, 0.1]), name)
    assert (None if found == NO_CLASSES_PREDICTED else found[1]) == expected


@pytest.mark.parametrize(
    ("name", "argmax", "expected"),
    [
        ("CrossEntropyLoss_input_0", None, [0, 1]),
        ("logits", None, [1, 1]),
        ("CrossEntropyLoss_input_0", True, [1, 1]),
    ],
)
def test_as_many_classes_as_positions_are_distinguished_by_the_name(
    name: str, argmax: bool | None, expected: list[int], tmp_path: Path
) -> None:
    scores = np.array([[[5.0, 6.0], [1.0, 7.0]]])
    found = told(tmp_path, np.array([[0, 1]]), scores, name, argmax=argmax)
    assert found == ([0, 1], expected, 2)


@pytest.mark.parametrize(
    ("labels", "predictions", "argmax", "expected"),
    [
        pytest.param([0, 2, 3], [0.4, 1.6, 2.7], False, [0, 2, 3], id="rounded"),
        pytest.param([0, 1], [0.4, -0.6], False, None, id="rounded-below-0"),
        pytest.param([0, 1], [[1.0, 0.0], [0.0, 1.0]], False, None, id="never-scores"),
        pytest.param([0, 1], [[1.0, 0.0], [0.0, 1.0]], True, [0, 1], id="scores"),
    ],
)
def test_argmax_says_what_predictions_are(
    labels: list[int], predictions: Any, argmax: bool, expected: Any, tmp_path: Path
) -> None:
    found = told(tmp_path, np.array(labels), np.array(predictions), argmax=argmax)
    assert (None if isinstance(found, str) else found[1]) == expected


def pairs(root: Path, tensors: Mapping[str, list[str]]) -> list[tuple[str, str, str]]:
    """Save tensors by worker, and return which labels and predictions pair."""
    for worker, names in tensors.items():
        steps = {0: dict.fromkeys(names, np.zeros(2))}
        save(root, steps, worker=worker, num_workers=len(tensors))
    trial = opened(root)
    known, guessed = (tensor_names(trial, 0, [], [one]) for one in ("lab", "pred"))
    return [(a.name, b.name, a.worker) for a, b in label_prediction_pairs(trial, 0, known, guessed)]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        pytest.param(["lab_b", "lab_a", "pred_b", "pred_a"], ["aa", "bb"], id="as-many"),
        pytest.param(["lab_b", "lab_a", "pred_c"], ["ac"], id="the-first-of-each"),
        pytest.param(["lab_a", "lab_b", "lab_c", "pred_a", "pred_b"], ["aa"], id="not-as-many"),
        pytest.param(["lab_a"], [], id="no-predictions"),
        pytest.param(["pred_a"], [], id="no-labels"),
    ],
)
def test_tensors_pair_by_sorted_name(names: list[str], expected: list[str], tmp_path: Path) -> None:
    found = pairs(tmp_path, {"worker_0": names})
    assert [known[-1] + guessed[-1] for known, guessed, _ in found] == expected


def test_each_worker_has_pairs_of_its_own(tmp_path: Path) -> None:
    saved_by = {"worker_0": ["lab_a", "pred_a"], "worker_1": ["lab_b", "pred_b"]}
    saved_by["worker_2"] = ["lab_a"]
    expected = [("lab_a", "pred_a", "worker_0"), ("lab_b", "pred_b", "worker_1")]
    assert pairs(tmp_path, saved_by) == expected


def test_reductions_alone_tell_no_classes(tmp_path: Path) -> None:
    means = {0: {name: {("mean", False): 0.5} for name in ("labels", "predictions")}}
    trial = opened(save(tmp_path, {}, reductions=means))
    (pair,) = label_prediction_pairs(trial, 0, ["labels"], ["predictions"])
    assert classes(*pair, 0) == NO_NUMBERS


NAMES_OF_LOSSES = ["CrossEntropyLoss", "loss", "softmaxcrossentropyloss0", "model.NLLLoss"]
DECOYS = ["CrossEntropyLoss_output_0", "CrossEntropyLoss_input_10", "Linear_input_1"]


def test_inputs_of_losses_are_found_by_name(tmp_path: Path) -> None:
    names = [f"{one}_input_{at}" for one in NAMES_OF_LOSSES for at in (0, 1)]
    trial = opened(save(tmp_path, {0: dict.fromkeys([*names, *DECOYS], np.zeros(2))}))
    known = tensor_names(trial, 0, [], [LABELS_OF_LOSS])
    guessed = tensor_names(trial, 0, [], [PREDICTIONS_OF_LOSS])
    assert known == sorted(one for one in names if one.endswith("1"))
    assert guessed == sorted(one for one in names if one.endswith("0"))
