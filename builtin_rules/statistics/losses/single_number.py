"""The number in a tensor that has a single element, as losses are."""

import math
from typing import Any, Final

from builtin_rules.statistics.tensor_selection import SavedTensor, statistic, view
from smdebug.core.modes import ModeKeys
from smdebug.rules.extensions import SingleNumber

_SINGLE: Final = SingleNumber()


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
    """Return the only element of a tensor that is measured at this step for other rules.

    It is None for other tensors, and for NaN and zeros, whose sign is not measured.

    Parameters
    ----------
    step
        The step of the mode.
    """
    if mode is not ModeKeys.GLOBAL:
        return None
    trial: Any = saved.tensor.trial
    shape = trial.prefetched_shapes(step, saved.worker, [saved.name]).get(saved.name)
    if shape is None or math.prod(shape) != 1:
        return None
    number: float | None = statistic(saved, step, _SINGLE)
    return number if number is not None and abs(number) > 0 else None
