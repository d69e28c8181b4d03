"""PandasFrameAnalysis: statistics of a training job from frames of its metrics."""

import math
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from rule_core.analysis.frames.step_intervals import (
    NO_STEP,
    phase_intervals,
    phases_of_samples,
    step_numbers,
    step_times,
)
from rule_core.logger import get_logger
from rule_core.optional_imports import data_frame, import_pandas

if TYPE_CHECKING:
    import pandas as pd

Range = tuple[float, float]
_PERCENTILES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
_FIRST_STEPS: Final = ("Step:ModeKeys.TRAIN", "Step:ModeKeys.GLOBAL")
_RANGES: Final[list[Range]] = [(90, 100), (10, 90), (0, 10)]


class StatsBy(Enum):
    """The groups of step statistics."""

    TRAINING_PHASE = "training_phase"
    FRAMEWORK_METRICS = "framework_metric"
    PROCESS = "process"


class Resource(Enum):
    """A resource of system metrics; its value is a part of their column ``type``."""

    CPU = "cpu"
    GPU = "gpu"
    IO = "i/o"
    NETWORK = "network"
    MEMORY = "memory"


_ALL_RESOURCES: Final = [
    *(Resource.CPU, Resource.GPU, Resource.MEMORY, Resource.IO, Resource.NETWORK)
]


class JobStats(dict[str, Any]):
    """Times of a training job by name, printed as a table."""

    def __repr__(self) -> str:
        return repr(import_pandas().DataFrame.from_dict(self, orient="index"))


class PandasFrameAnalysis:
    """Statistics of the frames of `PandasFrame`.

    Both frames are changed in place. Framework metrics get a column ``duration_us``, and events
    without a step get the number of the step that contains them (-1 if none does). System metrics
    get the columns ``phase`` and ``ranges`` from the methods that compute them.

    Parameters
    ----------
    system_df, framework_df
        Frames of `PandasFrame.get_all_system_metrics` and `get_all_framework_metrics`.

    Attributes
    ----------
    sys_metrics_df, framework_metrics_df
        The frames.
    step_time_df
        ``step``, ``start_time_us``, ``end_time_us`` of each step over all nodes and modes; TRAIN 1
        and EVAL 1 count as one step.
    """

    def __init__(self, system_df: "pd.DataFrame", framework_df: "pd.DataFrame") -> None:
        self.sys_metrics_df = system_df
        self.framework_metrics_df = framework_df
        durations = framework_df["end_time_us"] - framework_df["start_time_us"]
        _put(framework_df, "duration_us", durations.to_numpy())
        self.step_time_df = step_times(framework_df)
        _put(framework_df, "step", step_numbers(framework_df, self.step_time_df))

    def get_job_statistics(self) -> JobStats:
        """Return the times and durations of the job and its parts.

        Returns
        -------
        JobStats
            ``start_time``, ``end_time``, ``training_loop_start``, ``training_loop_end`` as texts;
            ``job_duration``, ``training_loop_duration``, ``initialization`` and ``finalization`` in
            microseconds; the last three also in percent of the job as ``..._%`` (NaN if it took no
            time), which add up to 100. The training loop lasts from step 0 to the end of the last
            framework event; the job also includes all samples.

        Raises
        ------
        KeyError
            If there is no step 0 of TRAIN or GLOBAL.
        ValueError
            If there are no system metrics.
        """
        system, framework = self.sys_metrics_df, self.framework_metrics_df
        is_first = framework["framework_metric"].isin(_FIRST_STEPS) & (framework["step"] == 0)
        if not is_first.any():
            raise KeyError(
                "Framework metrics have no step 0 of TRAIN or GLOBAL: the training loop is unknown."
            )
        if system.empty:
            raise ValueError("System metrics have no samples: the duration of the job is unknown.")
        first = framework[is_first].iloc[0]
        times, texts = system["timestamp_us"], system["timestamp"]
        loop_start, loop_end = int(first["start_time_us"]), int(framework["end_time_us"].max())
        start, end = min(int(times.min()), loop_start), max(int(times.max()), loop_end)
        parts = {
            "initialization": loop_start - start,
            "training_loop": loop_end - loop_start,
            "finalization": end - loop_end,
        }
        shares = {f"{name}_%": _percent(part, end - start) for name, part in parts.items()}
        return JobStats(
            {
                "start_time": min(texts.min(), first["start_time"]),
                "end_time": max(texts.max(), framework["end_time"].max()),
                "job_duration": end - start,
                "training_loop_start": first["start_time"],
                "training_loop_end": framework["end_time"].max(),
                "training_loop_duration": parts.pop("training_loop"),
                **parts,
                **shares,
            }
        )

    def get_step_statistics(self, by: Any = StatsBy.TRAINING_PHASE) -> "pd.DataFrame | None":
        """Return the durations of steps, or of framework metrics or processes within steps.

        Parameters
        ----------
        by
            A `StatsBy`.

        Returns
        -------
        DataFrame or None
            A column named after `by`, ascending, then ``duration_mean_us``, ``duration_min_us``,
            ``duration_max_us``, ``duration_p50_us``, ``duration_p95_us``, ``duration_p99_us``, over
            the steps. The duration in a step lasts from the first start to the last end on any
            node. Events outside of steps are ignored. None, with a log line, if `by` is not a
            `StatsBy`.
        """
        if not isinstance(by, StatsBy):
            _log(f"Statistics are by a StatsBy, got {by!r}.")
            return None
        rows = self.framework_metrics_df[self.framework_metrics_df["step"] != NO_STEP]
        column = by.value
        if by is StatsBy.TRAINING_PHASE:
            column = StatsBy.FRAMEWORK_METRICS.value
            rows = rows[rows[column].str.contains("Step:ModeKeys").to_numpy(bool)]
        steps = rows.groupby(["step", column]).agg({"start_time_us": "min", "end_time_us": "max"})
        durations = (steps["end_time_us"] - steps["start_time_us"]).astype(np.float64)
        statistics = _spread(durations.groupby(level=column), "duration_{}_us")
        return statistics.rename(columns={column: by.value})

    def get_utilization_stats(
        self, resource: Any = None, by: Any = None, phase: Any = None
    ) -> "pd.DataFrame | None":
        """Return the utilization of resources.

        Parameters
        ----------
        resource
            A `Resource` or a list of them; None selects all.
        by
            ``StatsBy.TRAINING_PHASE`` groups by the phases of training and the gaps between them.
            Any other value selects the whole job.
        phase
            See `get_training_phase_intervals`.

        Returns
        -------
        DataFrame or None
            ``Resource``, ``Training_phase`` (only by phases), ``nodeID``, ``utilization_mean``,
            ``utilization_min``, ``utilization_max``, ``utilization_p50``, ``utilization_p95``,
            ``utilization_p99``, over all dimensions and parts of the resource. Resources without
            samples are omitted. None, with a log line, if an argument has the wrong type, or none
            of the phases occurred.

        Raises
        ------
        ValueError
            If no resource has samples.
        """
        resources = _resources(resource, _ALL_RESOURCES)
        if resources is None or not (by is None or isinstance(by, StatsBy)):
            _log(f"Resources and StatsBy are needed, got {resource!r} and {by!r}.")
            return None
        keys = ["nodeID"]
        if by is StatsBy.TRAINING_PHASE:
            intervals = self.get_training_phase_intervals(phase)
            if intervals is None:
                return None
            _put(self.sys_metrics_df, "phase", phases_of_samples(self.sys_metrics_df, intervals))
            keys = ["phase", "nodeID"]
        tables = []
        names = [resource.value for resource in resources]
        for name in names:
            rows = self.sys_metrics_df[_samples_of(self.sys_metrics_df, [name])]
            if not rows.empty:
                table = _spread(rows.groupby(keys)["value"], "utilization_{}")
                table.insert(0, "Resource", name)
                tables.append(table)
        if not tables:
            raise ValueError(f"System metrics have no samples of {', '.join(names)}.")
        joined: pd.DataFrame = import_pandas().concat(tables, ignore_index=True)
        return joined.rename(columns={"phase": "Training_phase"})

    def get_device_usage_stats(
        self, device: Any = None, utilization_ranges: Any = None
    ) -> "pd.DataFrame":
        """Return the number of samples in each range of utilization.

        Parameters
        ----------
        device
            A `Resource` or a list of them; None selects CPU and GPU.
        utilization_ranges
            A list of pairs, both ends included; a sample counts in the first range that contains
            it. None is (90, 100), (10, 90), (0, 10).

        Returns
        -------
        DataFrame
            ``type``, ``nodeID``, and a column for each range that occurs, named by the pair, in the
            order of the pairs. Empty, with a log line, if an argument has the wrong type.
        """
        ranges = _RANGES if utilization_ranges is None else utilization_ranges
        devices = _resources(device, [Resource.CPU, Resource.GPU])
        if devices is None or not isinstance(ranges, list) or set(map(len, ranges)) != {2}:
            _log(f"Resources and a list of ranges are needed, got {device!r} and {ranges!r}.")
            return data_frame()
        types = [resource.value for resource in devices]
        return _usage(self.sys_metrics_df, types, [(start, end) for start, end in ranges])

    def get_training_phase_intervals(self, phase: Any = None) -> "pd.DataFrame | None":
        """Return the intervals of training phases, and of the gaps before, between and after them.

        Parameters
        ----------
        phase
            A name or a list of names such as ``Step:ModeKeys.TRAIN``; names that did not occur are
            ignored. None selects all names with ``Step:ModeKeys``.

        Returns
        -------
        DataFrame or None
            ``start_time_us``, ``end_time_us``, ``phase``, ordered by time: ``Before X``, then the
            phases and ``Between A and B``, then ``After Y``. Successive steps of the same phase are
            merged if several phases are selected. With several nodes, each has its own intervals,
            and ``nodeID`` is a fourth column. None, with a log line, if none of the phases
            occurred, or `phase` has the wrong type.
        """
        framework = self.framework_metrics_df
        processes = framework["process"].unique().tolist()
        if phase is None:
            phase = [name for name in processes if "Step:ModeKeys" in name]
        names = [phase] if isinstance(phase, str) else phase
        if not isinstance(names, list):
            _log(f"Phases are a list of names, got {phase!r}.")
            return None
        phases = [name for name in names if name in processes]
        rows = framework[framework["framework_metric"].isin(phases)]
        if rows.empty or self.sys_metrics_df.empty:
            _log(f"Phases {names!r} did not occur, or there are no system metrics.")
            return None
        times = self.sys_metrics_df["timestamp_us"]
        return phase_intervals(rows, int(times.min()), int(times.max()), fused=len(phases) > 1)


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else math.nan


def _log(text: str) -> None:
    """Log why a method returns no statistics."""
    get_logger().info(text)


def _resources(value: object, default: list[Resource]) -> list[Resource] | None:
    """Return a resource or a list of them as a list; None if the type is wrong."""
    resources = default if value is None else [value] if isinstance(value, Resource) else value
    if isinstance(resources, list) and all(isinstance(item, Resource) for item in resources):
        return resources
    return None


def _put(frame: "pd.DataFrame", name: str, values: NDArray[Any]) -> None:
    """Set a column in place, also of a frame that was cut out of another."""
    if name in frame:
        frame.isetitem([*frame.columns].index(name), values)
    else:
        frame.insert(len(frame.columns), name, values)


def _samples_of(system: "pd.DataFrame", types: Sequence[str]) -> "pd.Series[bool]":
    """Return which samples have a type that contains one of `types`."""
    kinds = [str(kind) for kind in system["type"].unique()]
    return system["type"].isin([kind for kind in kinds if any(text in kind for text in types)])


def _spread(groups: Any, name: str) -> "pd.DataFrame":
    """Return mean, extremes and percentiles of groups.

    Parameters
    ----------
    groups
        Groups of one column of numbers.
    name
        Name of the columns, with ``{}`` for ``mean``, ``min``, ``max``, ``p50``, ``p95``, ``p99``.

    Returns
    -------
    DataFrame
        The group keys, ascending, then the six columns as ``float64``.
    """
    statistics = groups.agg(["mean", "min", "max"])
    for percentile, part in _PERCENTILES.items():
        statistics[percentile] = groups.quantile(part)
    frame: pd.DataFrame = statistics.astype(np.float64).rename(columns=name.format).reset_index()
    return frame


def _usage(system: "pd.DataFrame", types: Sequence[str], ranges: Sequence[Range]) -> "pd.DataFrame":
    """Count samples by the first range that contains them, and record the range of each.

    Parameters
    ----------
    system
        Samples; their range is stored in column ``ranges``, ``()`` for none.
    types
        See `_samples_of`.
    ranges
        The ranges, both ends included.

    Returns
    -------
    DataFrame
        ``type``, ``nodeID``, and a column for each range that occurs, ascending.
    """
    values = system["value"].to_numpy(np.float64)
    inside = [(start <= values) & (values <= end) for start, end in ranges]
    numbers = np.select(inside, list(range(len(ranges))), -1)
    labels = np.empty(len(ranges) + 1, object)
    labels[:] = [*ranges, ()]
    _put(system, "ranges", labels[numbers])
    counted = _samples_of(system, types).to_numpy(bool) & (numbers >= 0)
    rows = system[counted]
    table = import_pandas().crosstab([rows["type"], rows["nodeID"]], numbers[counted])
    table = table[sorted(table.columns, key=ranges.__getitem__)]
    pairs = [ranges[number] for number in table.columns]
    counts: pd.DataFrame = table.reset_index()
    counts.columns = import_pandas().Index(["type", "nodeID", *pairs], dtype=object, name="ranges")
    return counts
