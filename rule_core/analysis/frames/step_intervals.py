"""The intervals of steps and of training phases, and what lies within them.

Events without a step get the number of the step that contains them, samples their phase.
"""

from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from rule_core.optional_imports import data_frame, import_pandas
from rule_core.profiler.files.time_units import is_on_host

if TYPE_CHECKING:
    import pandas as pd

Ints = NDArray[np.int64]
NO_STEP: Final = -1
_CELLS: Final = 1 << 20  # pairs of event and interval compared at once
_COLUMNS: Final = ("start_time_us", "end_time_us", "phase")


def step_times(framework: "pd.DataFrame") -> "pd.DataFrame":
    """Return the interval of each step number, over all nodes and modes.

    Returns
    -------
    DataFrame
        ``step``, ascending, ``start_time_us``, ``end_time_us``.
    """
    of_steps = framework["framework_metric"].str.contains("Step:ModeKeys").to_numpy(bool)
    rows = framework[of_steps & (framework["step"] != NO_STEP).to_numpy(bool)]
    intervals: pd.DataFrame = (
        rows.groupby("step").agg({"start_time_us": "min", "end_time_us": "max"}).reset_index()
    )
    return intervals


def step_numbers(framework: "pd.DataFrame", steps: "pd.DataFrame") -> Ints:
    """Return the step of each event: its own, or the first one that contains it.

    Parameters
    ----------
    framework
        Events, with ``step``, ``start_time_us`` and ``end_time_us``.
    steps
        Steps from `step_times`. An event that begins or ends with a step is not within it.

    Returns
    -------
    NDArray
        Shape ``(len(framework),)``; -1 for events outside of all steps.
    """
    numbers = framework["step"].to_numpy(np.int64, copy=True)
    missing = np.flatnonzero(numbers == NO_STEP)
    begins, ends = (framework[name].to_numpy(np.int64) for name in ("start_time_us", "end_time_us"))
    intervals = steps[["start_time_us", "end_time_us"]].to_numpy(np.int64)
    indexes = _first_around(intervals, begins[missing], ends[missing])
    numbers[missing] = np.append(steps["step"].to_numpy(np.int64), NO_STEP)[indexes]
    return numbers


def _first_around(intervals: Ints, begins: Ints, ends: Ints) -> NDArray[np.intp]:
    """Return the index of the first interval around each event; -1 if there is none.

    Intervals are halved while there are too many to compare all of them with all events. An event
    is searched in the first half if any interval there is around it, otherwise in the second.
    """
    count = len(intervals)
    if count * len(begins) <= _CELLS or count == 1:
        around = (intervals[:, 0] < begins[:, None]) & (intervals[:, 1] > ends[:, None])
        any_around = around.any(axis=1) if count else np.zeros(len(begins), bool)
        return np.where(any_around, around.argmax(axis=1) if count else 0, -1)
    half = count // 2
    within = _is_any_around(intervals[:half], begins, ends)
    indexes = np.empty(len(begins), np.intp)
    indexes[within] = _first_around(intervals[:half], begins[within], ends[within])
    later = _first_around(intervals[half:], begins[~within], ends[~within])
    indexes[~within] = np.where(later < 0, later, later + half)
    return indexes


def _is_any_around(intervals: Ints, begins: Ints, ends: Ints) -> NDArray[np.bool_]:
    """Return for each event whether any interval is around it."""
    order = np.argsort(intervals[:, 0], kind="stable")
    # The last end of the intervals that begin before an event.
    last = np.maximum.accumulate(intervals[order, 1])
    before = np.searchsorted(intervals[order, 0], begins, side="left")
    any_around: NDArray[np.bool_] = (before > 0) & (last[np.maximum(before, 1) - 1] > ends)
    return any_around


def phase_intervals(
    steps: "pd.DataFrame", first_us: int, last_us: int, *, fused: bool
) -> "pd.DataFrame":
    """Return the intervals of the phases on each node.

    Parameters
    ----------
    steps
        Events of phases, with ``start_time_us``, ``end_time_us``, ``framework_metric``, ``nodeID``.
    first_us, last_us
        Start and end of the job.
    fused
        Whether to merge successive events of the same phase.

    Returns
    -------
    DataFrame
        ``start_time_us``, ``end_time_us``, ``phase``, ordered by time. With several
        nodes, ordered by node, with ``nodeID`` as a fourth column.
    """
    by_node = {
        node: _of_one_node(rows, first_us, last_us, fused=fused)
        for node, rows in steps.groupby("nodeID")
    }
    if len(by_node) == 1:
        return next(iter(by_node.values()))
    for node, rows in by_node.items():
        rows["nodeID"] = node
    joined: pd.DataFrame = import_pandas().concat([*by_node.values()], ignore_index=True)
    return joined


def _of_one_node(
    steps: "pd.DataFrame", first_us: int, last_us: int, *, fused: bool
) -> "pd.DataFrame":
    steps = steps.sort_values("start_time_us", kind="stable")
    names, starts, ends = (
        steps[column].to_numpy() for column in ("framework_metric", "start_time_us", "end_time_us")
    )
    if fused:
        opens = np.flatnonzero(np.append(True, names[1:] != names[:-1]))
        names, starts, ends = names[opens], starts[opens], np.maximum.reduceat(ends, opens)
    phases = list(zip(starts.tolist(), ends.tolist(), names.tolist(), strict=True))
    rows = [(first_us, phases[0][0] - 1, f"Before {phases[0][2]}")]
    for (start, end, name), (following, _, other) in pairwise(phases):
        between = " and ".join(sorted([name, other]))
        rows += [(start, end, name), (end + 1, following - 1, f"Between {between}")]
    start, end, name = phases[-1]
    rows += [(start, end, name), (end + 1, last_us, f"After {name}")]
    return data_frame(rows, columns=_COLUMNS)


def phases_of_samples(system: "pd.DataFrame", intervals: "pd.DataFrame") -> NDArray[np.object_]:
    """Return the phase of each sample, None outside of phases.

    If intervals overlap, the last one counts. With intervals of several nodes, samples of a host
    such as ``algo-1`` belong to the phases of its processes, such as ``algo-1-11``.

    Parameters
    ----------
    system
        Samples, with ``timestamp_us`` and ``nodeID``.
    intervals
        Intervals from `phase_intervals`, both ends included.
    """
    phases = np.full(len(system), None, dtype=object)
    times = system["timestamp_us"].to_numpy(np.int64)
    for node, rows in system.groupby("nodeID").indices.items():
        phases[rows] = _phases_at(times[rows], _of_host(intervals, str(node)))
    return phases


def _of_host(intervals: "pd.DataFrame", host: str) -> "pd.DataFrame":
    if "nodeID" not in intervals:
        return intervals
    own = intervals[[is_on_host(node, host) for node in intervals["nodeID"]]]
    return own if len(own) else intervals


def _phases_at(times: Ints, intervals: "pd.DataFrame") -> NDArray[np.object_]:
    order = np.argsort(times, kind="stable")
    ascending = times[order]
    starts = np.searchsorted(ascending, intervals["start_time_us"].to_numpy(), side="left")
    ends = np.searchsorted(ascending, intervals["end_time_us"].to_numpy(), side="right")
    phases = np.full(len(times), None, dtype=object)
    for start, end, phase in zip(starts, ends, intervals["phase"], strict=True):
        phases[order[start:end]] = phase
    return phases
