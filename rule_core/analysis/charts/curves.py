"""Curve: values over time, and the mean of several curves.

`SystemCurves` has those of system metrics by dimension and metric, selected for charts.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rule_core.model.patterns import flatten, matching
from rule_core.profiler.readers.system_reader import SystemMetricsReader
from rule_core.profiler.system.samples import SeriesKey, SystemSamples

# The sampling interval of SageMaker, for curves with a single sample.
USUAL_INTERVAL_US: Final = 500_000
BEHIND_US: Final = 180_000_000  # later data of slower nodes is ignored
# Samples within this fraction of the sampling interval belong to a moment. It is more than a half,
# because samples are never taken exactly on time.
_NEAR: Final = 0.75
TOTAL: Final = "total"
_FOREVER: Final = 1 << 62  # microseconds
_WINDOW_US: Final = 600_000_000  # time range that is parsed at once
_MOST_PERCENT: Final = 102.0  # measurements at different times may slightly exceed 100 %


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


Curves = dict[str, dict[str, Curve]]


class SystemCurves:
    """Reads selected system metrics, and updates them.

    Parameters
    ----------
    reader
        Reader of the job's system metrics.
    start_us, end_us
        Microseconds since the epoch, both included; None is unbounded.
    select_dimensions
        Regular expressions that select dimensions by searching their labels.
    show_workers
        Whether to show each node, with labels ``<dimension>-nodeid:<node>``.

    Attributes
    ----------
    last_us
        Time up to which metrics were read.
    """

    def __init__(
        self,
        reader: SystemMetricsReader,
        start_us: float = 0,
        end_us: float | None = None,
        select_dimensions: Sequence[str] = (".*",),
        *,
        show_workers: bool = True,
    ) -> None:
        self._reader = reader
        self._dimensions = flatten(list(select_dimensions))
        self._show_workers = show_workers
        self._selection: dict[SeriesKey, bool] = {}
        self._parts: dict[SeriesKey, list[Curve]] = {}
        reader.refresh_event_file_list()
        newest = reader.get_timestamp_of_latest_available_file()
        self.last_us = newest if end_us is None else int(end_us)
        self._start_us = int(start_us)
        self._read(self._start_us, _FOREVER if end_us is None else self.last_us)

    def update(self, end_us: float) -> bool:
        """Read later samples; return whether any are new.

        Parameters
        ----------
        end_us
            Microseconds since the epoch, included.
        """
        last = [int(parts[-1].time_us[-1]) for parts in self._parts.values()]
        start = max(max(last, default=0) - BEHIND_US, self._start_us)
        before = sum(map(len, self._parts.values()))
        self._read(start, int(end_us))
        self.last_us = max(self.last_us, int(end_us))
        return sum(map(len, self._parts.values())) > before

    def label(self, key: SeriesKey) -> str:
        """Return the label of a series' dimension."""
        return f"{key.dimension}-nodeid:{key.node}" if self._show_workers else key.dimension

    def series(self) -> dict[SeriesKey, Curve]:
        """Return the selected series with their samples, sorted by name."""
        for key, parts in self._parts.items():
            if len(parts) > 1:
                time_us, value = (np.concatenate(columns) for columns in zip(*parts, strict=True))
                self._parts[key] = [Curve(time_us, value)]
        return {key: self._parts[key][0] for key in sorted(self._parts, key=_natural)}

    def curves(self) -> Curves:
        """Return the curves by dimension and metric; the last one of a dimension is the mean."""
        groups: dict[str, dict[str, list[Curve]]] = {}
        for key, curve in self.series().items():
            metrics = groups.setdefault(self.label(key), {})
            metrics.setdefault(key.name or "", []).append(curve)
        means = {
            dimension: {name: mean_of(curves) for name, curves in metrics.items()}
            for dimension, metrics in groups.items()
        }
        for metric_means in means.values():
            metric_means.setdefault(TOTAL, mean_of(list(metric_means.values())))
        return means

    def _read(self, start_us: int, end_us: int) -> None:
        """Read the samples of a time range, both ends included, window by window."""
        reader = self._reader
        first = reader.get_timestamp_of_first_available_file() + _WINDOW_US
        newest = reader.get_timestamp_of_latest_available_file()
        inner = range(max(first, start_us + _WINDOW_US), min(newest, end_us), _WINDOW_US)
        for start, end in pairwise([start_us, *inner, end_us + 1]):
            self._append(reader.samples(start, end))

    def _append(self, samples: SystemSamples) -> None:
        """Append the selected samples that are new."""
        order = np.argsort(samples.series, kind="stable")
        numbers = samples.series[order]
        firsts = np.flatnonzero(np.diff(numbers, prepend=-1))
        for rows in np.split(order, firsts[1:]) if len(order) else ():
            key = samples.keys[samples.series[rows[0]]]
            if not self._is_selected(key):
                continue
            parts = self._parts.get(key, [])
            last = parts[-1].time_us[-1] if parts else -1
            new: NDArray[np.int64] = rows[samples.time_us[rows] > last]
            if len(new):
                curve = Curve(samples.time_us[new], samples.value[new])
                self._parts.setdefault(key, []).append(curve)

    def _is_selected(self, key: SeriesKey) -> bool:
        if key not in self._selection:
            self._selection[key] = bool(matching([self.label(key)], self._dimensions))
        return self._selection[key]


def selected(curves: Curves, select_events: Sequence[str]) -> Curves:
    """Return the curves whose metric matches one of the regular expressions."""
    patterns = flatten(list(select_events))
    return {
        dimension: {name: metrics[name] for name in matching(metrics, patterns)}
        for dimension, metrics in curves.items()
    }


def percent(dimension: str, values: Iterable[Curve]) -> bool:
    """Return whether a dimension is in percent, judged by its name and values."""
    has_name = any(word in dimension for word in ("Utilization", "Memory", "Percent"))
    return has_name and all(
        not len(curve.value) or (curve.value.min() >= 0 and curve.value.max() <= _MOST_PERCENT)
        for curve in values
    )


def _natural(key: SeriesKey) -> tuple[str, ...]:
    """Return a sort key that compares numbers in names by value: cpu2 before cpu10."""
    parts = (key.dimension, key.node, key.name or "")
    return tuple(_pad(part) for part in parts)


def _pad(text: str) -> str:
    """Pad the numbers in a name with zeros.

    >>> _pad("cpu2") < _pad("cpu10")
    True
    """
    return re.sub("[0-9]+", lambda match: match[0].zfill(20), text)
