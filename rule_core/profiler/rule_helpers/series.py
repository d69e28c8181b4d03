"""Statistics of samples and framework events for the reports of profiler rules."""

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rule_core.profiler.rule_helpers.framework_times import FrameworkTimes
from rule_core.profiler.traces.event import TraceEvent

WHISKER: Final = 1.5  # interquartile ranges
BINS: Final = 100
NARROWEST: Final = 1e-9  # smallest width of a histogram relative to the values


def percentiles(values: ArrayLike, percents: Iterable[int]) -> dict[str, float]:
    """Return percentiles, interpolated between neighbours, by names such as ``p95``.

    Empty without values.

    >>> percentiles([1.0, 2.0, 3.0], (50, 95))
    {'p50': 2.0, 'p95': 2.9}
    """
    names = tuple(percents)
    array = np.asarray(values)
    if not array.size:
        return {}
    results = np.percentile(array, names).tolist()
    return {f"p{name}": value for name, value in zip(names, results, strict=True)}


def box_statistics(values: ArrayLike) -> dict[str, float]:
    """Return ``p25, p50, p75, p95`` and the whiskers ``upper`` and ``lower`` of a box plot.

    Whiskers reach 1.5 interquartile ranges beyond the quartiles, but not beyond the largest or
    smallest value. Empty without values.

    >>> box_statistics([0.0, 10.0, 10.0, 10.0, 30.0])["upper"]
    10.0
    """
    array = np.asarray(values)
    box = percentiles(array, (25, 50, 75, 95))
    if box:
        reach = WHISKER * (box["p75"] - box["p25"])
        box["upper"] = min(box["p75"] + reach, float(array.max()))
        box["lower"] = max(box["p25"] - reach, float(array.min()))
    return box


def summary(values: ArrayLike, digits: int | None = None) -> dict[str, float]:
    """Return ``max, p99, p95, p50, min``, rounded if `digits` is given; empty without values.

    >>> summary([1.0, 2.0, 4.0], digits=2)
    {'max': 4.0, 'p99': 3.96, 'p95': 3.8, 'p50': 2.0, 'min': 1.0}
    """
    array = np.asarray(values)
    if not array.size:
        return {}
    result = {"max": float(array.max())}
    result |= percentiles(array, (99, 95, 50))
    result["min"] = float(array.min())
    if digits is None:
        return result
    return {name: round(value, digits) for name, value in result.items()}


def histogram(values: ArrayLike, bins: int = BINS) -> dict[str, list[float]]:
    """Return ``probs``, the share of values in each bin, and the ``binedges``, one more.

    Both are empty without values.

    >>> histogram([1.0, 1.0, 2.0], bins=2)["binedges"]
    [1.0, 1.5, 2.0]
    """
    array: NDArray[np.float64] = np.asarray(values, np.float64)
    if not array.size:
        return {"probs": [], "binedges": []}
    low, high = float(array.min()), float(array.max())
    if high - low < NARROWEST * max(abs(low), abs(high)):  # too narrow for distinct edges
        margin = NARROWEST * max(abs(low), abs(high))
        low, high = low - margin, high + margin
    counts, edges = np.histogram(array, bins=bins, range=(low, high))
    return {"probs": (counts / array.size).tolist(), "binedges": edges.tolist()}


def aggregate_framework_metrics(
    events: Iterable[TraceEvent], intervals: Iterable[tuple[float, float]] | None = None
) -> dict[str, Any]:
    """Return the time of framework events by phase and operator.

    Parameters
    ----------
    events
        Events of a profiler trial: ``trial.get_framework_metrics(start, end)``.
    intervals
        Start and end in epoch microseconds, in any order; only events that overlap one of them are
        counted. None counts all.

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
