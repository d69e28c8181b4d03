"""MetricsHistogram: histograms of system metrics."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rule_core.analysis.charts.chart import Bars, Panel, PanelChart
from rule_core.analysis.charts.curves import Curves, SystemCurves, percent, selected
from rule_core.analysis.charts.drawn import Drawn
from rule_core.profiler.readers.system_reader import SystemMetricsReader

_COLUMNS: Final = 3
_PERCENT: Final = 100.0


class MetricsHistogram(Drawn):
    """Histograms of system metrics, one for each dimension and metric.

    Each dimension also has ``total``, the mean of its metrics at each moment.

    Parameters
    ----------
    metrics_reader
        Reader of the job's system metrics.

    Attributes
    ----------
    system_metrics
        The displayed curves by dimension and metric.
    """

    _source: SystemCurves | None
    _events: Sequence[str]
    system_metrics: Curves

    def __init__(self, metrics_reader: SystemMetricsReader) -> None:
        self.metrics_reader = metrics_reader
        self.clear()

    def plot(
        self,
        starttime: float = 0,
        endtime: float | None = None,
        select_dimensions: Sequence[str] = (".*",),
        select_events: Sequence[str] = (".*",),
        show_workers: bool = True,
    ) -> None:
        """Read the metrics of a time range, and show them in a notebook.

        Parameters
        ----------
        starttime, endtime
            Time range in microseconds since the epoch; None is unbounded.
        select_dimensions, select_events
            Regular expressions that select dimensions or metrics by searching their names.
        show_workers
            Whether to show each node instead of their mean.

        Raises
        ------
        re.error
            If a regular expression is invalid.
        """
        self._source = SystemCurves(
            self.metrics_reader, starttime, endtime, select_dimensions, show_workers=show_workers
        )
        self._events = select_events
        self.system_metrics = selected(self._source.curves(), select_events)
        self.show()

    def update_data(self, current_timestamp: float) -> None:
        """Add data up to a time, in microseconds since the epoch."""
        if self._source is not None and self._source.update(current_timestamp):
            self.system_metrics = selected(self._source.curves(), self._events)
            self._renew()

    def clear(self) -> None:
        """Remove all data."""
        self._source = None
        self._events = ()
        self.system_metrics = {}

    def chart(self) -> PanelChart:
        """Return the chart of the histograms."""
        panels = []
        for dimension, curves in self.system_metrics.items():
            in_percent = percent(dimension, curves.values())
            for name, curve in curves.items():
                bars = shares(curve.value) if in_percent else amounts(curve.value)
                label = "%" if in_percent else "value"
                panels.append(Panel(f"{dimension} {name}", label, "samples", bars))
        return PanelChart("Histograms of system metrics", tuple(panels), columns=_COLUMNS)


def shares(values: NDArray[np.float64]) -> Bars:
    """Return bars of width 2 for values from 0 to 100; others are counted at the ends."""
    return Bars.of(np.clip(values, 0.0, _PERCENT), 0.0, _PERCENT)


def amounts(values: NDArray[np.float64]) -> Bars:
    """Return bars from the smallest to the largest finite value."""
    finite = values[np.isfinite(values)]
    return Bars.of(finite, *((finite.min(), finite.max()) if len(finite) else (0.0, 0.0)))
