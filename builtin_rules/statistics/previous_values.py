"""The earlier steps that a step is compared with, frozen parameters, and warm-ups."""

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Any, Final

import numpy as np

from builtin_rules.statistics.tensor_selection import (
    SavedTensor,
    TensorKey,
    numbers,
    only_number,
    saved_tensor,
    tensor_names,
    view,
)
from smdebug.core.collection import CollectionKeys
from smdebug.core.modes import ModeKeys

REQUIRES_GRAD: Final = "parameters/requires_grad/"  # before the name of a parameter
IS_SHARDED: Final = "parameters/is_sharded/"  # the same; exists only for shards
PARAMETERS: Final = "parameters"  # the collection of all named parameters
ALL_PARAMETERS: Final = (CollectionKeys.WEIGHTS, CollectionKeys.BIASES, PARAMETERS)
GRADIENT_NORM: Final = "optimizer/grad_norm"  # saved when the optimizer is called
CLIPPED_SHARE: Final = 0.5  # share of elements that are clipped
FEW_ELEMENTS: Final = 16  # fewer may be equal by chance
FALLEN_SHARE: Final = 0.1  # share of a loss that has been learnt
ROWS_BACK: Final = 40  # a learning rate that is 0 for longer belongs to no warm-up

_STILL: Final = frozenset({ModeKeys.EVAL, ModeKeys.PREDICT})


def is_learning_step(trial: Any, step: int) -> bool:
    """Return whether weights may change at `step`: in training, or if no mode was set."""
    return trial.mode(step) not in _STILL


def is_between_updates(trial: Any, steps: Sequence[int]) -> bool:
    """Return whether no update of the optimizer lies between the values of parameters at steps.

    Batches are then accumulated over saved steps. Updates are known by the norms that a hook saves
    with them, at the next saved step if need be; where it has saved none so far, the optimizer may
    never be called. Nor is it called any more if the latest update lies more than 40 saved steps
    back, and more than three times as many as lay between the two latest ones.
    """
    if not trial.has_tensor(GRADIENT_NORM):
        return False
    updates = [*islice(trial.tensor(GRADIENT_NORM).steps_back(steps[-1] - 1), 2)]
    if updates and updates[0] > steps[0]:
        return False
    saved = trial.steps()
    rows = [bisect_left(saved, step) for step in (steps[-1], *updates)]
    since = rows[0] - rows[1] if updates else rows[0]
    usual = rows[1] - rows[2] if len(updates) > 1 else 0
    return since <= max(ROWS_BACK, 3 * usual)


def has_fallen(saved: SavedTensor, step: int, share: float = FALLEN_SHARE) -> bool:
    """Return whether a loss is one number and below its first value by more than a share of it."""
    latest, start = only_number(saved, step), only_number(saved, saved.tensor.first_step)
    if latest is None or start is None:
        return False
    return start - latest > share * abs(start)


def is_clipped(saved: SavedTensor, step: int) -> bool:
    """Return whether most elements of a weight are at the bounds that a critic's are clipped to.

    They then have one magnitude above 0, the largest. A weight that has been so since its first
    value may simply never have moved.
    """
    array, first = view(saved, step), view(saved, saved.tensor.first_step)
    return _is_at_bounds(array) and not _is_at_bounds(first)


def _is_at_bounds(array: Any) -> bool:
    if array is None or array.size < FEW_ELEMENTS:
        return False
    magnitudes = np.abs(array)
    if not magnitudes.any():
        return False
    return bool(np.mean(magnitudes == magnitudes.max()) > CLIPPED_SHARE)


class ComparableSteps:
    """The steps that a step may be compared with: of the same mode, with training in between.

    As weights do not change during evaluation, only the first step of each evaluation phase, a run
    of steps of one mode, counts.

    Parameters
    ----------
    step
        The current global step.
    """

    def __init__(self, trial: Any, step: int) -> None:
        self._trial = trial
        self._mode = trial.mode(step)
        self._steps: list[int] = [] if is_learning_step(trial, step) else trial.steps()
        self._comparable: dict[int, bool] = {}

    def __contains__(self, step: int) -> bool:
        comparable = self._comparable.get(step)
        if comparable is None:
            comparable = self._comparable[step] = self._is_comparable(step)
        return comparable

    def _is_comparable(self, step: int) -> bool:
        if self._trial.mode(step) is not self._mode:
            return False
        index = bisect_left(self._steps, step)
        return index == 0 or self._trial.mode(self._steps[index - 1]) is not self._mode


def earlier_steps(
    saved: SavedTensor, step: int, comparable: ComparableSteps | None
) -> Iterator[int]:
    """Yield the steps up to `step` at which a worker saved a tensor, latest first.

    Only steps in `comparable` count, or all if it is None.
    """
    for earlier in saved.tensor.steps_back(step):
        if (comparable is None or earlier in comparable) and saved.worker in saved.tensor.workers(
            earlier
        ):
            yield earlier


def latest_steps(
    trial: Any,
    step: int,
    keys: Collection[TensorKey],
    comparable: ComparableSteps | None,
    count: int,
) -> dict[TensorKey, list[int]]:
    """Return for each tensor and worker the first `count` of its `earlier_steps`."""
    steps = trial.any_steps_back(step)
    rows = [*islice((row for row in steps if comparable is None or row in comparable), count)]
    names = [name for name, _ in keys]
    always = set(keys).intersection(*(trial.saved_by(row, names) for row in rows))
    return {
        key: rows
        if key in always and "@" not in key[1]  # not a further mode of a worker
        else [*islice(earlier_steps(saved_tensor(trial, key), step, comparable), count)]
        for key in keys
    }


class TrainedParameters:
    """Tells which parameters of a trial are trained.

    What `parameters/requires_grad/<parameter>` says up to a step counts; without it, a parameter is
    considered trained if it has had a gradient. In all frameworks, names of gradients contain those
    of their parameters.

    Attributes
    ----------
    are_known
        Whether any parameter other than a bias has a gradient. If not, parameters without a
        gradient may still be trained.
    """

    def __init__(self, trial: Any, step: int) -> None:
        self._trial = trial
        self._step = step
        weights = {*trial.tensor_names(collection=CollectionKeys.WEIGHTS)}
        gradients = trial.tensor_names(collection=CollectionKeys.GRADIENTS)
        self._gradients = {*gradients}
        self._names = "\n".join(gradients)
        self.are_known = any("bias" not in name for name in gradients) or any(
            map(self.has_gradient, weights)
        )

    def has_gradient(self, parameter: str) -> bool:
        """Return whether a parameter has had a gradient."""
        # The search takes as long as the list of all names.
        return f"gradient/{parameter}" in self._gradients or parameter in self._names

    def is_frozen(self, parameter: str) -> bool:
        """Return whether a parameter has never been trained, on purpose.

        A parameter that is frozen in the middle of a training is not: see docs/decisions/0049.
        """
        required = self._required(parameter)
        if required is None:
            return self.are_known and not self.has_gradient(parameter)
        return not required

    def some_are_frozen(self) -> bool:
        """Return whether the hook saved that any parameter never required a gradient."""
        flags = self._trial.tensor_names(regex=f"^{REQUIRES_GRAD}")
        return any(self.is_frozen(name.removeprefix(REQUIRES_GRAD)) for name in flags)

    def is_idle(self, parameter: str) -> bool:
        """Return whether a parameter that has gradients got none at the step, on purpose.

        It requires a gradient, and other parameters of the step have one: a batch, or a phase, of
        another part of the model.
        """
        if not self.has_gradient(parameter) or not self._required(parameter, rows=1):
            return False
        names = self._trial.tensor_names(step=self._step, collection=CollectionKeys.GRADIENTS)
        return bool(names) and not any(parameter in name for name in names)

    def has_flag(self, parameter: str) -> bool:
        """Return whether the trial tells if a parameter requires a gradient."""
        return bool(self._trial.has_tensor(REQUIRES_GRAD + parameter))

    def is_detached(self, parameter: str) -> bool:
        """Return whether a parameter requires a gradient and has none, while others have one."""
        lacks_gradient = self.are_known and not self.has_gradient(parameter)
        return lacks_gradient and self._required(parameter) is True

    def _required(self, parameter: str, rows: int | None = None) -> bool | None:
        """Return whether a parameter has required a gradient, or None if it was not saved.

        Of its saved flags, all count, or only the latest `rows`.
        """
        if not self.has_flag(parameter):
            return None
        tensor = self._trial.tensor(REQUIRES_GRAD + parameter)
        return any(
            bool(flag.any())
            for step in islice(tensor.steps_back(self._step), rows)
            for worker in tensor.workers(step)
            if (flag := view(SavedTensor(tensor, worker), step)) is not None
        )


class LearningRates:
    """The largest learning rates of a trial, by step: how they rise in a warm-up.

    Without a saved learning rate, no step belongs to a warm-up.
    """

    def __init__(self, trial: Any, step: int) -> None:
        self._tensors = [
            trial.tensor(name)
            for name in trial.tensor_names(collection=CollectionKeys.LEARNING_RATES)
        ]
        self._step = step

    def is_warm_up(self, since: int) -> bool:
        """Return whether the rate is higher than at a step `since`, or has never been above 0."""
        now, before = self._at(self._step), self._at(since)
        if now is None or before is None:
            return False
        return now > before or (now == 0 and self.is_zero_so_far())

    def is_known(self) -> bool:
        """Return whether a rate was saved."""
        return self._at(self._step) is not None

    def is_set(self) -> bool:
        """Return whether a rate was saved and is not 0."""
        return (self._at(self._step) or 0.0) != 0

    def is_zero_so_far(self) -> bool:
        """Return whether all rates before the current step were 0, of at most `ROWS_BACK` rows."""
        rates = [
            rate
            for tensor in self._tensors
            for step in islice(tensor.steps_back(self._step - 1), ROWS_BACK + 1)
            if (rate := _scalar(tensor, step)) is not None
        ]
        return 0 < len(rates) <= ROWS_BACK * len(self._tensors) and not any(rates)

    def _at(self, step: int) -> float | None:
        """Return the latest rates up to a step: the largest of all groups."""
        rates = [
            rate
            for tensor in self._tensors
            if (latest := next(tensor.steps_back(step), None)) is not None
            and (rate := _scalar(tensor, latest)) is not None
        ]
        return max(rates, default=None)


def parameter_names(trial: Any, step: int, collections: Collection[str]) -> list[str]:
    """Return the names of parameters in collections, without what is saved about them."""
    names = tensor_names(trial, step, collections, [])
    return [name for name in names if not name.startswith((REQUIRES_GRAD, IS_SHARDED))]


def _scalar(tensor: Any, step: int) -> float | None:
    array = numbers(SavedTensor(tensor, tensor.workers(step)[0]), step)
    return None if array is None else float(np.max(array))
