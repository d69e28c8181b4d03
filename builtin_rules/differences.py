"""Differences: how far two arrays lie apart, piece by piece, in double precision."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smdebug.core.measures import Piece, measure, sum_of_squares

Array = NDArray[Any]
_TOO_CLOSE: Final = 1e-4
_LEAST, _MOST = 1e-30, 1e30  # tolerances between which single precision loses nothing that counts


class Norms(NamedTuple):
    """The Euclidean norms of a difference and of the array before it, over all elements."""

    change: float
    before: float


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Measures the largest difference from an earlier value in units of what is tolerated.

    ``atol + rtol * |value|`` is tolerated: the measure is at most 1 exactly where
    ``numpy.allclose(before, value, rtol, atol, equal_nan)`` holds, 0 where all elements are equal,
    and infinity where nothing makes them so.
    """

    rtol: float
    atol: float
    equal_nan: bool = False

    def part(self, piece: Piece, before: Piece | None = None) -> float:
        """Return it for a piece; see `smdebug.core.measures.Measure`.

        Single precision does for single precision, unless it is too close to 1 to tell.
        """
        if before is None or not piece.elements.size:
            return 0.0
        one, other = piece.elements, before.elements
        if one.dtype == other.dtype == np.float32 and self._is_usual:
            largest = self._largest(one, other)
            if np.isfinite(largest) and abs(largest - 1) > _TOO_CLOSE:
                return largest
        return self._largest(piece.doubles, before.doubles)

    @property
    def _is_usual(self) -> bool:
        """Whether single precision holds what is tolerated of any element."""
        return _LEAST <= self.atol <= _MOST and (self.rtol == 0 or _LEAST <= self.rtol <= 1)

    def _largest(self, one: Array, other: Array) -> float:
        ratio = one - other
        np.abs(ratio, out=ratio)
        tolerated = np.abs(one)
        tolerated *= self.rtol
        tolerated += self.atol
        ratio /= tolerated
        largest = float(ratio.max())
        if np.isfinite(largest):
            return largest
        ratio[~np.isfinite(ratio)] = np.inf
        ratio[one == other] = 0.0
        if self.equal_nan:
            ratio[np.isnan(one) & np.isnan(other)] = 0.0
        return float(ratio.max())

    def join(self, parts: Sequence[float], size: int, dtype: "np.dtype[Any]") -> float:
        """Return it for all elements."""
        del size, dtype
        return max(parts)


@dataclass(frozen=True, slots=True)
class Change:
    """Measures the norms of the difference from an earlier value, and of that value."""

    def part(self, piece: Piece, before: Piece | None = None) -> tuple[float, float]:
        """Return the squares for a piece; see `smdebug.core.measures.Measure`."""
        if before is None:
            return 0.0, 0.0
        return _square_of_difference(piece, before), _square(before)

    def join(
        self, parts: Sequence[tuple[float, float]], size: int, dtype: "np.dtype[Any]"
    ) -> Norms:
        """Return the norms over all elements; NaN goes through."""
        del size, dtype
        change, before = (sum(squares) ** 0.5 for squares in zip(*parts, strict=True))
        return Norms(change, before)


def _square_of_difference(piece: Piece, before: Piece) -> float:
    one, other = piece.elements, before.elements
    if one.dtype == other.dtype == np.float32:
        found = sum_of_squares(one - other)
        if np.isfinite(found):
            return found
    return sum_of_squares(piece.doubles - before.doubles)


def _square(piece: Piece) -> float:
    elements = piece.elements
    return sum_of_squares(elements if elements.dtype == np.float32 else piece.doubles)


CHANGE: Final = Change()


def tolerances(value: Any, reference: Any, tolerance: Tolerance) -> float:
    """Return the largest difference of two arrays in units of what is tolerated.

    Both are arrays of real numbers, of one shape ``(...)``; `reference` is the later one.
    """
    found: float = measure(reference, [tolerance], value)[tolerance]
    return found


def norms(value: Any, before: Any) -> Norms:
    """Return the norms of ``value - before`` and of `before`; NaN goes through.

    Both are arrays of real numbers, of one shape ``(...)``.
    """
    found: Norms = measure(value, [CHANGE], before)[CHANGE]
    return found
