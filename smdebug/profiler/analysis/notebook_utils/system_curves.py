"""SystemCurves: system metrics by dimension and metric, as charts select and total them."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from smdebug.core.patterns import flatten, matching
from smdebug.profiler.analysis.notebook_utils.curves import Curve, mean_of
from smdebug.profiler.system_metrics_reader import SystemMetricsReader
from smdebug.profiler.system_samples import SeriesKey, SystemSamples

if TYPE_CHECKING:
    from numpy.typing import NDArray

TOTAL: Final = "total"
Curves = dict[str, dict[str, Curve]]
_FOREVER: Final = 1 << 62  # microseconds
_WINDOW_US: Final = 600_000_000  # what is parsed at once, before it is chosen from
_MOST_PERCENT: Final = 102.0  # measured in different moments, shares may be a bit more than all
_BEHIND_US: Final = (
    180_000_000  # nodes write at their own pace: what is further behind is not looked for
)


class SystemCurves:
    """Reads what is selected of system metrics, and what comes later.

    Parameters
    ----------
    reader
        Of the job's system metrics.
    start_us, end_us
        Microseconds since the epoch, both included; no end is all there is.
    select_dimensions
        Regular expressions; a dimension is selected if one of them is found in its label.
    show_workers
        Whether nodes have curves of their own: then labels are ``<dimension>-nodeid:<node>``.

    Attributes
    ----------
    last_us
        Up to when metrics were read.
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
        self._wanted: dict[SeriesKey, bool] = {}
        self._parts: dict[SeriesKey, list[Curve]] = {}
        reader.refresh_event_file_list()
        newest = reader.get_timestamp_of_latest_available_file()
        self.last_us = newest if end_us is None else int(end_us)
        self._start_us = int(start_us)
        self._read(self._start_us, _FOREVER if end_us is None else self.last_us)

    def update(self, end_us: float) -> bool:
        """Read what came since; say whether there is anything new.

        Parameters
        ----------
        end_us
            Microseconds since the epoch, included.
        """
        last = [int(parts[-1].time_us[-1]) for parts in self._parts.values()]
        start = max(max(last, default=0) - _BEHIND_US, self._start_us)
        before = sum(map(len, self._parts.values()))
        self._read(start, int(end_us))
        self.last_us = max(self.last_us, int(end_us))
        return sum(map(len, self._parts.values())) > before

    def label(self, key: SeriesKey) -> str:
        """Return what the dimension of a series is called."""
        return f"{key.dimension}-nodeid:{key.node}" if self._show_workers else key.dimension

    def series(self) -> dict[SeriesKey, Curve]:
        """Return the selected series, each with its samples, sorted by name."""
        for key, parts in self._parts.items():
            if len(parts) > 1:
                time_us, value = (np.concatenate(columns) for columns in zip(*parts, strict=True))
                self._parts[key] = [Curve(time_us, value)]
        return {key: self._parts[key][0] for key in sorted(self._parts, key=_natural)}

    def curves(self) -> Curves:
        """Return the curves by dimension and metric; each dimension ends with their mean."""
        groups: dict[str, dict[str, list[Curve]]] = {}
        for key, curve in self.series().items():
            named = groups.setdefault(self.label(key), {})
            named.setdefault(key.name or "", []).append(curve)
        found = {
            dimension: {name: mean_of(several) for name, several in named.items()}
            for dimension, named in groups.items()
        }
        for named_curves in found.values():
            named_curves.setdefault(TOTAL, mean_of(list(named_curves.values())))
        return found

    def _read(self, start_us: int, end_us: int) -> None:
        """Read the samples of a range of time, both ends included, window by window."""
        reader = self._reader
        first = reader.get_timestamp_of_first_available_file() + _WINDOW_US
        newest = reader.get_timestamp_of_latest_available_file()
        inner = range(max(first, start_us + _WINDOW_US), min(newest, end_us), _WINDOW_US)
        for start, end in pairwise([start_us, *inner, end_us + 1]):
            self._take(reader.samples(start, end))

    def _take(self, samples: SystemSamples) -> None:
        """Keep what is selected and was not there before."""
        order = np.argsort(samples.series, kind="stable")
        numbers = samples.series[order]
        firsts = np.flatnonzero(np.diff(numbers, prepend=-1))
        for rows in np.split(order, firsts[1:]) if len(order) else ():
            key = samples.keys[samples.series[rows[0]]]
            if not self._is_wanted(key):
                continue
            parts = self._parts.get(key, [])
            last = parts[-1].time_us[-1] if parts else -1
            new: NDArray[np.int64] = rows[samples.time_us[rows] > last]
            if len(new):
                curve = Curve(samples.time_us[new], samples.value[new])
                self._parts.setdefault(key, []).append(curve)

    def _is_wanted(self, key: SeriesKey) -> bool:
        if key not in self._wanted:
            self._wanted[key] = bool(matching([self.label(key)], self._dimensions))
        return self._wanted[key]


def selected(curves: Curves, select_events: Sequence[str]) -> Curves:
    """Return the curves whose metric one of some regular expressions is found in."""
    patterns = flatten(list(select_events))
    return {
        dimension: {name: named[name] for name in matching(named, patterns)}
        for dimension, named in curves.items()
    }


def percent(dimension: str, values: Iterable[Curve]) -> bool:
    """Say whether a dimension is in percent, as its name and its values have it."""
    named = any(word in dimension for word in ("Utilization", "Memory", "Percent"))
    return named and all(
        not len(one.value) or (one.value.min() >= 0 and one.value.max() <= _MOST_PERCENT)
        for one in values
    )


def _natural(key: SeriesKey) -> tuple[str, ...]:
    """Return what series are sorted by: numbers in names as numbers, cpu2 before cpu10."""
    parts = (key.dimension, key.node, key.name or "")
    return tuple(_padded(part) for part in parts)


def _padded(text: str) -> str:
    """Return a name with its numbers filled up with zeros.

    >>> _padded("cpu2") < _padded("cpu10")
    True
    """
    return re.sub("[0-9]+", lambda found: found[0].zfill(20), text)
