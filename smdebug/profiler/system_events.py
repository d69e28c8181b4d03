"""system_events: system metrics as counters of a trace, and marks where a GPU had little to do."""

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any, Final

import numpy as np

from smdebug.profiler.system_samples import SeriesKey, SystemSamples
from smdebug.profiler.trace_event import TraceEvent

FILE_TYPE: Final = "system_metrics"
COUNTERS: Final = "sys_metrics"
BOTTLENECKS: Final = "sys_metrics_bottlenecks"
_GPU: Final = "GPUUtilization"
_BUSY: Final = 85.0  # percent: a GPU below it could do more; as merged timelines always had it
_NEAR_US: Final = 20_000  # microseconds: samples of one moment are taken one after the other
Samples = Callable[[int, int], SystemSamples]


def system_events(samples: Samples, bounds: Iterable[int]) -> Iterator[TraceEvent]:
    """Yield a counter for each sample, and an instant event for each moment of an idle GPU.

    Parameters
    ----------
    samples
        Returns the samples of a range of epoch microseconds, without its end.
    bounds
        Epoch microseconds, ascending: what is between two of them is in memory at once.

    Yields
    ------
    TraceEvent
        Window by window. An instant event's args are all samples within 20 ms of it; two of them
        are further apart than that.
    """
    names: list[str] = []
    marked = -1 << 62
    for start, end in pairwise(bounds):
        found = samples(start - _NEAR_US, end + _NEAR_US)
        names.extend(_name(key) for key in found.keys[len(names) :])
        inside = slice(*np.searchsorted(found.time_us, [start, end]))
        for time_us, value, series in zip(
            found.time_us[inside].tolist(),
            found.value[inside].tolist(),
            found.series[inside].tolist(),
            strict=True,
        ):
            yield _event("C", names[series], COUNTERS, time_us, {"value": value})
        for time_us in _idle_times(found, inside):
            if time_us > marked + _NEAR_US:
                marked = time_us
                yield _event("i", BOTTLENECKS, BOTTLENECKS, time_us, _near(found, names, time_us))


def _name(key: SeriesKey) -> str:
    """Return the name of a series' counter.

    >>> _name(SeriesKey("algo-1", "cpu", "CPUUtilization", "cpu0"))
    'cpu0_CPUUtilization_algo-1'
    """
    return "_".join(part for part in (key.name, key.dimension, key.node) if part is not None)


def _idle_times(found: SystemSamples, inside: slice) -> list[int]:
    """Return the times at which some GPU had little to do, ascending."""
    of_gpu = np.fromiter((key.dimension == _GPU for key in found.keys), bool, len(found.keys))
    series, value = found.series[inside], found.value[inside]
    times: list[int] = np.unique(found.time_us[inside][of_gpu[series] & (value < _BUSY)]).tolist()
    return times


def _near(found: SystemSamples, names: list[str], time_us: int) -> dict[str, float]:
    """Return what was measured near a time."""
    first, last = np.searchsorted(found.time_us, [time_us - _NEAR_US, time_us + _NEAR_US + 1])
    near = zip(found.series[first:last].tolist(), found.value[first:last].tolist(), strict=True)
    return {names[series]: value for series, value in near}


def _event(kind: str, name: str, phase: str, time_us: int, args: dict[str, Any]) -> TraceEvent:
    return TraceEvent(time_us, name, 0, 0, 0, args, "", kind, FILE_TYPE, phase)
