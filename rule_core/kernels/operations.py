"""KernelOperation: what the kernel can compute of a piece of a tensor."""

import enum
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray


class KernelCode(enum.IntEnum):
    """The kernel's operations, numbered as in `_sweep.c`, and their results.

    Attributes
    ----------
    TOTAL, TOTAL_MAGNITUDE
        The sum of the elements or of their magnitudes; of integers, exact modulo 2**64.
    SUM, SUM_MAGNITUDE
        The same in double precision, also of integers.
    SQUARES
        The sum of squares, in double precision.
    MOMENTS, MOMENTS_MAGNITUDE
        The mean, and the sum of squared deviations from it.
    MINIMUM, MAXIMUM, MINIMUM_MAGNITUDE, MAXIMUM_MAGNITUDE
        The extreme value; NaN if there is any, and never a negative zero.
    ZEROS
        The number of zeros.
    NOT_FINITE
        The number of NaN, and of infinite elements.
    TOLERANCE
        The largest ``|value - before| / (first * |value| + second)``: 0 where both are equal (or,
        with `flag`, NaN), and otherwise infinity where the ratio is not finite.
    CHANGE
        The sum of squares of ``value - before``, and of `before`.
    ACTIVITY
        The number of NaN; packed: the elements above `first` and, without `flag`, below `second`,
        and those that are NaN.
    """

    TOTAL = 0
    TOTAL_MAGNITUDE = 1
    SUM = 2
    SUM_MAGNITUDE = 3
    SQUARES = 4
    MOMENTS = 5
    MOMENTS_MAGNITUDE = 6
    MINIMUM = 7
    MAXIMUM = 8
    MINIMUM_MAGNITUDE = 9
    MAXIMUM_MAGNITUDE = 10
    ZEROS = 11
    NOT_FINITE = 12
    TOLERANCE = 13
    CHANGE = 14
    ACTIVITY = 15


COMPARING: Final = frozenset({KernelCode.TOLERANCE, KernelCode.CHANGE})
WHOLE: Final = frozenset(
    {
        KernelCode.TOTAL,
        KernelCode.TOTAL_MAGNITUDE,
        KernelCode.MINIMUM,
        KernelCode.MAXIMUM,
        KernelCode.MINIMUM_MAGNITUDE,
        KernelCode.MAXIMUM_MAGNITUDE,
    }
)  # whose result for integers is an integer


class KernelOperation(NamedTuple):
    """An operation and its parameters; see `KernelCode`.

    Attributes
    ----------
    quick
        For a tolerance: single precision decides about float32 unless the result is close to 1.
    """

    code: KernelCode
    first: float = 0.0
    second: float = 0.0
    flag: bool = False
    quick: bool = False


class KernelResult(NamedTuple):
    """The result of an operation over a piece.

    Attributes
    ----------
    first, second
        The results; see `KernelCode`.
    size
        The number of elements.
    packed
        Flags packed into bits, as `np.packbits` does: shape ``(2, ceil(size / 8))``; None for all
        operations but ACTIVITY.
    """

    first: Any
    second: float
    size: int
    packed: NDArray[np.uint8] | None = None
