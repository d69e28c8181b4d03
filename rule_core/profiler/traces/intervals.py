"""union: overlapping intervals of time as disjoint ones."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def union(intervals: Floats) -> Floats:
    """Return overlapping and touching intervals as one, in ascending order; shape ``(n, 2)``.

    >>> union(np.array([[4.0, 6.0], [0.0, 2.0], [1.0, 3.0]])).tolist()
    [[0.0, 3.0], [4.0, 6.0]]
    """
    ordered = intervals[np.argsort(intervals[:, 0], kind="stable")]
    if len(ordered) <= 1:
        return ordered
    ends = np.maximum.accumulate(ordered[:, 1])
    begins = np.concatenate(([True], ordered[1:, 0] > ends[:-1]))
    lasts = np.append(np.flatnonzero(begins)[1:] - 1, -1)
    return np.column_stack((ordered[begins, 0], ends[lasts]))
