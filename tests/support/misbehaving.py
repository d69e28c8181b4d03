"""Rules for tests of rules beside each other: one sees all that it can, one spoils what it gets."""

import hashlib
import os
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from smdebug.analysis.utils import no_refresh
from smdebug.core.modes import ModeKeys
from smdebug.exceptions import SMDebugError
from smdebug.rules import Rule


class LooksAround(Rule):
    """Reports at every step a digest of all that it can see."""

    def invoke_at_step(self, step: int) -> bool:
        trial = self.base_trial
        visible: list[object] = [
            trial.tensor_names(),
            trial.tensor_names(step=step),
            {name: trial.tensor_names(collection=name) for name in sorted(trial.collections())},
            [repr(collection) for collection in trial.collections().values()],
            trial.steps(),
            [(mode, trial.steps(mode), trial.tensor_names(mode=mode)) for mode in trial.modes()],
            trial.mode_modestep(step),
            trial.last_complete_step,
            trial.workers(),
            sorted(trial.worker_set),
            (trial.name, trial.path, trial.num_workers, trial.loaded_all_steps),
            trial.wall_times(step),
            [self._of(trial.tensor(name), step) for name in trial.tensor_names()],
        ]
        digest = hashlib.sha256(repr(visible).encode()).hexdigest()[:16]
        return self.found(step, measured=digest)

    def _of(self, tensor: Any, step: int) -> object:
        return [
            {at: value.tolist() for at, value in tensor.values().items()},
            tensor.steps(),
            [tensor.workers(one) for one in tensor.steps()],
            tensor.prev_steps(step, 2),
            tensor.shapes(),
            [self._computed(tensor, step, name) for name in ("mean", "max", "l2", "median")],
        ]

    @staticmethod
    def _computed(tensor: Any, step: int, name: str) -> object:
        try:
            reductions = {
                key: value.tolist() for key, value in tensor.reduction_values(step).items()
            }
            return float(tensor.reduction_value(step, name, abs=True)), reductions
        except SMDebugError as err:
            return type(err).__name__


class Overflows(Rule):
    """Divides by zero, which warns: met unless somebody has made an error of that."""

    def invoke_at_step(self, step: int) -> bool:
        self.base_trial.steps()
        warnings.warn("A rule divides.", stacklevel=1)
        return self.found(step, measured=float(np.float32(1) / np.float32(0)))


def _values(trial: Any, step: int) -> None:
    for name in trial.tensor_names(step=step):
        tensor = trial.tensor(name)
        for value in (tensor.value(step), *tensor.values().values()):
            value[...] = 7


def _views(trial: Any, step: int) -> None:
    for name in trial.tensor_names(step=step):
        view = trial.tensor(name).view(step)
        with suppress(ValueError):
            view.setflags(write=True)
        with suppress(ValueError):
            view[...] = 7


def _reductions(trial: Any, step: int) -> None:
    for name in trial.tensor_names(step=step):
        tensor = trial.tensor(name)
        for operation in ("mean", "max", "l2", "median"):
            value = tensor.reduction_value(step, operation, abs=True)
            with suppress(TypeError):
                value[...] = 7
            value += 1
        for value in tensor.reduction_values(step).values():
            value[...] = 7
        tensor.reduction_values(step).clear()


def _lists(trial: Any, step: int) -> None:
    for found in (
        trial.tensor_names(),
        trial.tensor_names(step=step),
        trial.tensor_names(regex=".*"),
        trial.tensor_names(collection="losses"),
        trial.steps(),
        trial.steps(ModeKeys.TRAIN),
        trial.steps(show_incomplete_steps=True),
        trial.modes(),
        trial.workers(),
        trial.worker_set,
        trial.wall_times(step),
    ):
        found.clear()


def _lists_of_tensors(trial: Any, step: int) -> None:
    for name in trial.tensor_names(step=step):
        tensor = trial.tensor(name)
        for found in (
            tensor.steps(),
            tensor.steps(ModeKeys.TRAIN),
            tensor.prev_steps(step),
            tensor.workers(step),
            tensor.shapes(),
            tensor.values(),
        ):
            found.clear()


def _collections(trial: Any, _: int) -> None:
    for collection in trial.collections().values():
        collection.include(".*")
        collection.tensor_names.add("spoilt")
        collection.name = "spoilt"
    trial.collection("gradients").include_regex.clear()
    trial.collection("new").include(".*")
    trial.collections().pop("losses", None)


def _tensors(trial: Any, step: int) -> None:
    for name in trial.tensor_names(step=step):
        tensor = trial.tensor(name)
        tensor.name, tensor.trial = "spoilt", None
    trial.tensor = trial.tensor_names = trial.steps = None


def _view_of_the_trial(trial: Any, _: int) -> None:
    trial.horizon, trial.dynamic_refresh = None, True
    trial.reads, trial.damaged = 10**6, 10**6
    trial.missed.clear()
    trial.name = trial.path = "spoilt"
    trial.index = trial.clock = None


def _refreshing(trial: Any, _: int) -> None:
    trial.refreshing = no_refresh(trial)
    trial.refreshing.__enter__()
    trial.horizon = 0


def _range(trial: Any, _: int) -> None:
    with suppress(AttributeError):
        trial.range_steps = (0, 1)


def _settings(_: Any, __: int) -> None:
    np.seterr(all="raise")
    np.set_printoptions(precision=1)
    warnings.simplefilter("error")
    os.environ.update(SMDEBUG_TRAINING_END_DELAY_REFRESH="x", AWS_PROFILE="spoilt")
    os.chdir("/")
    sys.path.clear()


SPOILS: dict[str, Callable[[Any, int], None]] = {
    "values": _values,
    "views": _views,
    "reductions": _reductions,
    "lists": _lists,
    "lists of tensors": _lists_of_tensors,
    "collections": _collections,
    "tensors": _tensors,
    "view of the trial": _view_of_the_trial,
    "refreshing": _refreshing,
    "range": _range,
    "settings": _settings,
}


class Spoils(Rule):
    """Changes in place what it gets, in one way; what it reports is of no interest."""

    def __init__(self, base_trial: Any, other_trials: Any = None, what: str = "values") -> None:
        super().__init__(base_trial, other_trials=other_trials)
        self.what = what
        if what == "settings":
            _settings(None, 0)

    def invoke_at_step(self, step: int) -> bool:
        for trial in self.trials:
            SPOILS[self.what](trial, step)
        return False

    def invoke_at_end(self, step: int) -> bool:
        return self.invoke_at_step(step)
