"""Matching labels and predictions of a step, as integer classes."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from builtin_rules.statistics.tensor_selection import (
    SavedTensor,
    numbers,
    saved_tensors,
    value_shape,
)
from builtin_rules.statistics.training_kind import TrainingKind, training_kind
from smdebug.rules.extensions import TensorInput

# Inputs of a loss of PyTorch or MXNet, used if no collection has them.
LABELS_OF_LOSS: Final = r"(?i)loss\d*_input_1$"
PREDICTIONS_OF_LOSS: Final = r"(?i)loss\d*_input_0$"
NO_PAIR: Final = "no labels with predictions at this step"
NO_NUMBERS: Final = "labels or predictions without numbers"
NO_CLASSES: Final = "labels are not classes"
NO_CLASSES_PREDICTED: Final = "predictions are not classes"
MOST_OF_TEXT: Final = 20  # classes of a language model that are not its tokens
TOKENS: Final = TensorInput("sequences of tokens", ("input_sequence",))
IGNORED_LABEL: Final = -100  # ignored by PyTorch's losses by default
_LOGITS: Final = re.compile(r"logit", re.IGNORECASE)
_LOSS_INPUT: Final = re.compile(r"loss\d*_input_", re.IGNORECASE)
# Regression losses: 0 and 1 are not classes.
_REGRESSION: Final = re.compile(r"(mse|l[12]|huber|gauss|poisson)\w*loss", re.IGNORECASE)
_HALF: Final = 0.5
MULTILABEL_DIMENSIONS: Final = 2  # dimensions of several labels per sample
_LARGEST: Final = 2**31  # of a class

Ints = NDArray[np.int64]


class LabelledClasses(NamedTuple):
    """Labels and predicted classes of the samples of one worker, of shape ``(n,)``, all >= 0.

    `scored` is the number of classes if the predictions are scores, otherwise 0. `positions` is
    whether each row has several labels, as for tokens of texts and pixels of maps.
    """

    labels: Ints
    predictions: Ints
    scored: int
    positions: bool = False


def label_prediction_pairs(
    trial: Any, step: int, labels: Iterable[str], predictions: Iterable[str]
) -> Iterator[tuple[SavedTensor, SavedTensor]]:
    """Yield matching labels and predictions of each worker at `step`.

    The tensors of a worker are paired by sorted name if equal in number; otherwise only the first
    of each.
    """
    by_worker: dict[str, tuple[list[SavedTensor], list[SavedTensor]]] = {}
    for side, names in enumerate((labels, predictions)):
        for saved in saved_tensors(trial, step, sorted(names)):
            by_worker.setdefault(saved.worker, ([], []))[side].append(saved)
    for _, (label_tensors, prediction_tensors) in sorted(by_worker.items()):
        count = len(label_tensors) if len(label_tensors) == len(prediction_tensors) else 1
        yield from zip(label_tensors[:count], prediction_tensors[:count], strict=False)


def classes(
    labels: SavedTensor, predictions: SavedTensor, step: int, *, argmax: bool | None = None
) -> LabelledClasses | str:
    """Return the classes of a pair at `step`, or why there are none.

    Labels are non-negative integers of shape ``(n, ...)``, or one-hot rows; `IGNORED_LABEL` is left
    out, and so is a single other value without a score (an ignore index). Predictions are scores
    with an additional axis of classes, the last one or, as in PyTorch's losses, axis 1. Predictions
    of the same shape as the labels are classes, or for labels of 0 and 1 probabilities (above 0.5)
    or logits (above 0). Predictions with NaN have no classes.

    Parameters
    ----------
    argmax
        True: the last axis holds scores. False: predictions are rounded and never scores. None:
        inferred from the shapes.
    """
    label_array, scores = numbers(labels, step), numbers(predictions, step)
    if label_array is None or scores is None:
        return NO_NUMBERS
    label_values, prediction_values = _plain(label_array), _plain(scores)
    if np.isnan(prediction_values).any():
        return "predictions with NaN"
    label_values = _without_rows(label_values, prediction_values)
    ids = _whole(label_values)
    if ids is None:
        return NO_CLASSES
    if label_values.shape == prediction_values.shape:
        decided = (
            np.rint(prediction_values)
            if argmax is False
            else _decided(ids, prediction_values, predictions.name)
        )
        predicted, count = (None if decided is None else _whole(decided)), 0
        if predicted is None or (predicted < 0).any():
            return NO_CLASSES_PREDICTED
    else:
        axis = _axis_of_classes(
            label_values, prediction_values, predictions.name, last=argmax is True
        )
        if axis is None or argmax is False:
            shapes = f"labels of shape {label_array.shape}, predictions of shape {scores.shape}"
            return f"{shapes} do not match"
        predicted, count = np.argmax(prediction_values, axis=axis), prediction_values.shape[axis]
    sample = _checked(ids.reshape(-1), predicted.reshape(-1), count)
    return sample if isinstance(sample, str) else sample._replace(positions=ids.ndim > 1)


def are_tokens(trial: Any, sample: LabelledClasses, step: int) -> bool:
    """Return whether the labels at `step` are the tokens of a text, by the kind of training."""
    is_language = training_kind(trial) is TrainingKind.LANGUAGE_MODEL
    if is_language and sample.scored > MOST_OF_TEXT:
        return True
    shapes = [
        value_shape(saved, step) for saved in saved_tensors(trial, step, TOKENS.names(trial, step))
    ]
    # One label for each token, in a single row.
    return any(shape and len(sample.labels) > shape[0] for shape in shapes)


def _checked(labels: Ints, predictions: Ints, count: int) -> LabelledClasses | str:
    """Leave out ignored labels, and check that the others are valid classes."""
    is_kept = labels != IGNORED_LABEL
    if count:
        is_kept &= labels != _ignore_index(labels[is_kept], count)
    labels, predictions = labels[is_kept], predictions[is_kept]
    if not labels.size:
        return "all labels are ignored"
    if labels.min() < 0:
        return NO_CLASSES
    if count and labels.max() >= count:
        return f"the label {labels.max()} has no score among {count}"
    return LabelledClasses(labels, predictions, count)


def _ignore_index(labels: Ints, count: int) -> int:
    """Return the only label without a score, such as 255 of maps or -1 of texts.

    A loss accepts such a label only if it ignores it. `IGNORED_LABEL` if there are none or several,
    or if no label has a score.
    """
    has_score = (labels >= 0) & (labels < count)
    unscored = np.unique(labels[~has_score])
    return int(unscored[0]) if unscored.size == 1 and has_score.any() else IGNORED_LABEL


def _plain(array: Any) -> Any:
    """Return an array of a numpy type, without axes of length one after the first."""
    if array.dtype.kind == "V":  # bfloat16
        array = array.astype(np.float32)
    if not array.ndim:
        return array.reshape(1)
    return array.reshape(array.shape[0], *(size for size in array.shape[1:] if size > 1))


def _without_rows(labels: Any, scores: Any) -> Any:
    """Return one-hot rows as classes, other labels unchanged."""
    like_scores = scores.shape == labels.shape and scores.dtype.kind == "f"
    if labels.ndim <= 1 or not like_scores:
        return labels
    for axis in (-1, 1):
        is_one = labels == 1
        if (is_one.sum(axis=axis) == 1).all() and np.count_nonzero(labels) == is_one.sum():
            return np.argmax(is_one, axis=axis)
    return labels


def _whole(values: Any) -> Ints | None:
    """Return values as integers, or None if they are not integers."""
    if values.dtype.kind == "f" and not (np.isfinite(values) & (values == np.rint(values))).all():
        return None
    if values.size and not -_LARGEST < values.min() <= values.max() < _LARGEST:
        return None
    ids: Ints = values.astype(np.int64)
    return ids


def _decided(labels: Ints, predictions: Any, name: str) -> Any | None:
    """Return the classes of predictions with the shape of the labels, or None."""
    if predictions.dtype.kind != "f":
        return predictions
    binary = bool(np.isin(labels, (0, 1, IGNORED_LABEL)).all())
    several = labels.ndim == MULTILABEL_DIMENSIONS
    if binary and (several or _REGRESSION.search(name)):
        return None
    if binary and _LOGITS.search(name):
        return predictions > 0
    if binary and predictions.min() >= 0 and predictions.max() <= 1:
        return predictions > _HALF
    if _whole(predictions) is not None:
        return predictions
    return predictions > 0 if binary else None


def _axis_of_classes(labels: Any, scores: Any, name: str, *, last: bool) -> int | None:
    """Return the axis of `scores` that the labels do not have, or None if shapes do not match."""
    if scores.ndim != labels.ndim + 1:
        return None
    fitting = [
        axis
        for axis in dict.fromkeys((scores.ndim - 1, 1))
        if scores.shape[:axis] + scores.shape[axis + 1 :] == labels.shape
    ]
    # Both fit if there are as many classes as positions.
    return (
        (fitting[0] if last or not _LOSS_INPUT.search(name) else fitting[-1]) if fitting else None
    )
