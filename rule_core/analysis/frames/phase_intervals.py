"""The intervals of training phases and the gaps around them, and the phases of samples."""

from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from rule_core.optional_imports import data_frame, import_pandas
from rule_core.profiler.files.time_units import is_on_host

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS: Final = ("start_time_us", "end_time_us", "phase")


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


def _phases_at(times: NDArray[np.int64], intervals: "pd.DataFrame") -> NDArray[np.object_]:
    order = np.argsort(times, kind="stable")
    ascending = times[order]
    starts = np.searchsorted(ascending, intervals["start_time_us"].to_numpy(), side="left")
    ends = np.searchsorted(ascending, intervals["end_time_us"].to_numpy(), side="right")
    phases = np.full(len(times), None, dtype=object)
    for start, end, phase in zip(starts, ends, intervals["phase"], strict=True):
        phases[order[start:end]] = phase
    return phases
