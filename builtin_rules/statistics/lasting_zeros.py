"""LastingZeros: gradients that are zero for good, and those that are zero for a good reason."""

import re
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any, Final

import numpy as np

from builtin_rules.statistics.tensor_selection import LOSSES, TensorKey, numbers, saved_tensors

IDLE: Final = "gradients of exactly 0 where nothing is to be learnt"
# An expert that gets no tokens has a gradient of zeros; `RouterCollapse` judges that.
EXPERT: Final = re.compile(r"(?i)experts?(?![a-z])")
# The gradient of a router that is sure of one expert is tiny, and so is that of an expert of few
# tokens.
ROUTED: Final = re.compile(
    r"(?i)(experts?|routers?|gating|gate_network|(moe|mlp|ffn)[._]w?gate)(?![a-z_])"
)
NAMES_KEPT: Final = 1 << 16
LASTING_VALUES: Final = 5  # saved values in a row
_LONGER_FACTOR: Final = 3  # times any earlier series of zeros, for zeros that last
# The part after the name of the layer in the names of its gradients, in all frameworks.
_LAST_PART: Final = re.compile(r"[./_:][^./_:]*(:\d+)?(Grad)?$")


def layer_of(name: str) -> str:
    """Return the common prefix of the gradients of a layer.

    >>> layer_of("gradient/net.fc1.bias"), layer_of("gradients/dense/kernel:0Grad")
    ('gradient/net.fc1', 'gradients/dense')
    """
    return _LAST_PART.sub("", name)


@lru_cache(NAMES_KEPT)
def is_routed(name: str) -> bool:
    """Return whether a gradient is of a router or an expert.

    >>> is_routed("gradient/moe.experts.3.w1.weight"), is_routed("gradient/fc1.weight")
    (True, False)
    """
    return ROUTED.search(name) is not None


def workers_without_loss(trial: Any, step: int) -> set[str]:
    """Return the workers whose losses at a step are all exactly 0: they have nothing to learn."""
    has_loss: dict[str, bool] = {}
    for saved in saved_tensors(trial, step, LOSSES.names(trial, step)):
        array = numbers(saved, step)
        if array is not None:
            has_loss[saved.worker] = has_loss.get(saved.worker, False) or bool(np.any(array))
    return {worker for worker, exists in has_loss.items() if not exists}


class LastingZeros:
    """Tells gradients that are zero for good from those that are zero at some steps.

    They last from five saved values in a row, and from more than three times as many as in any
    earlier series that ended.

    Attributes
    ----------
    current
        How many zeros in a row each gradient has had, if its last value was 0.
    """

    def __init__(self) -> None:
        self.current: dict[TensorKey, int] = {}
        self._longest: dict[TensorKey, int] = {}

    def add(self, key: TensorKey, *, is_zero: bool) -> bool:
        """Record a saved value, and return whether it belongs to zeros that last."""
        if not is_zero:
            self.end({key})
            return False
        current = self.current[key] = self.current.get(key, 0) + 1
        return current >= LASTING_VALUES and current > _LONGER_FACTOR * self._longest.get(key, 0)

    def end(self, keys: AbstractSet[TensorKey]) -> None:
        """Record saved values other than 0."""
        for key in self.current.keys() & keys:
            self._longest[key] = max(self._longest.get(key, 0), self.current.pop(key))
