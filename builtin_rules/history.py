"""History: the earlier steps that a step is compared with, and the parameters that are frozen."""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, Final

from builtin_rules.selection import Saved
from smdebug.core.collection import CollectionKeys
from smdebug.core.modes import ModeKeys

_STILL: Final = frozenset({ModeKeys.EVAL, ModeKeys.PREDICT})


def learns(trial: Any, step: int) -> bool:
    """Say whether weights may move at `step`: it is one of training, or no mode was set."""
    return trial.mode(step) not in _STILL


class Comparable:
    """The steps that a step may be compared with: of its mode, and with training in between.

    While a model is evaluated nothing learns: of each phase of evaluation, a run of steps of one
    mode, only the first step counts.

    Parameters
    ----------
    step
        The global step in hand.
    """

    def __init__(self, trial: Any, step: int) -> None:
        self._trial = trial
        self._mode = trial.mode(step)
        self._steps: list[int] = [] if learns(trial, step) else trial.steps()

    def __contains__(self, step: int) -> bool:
        if self._trial.mode(step) is not self._mode:
            return False
        at = bisect_left(self._steps, step)
        return at == 0 or self._trial.mode(self._steps[at - 1]) is not self._mode


def backwards(one: Saved, step: int, among: Comparable | None) -> Iterator[int]:
    """Yield the steps up to `step` at which a worker saved a tensor, the latest first.

    `among` tells which steps count; None: all.
    """
    for at in one.tensor.steps_back(step):
        if (among is None or at in among) and one.worker in one.tensor.workers(at):
            yield at


class Gradients:
    """Which parameters of a trial are trained: those that have had a gradient so far.

    The names of gradients hold those of their parameters, whatever the framework.

    Attributes
    ----------
    tell
        Whether some weight has one; otherwise nothing is known of the others.
    """

    def __init__(self, trial: Any) -> None:
        self._names = "\n".join(trial.tensor_names(collection=CollectionKeys.GRADIENTS))
        self.tell = any(map(self.has, trial.tensor_names(collection=CollectionKeys.WEIGHTS)))

    def has(self, parameter: str) -> bool:
        """Say whether a parameter has a gradient."""
        return parameter in self._names
