"""Classes: labels and predictions that belong together at a step, as integer classes."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from builtin_rules.selection import Saved, numbers, saved

# What a loss of PyTorch or MXNet is called with, where no collection has it.
LABELS_OF_LOSS: Final = r"(?i)loss\d*_input_1$"
PREDICTIONS_OF_LOSS: Final = r"(?i)loss\d*_input_0$"
NO_PAIR: Final = "no labels with predictions at this step"
NO_NUMBERS: Final = "labels or predictions without numbers"
NO_CLASSES: Final = "labels are no classes"
NO_CLASSES_PREDICTED: Final = "predictions are no classes"
IGNORED: Final = -100  # what PyTorch's losses pass over by default
_LOGITS: Final = re.compile(r"logit", re.IGNORECASE)
_LOSS_INPUT: Final = re.compile(r"loss\d*_input_", re.IGNORECASE)
# A loss of real numbers: 0 and 1 are no classes there.
_REGRESSION: Final = re.compile(r"(mse|l[12]|huber|gauss|poisson)\w*loss", re.IGNORECASE)
_HALF: Final = 0.5
_LARGEST: Final = 2**31  # of a class

Ints = NDArray[np.int64]


class Classes(NamedTuple):
    """Labels and predicted classes of one worker's samples, both of shape ``(n,)``, all >= 0.

    `scored` is the number of classes if the predictions tell it by scores, otherwise 0.
    """

    labels: Ints
    predictions: Ints
    scored: int


def paired(
    trial: Any, step: int, labels: Iterable[str], predictions: Iterable[str]
) -> Iterator[tuple[Saved, Saved]]:
    """Yield the labels and the predictions of each worker at `step` that belong together.

    A worker's tensors pair by sorted name if they are as many, otherwise the first of each.
    """
    found: dict[str, tuple[list[Saved], list[Saved]]] = {}
    for side, names in enumerate((labels, predictions)):
        for one in saved(trial, step, sorted(names)):
            found.setdefault(one.worker, ([], []))[side].append(one)
    for _, (known, told) in sorted(found.items()):
        count = len(known) if len(known) == len(told) else 1
        yield from zip(known[:count], told[:count], strict=False)


def classes(
    labels: Saved, predictions: Saved, step: int, *, argmax: bool | None = None
) -> Classes | str:
    """Return the classes of a pair at `step`, or why there are none.

    Labels are ``(n, ...)``, whole numbers from 0 on, or as many 0/1 rows with a single 1; `IGNORED`
    ones are left out. Predictions are scores with an axis of classes, behind all others or at
    position 1 as PyTorch's losses take them; or of the labels' shape: classes, or for labels of 0
    and 1 probabilities (above 0.5) or logits (above 0). NaN among predictions is a reason.

    Parameters
    ----------
    argmax
        True: the last axis is that of the scores; False: predictions are rounded, never scores;
        None: told by the shapes.
    """
    label_array, scores = numbers(labels, step), numbers(predictions, step)
    if label_array is None or scores is None:
        return NO_NUMBERS
    known, told = _plain(label_array), _plain(scores)
    if np.isnan(told).any():
        return "predictions with NaN"
    known = _without_rows(known, told)
    ids = _whole(known)
    if ids is None:
        return NO_CLASSES
    if known.shape == told.shape:
        found = np.rint(told) if argmax is False else _decided(ids, told, predictions.name)
        predicted, count = (None if found is None else _whole(found)), 0
        if predicted is None or (predicted < 0).any():
            return NO_CLASSES_PREDICTED
    else:
        axis = _axis_of_classes(known, told, predictions.name, last=argmax is True)
        if axis is None or argmax is False:
            shapes = f"labels of shape {label_array.shape}, predictions of shape {scores.shape}"
            return f"{shapes}: they do not belong together"
        predicted, count = np.argmax(told, axis=axis), told.shape[axis]
    return _checked(ids.reshape(-1), predicted.reshape(-1), count)


def label_classes(labels: Saved, step: int) -> Ints | None:
    """Return the labels of a worker as classes ``(n,)``, or None if they are none, or not there.

    As in `classes`; rows of 0 and 1 are told without predictions.
    """
    array = numbers(labels, step)
    if array is None:
        return None
    known = _plain(array)
    ids = _whole(_without_rows(known, None))
    if ids is None:
        return None
    ids = ids[ids != IGNORED]
    return None if (ids < 0).any() or not ids.size else ids


def _checked(labels: Ints, predictions: Ints, count: int) -> Classes | str:
    """Leave out what is ignored, and see whether the labels are among the classes."""
    kept = labels != IGNORED
    labels, predictions = labels[kept], predictions[kept]
    if not labels.size:
        return "all labels are ignored"
    if labels.min() < 0:
        return NO_CLASSES
    if count and labels.max() >= count:
        return f"the label {labels.max()} has no score among {count}"
    return Classes(labels, predictions, count)


def _plain(array: Any) -> Any:
    """Return numbers that numpy knows, without axes of one element behind the first."""
    if array.dtype.kind == "V":  # bfloat16
        array = array.astype(np.float32)
    if not array.ndim:
        return array.reshape(1)
    return array.reshape(array.shape[0], *(size for size in array.shape[1:] if size > 1))


def _without_rows(labels: Any, scores: Any | None) -> Any:
    """Return one-hot rows as classes; all other labels as they are."""
    like_scores = scores is None or (scores.shape == labels.shape and scores.dtype.kind == "f")
    if labels.ndim < 2 or not like_scores:  # noqa: PLR2004 - rows
        return labels
    for axis in (-1, 1):
        is_one = labels == 1
        if (is_one.sum(axis=axis) == 1).all() and np.count_nonzero(labels) == is_one.sum():
            return np.argmax(is_one, axis=axis)
    return labels


def _whole(values: Any) -> Ints | None:
    """Return whole numbers as such, or None if they are none."""
    if values.dtype.kind == "f" and not (np.isfinite(values) & (values == np.rint(values))).all():
        return None
    if values.size and not -_LARGEST < values.min() <= values.max() < _LARGEST:
        return None
    ids: Ints = values.astype(np.int64)
    return ids


def _decided(labels: Ints, told: Any, name: str) -> Any | None:
    """Return the classes that predictions of the labels' shape tell, or None."""
    if told.dtype.kind != "f":
        return told
    binary = bool(np.isin(labels, (0, 1, IGNORED)).all())
    several = labels.ndim == 2  # noqa: PLR2004 - several labels a sample
    if binary and (several or _REGRESSION.search(name)):
        return None
    if binary and _LOGITS.search(name):
        return told > 0
    if binary and told.min() >= 0 and told.max() <= 1:
        return told > _HALF
    if _whole(told) is not None:
        return told
    return told > 0 if binary else None


def _axis_of_classes(labels: Any, scores: Any, name: str, *, last: bool) -> int | None:
    """Return the axis of `scores` that the labels lack, or None if they differ otherwise."""
    if scores.ndim != labels.ndim + 1:
        return None
    fitting = [
        axis
        for axis in dict.fromkeys((scores.ndim - 1, 1))
        if scores.shape[:axis] + scores.shape[axis + 1 :] == labels.shape
    ]
    # Both fit where there are as many classes as positions.
    return (
        (fitting[0] if last or not _LOSS_INPUT.search(name) else fitting[-1]) if fitting else None
    )
