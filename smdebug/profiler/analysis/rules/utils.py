"""Statistics for the reports of profiler rules, of samples and of framework events."""

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from smdebug.profiler.analysis.rules.framework_times import FrameworkTimes, is_step, shares
from smdebug.profiler.trace_event import TraceEvent

WHISKER: Final = 1.5  # interquartile ranges
BINS: Final = 100
NARROWEST: Final = 1e-9  # of a histogram, in parts of the values

__all__ = [
    "FrameworkTimes",
    "aggregate_framework_metrics",
    "box_statistics",
    "histogram",
    "is_step",
    "percentiles",
    "shares",
    "summary",
]


def percentiles(values: ArrayLike, percents: Iterable[int]) -> dict[str, float]:
    """Return percentiles, interpolated between neighbours, by names such as ``p95``.

    Empty if there are no values.

    >>> percentiles([1.0, 2.0, 3.0], (50, 95))
    {'p50': 2.0, 'p95': 2.9}
    """
    names = tuple(percents)
    array = np.asarray(values)
    if not array.size:
        return {}
    found = np.percentile(array, names).tolist()
    return {f"p{name}": value for name, value in zip(names, found, strict=True)}


def box_statistics(values: ArrayLike) -> dict[str, float]:
    """Return ``p25, p50, p75, p95`` and the whiskers ``upper`` and ``lower`` of a box plot.

    A whisker reaches 1.5 interquartile ranges beyond the quartile, the largest or smallest value at
    most. Empty if there are no values.

    >>> box_statistics([0.0, 10.0, 10.0, 10.0, 30.0])["upper"]
    10.0
    """
    array = np.asarray(values)
    found = percentiles(array, (25, 50, 75, 95))
    if found:
        reach = WHISKER * (found["p75"] - found["p25"])
        found["upper"] = min(found["p75"] + reach, float(array.max()))
        found["lower"] = max(found["p25"] - reach, float(array.min()))
    return found


def summary(values: ArrayLike, digits: int | None = None) -> dict[str, float]:
    """Return ``max, p99, p95, p50, min``, rounded if `digits` is given; empty without values.

    >>> summary([1.0, 2.0, 4.0], digits=2)
    {'max': 4.0, 'p99': 3.96, 'p95': 3.8, 'p50': 2.0, 'min': 1.0}
    """
    array = np.asarray(values)
    if not array.size:
        return {}
    found = {"max": float(array.max())}
    found |= percentiles(array, (99, 95, 50))
    found["min"] = float(array.min())
    return found if digits is None else {name: round(one, digits) for name, one in found.items()}


def histogram(values: ArrayLike, bins: int = BINS) -> dict[str, list[float]]:
    """Return ``probs``, the share of the values in each bin, and the ``binedges``, one more.

    Both are empty without values.

    >>> histogram([1.0, 1.0, 2.0], bins=2)["binedges"]
    [1.0, 1.5, 2.0]
    """
    array: NDArray[np.float64] = np.asarray(values, np.float64)
    if not array.size:
        return {"probs": [], "binedges": []}
    low, high = float(array.min()), float(array.max())
    if high - low < NARROWEST * max(abs(low), abs(high)):  # floats have no edges between
        room = NARROWEST * max(abs(low), abs(high))
        low, high = low - room, high + room
    counts, edges = np.histogram(array, bins=bins, range=(low, high))
    return {"probs": (counts / array.size).tolist(), "binedges": edges.tolist()}


def aggregate_framework_metrics(
    events: Iterable[TraceEvent],
    intervals: Iterable[tuple[float, float]] | None = None,
) -> dict[str, Any]:
    """Return how the time of framework events divides over phases and operators.

    Parameters
    ----------
    events
        Of a profiler trial: ``trial.get_framework_metrics(start, end)``.
    intervals
        Count only events that overlap one of these: begin and end in epoch microseconds, in any
        order; a moment begins and ends at once. None counts all.

    Returns
    -------
    dict
        See `FrameworkTimes.details`.
    """
    times = FrameworkTimes()
    if intervals is None:
        times.add(list(events))
    else:
        times.add_during(list(events), np.array(list(intervals), np.float64).reshape(-1, 2))
    return times.details()
