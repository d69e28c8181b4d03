"""Statistics of frames: spreads of groups, and counts of samples in ranges."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from rule_core.optional_imports import import_pandas

if TYPE_CHECKING:
    import pandas as pd

Range = tuple[float, float]
_PERCENTILES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


def put(frame: "pd.DataFrame", name: str, values: NDArray[Any]) -> None:
    """Set a column in place, also of a frame that was cut out of another."""
    if name in frame:
        frame.isetitem([*frame.columns].index(name), values)
    else:
        frame.insert(len(frame.columns), name, values)


def samples_of(system: "pd.DataFrame", types: Sequence[str]) -> "pd.Series[bool]":
    """Return which samples have a type that contains one of `types`."""
    kinds = [str(kind) for kind in system["type"].unique()]
    return system["type"].isin([kind for kind in kinds if any(text in kind for text in types)])


def spread(groups: Any, name: str) -> "pd.DataFrame":
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


def usage(system: "pd.DataFrame", types: Sequence[str], ranges: Sequence[Range]) -> "pd.DataFrame":
    """Count samples by the first range that contains them, and record the range of each.

    Parameters
    ----------
    system
        Samples; their range is stored in column ``ranges``, ``()`` for none.
    types
        See `samples_of`.
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
    put(system, "ranges", labels[numbers])
    counted = samples_of(system, types).to_numpy(bool) & (numbers >= 0)
    rows = system[counted]
    table = import_pandas().crosstab([rows["type"], rows["nodeID"]], numbers[counted])
    table = table[sorted(table.columns, key=ranges.__getitem__)]
    pairs = [ranges[number] for number in table.columns]
    counts: pd.DataFrame = table.reset_index()
    counts.columns = import_pandas().Index(["type", "nodeID", *pairs], dtype=object, name="ranges")
    return counts
