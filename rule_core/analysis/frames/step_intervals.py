"""Step numbers for events without one, by the step that contains them."""

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

NO_STEP: Final = -1
_CELLS: Final = 1 << 20  # pairs of event and interval compared at once


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


def step_numbers(framework: "pd.DataFrame", steps: "pd.DataFrame") -> NDArray[np.int64]:
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


def _first_around(
    intervals: NDArray[np.int64], begins: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.intp]:
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


def _is_any_around(
    intervals: NDArray[np.int64], begins: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return for each event whether any interval is around it."""
    order = np.argsort(intervals[:, 0], kind="stable")
    # The last end of the intervals that begin before an event.
    last = np.maximum.accumulate(intervals[order, 1])
    before = np.searchsorted(intervals[order, 0], begins, side="left")
    any_around: NDArray[np.bool_] = (before > 0) & (last[np.maximum(before, 1) - 1] > ends)
    return any_around
