"""system_events: system metrics as trace counters, with marks where a GPU was idle."""

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any, Final

import numpy as np

from rule_core.profiler.system.samples import SeriesKey, SystemSamples
from rule_core.profiler.traces.event import TraceEvent

FILE_TYPE: Final = "system_metrics"
COUNTERS: Final = "sys_metrics"
BOTTLENECKS: Final = "sys_metrics_bottlenecks"
_GPU: Final = "GPUUtilization"
_BUSY: Final = 85.0  # percent; below it a GPU counts as idle, as in merged timelines of smdebug
_NEAR_US: Final = 20_000  # microseconds between samples of the same moment
Samples = Callable[[int, int], SystemSamples]


def system_events(samples: Samples, bounds: Iterable[int]) -> Iterator[TraceEvent]:
    """Yield a counter for each sample, and an instant event for each moment of an idle GPU.

    Parameters
    ----------
    samples
        Returns the samples of a range of epoch microseconds, end excluded.
    bounds
        Ascending epoch microseconds; samples between two of them are in memory at once.

    Yields
    ------
    TraceEvent
        Window by window. The args of an instant event are all samples within 20 ms; instant events
        are further apart than that.
    """
    names: list[str] = []
    marked = -1 << 62
    for start, end in pairwise(bounds):
        window = samples(start - _NEAR_US, end + _NEAR_US)
        names.extend(_name(key) for key in window.keys[len(names) :])
        inside = slice(*np.searchsorted(window.time_us, [start, end]))
        for time_us, value, series in zip(
            window.time_us[inside].tolist(),
            window.value[inside].tolist(),
            window.series[inside].tolist(),
            strict=True,
        ):
            yield _event("C", names[series], COUNTERS, time_us, {"value": value})
        for time_us in _idle_times(window, inside):
            if time_us > marked + _NEAR_US:
                marked = time_us
                yield _event("i", BOTTLENECKS, BOTTLENECKS, time_us, _near(window, names, time_us))


def _name(key: SeriesKey) -> str:
    """Return the name of a series' counter.

    >>> _name(SeriesKey("algo-1", "cpu", "CPUUtilization", "cpu0"))
    'cpu0_CPUUtilization_algo-1'
    """
    return "_".join(part for part in (key.name, key.dimension, key.node) if part is not None)


def _idle_times(window: SystemSamples, inside: slice) -> list[int]:
    """Return the times at which some GPU was idle, ascending."""
    of_gpu = np.fromiter((key.dimension == _GPU for key in window.keys), bool, len(window.keys))
    series, value = window.series[inside], window.value[inside]
    times: list[int] = np.unique(window.time_us[inside][of_gpu[series] & (value < _BUSY)]).tolist()
    return times


def _near(window: SystemSamples, names: list[str], time_us: int) -> dict[str, float]:
    """Return the samples near a time."""
    first, last = np.searchsorted(window.time_us, [time_us - _NEAR_US, time_us + _NEAR_US + 1])
    near = zip(window.series[first:last].tolist(), window.value[first:last].tolist(), strict=True)
    return {names[series]: value for series, value in near}


def _event(kind: str, name: str, phase: str, time_us: int, args: dict[str, Any]) -> TraceEvent:
    return TraceEvent(time_us, name, 0, 0, 0, args, "", kind, FILE_TYPE, phase)
