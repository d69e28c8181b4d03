"""PandasFrameAnalysis: what frames of system and framework metrics tell of a training job."""

import math
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rule_core.analysis.frames.frame_statistics import Range, put, samples_of, spread, usage
from rule_core.analysis.frames.phase_intervals import phase_intervals, phases_of_samples
from rule_core.analysis.frames.step_numbers import NO_STEP, step_numbers, step_times
from rule_core.logger import get_logger
from rule_core.optional_imports import import_pandas

if TYPE_CHECKING:
    import pandas as pd

_FIRST_STEPS: Final = ("Step:ModeKeys.TRAIN", "Step:ModeKeys.GLOBAL")
_RANGES: Final[list[Range]] = [(90, 100), (10, 90), (0, 10)]


class StatsBy(Enum):
    """By what statistics are grouped."""

    TRAINING_PHASE = "training_phase"
    FRAMEWORK_METRICS = "framework_metric"
    PROCESS = "process"


class Resource(Enum):
    """What system metrics are of; found anywhere in their column ``type``."""

    CPU = "cpu"
    GPU = "gpu"
    IO = "i/o"
    NETWORK = "network"
    MEMORY = "memory"


_ALL_RESOURCES: Final = [
    *(Resource.CPU, Resource.GPU, Resource.MEMORY, Resource.IO, Resource.NETWORK)
]


class JobStats(dict[str, Any]):
    """Times of a training job by name; shown as a table."""

    def __repr__(self) -> str:
        return repr(import_pandas().DataFrame.from_dict(self, orient="index"))


class PandasFrameAnalysis:
    """Statistics of the frames of `PandasFrame`.

    Both frames are changed in place: framework metrics get a column ``duration_us``, and events
    without a step the number of the step that they lie within (-1 if there is none); system metrics
    get the columns ``phase`` and ``ranges`` when these are asked for.

    Parameters
    ----------
    system_df, framework_df
        As `PandasFrame.get_all_system_metrics` and `get_all_framework_metrics` return them.

    Attributes
    ----------
    sys_metrics_df, framework_metrics_df
        The frames.
    step_time_df
        ``step``, ``start_time_us``, ``end_time_us`` of each step over all nodes and modes: TRAIN 1
        and EVAL 1 are one step here.
    """

    def __init__(self, system_df: "pd.DataFrame", framework_df: "pd.DataFrame") -> None:
        self.sys_metrics_df = system_df
        self.framework_metrics_df = framework_df
        durations = framework_df["end_time_us"] - framework_df["start_time_us"]
        put(framework_df, "duration_us", durations.to_numpy())
        self.step_time_df = step_times(framework_df)
        put(framework_df, "step", step_numbers(framework_df, self.step_time_df))

    def get_job_statistics(self) -> JobStats:
        """Return how long the job, and its parts, took.

        Returns
        -------
        JobStats
            ``start_time``, ``end_time``, ``training_loop_start``, ``training_loop_end`` as texts;
            ``job_duration``, ``training_loop_duration``, ``initialization`` and ``finalization`` in
            microseconds; the last three also in percent of the job as ``..._%`` (NaN if it took no
            time), which add up to 100. The training loop is from step 0 to the end of the last
            framework event; the job is from the first to the last of samples and loop.

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
            msg = (
                "Framework metrics have no step 0 of TRAIN or GLOBAL: the training loop is unknown."
            )
            raise KeyError(msg)
        if system.empty:
            msg = "System metrics have no samples: the duration of the job is unknown."
            raise ValueError(msg)
        first = framework[is_first].iloc[0]
        times, texts = system["timestamp_us"], system["timestamp"]
        loop_start, loop_end = int(first["start_time_us"]), int(framework["end_time_us"].max())
        start, end = min(int(times.min()), loop_start), max(int(times.max()), loop_end)
        parts = {
            "training_loop": loop_end - loop_start,
            "initialization": loop_start - start,
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
                "initialization_%": shares.pop("initialization_%"),
                **shares,
            }
        )

    def get_step_statistics(self, by: Any = StatsBy.TRAINING_PHASE) -> "pd.DataFrame | None":
        """Return how long steps took, or what is done in them.

        Parameters
        ----------
        by
            A StatsBy: phases of training, framework metrics, or processes.

        Returns
        -------
        DataFrame or None
            A column named as `by`, ascending, then ``duration_mean_us``, ``duration_min_us``,
            ``duration_max_us``, ``duration_p50_us``, ``duration_p95_us``, ``duration_p99_us``, over
            the steps. The duration in a step is from the first start to the last end on any node.
            Events outside of steps do not count. None, with a log line, if `by` is no StatsBy.
        """
        if not isinstance(by, StatsBy):
            _refused(f"Statistics are by a StatsBy, got {by!r}.")
            return None
        rows = self.framework_metrics_df[self.framework_metrics_df["step"] != NO_STEP]
        column = by.value
        if by is StatsBy.TRAINING_PHASE:
            column = StatsBy.FRAMEWORK_METRICS.value
            rows = rows[rows[column].str.contains("Step:ModeKeys").to_numpy(bool)]
        steps = rows.groupby(["step", column]).agg({"start_time_us": "min", "end_time_us": "max"})
        durations = (steps["end_time_us"] - steps["start_time_us"]).astype(np.float64)
        found = spread(durations.groupby(level=column), "duration_{}_us")
        return found.rename(columns={column: by.value})

    def get_utilization_stats(
        self, resource: Any = None, by: Any = None, phase: Any = None
    ) -> "pd.DataFrame | None":
        """Return how much of resources was used.

        Parameters
        ----------
        resource
            A Resource or a list of them; None is all.
        by
            ``StatsBy.TRAINING_PHASE``: in each phase of training and between them. All else: over
            the whole job.
        phase
            As of `get_training_phase_intervals`.

        Returns
        -------
        DataFrame or None
            ``Resource``, ``Training_phase`` (only by phases), ``nodeID``, ``utilization_mean``,
            ``utilization_min``, ``utilization_max``, ``utilization_p50``, ``utilization_p95``,
            ``utilization_p99``, over all dimensions and parts of the resource. Resources without
            samples are left out. None, with a log line, if an argument is of a wrong type, or there
            is none of the phases.

        Raises
        ------
        ValueError
            If there are no samples of any of the resources.
        """
        resources = _resources(resource, _ALL_RESOURCES)
        if resources is None or not (by is None or isinstance(by, StatsBy)):
            _refused(f"Resources and StatsBy are needed, got {resource!r} and {by!r}.")
            return None
        keys = ["nodeID"]
        if by is StatsBy.TRAINING_PHASE:
            intervals = self.get_training_phase_intervals(phase)
            if intervals is None:
                return None
            put(self.sys_metrics_df, "phase", phases_of_samples(self.sys_metrics_df, intervals))
            keys = ["phase", "nodeID"]
        tables = []
        for one in resources:
            rows = self.sys_metrics_df[samples_of(self.sys_metrics_df, [one.value])]
            if not rows.empty:
                found = spread(rows.groupby(keys)["value"], "utilization_{}")
                found.insert(0, "Resource", one.value)
                tables.append(found)
        if not tables:
            msg = f"System metrics have no samples of {', '.join(one.value for one in resources)}."
            raise ValueError(msg)
        joined: pd.DataFrame = import_pandas().concat(tables, ignore_index=True)
        return joined.rename(columns={"phase": "Training_phase"})

    def get_device_usage_stats(
        self, device: Any = None, utilization_ranges: Any = None
    ) -> "pd.DataFrame":
        """Return how many samples lie in ranges of utilization.

        Parameters
        ----------
        device
            A Resource or a list of them; None is CPU and GPU.
        utilization_ranges
            A list of pairs of two numbers that belong to the range; a sample is counted in the
            first that it lies in. None is (90, 100), (10, 90), (0, 10).

        Returns
        -------
        DataFrame
            ``type``, ``nodeID``, and a column for each range that occurs, named by the pair, in the
            order of the pairs. An empty frame, with a log line, if an argument is of a wrong type.
        """
        ranges = _RANGES if utilization_ranges is None else utilization_ranges
        devices = _resources(device, [Resource.CPU, Resource.GPU])
        if devices is None or not isinstance(ranges, list) or {len(one) for one in ranges} != {2}:
            _refused(f"Resources and a list of ranges are needed, got {device!r} and {ranges!r}.")
            empty: pd.DataFrame = import_pandas().DataFrame()
            return empty
        types = [one.value for one in devices]
        return usage(self.sys_metrics_df, types, [(start, end) for start, end in ranges])

    def get_training_phase_intervals(self, phase: Any = None) -> "pd.DataFrame | None":
        """Return the intervals of phases of training, and those before, between and after them.

        Parameters
        ----------
        phase
            A name or a list of names such as ``Step:ModeKeys.TRAIN``; those that did not occur are
            left out. None is all of these.

        Returns
        -------
        DataFrame or None
            ``start_time_us``, ``end_time_us``, ``phase``, in the order of time: ``Before X``, then
            phases and what is ``Between A and B``, then ``After Y``. Steps of one phase that follow
            each other are one interval, unless only one phase is asked for: then each step is one.
            If there are several nodes, the intervals of each are found by themselves, and a fourth
            column ``nodeID`` says whose they are. None, with a log line, if none of the phases
            occurred, or `phase` is of a wrong type.
        """
        framework = self.framework_metrics_df
        known = framework["process"].unique().tolist()
        if phase is None:
            phase = [one for one in known if "Step:ModeKeys" in one]
        asked = [phase] if isinstance(phase, str) else phase
        if not isinstance(asked, list):
            _refused(f"Phases are a list of names, got {phase!r}.")
            return None
        wanted = [one for one in asked if one in known]
        rows = framework[framework["framework_metric"].isin(wanted)]
        if rows.empty or self.sys_metrics_df.empty:
            _refused(f"Phases {asked!r} did not occur, or there are no system metrics.")
            return None
        times = self.sys_metrics_df["timestamp_us"]
        return phase_intervals(rows, int(times.min()), int(times.max()), fused=len(wanted) > 1)


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else math.nan


def _refused(text: str) -> None:
    """Say why there is no answer; None is the answer then."""
    get_logger().info(text)


def _resources(asked: object, default: list[Resource]) -> list[Resource] | None:
    """Return what was asked for as a list; None if it is none of resources."""
    found = default if asked is None else [asked] if isinstance(asked, Resource) else asked
    if isinstance(found, list) and all(isinstance(one, Resource) for one in found):
        return found
    return None
