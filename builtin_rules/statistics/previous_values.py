"""The earlier steps that a step is compared with, and frozen parameters."""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, Final

from builtin_rules.statistics.tensor_selection import SavedTensor
from smdebug.core.collection import CollectionKeys
from smdebug.core.modes import ModeKeys

_STILL: Final = frozenset({ModeKeys.EVAL, ModeKeys.PREDICT})


def is_learning_step(trial: Any, step: int) -> bool:
    """Return whether weights may change at `step`: in training, or if no mode was set."""
    return trial.mode(step) not in _STILL


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

    def __contains__(self, step: int) -> bool:
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


class TrainedParameters:
    """The parameters of a trial that are trained, that is, have had a gradient so far.

    In all frameworks, names of gradients contain those of their parameters.

    Attributes
    ----------
    are_known
        Whether any weight has a gradient; if not, any parameter may be trained.
    """

    def __init__(self, trial: Any) -> None:
        self._names = "\n".join(trial.tensor_names(collection=CollectionKeys.GRADIENTS))
        self.are_known = any(map(self.has, trial.tensor_names(collection=CollectionKeys.WEIGHTS)))

    def has(self, parameter: str) -> bool:
        """Return whether a parameter has a gradient."""
        return parameter in self._names
