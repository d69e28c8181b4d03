"""Heatmap: the usage of each resource over time, as colours."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rule_core.analysis.charts.chart import US_PER_MS, Panel, PanelChart, Rows
from rule_core.analysis.charts.curves import (
    TOTAL,
    USUAL_INTERVAL_US,
    Curve,
    SystemCurves,
    mean_of,
    moments,
)
from rule_core.analysis.charts.drawn import Drawn
from rule_core.model.patterns import flatten, matching
from rule_core.profiler.readers.system_reader import SystemMetricsReader

NODE_TOTAL: Final = "node_total"
# Dimensions without an upper limit are shown relative to their maximum.
_UNBOUNDED: Final = frozenset({"Algorithm", "Platform", ""})
_COLUMNS: Final = 2000  # more than the width of a screen
_MOST_MOMENTS: Final = 2_000_000  # per row; a month with a sample each second


class Heatmap(Drawn):
    """A row for each node, dimension and metric, and for means of metrics and nodes.

    A dimension's ``total`` is the mean of its metrics at each moment; ``node_total`` is that of all
    nodes. All rows share their times, and missing samples are grey.

    Parameters
    ----------
    metrics_reader
        Reader of the job's system metrics.
    select_metrics
        Ignored; notebooks for smdebug pass the other reader here.
    starttime, endtime
        Time range in microseconds since the epoch; None is unbounded.
    select_dimensions, select_events
        Regular expressions that select dimensions or metrics by searching their names.
    plot_height
        Height in pixels.
    show_workers
        Whether to show a row for each node.

    Attributes
    ----------
    times_us
        The middle of each column, in microseconds since the epoch; shape ``(columns,)``.
    rows
        Values from 0 to 100 by row name, NaN where missing; each has the shape of `times_us`.

    Raises
    ------
    re.error
        If a regular expression is invalid.
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
        self._align()
        self.show()

    def update_data(self, current_timestamp: float) -> None:
        """Add data up to a time, in microseconds since the epoch."""
        if self._source.update(current_timestamp):
            self._align()
            self._renew()

    def chart(self) -> PanelChart:
        """Return the chart of the rows, the first one on top."""
        if not self.rows:
            return PanelChart("Usage of resources", (), note="No metrics are selected.")
        half = (self.times_us[-1] - self.times_us[0]) / max(len(self.times_us) - 1, 1) / 2
        half = half or USUAL_INTERVAL_US / 2
        start, end = (self.times_us[[0, -1]] + [-half, half]) / US_PER_MS
        values = np.array([*reversed(self.rows.values())])
        mark = Rows(float(start), float(end), values, [*reversed(self.rows)])
        limits = mark.start, mark.end
        panel = Panel(
            "", "time (UTC)", "", mark, in_time=True, x_range=limits, height=self.plot_height
        )
        return PanelChart("Usage of resources", (panel,))

    def _align(self) -> None:
        """Sample all rows at the same, evenly spaced times."""
        curves = self._selected()
        times, near_us = moments(list(curves.values()))
        grid = _grid(times)
        self.times_us: NDArray[np.int64] = grid.mean(axis=1).astype(np.int64)
        self.rows: dict[str, NDArray[np.float64]] = {
            name: _means(curve.at(grid.ravel(), max(near_us, curve.near_us())).reshape(grid.shape))
            for name, curve in curves.items()
        }

    def _selected(self) -> dict[str, Curve]:
        """Return the selected curves by row name."""
        nodes: dict[str, dict[str, dict[str, Curve]]] = {}
        for key, curve in self._source.series().items():
            scaled = _share(curve) if key.dimension in _UNBOUNDED else curve
            metrics = nodes.setdefault(key.node, {}).setdefault(key.dimension, {})
            metrics[key.name or ""] = scaled
        totals: dict[str, list[Curve]] = {}
        for dimensions in nodes.values():
            for dimension, metrics in dimensions.items():
                metrics.setdefault(TOTAL, mean_of(list(metrics.values())))
                totals.setdefault(dimension, []).append(metrics[TOTAL])
        nodes = nodes if self._show_workers else {}
        nodes[NODE_TOTAL] = {name: {TOTAL: mean_of(curves)} for name, curves in totals.items()}
        return {
            f"{dimension}_{name}_{node}": curve
            for node, dimensions in nodes.items()
            for dimension, metrics in dimensions.items()
            for name, curve in metrics.items()
            if matching([name], self._patterns)
        }


def _share(curve: Curve) -> Curve:
    """Return a curve in percent of its maximum."""
    most = float(curve.value.max(initial=0.0))
    return Curve(curve.time_us, 100 * curve.value / most) if most > 0 else curve


def _grid(times_us: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return evenly spaced times at the rate of the samples, from the first to the last one.

    Returns
    -------
    NDArray
        Shape ``(columns, times per column)``.
    """
    if len(times_us) <= 1:
        return times_us.reshape(-1, 1)
    first, last = int(times_us[0]), int(times_us[-1])
    count = round((last - first) / np.median(np.diff(times_us))) + 1
    per_column = -(-min(count, _MOST_MOMENTS) // _COLUMNS)
    columns = min(count // per_column, _COLUMNS)
    times = np.linspace(first, last, columns * per_column).astype(np.int64)
    return times.reshape(columns, per_column)


def _means(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean of the finite values in each row, NaN without any."""
    is_finite = np.isfinite(values)
    counts = is_finite.sum(axis=1)
    sums = np.where(is_finite, values, 0.0).sum(axis=1)
    means: NDArray[np.float64] = np.divide(
        sums, counts, out=np.full(len(values), np.nan), where=counts > 0
    )
    return means
