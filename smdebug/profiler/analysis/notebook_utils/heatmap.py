"""Heatmap: how much of each resource was used over time, as colours."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from smdebug.core.patterns import flatten, matching
from smdebug.profiler.analysis.notebook_utils.chart import Chart, Panel, Rows
from smdebug.profiler.analysis.notebook_utils.curves import (
    USUAL_INTERVAL_US,
    Curve,
    mean_of,
    moments,
)
from smdebug.profiler.analysis.notebook_utils.drawn import Drawn
from smdebug.profiler.analysis.notebook_utils.system_curves import TOTAL, SystemCurves
from smdebug.profiler.system_metrics_reader import SystemMetricsReader

NODE_TOTAL: Final = "node_total"
# What they count has no natural end: they are shown as shares of the most there was.
_UNBOUNDED: Final = frozenset({"Algorithm", "Platform", ""})
_US_OF_MS: Final = 1000
_COLUMNS: Final = 2000  # more than a screen has room for
_MOST_MOMENTS: Final = 2_000_000  # of a row; a month of a sample each second


class Heatmap(Drawn):
    """A row for each node, dimension and metric, for their means, and for the means of all nodes.

    A dimension's ``total`` is the mean of its metrics at each moment; ``node_total`` is that of
    all nodes. Rows are joined by time: where one has no sample, it is grey.

    Parameters
    ----------
    metrics_reader
        Of the job's system metrics.
    select_metrics
        Taken as it always was, and of no effect; notebooks give the other reader here.
    starttime, endtime
        Microseconds since the epoch; None is all there is.
    select_dimensions, select_events
        Regular expressions: what is found in a dimension's or a metric's name is selected.
    plot_height
        Pixels.
    show_workers
        Whether nodes have rows of their own.

    Attributes
    ----------
    times_us
        The middle of each column, in microseconds since the epoch; shape ``(columns,)``.
    rows
        Values from 0 to 100 by the names of the rows; NaN where there is none; each of the shape
        of `times_us`.

    Raises
    ------
    re.error
        If an expression is none.
    """

    def __init__(
        self,
        metrics_reader: SystemMetricsReader,
        select_metrics: Any = (),
        starttime: float = 0,
        endtime: float | None = None,
        select_dimensions: Sequence[str] = (".*CPU", ".*GPU"),
        select_events: Sequence[str] = (".*",),
        plot_height: int = 350,
        show_workers: bool = True,
    ) -> None:
        del select_metrics
        self.metrics_reader = metrics_reader
        self.plot_height = plot_height
        self._show_workers = show_workers
        self._patterns = flatten(list(select_events))
        self._source = SystemCurves(
            metrics_reader, starttime, endtime, select_dimensions, show_workers=False
        )
        self._join()
        self.show()

    def update_data(self, current_timestamp: float) -> None:
        """Add what came up to a time, in microseconds since the epoch."""
        if self._source.update(current_timestamp):
            self._join()
            self._renew()

    def chart(self) -> Chart:
        """Return the rows, the first one on top."""
        if not self.rows:
            return Chart("Usage of resources", (), note="No metrics are selected.")
        half = (self.times_us[-1] - self.times_us[0]) / max(len(self.times_us) - 1, 1) / 2
        half = half or USUAL_INTERVAL_US / 2
        start, end = (self.times_us[[0, -1]] + [-half, half]) / _US_OF_MS
        values = np.array([*reversed(self.rows.values())])
        mark = Rows(float(start), float(end), values, [*reversed(self.rows)])
        panel = Panel(
            "",
            "time (UTC)",
            "",
            mark,
            in_time=True,
            x_range=(mark.start, mark.end),
            height=self.plot_height,
        )
        return Chart("Usage of resources", (panel,))

    def _join(self) -> None:
        """Bring all rows to the same moments, which are equally far from each other."""
        named = self._named()
        times, near_us = moments(list(named.values()))
        grid = _grid(times)
        self.times_us: NDArray[np.int64] = grid.mean(axis=1).astype(np.int64)
        self.rows: dict[str, NDArray[np.float64]] = {
            name: _means(curve.at(grid.ravel(), max(near_us, curve.near_us())).reshape(grid.shape))
            for name, curve in named.items()
        }

    def _named(self) -> dict[str, Curve]:
        """Return the curves that are selected, by the names of their rows."""
        nodes: dict[str, dict[str, dict[str, Curve]]] = {}
        for key, curve in self._source.series().items():
            scaled = _share(curve) if key.dimension in _UNBOUNDED else curve
            named = nodes.setdefault(key.node, {}).setdefault(key.dimension, {})
            named[key.name or ""] = scaled
        totals: dict[str, list[Curve]] = {}
        for dimensions in nodes.values():
            for dimension, named in dimensions.items():
                named.setdefault(TOTAL, mean_of(list(named.values())))
                totals.setdefault(dimension, []).append(named[TOTAL])
        nodes = nodes if self._show_workers else {}
        nodes[NODE_TOTAL] = {one: {TOTAL: mean_of(some)} for one, some in totals.items()}
        if not totals:
            return {}
        return {
            f"{dimension}_{name}_{node}": curve
            for node, dimensions in nodes.items()
            for dimension, named in dimensions.items()
            for name, curve in named.items()
            if matching([name], self._patterns)
        }


def _share(curve: Curve) -> Curve:
    """Return a curve in percent of its most."""
    most = float(curve.value.max(initial=0.0))
    return Curve(curve.time_us, 100 * curve.value / most) if most > 0 else curve


def _grid(times_us: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return moments as far from each other as samples are, from the first to the last one.

    Returns
    -------
    NDArray
        Shape ``(columns, moments in each)``.
    """
    if len(times_us) < 2:  # noqa: PLR2004 - it takes two to be apart
        return times_us.reshape(-1, 1)
    first, last = int(times_us[0]), int(times_us[-1])
    count = round((last - first) / np.median(np.diff(times_us))) + 1
    each = -(-min(count, _MOST_MOMENTS) // _COLUMNS)
    columns = min(count // each, _COLUMNS)
    return np.linspace(first, last, columns * each).astype(np.int64).reshape(columns, each)


def _means(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean of each row of values, of those that are there; NaN if none is."""
    seen = np.isfinite(values)
    counts = seen.sum(axis=1)
    sums = np.where(seen, values, 0.0).sum(axis=1)
    means: NDArray[np.float64] = np.divide(
        sums, counts, out=np.full(len(values), np.nan), where=counts > 0
    )
    return means
