"""Curve: values over time, and the mean of several curves."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

# The sampling interval of SageMaker, for curves with a single sample.
USUAL_INTERVAL_US: Final = 500_000
BEHIND_US: Final = 180_000_000  # later data of slower nodes is ignored
# Samples within this fraction of the sampling interval belong to a moment. It is more than a half,
# because samples are never taken exactly on time.
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
        """Return the largest distance of a sample from the moment it represents."""
        intervals = np.diff(self.time_us)
        intervals = intervals[intervals > 0]
        return int(_NEAR * (np.median(intervals) if len(intervals) else USUAL_INTERVAL_US))

    def at(self, times_us: NDArray[np.int64], near_us: int) -> NDArray[np.float64]:
        """Return the values nearest to `times_us`, NaN where none is near; same shape."""
        if not len(self.time_us):
            return np.full(len(times_us), np.nan)
        nearest = nearest_of(self.time_us, times_us)
        is_near = np.abs(self.time_us[nearest] - times_us) <= near_us
        return np.where(is_near, self.value[nearest], np.nan)


def nearest_of(times_us: NDArray[np.int64], targets_us: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the index of the time nearest to each target; `times_us` ascends, not empty."""
    after = np.clip(np.searchsorted(times_us, targets_us), 1, max(len(times_us) - 1, 1))
    after = np.minimum(after, len(times_us) - 1)
    before = np.maximum(after - 1, 0)
    is_before = targets_us - times_us[before] <= times_us[after] - targets_us
    nearest: NDArray[np.int64] = np.where(is_before, before, after)
    return nearest


def moments(curves: Sequence[Curve]) -> tuple[NDArray[np.int64], int]:
    """Return the times at which several curves can be compared, and the tolerance.

    The times are those of the curve with the most samples; gaps are filled from the other curves.
    """
    filled = sorted(
        (curve for curve in curves if len(curve.time_us)), key=lambda curve: -len(curve.time_us)
    )
    if not filled:
        return np.empty(0, np.int64), 0
    times, near_us = filled[0].time_us, filled[0].near_us()
    for curve in filled[1:]:
        distance = np.abs(times[nearest_of(times, curve.time_us)] - curve.time_us)
        times = np.union1d(times, curve.time_us[distance > near_us])
    return np.unique(times), near_us


def mean_of(curves: Sequence[Curve]) -> Curve:
    """Return the mean of several curves at each moment, over the curves with a sample near it.

    For a curve with fewer samples the tolerance is larger.
    """
    if len(curves) == 1:
        return curves[0]
    times, near_us = moments(curves)
    sums, counts = np.zeros(len(times)), np.zeros(len(times), np.int64)
    for curve in curves:
        values = curve.at(times, max(near_us, curve.near_us()))
        is_near = np.isfinite(values)
        sums[is_near] += values[is_near]
        counts += is_near
    has_value = counts > 0
    return Curve(times[has_value], sums[has_value] / counts[has_value])
