"""Histograms as bars: of shares from 0 to 100, of anything else, and of durations."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from smdebug.profiler.analysis.notebook_utils.chart import Bars

BINS: Final = 50
_PERCENT: Final = 100.0


def shares(values: NDArray[np.float64]) -> Bars:
    """Return the bars of values from 0 to 100, 2 wide; values beyond are counted at the ends."""
    return _bars(np.clip(values, 0.0, _PERCENT), 0.0, _PERCENT)


def amounts(values: NDArray[np.float64]) -> Bars:
    """Return the bars of any values, from the smallest to the largest finite one."""
    finite = values[np.isfinite(values)]
    return _bars(finite, *((finite.min(), finite.max()) if len(finite) else (0.0, 0.0)))


def durations(values: NDArray[np.float64]) -> tuple[Bars, int]:
    """Return the bars of durations, at least one, up to two deviations above their median.

    Returns
    -------
    tuple
        The bars, and how many durations are longer than that.
    """
    most = float(np.median(values) + 2 * np.std(values))
    inside = values[values <= most]
    return _bars(inside, float(inside.min()), most), len(values) - len(inside)


def _bars(values: NDArray[np.float64], low: float, high: float) -> Bars:
    if high <= low:
        room = abs(low) / BINS or 1.0
        low, high = low - room, high + room
    counts, edges = np.histogram(values, bins=BINS, range=(low, high))
    return Bars(edges, counts)
