"""The number in a tensor that has a single element, as losses are."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from builtin_rules.statistics.tensor_selection import SavedTensor, statistic, view
from smdebug.core.modes import ModeKeys
from smdebug.rules.extensions import KernelCode, KernelOperation, KernelResult, Piece

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True)
class SingleNumber:
    """Tells the element of a tensor that has only one; otherwise, and of booleans, NaN.

    A zero has no sign.
    """

    def part(self, piece: Piece, before: Piece | None = None) -> float:
        """Return the element of a piece; see `StreamingStatistic`."""
        del before
        return float(piece.elements[0]) + 0.0 if piece.elements.size == 1 else math.nan

    @property
    def kernel_operation(self) -> KernelOperation:
        """Return the operation of the kernel; see `KernelStatistic`."""
        return KernelOperation(KernelCode.SUM)

    def kernel_part(self, result: KernelResult) -> float:
        """Return the element of a piece; see `KernelStatistic`."""
        return float(result.first) + 0.0 if result.size == 1 else math.nan

    def join(self, parts: Sequence[float], size: int, dtype: "np.dtype[Any]") -> float:
        """Return the element of the tensor."""
        return parts[0] if size == 1 and dtype.kind != "b" else math.nan


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
