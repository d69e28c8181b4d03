"""PT_dataloader_analysis: the durations of PyTorch's data loaders, and their outliers."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from rule_core.optional_imports import import_pandas

if TYPE_CHECKING:
    import pandas as pd

    from rule_core.analysis.frames.profiler_data_to_pandas import PandasFrame

_OUTLIER: Final = 2  # times the median
_COLUMNS: Final = ["start_time", "end_time", "duration_us", "worker_id"]
_FORMAT: Final = "%Y-%m-%dT%H:%M:%S:%f"
_ITERATORS: Final = (
    "_MultiProcessingDataLoaderIter.__init__",
    "_SingleProcessDataLoaderIter.__init__",
)


class PT_dataloader_analysis:  # noqa: N801 - the documented name
    """Prints statistics of the data loaders of one training job.

    Parameters
    ----------
    pandas_frame
        The job's frames.

    Attributes
    ----------
    dataIter_metric, initialize_metric, dataWorker_metric
        Frames of `PandasFrame.get_all_dataloader_metrics`: calls that get the next batch,
        creations of iterators, and workers.
    """

    def __init__(self, pandas_frame: "PandasFrame") -> None:
        self.pd_data_frame = pandas_frame
        get = pandas_frame.get_all_dataloader_metrics
        self.dataIter_metric = get([".*DataLoaderIter::GetNext"])
        self.initialize_metric = get(["DataLoaderIterInitialize"])
        self.dataWorker_metric = get(["DataLoaderWorker"])

    def analyze_dataloaderIter_initialization(self) -> None:  # noqa: N802 - the documented name
        """Print the number, workers and durations of created iterators."""
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
        """Print the durations of data loader workers, and return the outliers.

        Returns
        -------
        DataFrame or None
            ``start_time``, ``end_time``, ``duration_us``, ``worker_id`` of workers with at least
            twice the median duration, in descending order; None without any.
        """
        return _outliers(self.dataWorker_metric, "workers of data loaders", "duration_us", _COLUMNS)

    def analyze_dataloader_getnext(self) -> "pd.DataFrame | None":
        """Print the durations of calls that get the next batch, and return the outliers.

        Returns
        -------
        DataFrame or None
            See `analyze_dataloaderWorkers`.
        """
        frame = self.dataIter_metric
        return _outliers(frame, "calls that get the next batch", "duration_us", _COLUMNS)

    def analyze_batchtime(self) -> "pd.DataFrame | None":
        """Print the times between the starts of batches in a process, and return the outliers.

        Returns
        -------
        DataFrame or None
            ``previous_batch_start``, ``start_time`` (both datetimes in UTC without a zone),
            ``BatchTime_in_seconds``, ``worker_id`` of batches with at least twice the median time,
            in descending order; None without any.
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
        """Return the charts of a time range, and show them in a notebook.

        Parameters
        ----------
        start_timestamp, end_timestamp
            Epoch microseconds.
        select_events, select_dimensions
            Regular expressions that select metrics or dimensions by searching their names.

        Returns
        -------
        TimelineCharts
            Charts of system metrics, with framework events.
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
    """Print a summary of a column, and return the rows with at least twice its median.

    Parameters
    ----------
    frame
        The rows.
    what
        Name of the rows in the summary.
    measure
        The column.
    columns
        The columns to return.
    """
    values = frame[measure].dropna()
    if values.empty:
        _say(f"There are no {what}.")
        return None
    unit = "us" if measure.endswith("us") else "s"
    _say(f"There are {len(values)} {what}. {_durations(values, unit)}")
    outliers = frame.loc[frame[measure] >= _OUTLIER * values.median(), columns]
    if outliers.empty:
        _say("None took twice the median or more.")
        return None
    _say(f"{len(outliers)} took twice the median or more.")
    return outliers.sort_values(measure, ascending=False, kind="stable", ignore_index=True)


def _durations(values: "pd.Series[Any]", unit: str) -> str:
    return f"Median duration {values.median()} {unit}, maximum {values.max()} {unit}."


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
