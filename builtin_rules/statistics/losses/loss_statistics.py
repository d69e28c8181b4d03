"""Mean training and validation losses of a trial, by step and phase."""

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeVar

from builtin_rules.statistics.noise_levels import NOISE_WINDOW, NoiseWindow
from builtin_rules.statistics.tensor_selection import (
    SavedTensor,
    names_in_mode,
    numbers,
    statistic,
    tensors_of_mode,
    view,
)
from smdebug.core.modes import ModeKeys
from smdebug.rules.extensions import SingleNumber

SEVERAL: Final = 2
NO_LOSS: Final = "no finite loss at this step"
_METRIC: Final = re.compile(  # XGBoost's <set>-<metric>
    r"([^/]+?)-((?:(?:poisson|gamma|cox|aft|tweedie|interval-regression)-)?[^/-]+)"
)
MIN_NOISE_LOSSES: Final = 3
START_LOSSES: Final = 3  # the first, of which the highest is the level at the start
_SINGLE: Final = SingleNumber()
_TRAINING_SET: Final = re.compile(r"^d?train(ing)?$", re.IGNORECASE)
_VALIDATION: Final = re.compile(r"(^|/)val_")  # Keras saves it with a step of training
OF_EPOCH: Final = "_epoch"  # the end of the name of a mean over the steps of an epoch
_K = TypeVar("_K")


def split_metric(name: str) -> tuple[str, str] | None:
    """Return the set and the metric in a name of XGBoost's, or None if it is another name.

    >>> split_metric("train-rmse"), split_metric("my-set-cox-nloglik"), split_metric("loss")
    (('train', 'rmse'), ('my-set', 'cox-nloglik'), None)
    """
    match = _METRIC.fullmatch(name)
    return None if match is None else (match[1], match[2])


class LossKey(NamedTuple):
    """The metric that a training and a validation loss share, and the name of the latter.

    Both are empty for the mean over all losses of a mode.
    """

    metric: str
    name: str


class StepLosses(NamedTuple):
    """The finite losses of one step."""

    training: dict[str, float]  # by metric; "_epoch" for means over an epoch
    validation: dict[LossKey, float]


def single_number(saved: SavedTensor, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> float | None:
    """Return the element of a tensor if it is the only one and a real number, otherwise None.

    It is not read if the tensor is measured at this step for other rules.

    Parameters
    ----------
    step
        The step of the mode.
    """
    number = measured_number(saved, step, mode)
    if number is not None:
        return number
    array = view(saved, step, mode)
    is_single = array is not None and array.size == 1 and array.dtype.kind in "iufV"
    return float(array.reshape(-1)[0]) if is_single else None


def measured_number(saved: SavedTensor, step: int, mode: ModeKeys) -> float | None:
    """Return the only element of a tensor that is known without reading it.

    That is a number in a row of a source, or one that is measured at this step for other rules.
    It is None for other tensors. What is measured is None for NaN and zeros too, whose sign is
    unknown.

    Parameters
    ----------
    step
        The step of the mode.
    """
    trial: Any = saved.tensor.trial
    logged: float | None = trial.scalar(saved.name, step, mode, saved.worker)
    if logged is not None or mode is not ModeKeys.GLOBAL:
        return logged
    shape = trial.prefetched_shapes(step, saved.worker, [saved.name]).get(saved.name)
    if shape is None or math.prod(shape) != 1:
        return None
    number: float | None = statistic(saved, step, _SINGLE)
    return number if number is not None and abs(number) > 0 else None


def mean_of(saved: SavedTensor, step: int, mode: ModeKeys) -> float | None:
    """Return the mean of the elements of a loss, or None without numbers."""
    measured = measured_number(saved, step, mode)
    if measured is not None:
        return measured
    array = numbers(saved, step, mode)
    is_number = array is not None and array.dtype.kind != "b"
    return float(array.mean(dtype="float64")) if is_number else None


def loss(
    trial: Any,
    step: int,
    name: str,
    mode: ModeKeys = ModeKeys.GLOBAL,
    number_of: Callable[[SavedTensor, int, ModeKeys], float | None] = mean_of,
) -> float | None:
    """Return the mean of a loss over its workers, or None.

    Parameters
    ----------
    step
        The step of the mode.
    number_of
        Returns the loss of a worker, by default the mean of its elements.
    """
    logged: float | None = trial.scalar(name, step, mode)
    if logged is not None:
        return logged
    losses = [
        value
        for saved in tensors_of_mode(trial, step, [name], mode)
        if (value := number_of(saved, step, mode)) is not None
    ]
    return sum(losses) / len(losses) if losses else None


def losses_at(trial: Any, step: int, names: Iterable[str]) -> StepLosses:
    """Return the losses of a step.

    In mode TRAIN they are training losses, in mode EVAL validation losses; a step may have both
    modes. Without modes, XGBoost's ``<set>-<metric>`` are classified by their sets, and other
    losses are training losses.
    """
    step_losses = StepLosses({}, {})
    for mode in trial.modes_at(step):
        losses = _losses_in(trial, *names_in_mode(trial, step, names, mode), mode)
        step_losses.training.update(losses.training)
        step_losses.validation.update(losses.validation)
    return step_losses


def _losses_in(
    trial: Any, names: Iterable[str], step: int, read: ModeKeys, mode: ModeKeys
) -> StepLosses:
    """Return the losses of a step in its mode; `step` is one of mode `read`."""
    losses = {name: value for name in names if (value := loss(trial, step, name, read)) is not None}
    finite = {name: value for name, value in losses.items() if math.isfinite(value)}
    match mode:
        case ModeKeys.PREDICT:
            return StepLosses({}, {})
        case ModeKeys.EVAL:
            return StepLosses({}, _mean(LossKey("", ""), finite))
        case ModeKeys.GLOBAL if finite and all(map(split_metric, finite)):
            return _of_sets(finite)
    validation = {name: value for name, value in finite.items() if _VALIDATION.search(name)}
    training = {name: value for name, value in finite.items() if name not in validation}
    whole = {name: training.pop(name) for name in list(training) if name.endswith(OF_EPOCH)}
    means = _mean("", training) | _mean(OF_EPOCH, whole)
    return StepLosses(means, _mean(LossKey("", ""), validation))


def _mean(key: _K, losses: dict[str, float]) -> dict[_K, float]:
    """Return the mean of losses under `key`, or an empty dict without losses."""
    return {key: sum(losses.values()) / len(losses)} if losses else {}


def _of_sets(metrics: dict[str, float]) -> StepLosses:
    """Split XGBoost's metrics into those of the training set and those of others."""
    step_losses = StepLosses({}, {})
    for name, value in metrics.items():
        set_name, metric = split_metric(name) or ("", name)
        if _TRAINING_SET.match(set_name):
            step_losses.training[metric] = value
        else:
            step_losses.validation[LossKey(metric, name)] = value
    return step_losses


@dataclass(slots=True)
class PhaseLosses:
    """The losses of one phase: count, mean and noise, in bounded memory; and how they started."""

    count: int = 0
    mean: float = 0.0
    first: list[float] = field(default_factory=list)
    latest: NoiseWindow = field(default_factory=lambda: NoiseWindow(NOISE_WINDOW + 1))

    def add(self, value: float) -> None:
        """Add a loss of the phase."""
        if len(self.first) < START_LOSSES:
            self.first.append(value)
        self.count += 1
        self.mean += (value - self.mean) / self.count
        self.latest.add(value)

    def begin(self) -> None:
        """Start the next phase; the noise is estimated across phases."""
        self.count, self.mean = 0, 0.0

    def error(self, substitute: "PhaseLosses | None" = None) -> float:
        """Return the standard error of the mean.

        With too few losses to estimate the noise, that of `substitute` is used.
        """
        latest = self.latest
        if substitute is not None and len(latest) < MIN_NOISE_LOSSES:
            latest = substitute.latest
        return latest.noise() / math.sqrt(self.count)


class EvaluationPhase(NamedTuple):
    """A completed evaluation phase, and the training before it.

    `training` is None if there was none since the previous phase. `start` is the highest of the
    first training losses of the run, infinite without any.
    """

    key: LossKey
    training: float | None
    validation: float
    training_error: float
    validation_error: float
    start: float = math.inf


class EvaluationPhases:
    """Tracks the evaluation phases of a trial, and the training losses between them.

    An evaluation phase ends with the first training step after it. A step with losses of both
    kinds, as in XGBoost, is a phase, and so is each step of a trial that never trains. At a step of
    both modes, the training comes before the evaluation. Of a training loss that is saved for steps
    and as the mean of the epoch (``train_loss_epoch``), the latter counts.
    """

    def __init__(self) -> None:
        self._training: dict[str, PhaseLosses] = {}  # by metric
        self._validation: dict[LossKey, PhaseLosses] = {}
        self._evaluating = False

    def add(self, trial: Any, step: int, losses: StepLosses) -> list[EvaluationPhase]:
        """Add the losses of a step, and return the phases that have ended."""
        modes = trial.modes_at(step)
        if len(modes) < SEVERAL or ModeKeys.TRAIN not in modes:
            return self._add(trial, next(iter(modes), None), losses)
        before = self._add(trial, ModeKeys.TRAIN, StepLosses(losses.training, {}))
        return before + self._add(trial, ModeKeys.EVAL, StepLosses({}, losses.validation))

    def _add(self, trial: Any, mode: ModeKeys | None, losses: StepLosses) -> list[EvaluationPhase]:
        """Add the losses of a step in one mode, and return the phases that have ended."""
        ended: list[EvaluationPhase] = []
        if mode is ModeKeys.TRAIN:
            if not self._evaluating:
                self._add_validation(losses)
            ended = self.end()
        for metric, value in losses.training.items():
            self._training.setdefault(metric, PhaseLosses()).add(value)
        if mode is not ModeKeys.TRAIN:
            self._add_validation(losses)
            if mode is ModeKeys.GLOBAL or ModeKeys.TRAIN not in trial.modes():
                ended = self.end()
        return ended

    def _add_validation(self, losses: StepLosses) -> None:
        for key, value in losses.validation.items():
            self._validation.setdefault(key, PhaseLosses()).add(value)
            self._evaluating = True

    def end(self) -> list[EvaluationPhase]:
        """End the current phase, if any, and return it for each validation loss."""
        ended = [
            self._phase(key, validation)
            for key, validation in self._validation.items()
            if validation.count
        ]
        if ended:
            for sample in (*self._training.values(), *self._validation.values()):
                sample.begin()
        self._evaluating = False
        return ended

    def _phase(self, key: LossKey, validation: PhaseLosses) -> EvaluationPhase:
        whole = self._training.get(OF_EPOCH)
        is_whole = whole is not None and whole.count and not key.metric
        training = whole if is_whole else self._training.get(key.metric)
        if training is None or not training.count:
            return EvaluationPhase(key, None, validation.mean, 0.0, validation.error())
        means = training.mean, validation.mean
        errors = training.error(), validation.error(training)
        return EvaluationPhase(key, *means, *errors, max(training.first))
