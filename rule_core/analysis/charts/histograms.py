"""Histograms of percentages, of other values and of durations."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from rule_core.analysis.charts.chart import Bars

BINS: Final = 50
_PERCENT: Final = 100.0


def shares(values: NDArray[np.float64]) -> Bars:
    """Return bars of width 2 for values from 0 to 100; others are counted at the ends."""
    return _bars(np.clip(values, 0.0, _PERCENT), 0.0, _PERCENT)


def amounts(values: NDArray[np.float64]) -> Bars:
    """Return bars from the smallest to the largest finite value."""
    finite = values[np.isfinite(values)]
    return _bars(finite, *((finite.min(), finite.max()) if len(finite) else (0.0, 0.0)))


def durations(values: NDArray[np.float64]) -> tuple[Bars, int]:
    """Return bars of durations up to two standard deviations above the median; not empty.

    Returns
    -------
    tuple
        The bars, and the number of longer durations.
    """
    most = float(np.median(values) + 2 * np.std(values))
    inside = values[values <= most]
    return _bars(inside, float(inside.min()), most), len(values) - len(inside)


def _bars(values: NDArray[np.float64], low: float, high: float) -> Bars:
    if high <= low:
        margin = abs(low) / BINS or 1.0
        low, high = low - margin, high + margin
    counts, edges = np.histogram(values, bins=BINS, range=(low, high))
    return Bars(edges, counts)
