"""Losses: the mean losses of training and of validation that a trial saved, by step and phase."""

import math
import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeVar

from builtin_rules.levels import NOISE_WINDOW, noise
from builtin_rules.selection import numbers, saved
from smdebug.core.modes import ModeKeys

NO_LOSS: Final = "no finite loss at this step"
_METRIC: Final = re.compile(r"^[^/]+-[^/-]+$")  # XGBoost's <set>-<metric>
_TELL_NOISE: Final = 3  # losses that tell a noise
_TRAINING_SET: Final = re.compile(r"^d?train(ing)?$", re.IGNORECASE)
_VALIDATION: Final = re.compile(r"(^|/)val_")  # Keras saves it with a step of training
_K = TypeVar("_K")


class Key(NamedTuple):
    """What a training and a validation loss have in common, and the name of the latter.

    Both are empty for the mean over the losses of a mode.
    """

    metric: str
    name: str


class Losses(NamedTuple):
    """The losses of one step, finite ones only."""

    training: dict[str, float]  # by metric
    validation: dict[Key, float]


def loss(trial: Any, step: int, name: str) -> float | None:
    """Return the mean of a loss over its elements and workers, or None if there is none."""
    means = [
        float(array.mean(dtype="float64"))
        for one in saved(trial, step, [name])
        if (array := numbers(one, step)) is not None and array.dtype.kind != "b"
    ]
    return sum(means) / len(means) if means else None


def losses_at(trial: Any, step: int, names: Iterable[str]) -> Losses:
    """Return the losses of a step.

    In mode TRAIN they are those of training, in mode EVAL those of validation. Where no mode was
    set, XGBoost's ``<set>-<metric>`` are told by their sets, and others are those of training.
    """
    every = {name: one for name in names if (one := loss(trial, step, name)) is not None}
    found = {name: one for name, one in every.items() if math.isfinite(one)}
    match trial.mode(step):
        case ModeKeys.PREDICT:
            return Losses({}, {})
        case ModeKeys.EVAL:
            return Losses({}, _mean(Key("", ""), found))
        case ModeKeys.GLOBAL if found and all(map(_METRIC.match, found)):
            return _of_sets(found)
    validation = {name: one for name, one in found.items() if _VALIDATION.search(name)}
    training = {name: one for name, one in found.items() if name not in validation}
    return Losses(_mean("", training), _mean(Key("", ""), validation))


def _mean(key: _K, found: dict[str, float]) -> dict[_K, float]:
    """Return the mean of what was found, under `key`; nothing if there is nothing."""
    return {key: sum(found.values()) / len(found)} if found else {}


def _of_sets(found: dict[str, float]) -> Losses:
    """Tell XGBoost's metrics of the training set from those of the others."""
    losses = Losses({}, {})
    for name, value in found.items():
        set_name, _, metric = name.rpartition("-")
        if _TRAINING_SET.match(set_name):
            losses.training[metric] = value
        else:
            losses.validation[Key(metric, name)] = value
    return losses


@dataclass(slots=True)
class Sample:
    """Losses of one phase: how many, their mean, and the noise of one; bounded memory."""

    count: int = 0
    mean: float = 0.0
    latest: deque[float] = field(default_factory=lambda: deque(maxlen=NOISE_WINDOW + 1))

    def add(self, value: float) -> None:
        """Add a loss of the phase."""
        self.count += 1
        self.mean += (value - self.mean) / self.count
        self.latest.append(value)

    def begin(self) -> None:
        """Begin the next phase; the noise is told over phases."""
        self.count, self.mean = 0, 0.0

    def error(self, other: "Sample | None" = None) -> float:
        """Return the standard error of the mean, by the noise of `other` while there is none."""
        latest = self.latest if other is None or len(self.latest) >= _TELL_NOISE else other.latest
        return noise(latest) / math.sqrt(self.count)


class Phase(NamedTuple):
    """A phase of evaluation that has ended, and the training before it.

    `training` is None where there was none since the last phase.
    """

    key: Key
    training: float | None
    validation: float
    training_error: float
    validation_error: float


class Phases:
    """Follows the phases of a trial: its training losses since the last one, and their ends.

    A phase of evaluation ends with the first step of training behind it. A step that holds losses
    of both, such as XGBoost's, is a phase, and so is one of a trial that never trains.
    """

    def __init__(self) -> None:
        self._training: dict[str, Sample] = {}  # as many as metrics
        self._validation: dict[Key, Sample] = {}
        self._evaluating = False

    def add(self, trial: Any, step: int, losses: Losses) -> list[Phase]:
        """Add a step's losses, and return the phases that have ended."""
        mode = trial.mode(step)
        ended: list[Phase] = []
        if mode is ModeKeys.TRAIN:
            if not self._evaluating:
                self._add_validation(losses)
            ended = self.end()
        self._add_training(losses)
        if mode is not ModeKeys.TRAIN:
            self._add_validation(losses)
            if mode is ModeKeys.GLOBAL or ModeKeys.TRAIN not in trial.modes():
                ended = self.end()
        return ended

    def _add_training(self, losses: Losses) -> None:
        for metric, value in losses.training.items():
            self._training.setdefault(metric, Sample()).add(value)

    def _add_validation(self, losses: Losses) -> None:
        for key, value in losses.validation.items():
            self._validation.setdefault(key, Sample()).add(value)
            self._evaluating = True

    def end(self) -> list[Phase]:
        """End the phase in hand, if there is one, and return it for each validation loss."""
        ended = [self._phase(key, one) for key, one in self._validation.items() if one.count]
        if ended:
            for sample in (*self._training.values(), *self._validation.values()):
                sample.begin()
        self._evaluating = False
        return ended

    def _phase(self, key: Key, validation: Sample) -> Phase:
        training = self._training.get(key.metric)
        if training is None or not training.count:
            return Phase(key, None, validation.mean, 0.0, validation.error())
        return Phase(
            key, training.mean, validation.mean, training.error(), validation.error(training)
        )
