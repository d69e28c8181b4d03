"""Curve: values over time; and how several become one."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

# The platform's own pace, for curves of one sample only.
USUAL_INTERVAL_US: Final = 500_000
# Of the time between two samples: what is further away does not belong to a moment any more. More
# than a half, since samples are never taken exactly on time.
_NEAR: Final = 0.75


class Curve(NamedTuple):
    """Values over time.

    Attributes
    ----------
    time_us
        Microseconds since the epoch, ascending; shape ``(n,)``.
    value
        Shape ``(n,)``.
    """

    time_us: NDArray[np.int64]
    value: NDArray[np.float64]

    def near_us(self) -> int:
        """Return how far from a moment a sample may be that stands for it."""
        apart = np.diff(self.time_us)
        apart = apart[apart > 0]
        return int(_NEAR * (np.median(apart) if len(apart) else USUAL_INTERVAL_US))

    def at(self, times_us: NDArray[np.int64], near_us: int) -> NDArray[np.float64]:
        """Return the values nearest to some times; NaN where none is near; shape of `times_us`."""
        if not len(self.time_us):
            return np.full(len(times_us), np.nan)
        nearest = nearest_of(self.time_us, times_us)
        is_near = np.abs(self.time_us[nearest] - times_us) <= near_us
        return np.where(is_near, self.value[nearest], np.nan)


def nearest_of(times_us: NDArray[np.int64], wanted_us: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return which of some ascending times, at least one, is the nearest to each wanted one."""
    after = np.clip(np.searchsorted(times_us, wanted_us), 1, max(len(times_us) - 1, 1))
    after = np.minimum(after, len(times_us) - 1)
    before = np.maximum(after - 1, 0)
    is_before = wanted_us - times_us[before] <= times_us[after] - wanted_us
    found: NDArray[np.int64] = np.where(is_before, before, after)
    return found


def moments(curves: Sequence[Curve]) -> tuple[NDArray[np.int64], int]:
    """Return the times at which several curves can be compared, and how near is near enough.

    They are those of the curve with the most samples; where it has none, those of the next.
    """
    some = sorted((one for one in curves if len(one.time_us)), key=lambda one: -len(one.time_us))
    if not some:
        return np.empty(0, np.int64), 0
    times, near_us = some[0].time_us, some[0].near_us()
    for one in some[1:]:
        apart = np.abs(times[nearest_of(times, one.time_us)] - one.time_us)
        times = np.union1d(times, one.time_us[apart > near_us])
    return np.unique(times), near_us


def mean_of(curves: Sequence[Curve]) -> Curve:
    """Return the mean of several curves at each moment, over those that have a sample near it.

    A curve with fewer samples than the others counts as long as its own samples are near.
    """
    if len(curves) == 1:
        return curves[0]
    times, near_us = moments(curves)
    sums, counts = np.zeros(len(times)), np.zeros(len(times), np.int64)
    for one in curves:
        values = one.at(times, max(near_us, one.near_us()))
        seen = np.isfinite(values)
        sums[seen] += values[seen]
        counts += seen
    kept = counts > 0
    return Curve(times[kept], sums[kept] / counts[kept])
