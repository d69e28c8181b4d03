"""PT_dataloader_analysis: how long PyTorch's data loaders took, and when much longer than usual."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from rule_core.optional_imports import import_pandas

if TYPE_CHECKING:
    import pandas as pd

    from rule_core.analysis.frames.profiler_data_to_pandas import PandasFrame

_OUTLIER: Final = 2  # times the median
_FORMAT: Final = "%Y-%m-%dT%H:%M:%S:%f"
_ITERATORS: Final = (
    "_MultiProcessingDataLoaderIter.__init__",
    "_SingleProcessDataLoaderIter.__init__",
)


class PT_dataloader_analysis:  # noqa: N801 - the documented name
    """What the data loaders of one training job did; the methods print it.

    Parameters
    ----------
    pandas_frame
        The job's frames.

    Attributes
    ----------
    dataIter_metric, initialize_metric, dataWorker_metric
        Frames of `PandasFrame.get_all_dataloader_metrics`: calls that get the next batch,
        iterators that are made, and workers.
    """

    def __init__(self, pandas_frame: "PandasFrame") -> None:
        self.pd_data_frame = pandas_frame
        get = pandas_frame.get_all_dataloader_metrics
        self.dataIter_metric = get([".*DataLoaderIter::GetNext"])
        self.initialize_metric = get(["DataLoaderIterInitialize"])
        self.dataWorker_metric = get(["DataLoaderWorker"])

    def analyze_dataloaderIter_initialization(self) -> None:  # noqa: N802 - the documented name
        """Print how often iterators were made, for how many workers, and how long it took."""
        if self.initialize_metric.empty:
            _say("There are no events of iterators of data loaders that are made.")
            return
        for name in _ITERATORS:
            rows = self.initialize_metric[self.initialize_metric["framework_metric"] == name]
            if rows.empty:
                _say(f"Training does not use iterators of {name}.")
                continue
            first = rows.iloc[0]
            _say(
                f"Training uses {name} with pin_memory {first['pin_memory']} and "
                f"{first['num_workers']} workers; it was called {len(rows)} times. "
                f"{_durations(rows['duration_us'], 'us')}"
            )

    def analyze_dataloaderWorkers(self) -> "pd.DataFrame | None":  # noqa: N802 - the documented name
        """Print how long workers of data loaders ran; return those that ran long.

        Returns
        -------
        DataFrame or None
            ``start_time``, ``end_time``, ``duration_us``, ``worker_id`` of those of twice the
            median duration or more, the longest first; None if there are none.
        """
        return _outliers(
            self.dataWorker_metric,
            "workers of data loaders",
            "duration_us",
            ["start_time", "end_time", "duration_us", "worker_id"],
        )

    def analyze_dataloader_getnext(self) -> "pd.DataFrame | None":
        """Print how long it took to get the next batch; return the calls that took long.

        Returns
        -------
        DataFrame or None
            As of `analyze_dataloaderWorkers`.
        """
        return _outliers(
            self.dataIter_metric,
            "calls that get the next batch",
            "duration_us",
            ["start_time", "end_time", "duration_us", "worker_id"],
        )

    def analyze_batchtime(self) -> "pd.DataFrame | None":
        """Print how long batches took, from one start to the next in a process; return long ones.

        Returns
        -------
        DataFrame or None
            ``previous_batch_start``, ``start_time`` (both datetimes in UTC without a zone),
            ``BatchTime_in_seconds``, ``worker_id`` of those of twice the median or more, the
            longest first; None if there are none.
        """
        frame = self.dataIter_metric.sort_values(["node_id", "pid", "end_time"])
        frame["start_time"] = import_pandas().to_datetime(frame["start_time"], format=_FORMAT)
        starts = frame.groupby(["node_id", "pid"])["start_time"]
        frame["BatchTime_in_seconds"] = starts.diff().dt.total_seconds()
        frame["previous_batch_start"] = starts.shift()
        return _outliers(
            frame,
            "times between batches",
            "BatchTime_in_seconds",
            ["previous_batch_start", "start_time", "BatchTime_in_seconds", "worker_id"],
        )

    def plot_the_window(
        self,
        start_timestamp: int,
        end_timestamp: int,
        select_events: Sequence[str] = (".*",),
        select_dimensions: Sequence[str] = (".*",),
    ) -> Any:
        """Return the charts of a range of time, which are shown in a notebook.

        Parameters
        ----------
        start_timestamp, end_timestamp
            Epoch microseconds.
        select_events, select_dimensions
            Regular expressions of what to show.

        Returns
        -------
        TimelineCharts
            Of system metrics and framework metrics.
        """
        from rule_core.analysis.charts import timeline_charts

        framework = self.pd_data_frame.framework_metrics_reader
        system = self.pd_data_frame.system_metrics_reader
        framework.refresh_event_file_list()
        system.refresh_event_file_list()
        return timeline_charts.TimelineCharts(
            system,
            framework,
            starttime=start_timestamp,
            endtime=end_timestamp,
            select_events=list(select_events),
            select_dimensions=list(select_dimensions),
        )


def _outliers(
    frame: "pd.DataFrame", what: str, measure: str, columns: list[str]
) -> "pd.DataFrame | None":
    """Print how long something took, and return what took twice the median or more."""
    values = frame[measure].dropna()
    if values.empty:
        _say(f"There are no {what}.")
        return None
    unit = "us" if measure.endswith("us") else "s"
    _say(f"There are {len(values)} {what}. {_durations(values, unit)}")
    found = frame.loc[frame[measure] >= _OUTLIER * values.median(), columns]
    if found.empty:
        _say("None took twice the median or more.")
        return None
    _say(f"{len(found)} took twice the median or more.")
    return found.sort_values(measure, ascending=False, kind="stable", ignore_index=True)


def _durations(values: "pd.Series[Any]", unit: str) -> str:
    return f"Median duration {values.median()} {unit}, maximum {values.max()} {unit}."


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
