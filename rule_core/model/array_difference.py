"""The difference of two arrays, computed piece by piece."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from rule_core.kernels.operations import KernelCode, KernelOperation, KernelResult
from rule_core.model.streaming_statistics import Array, Piece, measure, sum_of_squares

_TOO_CLOSE: Final = 1e-4
_LEAST, _MOST = 1e-30, 1e30  # tolerances for which single precision is accurate enough


class Norms(NamedTuple):
    """The Euclidean norms of a difference and of the earlier array."""

    change: float
    before: float


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Computes the largest difference from an earlier value in units of the tolerance.

    The tolerance is ``atol + rtol * |value|``. The result is at most 1 exactly if
    ``numpy.allclose(before, value, rtol, atol, equal_nan)`` holds, 0 if all elements are equal,
    and infinity if no tolerance is large enough.
    """

    rtol: float
    atol: float
    equal_nan: bool = False

    def part(self, piece: Piece, before: Piece | None = None) -> float:
        """Return the result for a piece; see `StreamingStatistic`.

        Single precision suffices for such arrays unless the result is close to 1.
        """
        if before is None or not piece.elements.size:
            return 0.0
        value, earlier = piece.elements, before.elements
        if value.dtype == earlier.dtype == np.float32 and self._is_usual:
            largest = float(self._ratios(value, earlier).max())
            if np.isfinite(largest) and abs(largest - 1) > _TOO_CLOSE:
                return largest
        return self._largest(piece.doubles, before.doubles)

    @property
    def kernel_operation(self) -> KernelOperation:
        """Return the operation of the kernel; see `KernelStatistic`."""
        return KernelOperation(
            KernelCode.TOLERANCE, self.rtol, self.atol, self.equal_nan, self._is_usual
        )

    def kernel_part(self, result: KernelResult) -> float:
        """Return the result for a piece; see `KernelStatistic`."""
        return float(result.first)

    @property
    def _is_usual(self) -> bool:
        """Whether single precision can represent the tolerance of every element."""
        return _LEAST <= self.atol <= _MOST and (self.rtol == 0 or _LEAST <= self.rtol <= 1)

    def _ratios(self, value: Array, earlier: Array) -> Array:
        ratio = value - earlier
        np.abs(ratio, out=ratio)
        tolerated = np.abs(value)
        tolerated *= self.rtol
        tolerated += self.atol
        ratio /= tolerated
        return ratio

    def _largest(self, value: Array, earlier: Array) -> float:
        ratio = self._ratios(value, earlier)
        largest = float(ratio.max())
        if np.isfinite(largest):
            return largest
        ratio[~np.isfinite(ratio)] = np.inf
        ratio[value == earlier] = 0.0
        if self.equal_nan:
            ratio[np.isnan(value) & np.isnan(earlier)] = 0.0
        return float(ratio.max())

    def join(self, parts: Sequence[float], *_: object) -> float:
        """Return the result for all elements."""
        return max(parts)

    def between(self, value: Any, reference: Any) -> float:
        """Return the result for two real arrays of one shape ``(...)``; `reference` is later."""
        largest: float = measure(reference, [self], value)[self]
        return largest


@dataclass(frozen=True, slots=True)
class ChangeNorms:
    """Computes the norms of the difference from an earlier value and of that value."""

    kernel_operation: ClassVar = KernelOperation(KernelCode.CHANGE)

    def part(self, piece: Piece, before: Piece | None = None) -> tuple[float, float]:
        """Return the sums of squares of a piece; see `StreamingStatistic`."""
        if before is None:
            return 0.0, 0.0
        return sum_of_squares(piece.doubles - before.doubles), sum_of_squares(before.elements)

    def kernel_part(self, result: KernelResult) -> tuple[float, float]:
        """Return the sums of squares of a piece; see `KernelStatistic`."""
        return result.first, result.second

    def join(self, parts: Sequence[tuple[float, float]], *_: object) -> Norms:
        """Return the norms over all elements; NaN is propagated."""
        change, before = (sum(squares) ** 0.5 for squares in zip(*parts, strict=True))
        return Norms(change, before)

    def between(self, value: Any, before: Any) -> Norms:
        """Return the norms of two real arrays of one shape ``(...)``; NaN is propagated."""
        result: Norms = measure(value, [self], before)[self]
        return result
