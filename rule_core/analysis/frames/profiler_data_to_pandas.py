"""PandasFrame: the profiler's data of a training job as pandas frames."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rule_core.analysis.frames.event_sums import Sums, intervals_of, shares, sums_at, sums_between
from rule_core.analysis.frames.frame_rows import (
    DATALOADER_COLUMNS,
    FRAMEWORK_COLUMNS,
    EventRows,
    SampleRows,
    Time,
    epoch_us,
)
from rule_core.analysis.frames.frame_source import EVER_US, FrameSource
from rule_core.profiler.framework_reader import AlgorithmMetricsReader
from rule_core.profiler.system.reader import SystemMetricsReader

if TYPE_CHECKING:
    import pandas as pd


class PandasFrame:
    """Frames of system metrics, framework metrics and data loaders, by time or by step.

    Times that are given are epoch microseconds; columns ``..._us`` count from `start_time`. Rows
    that equal one before in everything are left out, and leave a gap in the index. A frame without
    rows has all columns, with dtype ``object``.

    A row of system metrics takes 67 bytes where 100 samples share a time, and up to 140; one of
    framework metrics 246, one of data loaders 262; while the frame is made, 141, 650 and 690.
    `get_profiler_data_by_time` makes frames of ranges of time, and reads their files only. Measured
    with pandas 3.1, after a first call that fills the readers' caches::

        tracemalloc.start(); frame = frames.get_all_system_metrics()
        print(*(size / len(frame) for size in tracemalloc.get_traced_memory()))

    Parameters
    ----------
    path
        The folder or S3 address that holds ``system`` and ``framework``.
    use_in_memory_cache
        Keep all framework events that were parsed for the next call, not some only.
    scan_interval
        Taken, and not needed: nothing is read in chunks of time.

    Attributes
    ----------
    start_time
        Epoch microseconds that the name of the first file of system metrics has; 0 without any.

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
        self._source = FrameSource(path, keep_events=use_in_memory_cache)
        self._samples = SampleRows()
        self._events = EventRows(FRAMEWORK_COLUMNS)
        self.start_time = self._source.first_system_us

    @property
    def system_metrics_reader(self) -> SystemMetricsReader:
        """The reader of system metrics at `path`, for charts."""
        return self._source.system_reader

    @property
    def framework_metrics_reader(self) -> AlgorithmMetricsReader:
        """The reader of framework metrics at `path`, for charts."""
        return self._source.framework_reader

    # -- frames of all there is --------------------------------------------------------------

    def get_all_system_metrics(self, selected_system_metrics: Sequence[str] = ()) -> "pd.DataFrame":
        """Return all samples of system metrics.

        Parameters
        ----------
        selected_system_metrics
            Names such as ``cpu0``, exactly; none are all.

        Returns
        -------
        DataFrame
            ``timestamp`` (UTC, as ``2020-06-03T05:04:59:457089``), ``timestamp_us``, ``value``,
            ``system_metric``, ``dimension``, ``nodeID``, ``type``; file by file in order of time.
        """
        return self.get_profiler_data_by_time(
            *EVER_US, selected_system_metrics=selected_system_metrics, get_framework_metrics=False
        )[0]

    def get_all_framework_metrics(
        self, selected_framework_metrics: Sequence[str] = ()
    ) -> "pd.DataFrame":
        """Return all framework events from the first system metrics to the newest timeline.

        Parameters
        ----------
        selected_framework_metrics
            Names of events or phases, exactly; none are all.

        Returns
        -------
        DataFrame
            ``start_time``, ``end_time`` (UTC, as ``2020-06-03T05:04:59:457089``),
            ``start_time_us``, ``end_time_us``, ``tid``, ``pid``, ``framework_metric`` (of the
            event's args ``layer_name`` or ``name``, or else its name), ``step`` (-1 if it has
            none), ``bytes`` (-1 if it has none), ``process`` (its phase), ``nodeID``; kind by kind
            of timelines, file by file. Without rows, if all timelines end before system metrics
            begin.
        """
        self._source.refresh()
        return self.get_profiler_data_by_time(
            self._source.first_system_us,
            self._source.last_trace_us,
            selected_framework_metrics=selected_framework_metrics,
            get_system_metrics=False,
        )[1]

    def get_all_dataloader_metrics(
        self, selected_framework_metrics: Sequence[str] = ()
    ) -> "pd.DataFrame":
        """Return the same events with what PyTorch's data loaders tell of themselves.

        Parameters
        ----------
        selected_framework_metrics
            Regular expressions, found anywhere in the name of an event or its phase; none are all.

        Returns
        -------
        DataFrame
            ``start_time``, ``end_time``, ``start_time_us``, ``end_time_us``, ``duration_us``,
            ``pid``, ``framework_metric``, ``step``, ``worker_id``, ``num_workers`` (-1 if it has
            none), ``pin_memory`` (``"True"``, ``"False"``, ``"NA"``), ``process``, ``node_id``.
        """
        self._source.refresh()
        rows = EventRows(DATALOADER_COLUMNS)
        start, end = self._source.first_system_us, self._source.last_trace_us
        self._source.take_matching(rows, start, end, selected_framework_metrics)
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
        """Return frames of system metrics and of framework metrics of a range of time.

        Parameters
        ----------
        start_time_us, end_time_us
            Samples of ``start <= time <= end``, and events that overlap it, if only by touching it;
            no events if both are the same.
        cache_metrics
            Return with these rows those of all earlier calls that asked for the same.
        selected_framework_metrics, selected_system_metrics
            As of `get_all_framework_metrics` and `get_all_system_metrics`.
        get_framework_metrics, get_system_metrics
            Whether to read them; otherwise their frame has no rows.
        """
        self._source.refresh()
        samples, events = SampleRows(), EventRows(FRAMEWORK_COLUMNS)
        if get_system_metrics:
            samples = self._samples if cache_metrics else samples
            self._source.take_samples(samples, start_time_us, end_time_us, selected_system_metrics)
        if get_framework_metrics:
            events = self._events if cache_metrics else events
            self._source.take_events(events, start_time_us, end_time_us, selected_framework_metrics)
        return samples.frame(self.start_time, self._source.keys), events.frame(self.start_time)

    def get_profiler_data_by_step(
        self, start_step: int, end_step: int, cache_metrics: bool = False
    ) -> "tuple[pd.DataFrame, pd.DataFrame]":
        """Return frames of system metrics and of framework metrics of a range of steps.

        Parameters
        ----------
        start_step, end_step
            Framework metrics of ``start <= step <= end`` in any mode, and system metrics from the
            start of the first to the end of the last of these.
        cache_metrics
            Taken, and without effect: all is read anyway.
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
        """Say which framework metrics are at work at given times, and for how long.

        Parameters
        ----------
        timestep_list
            Times such as those in the column ``timestamp`` of system metrics.
        selected_framework_metrics
            As of `get_all_framework_metrics`.

        Returns
        -------
        tuple
            For each time, the durations of the events that it lies within (not at their ends) are
            summed up: by phase, as parts of the largest sum; by name of the event, in microseconds;
            and by phase in microseconds for the phases of steps, which the first two leave out.

        Raises
        ------
        IndexError
            If there are no times.
        """
        times = sorted(map(epoch_us, timestep_list))
        if not times:
            msg = "Framework metrics are asked for at no time. Give one time or more."
            raise IndexError(msg)
        self._source.refresh()
        sums = sums_at(times, self._source.events(times[0], times[-1], selected_framework_metrics))
        steps = {name: value for name, value in sums.phases.items() if "Step" in name}
        rest = {name: value for name, value in sums.phases.items() if name not in steps}
        return shares(rest), sums.names, steps

    def get_framework_metrics_by_begin_and_end_timesteps(
        self,
        begin_timestep_list: Sequence[Time],
        end_timestep_list: Sequence[Time],
        selected_framework_metrics: Sequence[str] = (),
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Say which framework metrics overlap given intervals, and for how long.

        Parameters
        ----------
        begin_timestep_list, end_timestep_list
            Times such as those in the columns ``start_time`` and ``end_time``.
        selected_framework_metrics
            As of `get_all_framework_metrics`.

        Returns
        -------
        tuple
            For each interval, the durations of the events that overlap or touch it are summed up,
            by phase and by name of the event; both as parts of their largest sum, without steps.

        Raises
        ------
        ValueError
            If there are none, not as many begins as ends, or an end before its begin.
        """
        begins, ends = (
            list(map(epoch_us, times)) for times in (begin_timestep_list, end_timestep_list)
        )
        intervals = intervals_of(begins, ends)
        self._source.refresh()
        events = self._source.events(min(begins), max(ends), selected_framework_metrics)
        sums = sums_between(intervals, events)
        return shares(sums.phases), shares(sums.names)

    def convert_datetime_to_timestamp(self, timestamp: Time) -> int:
        """Return epoch microseconds, exactly.

        Parameters
        ----------
        timestamp
            A text such as ``2020-06-03T05:04:59:457089``, or a datetime; without a zone it is UTC.

        Raises
        ------
        ValueError
            If it is none.
        """
        return epoch_us(timestamp)
