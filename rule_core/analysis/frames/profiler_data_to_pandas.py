"""PandasFrame: the profiler data of a training job as pandas frames."""

import os
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from rule_core.analysis.frames.frame_rows import (
    DATALOADER_COLUMNS,
    FRAMEWORK_COLUMNS,
    EventRows,
    SampleRows,
    Time,
    epoch_us,
)
from rule_core.model.patterns import search
from rule_core.profiler.converted.store import ConvertedFiles
from rule_core.profiler.readers.framework_reader import (
    AlgorithmMetricsReader,
    LocalAlgorithmMetricsReader,
    S3AlgorithmMetricsReader,
)
from rule_core.profiler.readers.system_reader import (
    LocalSystemMetricsReader,
    S3SystemMetricsReader,
    SystemMetricsReader,
)
from rule_core.profiler.system.source import SystemSource
from rule_core.profiler.traces.event import Number, TraceEvent
from rule_core.profiler.traces.source import CACHED_BYTES, TraceSource
from rule_core.storage.uri import is_s3, open_store

if TYPE_CHECKING:
    import pandas as pd

Sums = dict[str, Number]
EventSums = tuple[Sums, Sums]  # microseconds by phase, and by name of event without steps
EVER_US: Final = (0, 1 << 53)  # up to the year 2255


class PandasFrame:
    """Frames of system metrics, framework metrics and data loaders, by time or by step.

    Arguments are epoch microseconds; columns ``..._us`` count from `start_time`. Duplicate rows
    are dropped, which leaves gaps in the index. A frame without rows has all columns, with dtype
    ``object``.

    A row of system metrics takes 67 bytes if 100 samples share a time, and at most 140, a row of
    framework metrics 246, and a row of data loaders 262. While a frame is created, the rows take
    141, 650 and 690 bytes. `get_profiler_data_by_time` returns frames of a time range, and reads
    only the files of that range. Measured with pandas 3.1, after a first call that fills the
    readers' caches::

        tracemalloc.start(); frame = frames.get_all_system_metrics()
        print(*(size / len(frame) for size in tracemalloc.get_traced_memory()))

    Parameters
    ----------
    path
        The folder or S3 address with ``system`` and ``framework``.
    use_in_memory_cache
        Whether to keep all parsed framework events for later calls.
    scan_interval
        Ignored: data is not read in intervals.

    Attributes
    ----------
    start_time
        Epoch microseconds in the name of the first file of system metrics; 0 without files.

    Raises
    ------
    SMDebugRuntimeError
        By the methods, if pandas is not installed.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        use_in_memory_cache: bool = False,
        scan_interval: int = 5_000_000_000,
    ) -> None:
        self.path = os.fspath(path)
        self.interval = scan_interval
        self._files = ConvertedFiles(open_store(path))
        self._system = SystemSource(self._files)
        cached_bytes = sys.maxsize if use_in_memory_cache else CACHED_BYTES
        self._traces = TraceSource(self._files, cached_bytes)
        self._files.refresh()
        self._samples = SampleRows()
        self._events = EventRows(FRAMEWORK_COLUMNS)
        system = self._files.system.values()
        self.start_time = min((files[0].start_us for files in system), default=0)

    @cached_property
    def system_metrics_reader(self) -> SystemMetricsReader:
        """The reader of system metrics at `path`, for charts."""
        reader = S3SystemMetricsReader if is_s3(self.path) else LocalSystemMetricsReader
        return reader(self.path)

    @cached_property
    def framework_metrics_reader(self) -> AlgorithmMetricsReader:
        """The reader of framework metrics at `path`, for charts."""
        reader = S3AlgorithmMetricsReader if is_s3(self.path) else LocalAlgorithmMetricsReader
        return reader(self.path)

    # -- frames of all data ------------------------------------------------------------------

    def get_all_system_metrics(self, selected_system_metrics: Sequence[str] = ()) -> "pd.DataFrame":
        """Return all samples of system metrics.

        Parameters
        ----------
        selected_system_metrics
            Exact names such as ``cpu0``; all if empty.

        Returns
        -------
        DataFrame
            ``timestamp`` (UTC, as ``2020-06-03T05:04:59:457089``), ``timestamp_us``, ``value``,
            ``system_metric``, ``dimension``, ``nodeID``, ``type``; by file, in order of time.
        """
        return self.get_profiler_data_by_time(
            *EVER_US, selected_system_metrics=selected_system_metrics, get_framework_metrics=False
        )[0]

    def get_all_framework_metrics(
        self, selected_framework_metrics: Sequence[str] = ()
    ) -> "pd.DataFrame":
        """Return all framework events.

        Parameters
        ----------
        selected_framework_metrics
            Exact names of events or phases; all if empty.

        Returns
        -------
        DataFrame
            ``start_time``, ``end_time`` (UTC, as ``2020-06-03T05:04:59:457089``),
            ``start_time_us``, ``end_time_us``, ``tid``, ``pid``, ``framework_metric``
            (``layer_name`` or ``name`` in the event's args, otherwise the event's name), ``step``
            and ``bytes`` (-1 if missing), ``process`` (the phase), ``nodeID``; by kind of timeline,
            then by file.
        """
        return self.get_profiler_data_by_time(
            *EVER_US,
            selected_framework_metrics=selected_framework_metrics,
            get_system_metrics=False,
        )[1]

    def get_all_dataloader_metrics(
        self, selected_framework_metrics: Sequence[str] = ()
    ) -> "pd.DataFrame":
        """Return the same events with the columns of PyTorch's data loaders.

        Parameters
        ----------
        selected_framework_metrics
            Regular expressions that select events by searching their names and phases; all if
            empty.

        Returns
        -------
        DataFrame
            ``start_time``, ``end_time``, ``start_time_us``, ``end_time_us``, ``duration_us``,
            ``pid``, ``framework_metric``, ``step``, ``worker_id``, ``num_workers`` (-1 if missing),
            ``pin_memory`` (``"True"``, ``"False"``, ``"NA"``), ``process``, ``node_id``.
        """
        self._files.refresh()
        rows = EventRows(DATALOADER_COLUMNS)
        patterns = selected_framework_metrics
        rows.extend(
            event
            for event in self._traces.overlapping(*EVER_US)
            if not patterns
            or any(search(pattern, name) for pattern in patterns for name in _names_of(event))
        )
        return rows.frame(self.start_time)

    # -- frames by range ---------------------------------------------------------------------

    def get_profiler_data_by_time(
        self,
        start_time_us: int,
        end_time_us: int,
        cache_metrics: bool = False,
        selected_framework_metrics: Sequence[str] = (),
        selected_system_metrics: Sequence[str] = (),
        get_framework_metrics: bool = True,
        get_system_metrics: bool = True,
    ) -> "tuple[pd.DataFrame, pd.DataFrame]":
        """Return frames of the system metrics and framework metrics of a time range.

        Parameters
        ----------
        start_time_us, end_time_us
            Selects samples of ``start <= time <= end``, and events that overlap or touch the range;
            no events if both are equal.
        cache_metrics
            Whether to include the rows of all earlier calls with this option.
        selected_framework_metrics, selected_system_metrics
            See `get_all_framework_metrics` and `get_all_system_metrics`.
        get_framework_metrics, get_system_metrics
            Whether to read them; otherwise their frame has no rows.
        """
        self._files.refresh()
        samples, events = SampleRows(), EventRows(FRAMEWORK_COLUMNS)
        if get_system_metrics:
            samples = self._samples if cache_metrics else samples
            for columns in self._system.columns(start_time_us, end_time_us):
                names, keys = selected_system_metrics, self._system.series.keys
                is_selected = np.array([not names or key.name in names for key in keys])
                samples.extend(columns, is_selected[columns.series])
        if get_framework_metrics:
            events = self._events if cache_metrics else events
            if start_time_us < end_time_us:
                selected = selected_framework_metrics
                events.extend(self._events_between(start_time_us, end_time_us, selected))
        keys = self._system.series.keys
        return samples.frame(self.start_time, keys), events.frame(self.start_time)

    def _events_between(
        self, start_us: int, end_us: int, names: Sequence[str]
    ) -> Iterator[TraceEvent]:
        """Yield the events that overlap a time range, by name or phase; all if `names` is empty."""
        for event in self._traces.overlapping(start_us, end_us):
            if not names or not _names_of(event).isdisjoint(names):
                yield event

    def get_profiler_data_by_step(
        self, start_step: int, end_step: int, cache_metrics: bool = False
    ) -> "tuple[pd.DataFrame, pd.DataFrame]":
        """Return frames of the system metrics and framework metrics of a range of steps.

        Parameters
        ----------
        start_step, end_step
            Selects framework metrics of ``start <= step <= end`` in any mode, and the system
            metrics from the start of the first to the end of the last of these.
        cache_metrics
            Ignored: all data is read in any case.
        """
        del cache_metrics
        system, framework = self.get_all_system_metrics(), self.get_all_framework_metrics()
        framework = framework[framework["step"].between(start_step, end_step)]
        start, end = framework["start_time_us"].min(), framework["end_time_us"].max()
        return system[system["timestamp_us"].between(start, end)], framework

    # -- sums --------------------------------------------------------------------------------

    def get_framework_metrics_by_timesteps(
        self, timestep_list: Sequence[Time] = (), selected_framework_metrics: Sequence[str] = ()
    ) -> tuple[dict[str, float], Sums, Sums]:
        """Sum the durations of the framework metrics that run at certain times.

        Parameters
        ----------
        timestep_list
            Times in the format of the column ``timestamp`` of system metrics.
        selected_framework_metrics
            See `get_all_framework_metrics`.

        Returns
        -------
        tuple
            An event counts once for each time strictly between its start and end. The sums are by
            phase, as fractions of the largest sum; by event name, in microseconds; and by phase, in
            microseconds, for the phases of steps, which the first two omit.

        Raises
        ------
        IndexError
            If `timestep_list` is empty.
        """
        times = sorted(map(epoch_us, timestep_list))
        if not times:
            raise IndexError("No times of framework metrics were given. Give at least one.")
        self._files.refresh()
        events = self._events_between(times[0], times[-1], selected_framework_metrics)
        phases, names = _sums_at(times, events)
        steps = {name: value for name, value in phases.items() if "Step" in name}
        outside = {name: value for name, value in phases.items() if name not in steps}
        return _shares(outside), names, steps

    def get_framework_metrics_by_begin_and_end_timesteps(
        self,
        begin_timestep_list: Sequence[Time],
        end_timestep_list: Sequence[Time],
        selected_framework_metrics: Sequence[str] = (),
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Sum the durations of the framework metrics that overlap intervals.

        Parameters
        ----------
        begin_timestep_list, end_timestep_list
            Times in the format of the columns ``start_time`` and ``end_time``.
        selected_framework_metrics
            See `get_all_framework_metrics`.

        Returns
        -------
        tuple
            An event counts once for each interval that it overlaps or touches. The sums are by
            phase and by event name, both as fractions of their largest sum, without steps.

        Raises
        ------
        ValueError
            If there are no intervals, begins and ends differ in number, or an end precedes its
            begin.
        """
        begins, ends = (
            list(map(epoch_us, times)) for times in (begin_timestep_list, end_timestep_list)
        )
        intervals = _intervals_of(begins, ends)
        self._files.refresh()
        events = self._events_between(min(begins), max(ends), selected_framework_metrics)
        phases, names = _sums_between(intervals, events)
        return _shares(phases), _shares(names)

    def convert_datetime_to_timestamp(self, timestamp: Time) -> int:
        """Convert a time to epoch microseconds, exactly.

        Parameters
        ----------
        timestamp
            A string such as ``2020-06-03T05:04:59:457089``, or a datetime; without a zone it is
            UTC.

        Raises
        ------
        ValueError
            If it is not a time.
        """
        return epoch_us(timestamp)


def _names_of(event: TraceEvent) -> set[str]:
    return {event.event_name, event.event_phase}


def _sums_at(times_us: Sequence[int], events: Iterable[TraceEvent]) -> EventSums:
    """Sum the durations of events that run at `times_us`, once per time.

    Parameters
    ----------
    times_us
        Ascending epoch microseconds; the start and end of an event are not within it.
    events
        Each event once.
    """
    return _sums(
        (event, bisect_left(times_us, event.end_time) - bisect_right(times_us, event.start_time))
        for event in events
    )


def _sums_between(intervals: Sequence[tuple[int, int]], events: Iterable[TraceEvent]) -> EventSums:
    """Sum the durations of events that overlap `intervals`, once per interval.

    Parameters
    ----------
    intervals
        Starts and ends in epoch microseconds; touching counts as overlapping.
    events
        Each event once; steps are ignored.
    """
    begins, ends = map(sorted, zip(*intervals, strict=True))
    return _sums(
        (event, bisect_right(begins, event.end_time) - bisect_left(ends, event.start_time))
        for event in events
        if not _is_step(event)
    )


def _sums(counted_events: Iterable[tuple[TraceEvent, int]]) -> EventSums:
    """Sum the durations of events, each as many times as it counts."""
    phases: Sums = {}
    names: Sums = {}
    for event, count in counted_events:
        if count > 0:
            duration = count * (event.end_time - event.start_time)
            phases[event.event_phase] = phases.get(event.event_phase, 0) + duration
            if not _is_step(event):
                names[event.event_name] = names.get(event.event_name, 0) + duration
    return phases, names


def _is_step(event: TraceEvent) -> bool:
    return "Step" in event.event_name


def _intervals_of(begins: Sequence[int], ends: Sequence[int]) -> list[tuple[int, int]]:
    """Return intervals from their starts and ends.

    Raises
    ------
    ValueError
        If they are not intervals.
    """
    intervals = list(zip(begins, ends, strict=False))
    if not intervals or len(begins) != len(ends) or any(end < begin for begin, end in intervals):
        raise ValueError(
            "Intervals need as many begins as ends, one at least, and no end before its begin, "
            f"got {list(begins)!r} and {list(ends)!r} in epoch microseconds."
        )
    return intervals


def _shares(sums: Sums) -> dict[str, float]:
    """Return sums as fractions of the largest one.

    >>> _shares({"a": 5, "b": 20})
    {'a': 0.25, 'b': 1.0}
    """
    largest = float(max(sums.values(), default=0)) or 1.0
    return {name: value / largest for name, value in sums.items()}
