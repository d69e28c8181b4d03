"""thinned: the points of a long curve that its picture needs."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.intp]


def thinned(
    values: Sequence[float | None] | NDArray[np.float64], starts: Sequence[int] | Indices
) -> Indices:
    """Return the indices of the points to keep, ascending.

    These are the first and the last point, and of each section the lowest value, the highest one,
    and one without a finite number, so that the curve has a gap there.

    Parameters
    ----------
    values
        Shape ``(n,)``, at least one; None is a gap.
    starts
        Index of the first point of each section, ascending from 0 without repetitions.

    Examples
    --------
    >>> thinned([0.0, 9.0, 1.0, 2.0, -5.0, 3.0, 3.0, 4.0], [0, 4]).tolist()
    [0, 1, 4, 7]
    """
    array = np.asarray(values, dtype=np.float64)
    is_finite = np.isfinite(array)
    sections = np.repeat(np.arange(len(starts)), np.diff([*starts, len(array)]))
    lows = np.where(is_finite, array, np.inf)
    highs = np.where(is_finite, array, -np.inf)
    is_kept = np.zeros(len(array), dtype=np.bool_)
    is_kept[[0, -1]] = True
    for may_be_kept in (
        lows == np.minimum.reduceat(lows, starts)[sections],
        highs == np.maximum.reduceat(highs, starts)[sections],
        ~is_finite,
    ):
        indices = np.flatnonzero(may_be_kept)
        is_first = np.diff(sections[indices], prepend=-1) > 0  # np.unique would import numpy.ma
        is_kept[indices[is_first]] = True
    return np.flatnonzero(is_kept)
