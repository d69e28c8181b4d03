"""Differences: how far two arrays lie apart, piece by piece, in double precision."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

PIECE: Final = 1 << 16  # elements: half a megabyte, which stays in the cache


class Norms(NamedTuple):
    """The Euclidean norms of a difference and of the array before it, over all elements."""

    change: float
    before: float


def tolerances(
    value: Any, reference: Any, *, rtol: float, atol: float, equal_nan: bool = False
) -> float:
    """Return the largest difference of two arrays in units of what is tolerated.

    Parameters
    ----------
    value, reference
        Real numbers, of one shape ``(...)``.
    rtol, atol, equal_nan
        As in `numpy.allclose`: ``atol + rtol * |reference|`` is tolerated.

    Returns
    -------
    float
        At most 1 exactly where ``numpy.allclose(value, reference, rtol, atol, equal_nan)`` holds;
        0 where all elements are equal, and infinity where nothing makes them so.
    """
    largest = 0.0
    with np.errstate(all="ignore"):
        for one, other in _pieces(value, reference):
            ratio = np.abs(one - other) / (atol + rtol * np.abs(other))
            ratio[~np.isfinite(ratio)] = np.inf
            ratio[one == other] = 0.0
            if equal_nan:
                ratio[np.isnan(one) & np.isnan(other)] = 0.0
            largest = max(largest, float(ratio.max()))
    return largest


def norms(value: Any, before: Any) -> Norms:
    """Return the norms of ``value - before`` and of `before`; NaN goes through.

    Both are arrays of real numbers, of one shape ``(...)``.
    """
    change = size = 0.0
    with np.errstate(all="ignore"):
        for one, other in _pieces(value, before):
            difference = one - other
            change += float(np.dot(difference, difference))
            size += float(np.dot(other, other))
    return Norms(change**0.5, size**0.5)


def _pieces(one: Any, other: Any) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Yield copies of the parts of two arrays that belong together."""
    flat, other_flat = one.reshape(-1), other.reshape(-1)
    for start in range(0, flat.size, PIECE):
        part = slice(start, start + PIECE)
        yield flat[part].astype(np.float64), other_flat[part].astype(np.float64)
