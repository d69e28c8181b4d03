"""Sums in double precision with numpy, equal to those of the kernel to the last bit."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

LANES: Final = 256  # as in _sweep.c

Array = NDArray[Any]


def lane_sums(rows: Array) -> NDArray[np.float64]:
    """Return the sum of each row, shape ``(rows,)``; call with numpy warnings off.

    Element k is added to lane ``k % LANES``, in ascending order; the second half of the lanes is
    then added to the first until one remains. Of n numbers x, a sum is wrong by at most
    ``(ceil(n / 256) + 8) * 2**-53 * sum(|x|)``, to first order.

    Parameters
    ----------
    rows
        Real numbers, shape ``(rows, n)``.
    """
    count, size = rows.shape
    whole = size // LANES * LANES
    lanes = np.zeros((count, LANES))
    if whole:
        parts = rows[:, :whole].reshape(count, -1, LANES)
        # Not pairwise, as it would be over the last dimension.
        lanes += np.add.reduce(parts, axis=1, dtype=np.float64)
    lanes[:, : size - whole] += rows[:, whole:]
    width = LANES
    while width > 1:
        width //= 2
        lanes = lanes[:, :width] + lanes[:, width:]
    result: NDArray[np.float64] = lanes[:, 0] + 0.0  # no negative zero
    return result


def lane_sum(elements: Array) -> float:
    """Return the sum of elements of shape ``(n,)``; see `lane_sums`."""
    return float(lane_sums(elements.reshape(1, -1))[0])
